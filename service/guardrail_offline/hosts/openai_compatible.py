"""Models behind the protocol of OpenAI's chat completions and embeddings, whoever serves them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guardrail_offline.hosts.chat import Completion, Message
from guardrail_offline.hosts.endpoint import Endpoint
from guardrail_offline.hosts.errors import BadReply


@dataclass(frozen=True)
class OpenAICompatible:
    """One model of one server.

    Attributes:
        endpoint: Its base address, usually ending with /v1.
        model: As the server calls it; with Azure the deployment.
        in_path: Whether the model stands in the address and not in the body, as with Azure.
    """

    endpoint: Endpoint
    model: str
    in_path: bool = False

    @property
    def name(self) -> str:
        """Return address and model."""
        return json.dumps([self.endpoint.url, *sorted(self.endpoint.query.items()), self.model])

    def chat(self, messages: Sequence[Message], **options: Any) -> Completion:
        """Return the model's next message.

        Args:
            messages: Each with `role` and `content`.
            options: Of the protocol: temperature, max_tokens, response_format and so on.

        Raises:
            HostError: If the server does not answer, or not as the protocol says.
        """
        body = {**self._named, "messages": list(messages), **options}
        reply = self.endpoint.post(body, "/chat/completions")
        choice = self._first(reply.value, "choices")
        text, finish = _at(choice, "message", "content"), _text(choice.get("finish_reason"))
        refused = bool(_text(_at(choice, "message", "refusal"))) or finish == "content_filter"
        if refused and text is None:
            text = ""
        if not isinstance(text, str):
            raise BadReply(self.endpoint.host, kind_of(text), "choices[0].message.content, a text")
        cached = _at(reply.value, "usage", "prompt_tokens_details", "cached_tokens")
        logprobs = _at(choice, "logprobs", "content")
        return Completion(
            text,
            finish,
            _tokens(reply.value),
            reply.seconds,
            cached=cached if isinstance(cached, int) else None,
            fingerprint=_text(_at(reply.value, "system_fingerprint")),
            refused=refused,
            logprobs=logprobs if isinstance(logprobs, list) else (),
            attempts=reply.attempts,
        )

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order; all of one length.

        Raises:
            HostError: If the server does not answer, or not as the protocol says.
        """
        reply = self.endpoint.post({**self._named, "input": list(texts)}, "/embeddings")
        rows = reply.value.get("data") if isinstance(reply.value, Mapping) else None
        found = {
            row["index"]: row.get("embedding")
            for row in (rows if isinstance(rows, list) else ())
            if isinstance(row, Mapping) and type(row.get("index")) is int
        }
        if found.keys() != set(range(len(texts))):
            raise BadReply(self.endpoint.host, "other vectors", f"one for each of {len(texts)}")
        ordered = [found[place] for place in range(len(texts))]
        return checked_vectors(ordered, len(texts), self.endpoint.host)

    @property
    def _named(self) -> dict[str, str]:
        return {} if self.in_path else {"model": self.model}

    def _first(self, value: Any, key: str) -> Mapping[str, Any]:
        rows = value.get(key) if isinstance(value, Mapping) else None
        if not isinstance(rows, list) or not rows or not isinstance(rows[0], Mapping):
            raise BadReply(self.endpoint.host, f"no {key}", f"a list of {key}")
        return rows[0]


def checked_vectors(rows: Any, count: int, host: str) -> list[list[float]]:
    """Return the vectors of a reply.

    Raises:
        BadReply: If they are fewer or more, of several lengths, or no numbers.
    """
    good = isinstance(rows, list) and len(rows) == count and all(map(_is_vector, rows))
    if not good or len({len(row) for row in rows}) > 1:
        raise BadReply(host, "other vectors", f"one for each of {count}")
    return rows  # type: ignore[no-any-return]


def kind_of(value: Any) -> str:
    """Return what messages call a value that should have been another."""
    return "nothing" if value is None else type(value).__name__


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _tokens(value: Any) -> tuple[int, int] | None:
    counts = [_at(value, "usage", key) for key in ("prompt_tokens", "completion_tokens")]
    if all(isinstance(count, int) for count in counts):
        return counts[0], counts[1]
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _is_vector(values: Any) -> bool:
    """Return whether a value is numbers; true and false are none."""
    return isinstance(values, list) and all(type(number) in (int, float) for number in values)

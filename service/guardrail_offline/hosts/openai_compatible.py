"""Models behind the protocol of OpenAI's chat completions and embeddings, whoever serves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from guardrail_offline.hosts.endpoint import BadReply, Endpoint

Message = Mapping[str, str]


class Completion(NamedTuple):
    """A model's next message.

    Attributes:
        text: May be empty.
        finish: Why it ended: `stop`, `length` and so on; None where the server does not say.
        tokens: Prompt and completion tokens as the server counts them; None where it does not.
        seconds: The request took so long.
        cached: Prompt tokens that the server had cached; None where it does not say.
        fingerprint: Of the served system, where the server gives one.
        refused: The model declined to answer.
        logprobs: Log probabilities of the tokens as the protocol has them, if they were asked for.
    """

    text: str
    finish: str | None
    tokens: tuple[int, int] | None
    seconds: float
    cached: int | None = None
    fingerprint: str | None = None
    refused: bool = False
    logprobs: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class OpenAICompatible:
    """One model of one server.

    Attributes:
        endpoint: Its base address, usually ending with /v1.
        model: As the server calls it.
    """

    endpoint: Endpoint
    model: str

    def chat(self, messages: Sequence[Message], **options: Any) -> Completion:
        """Return the model's next message.

        Args:
            messages: Each with `role` and `content`.
            options: Of the protocol: temperature, max_tokens, response_format and so on.

        Raises:
            HostError: If the server does not answer, or not as the protocol says.
        """
        body = {"model": self.model, "messages": list(messages), **options}
        reply = self.endpoint.post(body, "/chat/completions")
        choice = self._first(reply.value, "choices")
        text = _at(choice, "message", "content")
        finish = _text(choice.get("finish_reason"))
        refused = bool(_text(_at(choice, "message", "refusal"))) or finish == "content_filter"
        if refused and text is None:
            text = ""
        if not isinstance(text, str):
            raise BadReply(self.endpoint.host, _kind(text), "choices[0].message.content, a text")
        cached = _at(reply.value, "usage", "prompt_tokens_details", "cached_tokens")
        logprobs = _at(choice, "logprobs", "content")
        return Completion(
            text,
            finish,
            _tokens(reply.value),
            reply.seconds,
            cached if isinstance(cached, int) else None,
            _text(_at(reply.value, "system_fingerprint")),
            refused,
            logprobs if isinstance(logprobs, list) else (),
        )

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order; all of one length.

        Raises:
            HostError: If the server does not answer, or not as the protocol says.
        """
        reply = self.endpoint.post({"model": self.model, "input": list(texts)}, "/embeddings")
        rows = reply.value.get("data") if isinstance(reply.value, Mapping) else None
        found = {
            row["index"]: row["embedding"]
            for row in (rows if isinstance(rows, list) else ())
            if isinstance(row, Mapping) and _is_vector(row)
        }
        sizes = {len(vector) for vector in found.values()}
        if found.keys() != set(range(len(texts))) or len(sizes) > 1:
            raise BadReply(self.endpoint.host, "other vectors", f"one for each of {len(texts)}")
        return [found[place] for place in range(len(texts))]

    def _first(self, value: Any, key: str) -> Mapping[str, Any]:
        rows = value.get(key) if isinstance(value, Mapping) else None
        if not isinstance(rows, list) or not rows or not isinstance(rows[0], Mapping):
            raise BadReply(self.endpoint.host, f"no {key}", f"a list of {key}")
        return rows[0]


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _tokens(value: Any) -> tuple[int, int] | None:
    counts = [_at(value, "usage", key) for key in ("prompt_tokens", "completion_tokens")]
    if all(isinstance(count, int) for count in counts):
        return counts[0], counts[1]
    return None


def _is_vector(row: Mapping[str, Any]) -> bool:
    """Return whether a row has a place and numbers; true and false are neither."""
    values = row.get("embedding")
    return (
        type(row.get("index")) is int
        and isinstance(values, list)
        and all(type(number) in (int, float) for number in values)
    )


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__

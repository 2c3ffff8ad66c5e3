"""Models behind Ollama's own protocol: `/api/chat` and `/api/embed`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guardrail_offline.datasets.images import split_content
from guardrail_offline.hosts.chat import Completion, Message
from guardrail_offline.hosts.endpoint import Endpoint
from guardrail_offline.hosts.errors import BadReply, NeedsVision
from guardrail_offline.hosts.openai_compatible import checked_vectors, kind_of

_RUNTIME = {
    "temperature": "temperature", "top_p": "top_p", "seed": "seed", "stop": "stop",
    "max_tokens": "num_predict", "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}  # fmt: skip
"""Options of OpenAI's protocol by their names here."""


@dataclass(frozen=True)
class OllamaHost:
    """One model of an Ollama server.

    It is told to refuse what is longer than its context, where it would cut the beginning off.

    Attributes:
        endpoint: Its address, such as http://localhost:11434.
        model: Such as `llama3.2:3b`.
    """

    endpoint: Endpoint
    model: str

    @property
    def name(self) -> str:
        """Return protocol, address and model."""
        return json.dumps(["ollama", self.endpoint.url, self.model])

    def chat(self, messages: Sequence[Message], **options: Any) -> Completion:
        """Return the model's next message; see `ChatHost`.

        Raises:
            NeedsVision: If an image is an address: Ollama takes bytes only.
            HostError: If the server does not answer, or not as the protocol says.
        """
        body = {
            "model": self.model,
            "messages": [self._message(one) for one in messages],
            "stream": False,
            "truncate": False,
            "shift": False,
            **_translated(options),
        }
        reply = self.endpoint.post(body, "/api/chat")
        value = reply.value if isinstance(reply.value, Mapping) else {}
        message = value.get("message")
        text = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(text, str):
            raise BadReply(self.endpoint.host, kind_of(text), "message.content, a text")
        finish, logprobs = value.get("done_reason"), value.get("logprobs")
        counts = (value.get("prompt_eval_count", 0), value.get("eval_count"))
        counted = all(type(count) is int for count in counts)
        return Completion(
            text,
            finish if isinstance(finish, str) else None,
            (int(counts[0]), int(counts[1] or 0)) if counted else None,
            reply.seconds,
            logprobs=logprobs if isinstance(logprobs, list) else (),
            attempts=reply.attempts,
        )

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order; all of one length.

        Raises:
            ContextTooLong: If a text is longer than the model reads: nothing is cut off.
            HostError: If the server does not answer, or not as the protocol says.
        """
        body = {"model": self.model, "input": list(texts), "truncate": False}
        value = self.endpoint.post(body, "/api/embed").value
        rows = value.get("embeddings") if isinstance(value, Mapping) else None
        return checked_vectors(rows, len(texts), self.endpoint.host)

    def _message(self, message: Message) -> dict[str, Any]:
        text, images = split_content(message["content"])
        found: dict[str, Any] = {"role": message["role"], "content": text}
        if any(image.is_remote for image in images):
            raise NeedsVision(self.endpoint.host)
        if images:
            found["images"] = [base64.b64encode(image.data).decode() for image in images]
        return found


def _translated(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of OpenAI's protocol as Ollama names them; others as they are."""
    found: dict[str, Any] = {}
    runtime: dict[str, Any] = dict(options.get("options") or {})
    for name, value in options.items():
        if name in _RUNTIME:
            runtime[_RUNTIME[name]] = value
        elif name == "response_format":
            if (form := _form(value)) is not None:
                found["format"] = form
        elif name != "options":
            found[name] = value
    return {**found, "options": runtime} if runtime else found


def _form(value: Mapping[str, Any]) -> Any:
    if value.get("type") == "json_schema":
        return value["json_schema"]["schema"]
    return "json" if value.get("type") == "json_object" else None

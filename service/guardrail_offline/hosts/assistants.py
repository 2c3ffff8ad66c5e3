"""OpenAI's Assistants, version 2: a thread per question, a run, and its message.

An assistant with File Search finds passages by itself; they come with the steps of the run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guardrail_offline.datasets.images import split_content
from guardrail_offline.hosts.chat import Completion, Message
from guardrail_offline.hosts.endpoint import Endpoint, Reply
from guardrail_offline.hosts.errors import (
    BadReply,
    HostError,
    HostRefused,
    HostUnavailable,
    NeedsVision,
    RateLimited,
    TimedOut,
)

HEADERS = {"OpenAI-Beta": "assistants=v2"}
"""Every request says which version it speaks."""
SETTINGS = ("thread_kwargs", "run_kwargs")
"""What H2O calls the further fields of a thread and of a run."""
_GOING_ON = ("queued", "in_progress", "cancelling")
_FOUND = "step_details.tool_calls[*].file_search.results[*].content"
_RUN_OPTIONS = ("temperature", "top_p", "response_format")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 5.0


@dataclass(frozen=True)
class Assistant:
    """One assistant, asked in a thread of its own each time; the thread is deleted then.

    Attributes:
        endpoint: With `HEADERS`; its time limit is that of a whole run, too.
        model: The assistant's id, such as `asst_abc123`.
        settings: `thread_kwargs` and `run_kwargs`, sent as they are.
    """

    endpoint: Endpoint
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return protocol, address and assistant."""
        found = ["assistants", self.endpoint.url, self.model]
        return json.dumps([*found, self.settings] if self.settings else found)

    def chat(self, messages: Sequence[Message], **options: Any) -> Completion:
        """Return the assistant's message; see `ChatHost`.

        System messages are added to the assistant's own instructions. Options that runs do not
        have, such as `seed`, are left out.

        Raises:
            TimedOut: If the run does not end in time.
            HostError: If it fails, or the server does not answer as the protocol says.
        """
        started = time.monotonic()
        run = self.endpoint.post(self._body(messages, options), "/threads/runs")
        thread = self._text(run.value, "thread_id")
        try:
            ended = self._ended(run, thread)
            said = self._said(ended.value, thread)
            contexts = self._contexts(thread, self._text(ended.value, "id"))
        finally:
            self._forget(thread)
        finish, refused = _finish(ended.value)
        return Completion(
            said,
            finish,
            _usage(ended.value),
            time.monotonic() - started,
            refused=refused,
            contexts=contexts,
            attempts=run.attempts,
        )

    def _body(self, messages: Sequence[Message], options: Mapping[str, Any]) -> dict[str, Any]:
        system = [split_content(m["content"])[0] for m in messages if m["role"] == "system"]
        said = [self._message(m) for m in messages if m["role"] != "system"]
        run = {name: options[name] for name in _RUN_OPTIONS if name in options}
        if "max_tokens" in options:
            run["max_completion_tokens"] = options["max_tokens"]
        if system:
            run["additional_instructions"] = "\n\n".join(system)
        thread = {**self.settings.get("thread_kwargs", {}), "messages": said}
        own = self.settings.get("run_kwargs", {})
        return {**run, **own, "assistant_id": self.model, "thread": thread}

    def _message(self, message: Message) -> dict[str, Any]:
        _, images = split_content(message["content"])
        if any(not image.is_remote for image in images):
            raise NeedsVision(self.endpoint.host)
        return {"role": message["role"], "content": message["content"]}

    def _ended(self, run: Reply, thread: str) -> Reply:
        """Return the run when it has ended, looked at less and less often."""
        host, limit = self.endpoint.host, self.endpoint.limits.timeout_s
        id_ = self._text(run.value, "id")
        path, pause, begun, waited = (
            f"/threads/{thread}/runs/{id_}",
            _FIRST_PAUSE_S,
            time.monotonic(),
            0.0,
        )
        while (status := self._text(run.value, "status")) in _GOING_ON:
            if max(waited, time.monotonic() - begun) >= limit:
                raise TimedOut(f"{host}: a run that has not ended within {limit:g} s")
            self.endpoint.sleep(pause)
            waited, pause = waited + pause, min(2 * pause, _LONGEST_PAUSE_S)
            run = self.endpoint.get(path)
        if status in ("completed", "incomplete"):
            return run
        raise self._failed(run.value, status)

    def _failed(self, run: Any, status: str) -> HostError:
        host = self.endpoint.host
        error = run.get("last_error")
        code = error.get("code") if isinstance(error, Mapping) else None
        if code == "rate_limit_exceeded":
            return RateLimited(f"{host}: found a run over the limit; expected a slower pace")
        if code == "server_error" or status == "expired":
            return HostUnavailable(f"{host}: a run that {'expired' if code is None else 'failed'}")
        if code == "invalid_prompt":
            return HostRefused(host)
        found = "a run that asks for a tool" if status == "requires_action" else "a run without end"
        return BadReply(host, found, "a run that completes by itself")

    def _said(self, run: Any, thread: str) -> str:
        query = {"run_id": self._text(run, "id"), "order": "asc"}
        value = self.endpoint.get(f"/threads/{thread}/messages", query).value
        texts = [
            part["text"]["value"]
            for message in _rows(value)
            if message.get("role") == "assistant"
            for part in _rows({"data": message.get("content")})
            if part.get("type") == "text" and isinstance(part["text"].get("value"), str)
        ]
        if not texts and run.get("status") == "completed":
            raise BadReply(self.endpoint.host, "no message", "a message of the assistant")
        return "\n".join(texts)

    def _contexts(self, thread: str, run: str) -> tuple[str, ...] | None:
        """Return the passages that File Search found; None if it did not search or does not say."""
        value = self.endpoint.get(
            f"/threads/{thread}/runs/{run}/steps", {"include[]": _FOUND}
        ).value
        found: list[str] | None = None
        for result in _results(value):
            texts = [p["text"] for p in _rows({"data": result.get("content")}) if "text" in p]
            if texts:
                found = [*(found or ()), "\n".join(texts)]
        return None if found is None else tuple(found)

    def _forget(self, thread: str) -> None:
        try:
            self.endpoint.delete(f"/threads/{thread}")
        except HostError:  # it expires by itself
            return

    def _text(self, value: Any, key: str) -> str:
        found = value.get(key) if isinstance(value, Mapping) else None
        if not isinstance(found, str):
            raise BadReply(self.endpoint.host, f"no {key}", f"a run with its {key}")
        return found


def _rows(value: Any) -> Iterator[Mapping[str, Any]]:
    rows = value.get("data") if isinstance(value, Mapping) else None
    yield from (row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, Mapping))


def _results(steps: Any) -> Iterator[Mapping[str, Any]]:
    """Yield what File Search found, the steps in the order in which they were made."""
    for step in reversed(list(_rows(steps))):  # the newest comes first
        details = step.get("step_details")
        calls = details.get("tool_calls") if isinstance(details, Mapping) else None
        for call in _rows({"data": calls}):
            search = call.get("file_search")
            if isinstance(search, Mapping):
                yield from _rows({"data": search.get("results")})


def _usage(run: Mapping[str, Any]) -> tuple[int, int] | None:
    usage = run.get("usage")
    found = usage if isinstance(usage, Mapping) else {}
    counts = found.get("prompt_tokens"), found.get("completion_tokens")
    return counts if all(type(count) is int for count in counts) else None  # type: ignore[return-value]


def _finish(run: Mapping[str, Any]) -> tuple[str, bool]:
    if run.get("status") == "completed":
        return "stop", False
    details = run.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, Mapping) else None
    return ("content_filter", True) if reason == "content_filter" else ("length", False)

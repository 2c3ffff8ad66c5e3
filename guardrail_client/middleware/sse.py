"""Server-sent events: cut a byte stream into events, find the text in them, put other text there.

Pure. A text is found under a lane: choices of one response are separate answers, and so are an
answer and the reasoning before it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from guardrail_client.middleware.bodies import UnreadableBody

MAX_EVENT = 1024 * 1024
"""Bytes of one event; a chunk of a chat completion has some hundred."""
TEXT_FIELDS = ("content", "refusal", "reasoning_content", "reasoning")
"""Fields of a chunk's delta that readers may be shown."""
Lane = tuple[int, str]
DONE = "[DONE]"
BOM = b"\xef\xbb\xbf"
"""Readers of events skip one at the very beginning."""


class Events:
    """Cuts bytes into events, whatever the chunks and line ends."""

    def __init__(self) -> None:
        self._first: bytes | None = b""  # what may yet become a byte-order mark; None: behind it
        self._rest = bytearray()
        self._returned = False  # the last byte was "\r", a line end whose "\n" may follow

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the events that are complete, without the blank line behind them.

        Raises:
            UnreadableBody: If an event is too large.
        """
        at = max(0, len(self._rest) - 1)  # a blank line may have begun with what is there
        self._rest += self._with_newlines(self._without_mark(data))
        start = 0
        events = []
        while (end := self._rest.find(b"\n\n", at)) >= 0:
            events.append(bytes(self._rest[start:end]).strip(b"\n"))
            start = at = end + 2
        del self._rest[:start]
        for event in events:
            if len(event) > MAX_EVENT:
                raise UnreadableBody("event_too_large")
            if event:
                yield event
        if len(self._rest) > MAX_EVENT:
            raise UnreadableBody("event_too_large")

    def end(self) -> Iterator[bytes]:
        """Yield what is left at the end of the stream."""
        rest = ((self._first or b"") + self._rest).strip(b"\n")
        self._first = None
        self._rest.clear()
        if rest:
            yield rest

    def _without_mark(self, data: bytes) -> bytes:
        """Return bytes without the byte-order mark of the stream, which may come in pieces."""
        if self._first is None:
            return data
        first = self._first + data
        if len(first) < len(BOM) and BOM.startswith(first):
            self._first = first
            return b""
        self._first = None
        return first.removeprefix(BOM)

    def _with_newlines(self, data: bytes) -> bytes:
        """Return bytes with line ends of one kind; a "\r" ends its line without waiting."""
        if not data:
            return data
        if self._returned and data.startswith(b"\n"):
            data = data[1:]
        self._returned = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def data_of(event: bytes) -> str | None:
    """Return an event's data; None for one that has none, such as a comment."""
    lines = []
    for line in event.decode("utf-8", "replace").split("\n"):
        name, _, content = line.partition(":")
        if name == "data":
            lines.append(content.removeprefix(" "))
    return "\n".join(lines) if lines else None


def with_data(event: bytes, data: str) -> bytes:
    """Return an event with other data, its other fields kept."""
    kept = [
        line
        for line in event.decode("utf-8", "replace").split("\n")
        if line.partition(":")[0] != "data" and not line.startswith(("id:", ":"))
    ]
    lines = [*kept, *(f"data: {line}" for line in data.split("\n"))]
    return ("\n".join(lines) + "\n\n").encode()


def comment(text: str) -> bytes:
    """Return a comment, which every reader of events skips."""
    return f": {text}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Found:
    """The texts of one event, by lane, and the event without them.

    Attributes:
        texts: What to check.
        rest: The event without its texts; None if nothing is left of it.
        template: Carries text of a lane later on.
        ends: Which choices have no more text; their lanes are sent before `rest`.
        is_last: Whether nothing has more text.
    """

    texts: dict[Lane, str]
    rest: bytes | None
    template: bytes
    ends: frozenset[int] = frozenset()
    is_last: bool = False


def find(event: bytes, shape: str) -> Found:
    """Return what an event holds.

    Args:
        event: As it came.
        shape: `openai`, `text`, or a JSON pointer.

    Raises:
        UnreadableBody: If it is not of that shape, so that nobody knows what a reader sees.
    """
    data = data_of(event)
    if data is None or data.strip() == DONE:
        return Found({}, event + b"\n\n", event, is_last=data is not None)
    if shape == "text":
        return Found({(0, "text"): data}, None, event)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise UnreadableBody("event_not_json") from None
    if shape == "openai":
        return _openai(event, document)
    return _pointed(event, document, shape)


def blank(shape: str) -> bytes:
    """Return a template for a stream of which no event was read."""
    if shape == "text":
        return b"data:"
    if shape == "openai":
        return b'data: {"object":"chat.completion.chunk","choices":[]}'
    document: Any = ""
    for part in reversed(shape.split("/")[1:]):
        document = {part.replace("~1", "/").replace("~0", "~"): document}
    return f"data: {_json(document)}".encode()


def fill(template: bytes, shape: str, lane: Lane, text: str) -> bytes:
    """Return an event like the template that carries this text on this lane, and nothing else."""
    if shape == "text":
        return with_data(template, text)
    document = json.loads(data_of(template) or "{}")
    if shape != "openai":
        _put(document, shape, text)
        return with_data(template, _json(document))
    index, name = lane
    choice: dict[str, Any] = {"index": index, "finish_reason": None}
    choice |= {"text": text} if name == "text" else {"delta": {name: text}}
    document["choices"] = [choice]
    document.pop("usage", None)
    return with_data(template, _json(document))


def stopped(template: bytes, shape: str, lane: Lane) -> bytes:
    """Return the event that says that a filter has ended the answer; nothing where none can."""
    if shape != "openai":
        return b""
    document = json.loads(data_of(template) or "{}")
    index, name = lane
    body: dict[str, Any] = {"text": ""} if name == "text" else {"delta": {}}
    document["choices"] = [{"index": index, **body, "finish_reason": "content_filter"}]
    document.pop("usage", None)
    done = with_data(template, DONE)
    return with_data(template, _json(document)) + done


def _openai(event: bytes, document: Any) -> Found:
    choices = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(choices, list):
        if isinstance(document, dict) and "error" in document:
            return Found({}, event + b"\n\n", event)
        raise UnreadableBody("event_not_openai")
    texts: dict[Lane, str] = {}
    rest = copy.deepcopy(document)
    for choice in rest["choices"]:
        index = int(choice.get("index") or 0)
        delta = choice.get("delta")
        holders = [(choice, ("text",)), (delta if isinstance(delta, dict) else {}, TEXT_FIELDS)]
        for holder, names in holders:
            for name in names:
                if isinstance(holder.get(name), str):
                    texts[index, name] = texts.get((index, name), "") + holder[name]
                    holder[name] = ""
    ends = frozenset(int(c.get("index") or 0) for c in rest["choices"] if c.get("finish_reason"))
    left = with_data(event, _json(rest)) if _says_more(rest) else None
    return Found(texts, left, event, ends)


def _says_more(document: dict[str, Any]) -> bool:
    """Return whether a chunk without its texts still has something to tell."""
    if document.get("usage") or not document["choices"]:
        return True
    return any(
        choice.get("finish_reason") or any((choice.get("delta") or {}).values())
        for choice in document["choices"]
    )


def _pointed(event: bytes, document: Any, pointer: str) -> Found:
    holder, key = _holder(document, pointer)
    text = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(text, str):
        return Found({}, event + b"\n\n", event)
    return Found({(0, pointer): text}, None, event)


def _put(document: Any, pointer: str, text: str) -> None:
    holder, key = _holder(document, pointer)
    if isinstance(holder, dict):
        holder[key] = text


def _holder(document: Any, pointer: str) -> tuple[Any, str]:
    *way, key = [p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:]]
    for part in way:
        document = document.get(part) if isinstance(document, dict) else None
    return document, key


def _json(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))

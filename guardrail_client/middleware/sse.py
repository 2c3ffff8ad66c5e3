"""Server-sent events: cut a byte stream into events, find the text in them, put other text there.

Pure. A text is found under a lane: choices of one response are separate answers, and so are an
answer and the reasoning before it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.documents import (
    MAX_BLANKS,
    at_place,
    strict_json,
    string_places,
)
from guardrail_client.middleware.shapes import IDENTIFIERS, OPENAI_CHAT

MAX_EVENT = 1024 * 1024
"""Bytes of one event; a chunk of a chat completion has some hundred."""
MAX_NAME = 64
TOOL_CALL = "tool_call:"
OPENAI_CODES = IDENTIFIERS | OPENAI_CHAT.codes
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
        others: Strings of `rest` that may say again what the texts say, or something else: it waits
            until they are known to repeat what may be shown.
    """

    texts: dict[Lane, str]
    rest: bytes | None
    template: bytes
    ends: frozenset[int] = frozenset()
    is_last: bool = False
    others: tuple[str, ...] = ()


def find(
    event: bytes, shape: str, tool_calls: str = "check", unchecked: Collection[str] = ()
) -> Found:
    """Return what an event holds.

    Args:
        event: As it came.
        shape: `openai`, `text`, or a JSON pointer.
        tool_calls: `check`, `unchecked` or `refuse`.
        unchecked: Names of events that pass as they are.

    Raises:
        UnreadableBody: If it holds a tool call where those are refused.
    """
    if (name := _field(event, "event")) is not None and name in unchecked:
        return Found({}, event + b"\n\n", event)
    event = _without_comments(event)
    data = data_of(event)
    if data is None or data.strip() == DONE:
        is_last = data is not None
        rest = event + b"\n\n" if event else b":\n\n"  # keeps the connection open
        return Found({}, rest, event, is_last=is_last, others=_odd_fields(event))
    if shape == "text":
        return Found({(0, "text"): data}, None, _plain_template(event))
    try:
        document = strict_json(data.encode())
    except UnreadableBody:
        return Found({}, event + b"\n\n", event, others=(data, *_odd_fields(event)))
    found = (
        _openai(event, document, tool_calls)
        if shape == "openai"
        else _pointed(event, document, shape)
    )
    return replace(found, others=(*found.others, *_odd_fields(event)))


def _field(event: bytes, name: str) -> str | None:
    for line in event.decode("utf-8", "replace").split("\n"):
        key, _, content = line.partition(":")
        if key == name:
            return content.removeprefix(" ")
    return None


def _without_comments(event: bytes) -> bytes:
    """Return an event's known fields: no reader shows the others, and a person may read them."""
    known = (b"event", b"id", b"retry", b"data")
    return b"\n".join(line for line in event.split(b"\n") if line.partition(b":")[0] in known)


def _odd_fields(event: bytes) -> tuple[str, ...]:
    """Return names of events and ids that are no names."""
    fields = (_field(event, name) for name in ("event", "id", "retry"))
    return tuple(f for f in fields if f and (len(f) > MAX_NAME or f.count(" ") > MAX_BLANKS))


def _plain_template(event: bytes) -> bytes:
    """Return an event as a template, without a name that is none."""
    return b"data:" if _odd_fields(event) else event


def _others(document: Any, codes: Collection[str]) -> tuple[str, ...]:
    """Return the strings of a document that are not known to be names or codes."""
    found = []
    for place in string_places(document):
        text = at_place(document, place)
        is_code = bool(place) and place[-1] in codes and text.count(" ") <= MAX_BLANKS
        if text.strip() and not is_code:
            found.append(text)
    return tuple(found)


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
    choice |= {"text": text} if name == "text" else {"delta": _delta(name, text)}
    document["choices"] = [choice]
    document.pop("usage", None)
    return with_data(template, _json(document))


def _delta(name: str, text: str) -> dict[str, Any]:
    if not name.startswith(TOOL_CALL):
        return {name: text}
    number = int(name.removeprefix(TOOL_CALL))
    return {"tool_calls": [{"index": number, "function": {"arguments": text}}]}


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


def _openai(event: bytes, document: Any, tool_calls: str) -> Found:
    choices = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        if isinstance(document, dict) and document.keys() == {"error"}:
            return Found({}, event + b"\n\n", event)
        return Found({}, event + b"\n\n", event, others=_others(document, OPENAI_CODES))
    texts: dict[Lane, str] = {}
    passing: set[str] = set()
    rest = copy.deepcopy(document)
    rest.pop("obfuscation", None)  # padding, of which nobody knows what it says
    for choice in rest["choices"]:
        index = int(choice.get("index") or 0)
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else {}
        choice.pop("logprobs", None)  # the tokens ahead of the text
        for holder, names in ((choice, ("text",)), (delta, TEXT_FIELDS)):
            for name in names:
                if isinstance(holder.get(name), str):
                    texts[index, name] = texts.get((index, name), "") + holder[name]
                    holder[name] = ""
        for name, call in _calls(delta):
            if tool_calls == "refuse":
                raise UnreadableBody("tool_call")
            if tool_calls == "unchecked":
                passing.add(call["arguments"])
            else:
                texts[index, name] = texts.get((index, name), "") + call["arguments"]
                call["arguments"] = ""
    ends = frozenset(int(c.get("index") or 0) for c in rest["choices"] if c.get("finish_reason"))
    left = with_data(event, _json(rest)) if _says_more(rest) else None
    others = tuple(text for text in _others(rest, OPENAI_CODES) if text not in passing)
    return Found(texts, left, event, ends, others=others)


def _calls(delta: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lane and the holder of each piece of arguments that a delta has."""
    calls = delta.get("tool_calls")
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            yield f"{TOOL_CALL}{int(call.get('index') or number)}", function


def _says_more(document: dict[str, Any]) -> bool:
    """Return whether a chunk without its texts still has something to tell."""
    if document.get("usage") or not document["choices"]:
        return True
    silent: tuple[Any, ...] = (None, "", [], {})
    return any(
        value not in silent
        for choice in document["choices"]
        for key, value in (*choice.items(), *_items(choice.get("delta")))
        if key not in ("index", "delta", "text")
    )


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else [("delta", value)]


def _pointed(event: bytes, document: Any, pointer: str) -> Found:
    holder, key = _holder(document, pointer)
    text = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(text, str):
        return Found({}, event + b"\n\n", event, others=_others(document, IDENTIFIERS))
    rest = copy.deepcopy(document)
    _put(rest, pointer, "")
    others = _others(rest, IDENTIFIERS)
    if not others:
        return Found({(0, pointer): text}, None, event)
    return Found({(0, pointer): text}, with_data(event, _json(rest)), event, others=others)


def without_others(template: bytes, shape: str) -> bytes:
    """Return a template without what else its event said."""
    if shape in ("openai", "text"):
        return template
    return blank(shape)


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

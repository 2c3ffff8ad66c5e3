"""Events of a stream: cut bytes into them, find the text in them, put other text there.

Inside, every event is one of server-sent events; lines of JSON become such and lines again.

Pure. A text is found under a lane: choices of one response are separate answers, and so are an
answer and the reasoning before it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.documents import (
    at_place,
    is_code,
    is_name,
    put,
    silenced,
    strict_json,
    string_places,
    without_sentences,
)
from guardrail_client.middleware.shapes import OPENAI_CHAT, Framing, Shape
from guardrail_client.middleware.stream_documents import (
    WHOLE,
    Key,
    Lane,
    filled,
    kind_of,
    read,
    said_when_stopped,
)
from guardrail_client.middleware.stream_shapes import STREAM_SHAPES, EventKind, StreamShape

MAX_EVENT = 1024 * 1024
"""Bytes of one event; a chunk of a chat completion has some hundred."""
MAX_NAME = 64
TOOL_CALL = "tool_call:"
ANY = "any"
"""The shape of a stream whose events say which it is."""
OWN = Shape("own")
OURS = "guardrail"
"""The field, or the name of the event, in which the guard says something itself."""
LINE_ENDS = "\x85\u2028\u2029"
ASIDE = ("thinking", "thinking_delta", "thought")
FAILURE = "Internal Server Error"
"""Stands in for the sentences of an event that says that the application failed."""
ENDS = ("end",)
"""Names of events without data behind which nothing follows."""
TEXT_FIELDS = ("content", "refusal", "reasoning_content", "reasoning")
"""Fields of a chunk's delta that readers may be shown."""
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
        while (end := self._rest.find(b"\n\n", at)) >= 0:
            event = bytes(self._rest[:end]).strip(b"\n")
            if len(event) > MAX_EVENT:
                raise UnreadableBody("event_too_large")
            del self._rest[: end + 2]
            at = 0
            if event:
                yield event
        if len(self._rest) > MAX_EVENT:
            raise UnreadableBody("event_too_large")

    def end(self) -> Iterator[bytes]:
        """Yield what is left at the end of the stream."""
        rest = self.unread().strip(b"\n")
        if rest:
            yield rest

    def unread(self) -> bytes:
        """Return what has not become an event, and forget it."""
        rest = (self._first or b"") + bytes(self._rest)
        self._first = None
        self._rest.clear()
        return rest

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


class Lines:
    """Cuts bytes into lines of JSON, each as an event."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield an event for each complete line that is not blank.

        Raises:
            UnreadableBody: If a line is too long.
        """
        at = len(self._rest)
        self._rest += data
        while (end := self._rest.find(b"\n", at)) >= 0:
            if end > MAX_EVENT:
                break
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            at = 0
            if line.strip():
                yield self.event(line.strip(b"\r"))
        if len(self._rest) > MAX_EVENT:
            raise UnreadableBody("event_too_large")

    def end(self) -> Iterator[bytes]:
        """Yield the last line if it has no end."""
        if (rest := self.unread()).strip():
            yield self.event(rest.strip(b"\r"))

    def unread(self) -> bytes:
        """Return what has not become an event, and forget it."""
        rest = bytes(self._rest)
        self._rest.clear()
        return rest

    def event(self, line: bytes) -> bytes:
        """Return a line as an event."""
        return b"data: " + line

    def sent(self, events: bytes) -> bytes:
        """Return events as lines; what is no data has no place in them."""
        lines = events.split(b"\n")
        return b"".join(self.line(one[6:]) + b"\n" for one in lines if one.startswith(b"data: "))

    def line(self, data: bytes) -> bytes:
        """Return the data of an event as a line."""
        return data


class Parts(Lines):
    """Cuts the lines of Vercel's older protocol: a letter, a colon and JSON."""

    def event(self, line: bytes) -> bytes:
        """Return a line as an event."""
        part, colon, value = line.partition(b":")
        if colon and part.isalnum():
            return b'data: {"part":"%s","value":%s}' % (part, value)
        return b"data: " + line

    def line(self, data: bytes) -> bytes:
        """Return the data of an event as a line."""
        head, found, value = data.partition(b'","value":')
        if not found:
            return data
        return head.removeprefix(b'{"part":"') + b":" + value.removesuffix(b"}")


Cutter = Events | Lines
CUTTERS: Mapping[Framing, type[Cutter]] = {"events": Events, "lines": Lines, "parts": Parts}


def first_shape(framing: Framing, shape: str) -> str:
    """Return the shape of a stream of which no event was read."""
    return UNTIL_KNOWN.get(framing, shape) if shape == ANY else shape


UNTIL_KNOWN: Mapping[Framing, str] = {"lines": "ollama-chat", "parts": "vercel-parts"}


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
        if line and line.partition(":")[0] != "data" and not line.startswith(("id:", ":"))
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
        template: Carries text of a lane later on; None if an earlier one should.
        ends: Which choices have no more text; their lanes are sent before `rest`.
        is_last: Whether nothing has more text.
        others: Strings of `rest` that may say again what the texts say, or something else: it waits
            until they are known to repeat what may be shown.
        shape: Which it turned out to be; None if that is not known.
    """

    texts: dict[Lane, str]
    rest: bytes | None
    template: bytes | None
    ends: frozenset[Key] = frozenset()
    is_last: bool = False
    others: tuple[str, ...] = ()
    shape: str | None = None


def find(
    event: bytes,
    shape: str,
    tool_calls: str = "check",
    unchecked: Collection[str] = (),
    errors: str = "removed",
) -> Found:
    """Return what an event holds.

    Args:
        event: As it came.
        shape: `any`, `openai`, `text`, a name of `STREAM_SHAPES`, or a JSON pointer.
        tool_calls: `check`, `unchecked` or `refuse`.
        unchecked: Names or types of events that pass as they are.
        errors: Whether sentences of an error are `removed` or `unchecked`.

    Raises:
        UnreadableBody: If it holds a tool call where those are refused.
    """
    name = _field(event, "event")
    if name is not None and name in unchecked:
        return Found({}, event + b"\n\n", event)
    event = _without_comments(event)
    data = data_of(event)
    if data is None or data.strip() == DONE:
        is_last = data is not None or name in ENDS
        rest = event + b"\n\n" if event else b":\n\n"  # keeps the connection open
        return Found({}, rest, event, is_last=is_last, others=_odd_fields(event))
    if shape == "text":
        return Found({(0, "text"): data}, None, _plain_template(event))
    try:
        document = _well_formed(data)
        said = _failure(document, errors)
    except UnreadableBody:
        return Found({}, event + b"\n\n", event, others=(data, *_odd_fields(event)))
    is_unchecked = isinstance(document, dict) and _text(document.get("type")) in unchecked
    if is_unchecked or said is not None:
        rest = (
            event + b"\n\n" if is_unchecked or said == document else with_data(event, _json(said))
        )
        return Found({}, rest, None, others=_odd_fields(event))
    kind = _kind(document, name, shape)
    if kind == OPENAI_CHAT.name:
        found = _openai(event, document, tool_calls)
    elif isinstance(kind, tuple):
        found = _tabled(event, document, *kind, tool_calls)
    elif kind is None:
        found = Found({}, event + b"\n\n", None, others=_others(document, OPENAI_CHAT))
    else:
        found = _pointed(event, document, kind)
    odd = _odd_fields(event)
    if odd and found.template is not None:
        found = replace(found, template=with_data(b"", data_of(found.template) or ""))
    return replace(found, others=(*found.others, *odd))


def _kind(
    document: Any, name: str | None, shape: str
) -> tuple[StreamShape, EventKind] | str | None:
    """Return how to read an event: a kind of a table, the shape's name, or None if nobody knows."""
    if shape not in (ANY, *STREAM_SHAPES):
        return shape
    if shape == ANY and isinstance(document, dict) and "choices" in document:
        return OPENAI_CHAT.name
    shapes = STREAM_SHAPES.values() if shape == ANY else (STREAM_SHAPES[shape],)
    return kind_of(document, name, shapes)


def _well_formed(data: str) -> Any:
    """Return JSON without half characters, which nothing can put together again.

    Raises:
        UnreadableBody: If readers could differ about it.
    """
    document = strict_json(data.encode())
    try:
        _json(document).encode()
    except UnicodeEncodeError:
        raise UnreadableBody("not_json") from None
    return document


def _failure(document: Any, errors: str) -> Any:
    """Return what an event may say that tells of an error; None for any other event."""
    if not isinstance(document, dict):
        return None
    if document.keys() != {"error"} and document.get("type") != "error":
        return None
    return document if errors == "unchecked" else without_sentences(document, FAILURE)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _tabled(
    event: bytes, document: Any, shape: StreamShape, kind: EventKind, tool_calls: str
) -> Found:
    found = read(document, shape, kind, tool_calls)
    rest = None
    if found.rest is not None:
        same = found.rest == document
        rest = event + b"\n\n" if same else with_data(event, _json(found.rest))
    template = None if found.template is None else with_data(event, _json(found.template))
    return Found(found.texts, rest, template, found.ends, found.is_last, found.others, shape.name)


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
    return tuple(f for f in fields if f and (len(f) > MAX_NAME or not is_name(f)))


def _plain_template(event: bytes) -> bytes:
    """Return an event as a template, without a name that is none."""
    return b"data:" if _odd_fields(event) else event


def _others(document: Any, shape: Shape) -> tuple[str, ...]:
    """Return the strings of a document that are not known to be names or codes."""
    found = []
    for place in string_places(document):
        text = at_place(document, place)
        if text.strip() and not (place and is_code(place[-1], text, shape)):
            found.append(text)
    return tuple(found)


def blank(shape: str) -> bytes:
    """Return a template for a stream of which no event was read."""
    if shape == "text":
        return b"data:"
    if shape in STREAM_SHAPES:
        return _event(STREAM_SHAPES[shape], STREAM_SHAPES[shape].blank)[:-2]
    if shape in (ANY, "openai"):
        return b'data: {"object":"chat.completion.chunk","choices":[]}'
    document: Any = ""
    for part in reversed(shape.split("/")[1:]):
        document = {part.replace("~1", "/").replace("~0", "~"): document}
    return f"data: {_json(document)}".encode()


def fill(template: bytes, shape: str, lane: Lane, text: str) -> bytes:
    """Return an event like the template that carries this text on this lane, and nothing else."""
    if shape == "text":
        return with_data(template, text)
    if lane[1].startswith(WHOLE):
        return b""  # it is sent in its event
    document = json.loads(data_of(template) or "{}")
    name = _field(template, "event")
    kind = _kind(document, name, shape)
    if isinstance(kind, tuple):
        return with_data(template, _json(filled(document, kind[0], name, lane, text)))
    if kind != OPENAI_CHAT.name:
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


def lane_to_tell(lane: Lane, seen: Collection[Lane]) -> Lane:
    """Return where a fallback goes that belongs to no text: to the last one, or to a chat."""
    return lane if lane in seen else next(reversed([*seen]), (0, "content"))


def to_tell(template: bytes, shape: str, lane: Lane) -> tuple[bytes, Lane]:
    """Return where a fallback is shown: with the answer, not in a thought or a tool's arguments."""
    if shape == "text":
        return template, lane
    kind = _kind(json.loads(data_of(template) or "{}"), _field(template, "event"), shape)
    field = lane[1].removeprefix(WHOLE).partition("#")[0]
    if kind == OPENAI_CHAT.name:
        said = field if field in ("content", "text", "refusal") else "content"
        return template, (lane[0], said)
    if not isinstance(kind, tuple):
        return template, lane
    calls = [pattern for one in kind[0].kinds for pattern in one.tool_calls]
    if field in calls or field.endswith(ASIDE) or lane[1].endswith(ASIDE):
        return _event(kind[0], kind[0].blank)[:-2], (lane[0], "")
    return template, lane


def told(said: Mapping[str, Any]) -> bytes:
    """Return an event of our own, for readers of events without a shape."""
    return with_data(b"event: guardrail", _json({OURS: said}))


def marked(shape: str, said: Mapping[str, Any]) -> bytes:
    """Return an event that says that an answer is marked, where no reader stumbles over it."""
    return told(said) if shape == "text" or shape.startswith("/") else b""


def ending(template: bytes, shape: str, lane: Lane, text: str, said: Mapping[str, Any]) -> bytes:
    """Return a fallback and what follows it; arguments as for `stopped`."""
    end = stopped(template, shape, lane, said)
    template, lane = to_tell(template, shape, lane)
    return fill(template, shape, lane, text) + end


def stopped(template: bytes, shape: str, lane: Lane, said: Mapping[str, Any]) -> bytes:
    """Return the events that say that a filter has ended the answer.

    Args:
        template: Of the lane.
        shape: Of the stream.
        lane: Which text was stopped.
        said: What a program should know about it; stands in the last of the events.
    """
    if shape == "text":
        return told(said)
    document = json.loads(data_of(template) or "{}")
    kind = _kind(document, _field(template, "event"), shape)
    if isinstance(kind, tuple):
        documents = said_when_stopped(document, kind[0])
        if not documents:
            return told(said)
        _last_object(documents[-1])[OURS] = said
        return b"".join(_event(kind[0], one) for one in documents)
    if kind != OPENAI_CHAT.name:
        return told(said)
    index, name = lane
    body: dict[str, Any] = {"text": ""} if name == "text" else {"delta": {}}
    document["choices"] = [{"index": index, **body, "finish_reason": "content_filter"}]
    document[OURS] = said
    document.pop("usage", None)
    done = with_data(template, DONE)
    return with_data(template, _json(document)) + done


def _event(shape: StreamShape, document: Any) -> bytes:
    is_typed = shape.is_named and isinstance(document, dict) and "type" in document
    name = document["type"] if is_typed else shape.event
    return with_data(f"event: {name}".encode() if name else b"", _json(document))


def _last_object(document: Any) -> Any:
    """Return where a document has room for a field of ours: the value of a part, or itself."""
    return document["value"] if "part" in document else document


def said_otherwise(event: bytes, changes: Mapping[str, str]) -> bytes | None:
    """Return an event with other strings in place of some; None if they stand in no string."""
    try:
        document = strict_json((data_of(event) or "").encode())
    except UnreadableBody:
        return None
    left = set(changes)
    for place in list(string_places(document)):
        text = at_place(document, place)
        if text in changes:
            left.discard(text)
            document = put(document, place, changes[text])
    return None if left else with_data(event, _json(document))


def _openai(event: bytes, document: Any, tool_calls: str) -> Found:
    choices = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        return Found({}, event + b"\n\n", None, others=_others(document, OPENAI_CHAT))
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
    ends: frozenset[Key] = frozenset(
        int(c.get("index") or 0) for c in rest["choices"] if c.get("finish_reason")
    )
    left = with_data(event, _json(rest)) if _says_more(rest) else None
    others = tuple(text for text in _others(rest, OPENAI_CHAT) if text not in passing)
    template = with_data(event, _json(silenced(rest, OPENAI_CHAT)))
    return Found(texts, left, template, ends, others=others, shape=OPENAI_CHAT.name)


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
        return Found({}, event + b"\n\n", None, others=_others(document, OWN))
    rest = copy.deepcopy(document)
    _put(rest, pointer, "")
    others = _others(rest, OWN)
    if not others:
        return Found({(0, pointer): text}, None, event)
    left = with_data(event, _json(rest))
    return Found({(0, pointer): text}, left, blank(pointer), others=others)


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
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    for end in LINE_ENDS:  # some readers end a line there
        text = text.replace(end, f"\\u{ord(end):04x}")
    return text

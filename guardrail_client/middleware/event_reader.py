"""Find the texts of an event of a stream, by the tables of the stream's shape. Pure.

A text is found under a lane: choices of one response are separate answers, and so are an
answer and the reasoning before it.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.codes import NO_CODES, Codes, codes_of, silenced
from guardrail_client.middleware.documents import (
    is_name,
    others_in,
    strict_json,
    without_sentences,
)
from guardrail_client.middleware.shapes import OPENAI_CHAT, Framing, Shape
from guardrail_client.middleware.sse import DONE, compact, data_of, field_of, with_data
from guardrail_client.middleware.stream_documents import Key, Lane, kind_of, read
from guardrail_client.middleware.stream_shapes import STREAM_SHAPES, EventKind, StreamShape

ANY = "any"
"""The shape of a stream whose events say which it is."""
UNTIL_KNOWN: Mapping[Framing, str] = {"lines": "ollama-chat", "parts": "vercel-parts"}

TOOL_CALL = "tool_call:"
MAX_NAME = 64
OWN = Shape("own")
FAILURE = "Internal Server Error"
"""Stands in for the sentences of an event that says that the application failed."""
LAST = "-1"
"""In a pointer of a stream: the last element of a list."""
ENDS = ("end",)
"""Names of events without data behind which nothing follows."""
TEXT_FIELDS = ("content", "refusal", "reasoning_content", "reasoning")
"""Fields of a chunk's delta that readers may be shown."""


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
        codes: Names and numbers of `rest` and `template`.
        is_snapshot: Whether a text is all that was said so far, not what is new: `rest` has it, and
            so have `others`.
    """

    texts: dict[Lane, str]
    rest: bytes | None
    template: bytes | None
    ends: frozenset[Key] = frozenset()
    is_last: bool = False
    others: tuple[str, ...] = ()
    shape: str | None = None
    is_snapshot: bool = False
    codes: Codes = NO_CODES


def find(
    event: bytes,
    shape: str,
    tool_calls: str = "check",
    unchecked: Collection[str] = (),
    errors: str = "removed",
    snapshots: bool = False,
) -> Found:
    """Return what an event holds.

    Args:
        event: As it came.
        shape: `any`, `openai`, `text`, a name of `STREAM_SHAPES`, or a JSON pointer.
        tool_calls: `check`, `unchecked` or `refuse`.
        unchecked: Names or types of events that pass as they are.
        errors: Whether sentences of an error are `removed` or `unchecked`.
        snapshots: Whether each event repeats all of its text so far.

    Raises:
        UnreadableBody: If it holds a tool call where those are refused.
    """
    name = field_of(event, "event")
    if name is not None and name in unchecked:
        return Found({}, event + b"\n\n", event)
    event = _without_comments(event)
    data = data_of(event)
    if data is None or data.strip() == DONE:
        is_last = data is not None or name in ENDS
        rest = event + b"\n\n" if event else b":\n\n"  # keeps the connection open
        return Found(
            {},
            rest,
            event,
            is_last=is_last,
            others=_odd_fields(event),
            codes=NO_CODES.and_fields(event),
        )
    if shape == "text":
        codes = NO_CODES.and_fields(event)
        found = Found({(0, "text"): data}, None, _plain_template(event), codes=codes)
        return snapshot(found, event + b"\n\n", _odd_fields(event)) if snapshots else found
    try:
        document = _well_formed(data)
        said = _failure(document, errors)
    except UnreadableBody:
        return Found({}, event + b"\n\n", event, others=(data, *_odd_fields(event)))
    is_unchecked = isinstance(document, dict) and _text(document.get("type")) in unchecked
    if is_unchecked or said is not None:
        rest = (
            event + b"\n\n" if is_unchecked or said == document else with_data(event, compact(said))
        )
        codes = NO_CODES if is_unchecked else codes_of(said).and_fields(event)
        return Found({}, rest, None, others=_odd_fields(event), codes=codes)
    kind = kind_in(document, name, shape)
    if kind == OPENAI_CHAT.name:
        found = _openai(event, document, tool_calls, snapshots)
    elif isinstance(kind, tuple):
        found = _tabled(event, document, *kind, tool_calls, snapshots)
    elif kind is None:
        found = _unknown(event, document, OPENAI_CHAT)
    else:
        found = _pointed(event, document, kind)
        if snapshots and found.texts:
            found = snapshot(found, event + b"\n\n")
    odd = _odd_fields(event)
    if odd and found.template is not None:
        found = replace(found, template=with_data(b"", data_of(found.template) or ""))
    return replace(found, others=(*found.others, *odd))


def _well_formed(data: str) -> Any:
    """Return JSON without half characters, which nothing can put together again.

    Raises:
        UnreadableBody: If readers could differ about it.
    """
    document = strict_json(data.encode())
    try:
        compact(document).encode()
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
    event: bytes,
    document: Any,
    shape: StreamShape,
    kind: EventKind,
    tool_calls: str,
    snapshots: bool,
) -> Found:
    content = read(document, shape, kind, tool_calls)
    rest = None if content.rest is None else _said(event, document, content.rest)
    template = None if content.template is None else with_data(event, compact(content.template))
    found = Found(
        content.texts, rest, template, content.ends, content.is_last, content.others, shape.name,
        codes=content.codes.and_fields(event),
    )  # fmt: skip
    if not (snapshots or kind.is_snapshot) or not found.texts:
        return found
    return snapshot(found, _said(event, document, content.whole))


def _said(event: bytes, document: Any, said: Any) -> bytes:
    """Return an event that says another document than its own, or the same."""
    return event + b"\n\n" if said == document else with_data(event, compact(said))


def snapshot(found: Found, whole: bytes, others: tuple[str, ...] = ()) -> Found:
    """Return what an event holds that is sent with its texts when they have been decided.

    Args:
        found: Without them.
        whole: The event with its texts.
        others: More strings that nobody has read.
    """
    texts = tuple(text for text in found.texts.values() if text.strip())
    others = (*found.others, *others, *texts)
    return replace(found, rest=whole, others=others, is_snapshot=True)


def _without_comments(event: bytes) -> bytes:
    """Return an event's known fields: no reader shows the others, and a person may read them.

    Of names, ids and times only the last counts.
    """
    fields = [(line.partition(b":")[0], line) for line in event.split(b"\n")]
    last = {name: at for at, (name, _) in enumerate(fields)}
    return b"\n".join(
        line
        for at, (name, line) in enumerate(fields)
        if name == b"data" or (name in (b"event", b"id", b"retry") and last[name] == at)
    )


def _odd_fields(event: bytes) -> tuple[str, ...]:
    """Return names of events and ids that are no names."""
    fields = (field_of(event, name) for name in ("event", "id", "retry"))
    return tuple(f for f in fields if f and (len(f) > MAX_NAME or not is_name(f)))


def _plain_template(event: bytes) -> bytes:
    """Return an event as a template, without a name that is none."""
    return b"data:" if _odd_fields(event) else event


def _others(document: Any, shape: Shape) -> tuple[str, ...]:
    """Return the strings of a document that are not known to be names or codes."""
    return tuple(found.text for found in others_in(document, shape) if found.text.strip())


def _openai(event: bytes, document: Any, tool_calls: str, snapshots: bool) -> Found:
    choices = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        return _unknown(event, document, OPENAI_CHAT)
    texts: dict[Lane, str] = {}
    passing: set[str] = set()
    rest = copy.deepcopy(document)
    rest.pop("obfuscation", None)  # padding, of which nobody knows what it says
    for choice in rest["choices"]:
        choice.pop("logprobs", None)  # the tokens ahead of the text
    whole = _said(event, document, rest) if snapshots else b""
    for choice in rest["choices"]:
        index = _index(choice.get("index"), 0)
        delta = choice.get("delta") if isinstance(choice.get("delta"), dict) else {}
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
        _index(c.get("index"), 0) for c in rest["choices"] if c.get("finish_reason")
    )
    codes = codes_of(rest).and_fields(event)
    left = with_data(event, compact(rest)) if _says_more(rest) or codes.is_unread else None
    others = tuple(text for text in _others(rest, OPENAI_CHAT) if text not in passing)
    template = with_data(event, compact(silenced(rest, OPENAI_CHAT)))
    found = Found(texts, left, template, ends, others=others, shape=OPENAI_CHAT.name, codes=codes)
    return snapshot(found, whole) if snapshots and texts else found


def _calls(delta: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lane and the holder of each piece of arguments that a delta has."""
    calls = delta.get("tool_calls")
    for number, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            yield f"{TOOL_CALL}{_index(call.get('index'), number)}", function


def _index(value: Any, otherwise: int) -> int:
    """Return an index; another if there is none.

    Raises:
        UnreadableBody: If it is no number.
    """
    if value is None:
        return otherwise
    if not isinstance(value, int):
        raise UnreadableBody("unread_index")
    return value


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
    text = _child(*_holder(document, pointer))
    if not isinstance(text, str):
        return _unknown(event, document, OWN)
    rest = copy.deepcopy(document)
    put_at(rest, pointer, "")
    others, codes = _others(rest, OWN), codes_of(rest).and_fields(event)
    if not others and not codes.is_unread:
        return Found({(0, pointer): text}, None, event, codes=codes)
    left = with_data(event, compact(rest))
    return Found({(0, pointer): text}, left, blank(pointer), others=others, codes=codes)


def _unknown(event: bytes, document: Any, shape: Shape) -> Found:
    """Return what an event holds that has no text."""
    others, codes = _others(document, shape), codes_of(document).and_fields(event)
    return Found({}, event + b"\n\n", None, others=others, codes=codes)


def kind_in(
    document: Any, name: str | None, shape: str
) -> tuple[StreamShape, EventKind] | str | None:
    """Return how to read an event: a kind of a table, the shape's name, or None if nobody knows."""
    if shape not in (ANY, *STREAM_SHAPES):
        return shape
    if shape == ANY and isinstance(document, dict) and "choices" in document:
        return OPENAI_CHAT.name
    if shape != ANY:
        return kind_of(document, name, (STREAM_SHAPES[shape],))
    return kind_of(document, name, (one for one in STREAM_SHAPES.values() if not one.is_told))


def first_shape(framing: Framing, shape: str) -> str:
    """Return the shape of a stream of which no event was read."""
    return UNTIL_KNOWN.get(framing, shape) if shape == ANY else shape


def blank(shape: str) -> bytes:
    """Return a template for a stream of which no event was read."""
    if shape == "text":
        return b"data:"
    if shape in STREAM_SHAPES:
        return event_of(STREAM_SHAPES[shape], STREAM_SHAPES[shape].blank)[:-2]
    if shape in (ANY, "openai"):
        return b'data: {"object":"chat.completion.chunk","choices":[]}'
    document: Any = ""
    for part in reversed(_steps(shape)):
        is_index = part.isdecimal() or part == LAST
        document = [document] if is_index else {part: document}
    return f"data: {compact(document)}".encode()


def event_of(shape: StreamShape, document: Any) -> bytes:
    """Return a document as an event of a shape, with the name that its readers expect."""
    is_typed = shape.is_named and isinstance(document, dict) and "type" in document
    name = document["type"] if is_typed else shape.event
    return with_data(f"event: {name}".encode() if name else b"", compact(document))


def put_at(document: Any, pointer: str, text: str) -> None:
    """Write a text where a JSON pointer points; nothing happens if there is no such place."""
    holder, key = _holder(document, pointer)
    if isinstance(holder, dict):
        holder[key] = text
    elif _child(holder, key) is not None:
        holder[int(key)] = text


def _holder(document: Any, pointer: str) -> tuple[Any, str]:
    *way, key = _steps(pointer)
    for part in way:
        document = _child(document, part)
    return document, key


def _child(holder: Any, key: str) -> Any:
    """Return what stands under a key or at an index; None if nothing does."""
    if isinstance(holder, dict):
        return holder.get(key)
    if not isinstance(holder, list) or not (key.isdecimal() or key == LAST):
        return None
    return holder[int(key)] if int(key) < len(holder) and holder else None


def _steps(pointer: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]

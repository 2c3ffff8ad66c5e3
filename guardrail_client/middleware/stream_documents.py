"""One event of a stream that a table describes: find its texts, put other text there. Pure."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.codes import Codes, codes_of, silenced
from guardrail_client.middleware.documents import (
    Place,
    at_place,
    others_in,
    places_of,
    put,
)
from guardrail_client.middleware.shapes import Shape
from guardrail_client.middleware.stream_shapes import PRESENT, EventKind, StreamShape

Key = int | str
Lane = tuple[Key, str]
"""Which text of a stream: what tells it from others, and the field it stands in."""
OF_MODELS = ("ai", "AIMessage", "AIMessageChunk", "assistant")
"""Types and roles of messages."""
WHOLE = "whole:"
"""Begins the name of a lane whose text is a value: it is checked and sent in its event."""


@dataclass(frozen=True, slots=True)
class Read:
    """The content of an event of one kind.

    Attributes:
        texts: By lane.
        rest: The document without its texts; None if nothing is left of it.
        template: The document without anything that was said; None if it is none for more text.
        ends: Keys of which nothing follows.
        is_last: Whether nothing follows at all.
        others: Strings of `rest` nobody has read.
        whole: The document with its texts, without what is removed.
        codes: Names and numbers in it that are no texts.
    """

    texts: dict[Lane, str]
    rest: Any
    template: Any
    ends: frozenset[Key]
    is_last: bool
    others: tuple[str, ...]
    whole: Any
    codes: Codes


def kind_of(
    document: Any, name: str | None, shapes: Iterable[StreamShape]
) -> tuple[StreamShape, EventKind] | None:
    """Return the first shape, and its kind, that an event is of."""
    for shape in shapes:
        for kind in shape.kinds:
            if (not kind.names or name in kind.names) and _is_of(document, kind):
                return shape, kind
    return None


def read(document: Any, shape: StreamShape, kind: EventKind, tool_calls: str) -> Read:
    """Return what an event holds.

    Raises:
        UnreadableBody: If it holds a tool call where those are refused.
    """
    rest = copy.deepcopy(document)
    for pattern in kind.removed:
        for place in places_of(rest, pattern):
            rest = put(rest, place, _emptied(at_place(rest, place)))
    for place in places_of(rest, kind.messages) if kind.messages else ():
        if not _is_models(message := at_place(rest, place)):
            rest = put(rest, place, silenced(message, _codes(shape)))
    whole = copy.deepcopy(rest)
    texts: dict[Lane, str] = {}
    passing: list[Place] = []
    values: list[str] = []
    for lane, place, is_call in _lanes(rest, kind):
        found = at_place(rest, place)
        if found in ("", {}, [], None):
            continue
        if is_call and tool_calls == "refuse":
            raise UnreadableBody("tool_call")
        if is_call and tool_calls == "unchecked":
            passing.append(place)
        elif isinstance(found, str):
            texts[lane] = texts.get(lane, "") + found
            rest = put(rest, place, "")
        elif is_call:
            passing.append(place)
            text = json.dumps(found, ensure_ascii=False)
            texts[lane[0], WHOLE + lane[1]] = text
            values.append(text)
    others = (*_unread(rest, shape, passing), *values)
    has_said = bool(texts) and not passing
    codes = codes_of(rest, passing)
    goes_on = not has_said or kind.goes_on or kind.ends or others or codes.is_unread
    return Read(
        texts,
        rest if goes_on else None,
        silenced(rest, _codes(shape))
        if texts and not (kind.ends or kind.goes_on or passing)
        else None,
        frozenset([_key(rest, kind)]) if kind.ends == "key" else frozenset(),
        kind.ends == "all",
        others,
        whole,
        codes,
    )


def filled(document: Any, shape: StreamShape, name: str | None, lane: Lane, text: str) -> Any:
    """Return a template with a text of a lane in its place."""
    found = kind_of(document, name, (shape,))
    lanes = list(_lanes(document, found[1])) if found else []
    places = [place for at, place, _ in lanes if at == lane] or [place for _, place, _ in lanes]
    return put(document, places[0], text) if places else document


def said_when_stopped(template: Any, shape: StreamShape) -> list[Any]:
    """Return the documents that say that a filter has ended the answer."""
    return [_with_pointers(document, template) for document in shape.stopped]


def _with_pointers(document: Any, template: Any) -> Any:
    if isinstance(document, dict):
        filled = {key: _with_pointers(item, template) for key, item in document.items()}
        return {key: item for key, item in filled.items() if item is not PRESENT}
    if isinstance(document, list):
        return [_with_pointers(item, template) for item in document]
    if isinstance(document, str) and document.startswith("$"):
        places = places_of(template, document[1:])
        return at_place(template, places[0]) if places else PRESENT
    return document


def _is_models(message: Any) -> bool:
    """Return whether a message is of the model, not of its user or of a tool."""
    said_by = message.get("type", message.get("role")) if isinstance(message, dict) else None
    return said_by in OF_MODELS


def _is_of(document: Any, kind: EventKind) -> bool:
    for pointer, value in kind.when.items():
        found = [at_place(document, place) for place in places_of(document, pointer)]
        if not found or (found[0] is None if value is PRESENT else found[0] != value):
            return False
    return True


def _lanes(document: Any, kind: EventKind) -> Iterator[tuple[Lane, Place, bool]]:
    """Yield the lanes of an event, with the place of each, and whether it is a tool call."""
    key = _key(document, kind)
    for patterns, is_call in ((kind.texts, False), (kind.tool_calls, True)):
        for pattern in patterns:
            for place in places_of(document, pattern):
                if is_call or isinstance(at_place(document, place), str):
                    yield (key, _name(document, pattern, place)), place, is_call


def _name(document: Any, pattern: str, place: Place) -> str:
    """Return which field a text stands in: the candidate's number and whether it is a thought."""
    steps = pattern.split("/")[1:]
    first = next((at for step, at in zip(steps, place, strict=True) if step == "*"), "")
    holder = at_place(document, place[:-1]) if place else None
    thought = isinstance(holder, dict) and bool(holder.get("thought"))
    return f"{pattern}#{first}{'thought' if thought else ''}"


def _key(document: Any, kind: EventKind) -> Key:
    places = [place for pointer in kind.key for place in places_of(document, pointer)]
    return ".".join(str(at_place(document, place)) for place in places) or 0


def _unread(document: Any, shape: StreamShape, passing: list[Place]) -> Iterator[str]:
    for found in others_in(document, _codes(shape), passing):
        if found.text.strip():
            yield found.text


def _codes(shape: StreamShape) -> Shape:
    return Shape(shape.name, codes=shape.codes)


def _emptied(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    return type(value)()

"""A JSON reply with answers in it: read it strictly, find its texts, put others in. Pure."""

from __future__ import annotations

import copy
import http
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.encodings import hides_a_sentence, is_slug
from guardrail_client.middleware.shapes import IDENTIFIERS, Shape
from guardrail_client.middleware.withheld import Withheld

MAX_TEXTS = 64
"""Of one document; one with more is not a reply to one question."""
MAX_DEPTH = 200
MAX_BLANKS = 3
"""In a label such as the name of a file; a string with more is read as a text."""
PHRASES = frozenset(status.phrase for status in http.HTTPStatus)
_OF_NAMES = frozenset("._:/+=,-@#$")
ANY, PARTS = "*", "[]"
Place = tuple[str | int, ...]
_NOTHING: Any = object()


def strict_json(data: bytes) -> Any:
    """Return JSON that every reader reads in the same way.

    Raises:
        UnreadableBody: If Python or a browser would refuse it, or two readers could differ: invalid
            UTF-8, a prefix, trailing bytes, a key twice, no number, too deep.
    """
    try:
        text = data.decode("utf-8").removeprefix("\N{BOM}")
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise UnreadableBody("not_json") from None
    if _is_deep(found):
        raise UnreadableBody("not_json")
    return found


def _is_deep(document: Any) -> bool:
    """Return whether a document is nested deeper than what goes through it can follow."""
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [child for one in level for _, child in _children(one)]
        if not level:
            return False
    return True


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def dumped(document: Any) -> bytes:
    """Return JSON as compact UTF-8.

    Raises:
        UnreadableBody: If it holds a number that JSON cannot say.
    """
    try:
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise UnreadableBody("not_json") from None
    return text.encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class FoundText:
    """A text of a document.

    Attributes:
        text: As a reader sees it: its parts joined.
        places: Where its parts stand; none: it was made up from the document.
        is_value: Whether the one part is not a string but a value, written as JSON.
    """

    text: str
    places: tuple[Place, ...]
    is_value: bool = False


@dataclass(slots=True)
class Document:
    """A document and what a reader may be shown of it.

    Attributes:
        value: As parsed; never changed.
        texts: What is to be checked; none: it is known to hold no answer.
        shape: Where they were found.
    """

    value: Any
    texts: list[FoundText]
    shape: Shape = field(default_factory=lambda: Shape("own"))

    def with_texts(self, texts: Sequence[str], stopped: Sequence[bool], withheld: Withheld) -> Any:
        """Return the document with other texts.

        Args:
            texts: One for each of `self.texts`.
            stopped: Which of them stand in for a stopped one.
            withheld: What may not be said anywhere else in it.

        Raises:
            UnreadableBody: If one cannot be put where the old one was found.
        """
        changed = copy.deepcopy(self.value)
        written: dict[Place, Any] = {}
        for found, text in zip(self.texts, texts, strict=True):
            if text != found.text:
                written |= _parts(found, text)
        for place in [p for pattern in self.shape.repeats for p in _flat(changed, pattern)]:
            _put(changed, place, self._emptied(at_place(changed, place), place))
        for found, is_stopped in zip(self.texts, stopped, strict=True):
            if is_stopped:
                self._say_stopped(changed, found)
        kept = {place for found in self.texts for place in found.places}
        try:
            changed = withheld.without_pieces(_scrubbed(changed, withheld, kept), kept)
        except ValueError:
            raise UnreadableBody("answer_in_a_key") from None
        judged = [at for at in kept - written.keys() if isinstance(at_place(self.value, at), str)]
        hidden = {at: "" for at in judged if withheld.is_encoded_in(at_place(self.value, at))}
        for place, text in (hidden | written).items():
            if not _put(changed, place, text):
                raise UnreadableBody("answer_not_in_document")
        return changed

    def _emptied(self, value: Any, place: Place) -> Any:
        """Return what the vendor's client expects there if nothing is said."""
        if isinstance(value, list):
            return []
        return {} if place[-1] in self.shape.objects else None

    def _say_stopped(self, changed: Any, found: FoundText) -> None:
        """Say that a filter ended a text, also where the server left the reason out."""
        for pattern, value in self.shape.when_stopped.items():
            *way, key = _beside(_tokens(pattern), found.places[0] if found.places else ())
            holder = changed
            for step in way:
                holder = _child(holder, step)
            if isinstance(holder, dict) and (value or key in holder):
                holder[key] = copy.deepcopy(value)


def find_texts(value: Any, shape: Shape, tool_calls: str) -> list[FoundText]:
    """Return every text of a document of a shape that a reader may be shown.

    Args:
        value: The document.
        shape: Where texts are.
        tool_calls: `check`, `unchecked` or `refuse`.

    Raises:
        UnreadableBody: If it has too many, or a tool call where those are refused.
    """
    found: list[FoundText] = []
    for pattern in shape.texts:
        found += [t for group in _groups(value, pattern) if (t := _joined(value, group))]
    calls = [p for pattern in shape.tool_calls for p in _flat(value, pattern)]
    if calls and tool_calls == "refuse":
        raise UnreadableBody("tool_call")
    if tool_calls == "check":
        found += [_whole(value, place) for place in calls]
    claimed = [place for text in found for place in text.places] + calls
    claimed += [p for pattern in shape.repeats for p in _flat(value, pattern)]
    return _shown([*found, *others_in(value, shape, claimed)])


def find_rest(value: Any, found: Sequence[FoundText]) -> list[FoundText]:
    """Return texts, and every other string of their document that is no name or code.

    Raises:
        UnreadableBody: If there are too many.
    """
    claimed = [place for text in found for place in text.places]
    return _shown([*found, *others_in(value, Shape("own"), claimed)])


def others_in(value: Any, shape: Shape, claimed: Sequence[Place] = ()) -> Iterator[FoundText]:
    """Yield what a document says beside names, codes and the places that are claimed.

    Keys that are no names say something, too; they have no place where another text could stand.
    """

    def is_claimed(place: Place) -> bool:
        return any(place[: len(start)] == start for start in claimed)

    for place in string_places(value):
        text = at_place(value, place)
        if not is_claimed(place) and not (place and is_code(place[-1], text, shape)):
            yield FoundText(text, (place,))
    for place in key_places(value):
        if not is_claimed(place):
            yield FoundText(str(place[-1]), ())


def key_places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Yield where keys of objects stand that are no names."""
    for key, child in _children(value):
        if isinstance(key, str) and not is_name(key):
            yield (*at, key)
        yield from key_places(child, (*at, key))


def keys_of(value: Any) -> list[str]:
    """Return the keys of a document's objects that are no names."""
    return [str(place[-1]) for place in key_places(value)]


def is_code(key: str | int, text: str, shape: Shape) -> bool:
    """Return whether what stands under a key says nothing to a reader: a name, a code, a label."""
    if text in shape.phrases:
        return True
    if key in shape.labels:
        return text.count(" ") <= MAX_BLANKS and "@" not in text
    return key in (IDENTIFIERS | shape.codes) and is_name(text)


def is_name(text: str) -> bool:
    """Return whether a string has the form of an identifier: one word and no address."""
    known = text.isascii() and all(c.isalnum() or c in _OF_NAMES for c in text)
    return known and "." not in text.partition("@")[2]


def find_pointed(value: Any, patterns: Sequence[str]) -> list[FoundText] | None:
    """Return the texts at pointers of the application's own; None if none of them leads anywhere.

    Raises:
        UnreadableBody: If what stands there is neither text nor null, or there are too many.
    """
    groups = [group for pattern in patterns for group in _groups(value, pattern)]
    if not groups:
        return None
    found = []
    for group in groups:
        places = tuple(place for start in group for place in _texts_below(value, start))
        text = "".join(at_place(value, place) for place in places)
        found.append(FoundText(text, places))
    return _shown(found)


def find_returned(value: Any, returned: Any) -> list[FoundText] | None:
    """Return the texts that a function of the application returned; None if it found none.

    A string is put back where that very string, by identity, stands in the document.

    Raises:
        UnreadableBody: If it returned something else.
    """
    if returned is None:
        return None
    texts = [returned] if isinstance(returned, str) else list(returned)
    if not all(isinstance(text, str) for text in texts):
        raise UnreadableBody("answer_not_text")
    found = [
        FoundText(t, tuple(p for p in string_places(value) if at_place(value, p) is t)[:1])
        for t in texts
    ]
    return _shown(found)


def is_of(value: Any, shape: Shape) -> bool:
    """Return whether a document has the marks of a shape."""
    return isinstance(value, dict) and all(_flat(value, mark) for mark in shape.marks)


def _shown(found: Iterable[FoundText]) -> list[FoundText]:
    texts = [text for text in found if text.text.strip()]
    if len(texts) > MAX_TEXTS:
        raise UnreadableBody("too_many_texts")
    return texts


def _joined(value: Any, group: list[Place]) -> FoundText | None:
    parts = [place for place in group if isinstance(at_place(value, place), str)]
    return FoundText("".join(at_place(value, p) for p in parts), tuple(parts)) if parts else None


def _whole(value: Any, place: Place) -> FoundText:
    found = at_place(value, place)
    if isinstance(found, str):
        return FoundText(found, (place,))
    empty = found in (None, {}, [])
    return FoundText("" if empty else json.dumps(found, ensure_ascii=False), (place,), True)


def _parts(found: FoundText, text: str) -> dict[Place, Any]:
    """Return what to write where: the text in the first place, nothing in the others."""
    if not found.places:
        raise UnreadableBody("answer_not_in_document")
    if found.is_value:
        try:
            return {found.places[0]: json.loads(text)}
        except ValueError:
            return {found.places[0]: {}}
    return {found.places[0]: text} | dict.fromkeys(found.places[1:], "")


def _texts_below(value: Any, start: Place) -> list[Place]:
    """Return the strings of an answer that may be a list of parts."""
    found = at_place(value, start)
    if isinstance(found, str):
        return [start]
    if found is None:
        return []
    if not isinstance(found, list | dict):
        raise UnreadableBody("answer_not_text")
    if next(key_places(found), None) is not None:
        raise UnreadableBody("answer_in_a_key")
    below = [(*start, *place) for place in string_places(found)]
    names = ("type", "id", "role", "index")
    return [p for p in below if p[-1] not in names or not is_name(at_place(value, p))]


def _beside(tokens: list[str], place: Place) -> Place:
    """Return a pattern's place whose `*` are those of another place."""
    padded = (*place, *tokens[len(place) :])
    return tuple(at if step == ANY else step for step, at in zip(tokens, padded, strict=False))


def _scrubbed(value: Any, withheld: Withheld, kept: set[Place], at: Place = ()) -> Any:
    if at in kept or not withheld:
        return value
    if isinstance(value, dict):
        if any(withheld.is_in(key) for key in value):
            raise ValueError("withheld text stands in a key")
        return {k: _scrubbed(v, withheld, kept, (*at, k)) for k, v in value.items()}
    if isinstance(value, list):
        return [_scrubbed(v, withheld, kept, (*at, i)) for i, v in enumerate(value)]
    return withheld.removed_from(value)


def places_of(value: Any, pattern: str) -> list[Place]:
    """Return every place that a pattern leads to."""
    return _flat(value, pattern)


def put(value: Any, place: Place, new: Any) -> Any:
    """Return a document with another value at a place, changed in place unless it is the whole."""
    if not place:
        return new
    _put(value, place, new)
    return value


def _is_error_code(text: str) -> bool:
    return is_name(text) and not (is_slug(text) or hides_a_sentence(text))


def without_sentences(document: Any, instead: str) -> Any:
    """Return what an error says with another text for whatever is no name or phrase of HTTP.

    Raises:
        UnreadableBody: If a key is a sentence.
    """
    if isinstance(document, str):
        return document if _is_error_code(document) or document in PHRASES else instead
    if isinstance(document, list):
        return [without_sentences(item, instead) for item in document]
    if not isinstance(document, dict):
        return document
    if not all(map(_is_error_code, document)):
        raise UnreadableBody("unread_error")
    return {key: without_sentences(item, instead) for key, item in document.items()}


def _tokens(pattern: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in pattern.split("/")[1:]]


def _flat(value: Any, pattern: str) -> list[Place]:
    return [place for group in _groups(value, pattern) for place in group]


def _groups(value: Any, pattern: str) -> list[list[Place]]:
    """Return where a pattern leads, places of one text together."""
    return list(_walk(value, _tokens(pattern), ()))


def _walk(value: Any, tokens: list[str], at: Place) -> Iterator[list[Place]]:
    if not tokens:
        yield [at]
        return
    step, *rest = tokens
    if step not in (ANY, PARTS):
        key = int(step) if isinstance(value, list) and step.isdecimal() else step
        child = _child(value, key)
        if child is not _NOTHING:
            yield from _walk(child, rest, (*at, key))
        return
    groups = [g for key, child in _children(value) for g in _walk(child, rest, (*at, key))]
    if step == ANY:
        yield from groups
    elif groups:
        yield [place for group in groups for place in group]


def _children(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _child(value: Any, key: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(str(key), _NOTHING)
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return value[key]
    return _NOTHING


def string_places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Yield where strings stand in a document."""
    if isinstance(value, str):
        yield at
    for key, child in _children(value):
        yield from string_places(child, (*at, key))


def at_place(value: Any, place: Place) -> Any:
    """Return what stands at a place."""
    for key in place:
        value = value[key]
    return value


def _put(value: Any, place: Place, new: Any) -> bool:
    """Put a value where one is; return whether there was a place for it."""
    *way, key = place
    for step in way:
        value = _child(value, step)
    if isinstance(value, dict) and key in value:
        value[key] = new
        return True
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        value[key] = new
        return True
    return False

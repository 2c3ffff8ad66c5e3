"""Names and numbers of an event: nobody reads them, so they may not say what is held. Pure."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from guardrail_client.middleware.bodies import parsed
from guardrail_client.middleware.documents import (
    at_place,
    is_code,
    key_places,
    put,
    string_places,
)
from guardrail_client.middleware.encodings import from_codes, hides_a_sentence
from guardrail_client.middleware.shapes import Shape
from guardrail_client.middleware.sse import compact, data_of, field_of, with_data
from guardrail_client.middleware.withheld import SHORTEST, Place, digits_of

UNREAD_DIGITS = 7
"""Of a number that may be a value such as a phone's; a shorter one is a count."""
FRACTIONS = 10
"""Of the whole part of a fraction; one with fewer is a measure."""
GROUPS = range(13, 20)
"""Digits of a payment card."""
COUNTED = ("token", "duration", "count", "time", "size", "seed", "length", "bytes", "hash")
UNITS = ("id", "Id", "_id", "_ms", "_us", "_ns")
"""In keys, and at their ends, under which long numbers stand that are no values."""
TIMES = (1.5, 2.1)
"""Bounds of a Unix time in 10^9 s (2017 to 2036), which may also be in ms, us or ns."""
FIELDS = ("event", "id", "retry")


@dataclass(frozen=True, slots=True)
class Codes:
    """The names and numbers of an event.

    Attributes:
        names: Words that are no text, and what lists of numbers say.
        numbers: Those that are long enough to say a value.
        is_unread: Whether one of them may be a value or a sentence: it waits for the end of all
            texts, because one that comes later may say it.
    """

    names: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    is_unread: bool = False

    def and_fields(self, event: bytes) -> Codes:
        """Return these and what an event's other fields than data say."""
        fields = [said for name in FIELDS if len(said := field_of(event, name) or "") >= SHORTEST]
        is_unread = self.is_unread or any(map(hides_a_sentence, fields))
        return Codes((*self.names, *fields), self.numbers, is_unread) if fields else self


NO_CODES = Codes()


def codes_of(document: Any, claimed: Collection[Place] = ()) -> Codes:
    """Return the names and numbers of an event.

    Args:
        document: Its data, without texts.
        claimed: Places of it that are read as texts.
    """
    names: set[str] = set()
    numbers, is_unread = set(), False
    for place, value in _scalars(document, claimed):
        if isinstance(value, list):
            names |= set(said_by(value))
            is_unread = is_unread or _is_unread(value)
        elif isinstance(value, str):
            if not (place[-1:] == (value,) and value.isidentifier()):  # a key
                names.add(value)
        elif len(digits_of(value)) >= SHORTEST:
            numbers.add(value)
            is_unread = is_unread or is_unread_number(place, value)
    names = {name for name in names if len(name) >= SHORTEST}
    is_unread = is_unread or any(map(hides_a_sentence, names))
    return Codes(tuple(names), tuple(numbers), is_unread)


def _scalars(
    value: Any, claimed: Collection[Place] = (), at: Place = ()
) -> Iterator[tuple[Place, Any]]:
    """Yield strings, numbers, lists of numbers and keys, with their places."""
    if at in claimed:
        return
    if isinstance(value, dict):
        for key, child in value.items():
            yield (*at, key), key
            yield from _scalars(child, claimed, (*at, key))
    elif isinstance(value, list):
        if _is_array(value):
            yield at, value
        for number, child in enumerate(value):
            yield from _scalars(child, claimed, (*at, number))
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield at, value


def _is_array(value: list[Any]) -> bool:
    return len(value) > 1 and all(type(item) is int for item in value)


def said_by(array: list[int]) -> tuple[str, str]:
    """Return what a list of numbers says: as bytes or code points, and as groups of digits."""
    return from_codes(array), "".join(map(digits_of, array))


def _is_unread(array: list[int]) -> bool:
    """Return whether a list of numbers may say words, or a value in groups of digits."""
    text, joined = said_by(array)
    if len(joined) == len(array) >= UNREAD_DIGITS or len(joined) in GROUPS:
        return True
    letters = sum(letter.isalnum() or letter == " " for letter in text)
    return len(array) >= SHORTEST and text.isprintable() and letters > 0.7 * len(text)


def is_unread_number(place: Place, number: float) -> bool:
    """Return whether a number may be a value: long, no time, and under no key of counts."""
    size = abs(number)
    if not isfinite(size) or len(str(int(size))) < (UNREAD_DIGITS if size % 1 == 0 else FRACTIONS):
        return False
    key = next((step for step in reversed(place) if isinstance(step, str)), "")
    is_time = any(TIMES[0] <= size / 10**power <= TIMES[1] for power in (9, 12, 15, 18))
    is_counted = any(word in key.casefold() for word in COUNTED) or key.endswith(UNITS)
    return not (is_time or is_counted)


def without_unread_numbers(value: Any, at: Place = ()) -> Any:
    """Return JSON with zeros for numbers that may be values, and without such lists."""
    if isinstance(value, dict):
        return {key: without_unread_numbers(child, (*at, key)) for key, child in value.items()}
    if isinstance(value, list):
        if _is_array(value) and _is_unread(value):
            return []
        return [without_unread_numbers(child, (*at, i)) for i, child in enumerate(value)]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return 0 if is_number and is_unread_number(at, value) else value


def silenced(document: Any, shape: Shape) -> Any:
    """Return a document in which only names and codes say something."""
    document = copy.deepcopy(document)
    for place in list(string_places(document)):
        if not (place and is_code(place[-1], at_place(document, place), shape)):
            document = put(document, place, "")
    for place in [*key_places(document)][::-1]:
        del at_place(document, place[:-1])[place[-1]]
    return without_unread_numbers(document)


def without(event: bytes, says: Callable[[str | float], bool], *, is_text: bool = False) -> bytes:
    """Return an event without the names and numbers that say something.

    Args:
        event: As it would be sent.
        says: Whether a name or a number does.
        is_text: Whether its data is text, not JSON.
    """
    fields = [name for name in FIELDS if says(field_of(event, name) or "")]
    lines = [line for line in event.split(b"\n") if line.partition(b":")[0].decode() not in fields]
    kept = b"\n".join(lines)
    document = None if is_text else parsed((data_of(event) or "").encode("utf-8", "replace"))
    cleaned = _without(document, says)
    return kept if cleaned == document else with_data(kept, compact(cleaned))


def _without(value: Any, says: Callable[[str | float], bool]) -> Any:
    if isinstance(value, dict):
        return {
            key: _without(child, says)
            for key, child in value.items()
            if key.isidentifier() or not says(key)
        }
    if isinstance(value, list):
        if _is_array(value) and any(map(says, said_by(value))):
            return []
        return [_without(child, says) for child in value]
    if isinstance(value, str):
        return "" if says(value) else value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return None if is_number and says(value) else value

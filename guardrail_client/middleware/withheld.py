"""Finds what was stopped or redacted wherever else a reply says it again. Pure."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from guardrail_client.middleware.encodings import from_codes, views, views_of_name

WINDOW = 24
"""Letters and digits in a row that a text shares with a stopped one only if it repeats it: ordinary
answers share shorter runs, such as names."""
SHORTEST = 6
"""A stopped text with fewer letters and digits is only looked for as a whole string."""
EXACT = 15
"""Digits of a number that no reader of JSON rounds."""
REMOVED = "[REDACTED]"
_TAGS = {0xE0000 + letter: chr(letter) for letter in range(0x20, 0x7F)}
"""Letters that nobody sees and every program can read."""
Place = tuple[str | int, ...]


class Withheld:
    """The texts that must not leave with a reply.

    Args:
        stopped: Texts of which no part may be shown.
        values: Values that were redacted.
    """

    def __init__(self, stopped: Iterable[str] = (), values: Iterable[str] = ()) -> None:
        self._whole: set[str] = set()
        self._windows: set[str] = set()
        self._values = sorted({value for value in values if value.strip()}, key=len, reverse=True)
        self._bare = {b for value in self._values if len(b := _counted(bare(value))) >= SHORTEST}
        self._digits = {value for value in self._bare if value.isdecimal()}
        for text in stopped:
            bare_text = bare(text)
            self._whole.add(bare_text)
            if len(bare_text) >= SHORTEST:
                size = min(WINDOW, len(bare_text))
                self._windows |= {bare_text[i : i + size] for i in range(len(bare_text) - size + 1)}
        self._sizes = sorted({len(window) for window in self._windows})
        self._whole.discard("")

    def __bool__(self) -> bool:
        return bool(self._whole or self._values)

    def is_encoded_in(self, text: str) -> bool:
        """Return whether a text that was judged says any of it where nobody could read it."""
        plain, *decoded = views(text)
        return any(map(self._is_in, decoded)) and not self._is_in(plain)

    def with_values(self, values: Iterable[str]) -> Withheld:
        """Return this with more redacted values, and no stopped text."""
        return Withheld(values=[*self._values, *values])

    def is_in(self, text: str) -> bool:
        """Return whether a text says any of it, escaped or not."""
        return any(self._is_in(view) for view in views(text))

    def is_in_name(self, name: str) -> bool:
        """Return the same of a name, of which a stream may say thousands."""
        return any(self._is_in(view) for view in views_of_name(name))

    def says(self, said: str | float) -> bool:
        """Return whether a name or a number says any of it."""
        return self.is_in_name(said) if isinstance(said, str) else self.is_number(said)

    def is_number(self, number: float) -> bool:
        """Return whether a number of JSON says any of it, in whatever notation it stood there."""
        if isinstance(number, bool):
            return False
        digits = digits_of(number)
        known = isinstance(number, float) and any(v[:EXACT] in digits for v in self._digits)
        return len(digits) >= SHORTEST and (known or self._is_in(digits))

    def without_pieces(self, value: Any, kept: Collection[Place] = ()) -> Any:
        """Return JSON without what says it only together, such as a list of tokens.

        Pieces stand in the same place of each element of lists, or are numbers of one list: bytes,
        code points, or groups of digits. Empty strings and zeros stand in for them.

        Args:
            value: Changed in place.
            kept: Places that are not looked into.
        """
        columns: dict[Place, list[tuple[Place, Any]]] = {}
        for place, scalar in _scalars(value, kept):
            if isinstance(scalar, str | int) and not isinstance(scalar, bool):
                for pattern in _patterns(place):
                    columns.setdefault(pattern, []).append((place, scalar))
        for column in columns.values():
            if len(column) > 1 and self._is_column([scalar for _, scalar in column]):
                for (*way, key), scalar in column:
                    holder = value
                    for step in way:
                        holder = holder[step]
                    holder[key] = "" if isinstance(scalar, str) else 0
        return value

    def _is_column(self, values: Sequence[str | int]) -> bool:
        numbers = [value for value in values if isinstance(value, int)]
        if len(numbers) == len(values):
            return self.is_in(from_codes(numbers)) or self._are_groups(list(map(str, numbers)))
        return self.is_in("".join(map(str, values)))

    def _are_groups(self, groups: Sequence[str]) -> bool:
        """Return whether digits of a withheld value stand in a list, cut into numbers."""
        joined, borders = "".join(groups), {0, *accumulate(map(len, groups))}
        for value in self._digits:
            at = joined.find(value)
            while at >= 0:
                if {at, at + len(value)} <= borders:
                    return True
                at = joined.find(value, at + 1)
        return False

    def cleaned(self, text: str) -> str:
        """Return a text without it: values replaced, a text that repeats more than that emptied."""
        for value in self._values:
            text = text.replace(value, REMOVED)
        return "" if self.is_in(text) else text

    def removed_from(self, value: Any) -> Any:
        """Return JSON without it; JSON inside of strings is looked into.

        Raises:
            ValueError: If a key says it.
        """
        if isinstance(value, str):
            return self._from_string(value)
        if isinstance(value, dict):
            if any(self.is_in(key) for key in value):
                raise ValueError("withheld text stands in a key")
            return {key: self.removed_from(item) for key, item in value.items()}
        if isinstance(value, int | float):
            return None if self.is_number(value) else value
        return [self.removed_from(item) for item in value] if isinstance(value, list) else value

    def _from_string(self, text: str) -> str:
        if text.lstrip()[:1] in ("{", "[", '"'):
            try:
                inner = json.loads(text)
                clean = self.without_pieces(self.removed_from(inner))
            except (ValueError, RecursionError):
                return self.cleaned(text)
            if clean != inner:
                text = json.dumps(clean, ensure_ascii=False)
        return self.cleaned(text)

    def _is_in(self, view: str) -> bool:
        found = bare(view)
        if found in self._whole or any(value in view for value in self._values):
            return True
        if any(value in found for value in self._bare):
            return True
        return any(
            found[i : i + size] in self._windows
            for size in self._sizes
            for i in range(len(found) - size + 1)
        )


def bare(text: str) -> str:
    """Return letters and digits alone: layout, punctuation, width and accents hide nothing."""
    plain = text if text.isascii() else unicodedata.normalize("NFKD", text.translate(_TAGS))
    return "".join(filter(str.isalnum, plain.casefold()))


def digit_runs(text: str) -> list[str]:
    """Return the digits that stand next to each other in a text."""
    return "".join(one if one.isdecimal() else " " for one in text).split()


def digits_of(number: float) -> str:
    """Return the digits of a number of JSON."""
    written = format(number, "f") if isinstance(number, float) else str(number)
    return "".join(filter(str.isdecimal, written))


def _scalars(value: Any, kept: Collection[Place], at: Place = ()) -> Iterator[tuple[Place, Any]]:
    if at in kept:
        return
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _scalars(child, kept, (*at, key))
    else:
        yield at, value


def _patterns(place: Place) -> Iterator[Place]:
    """Yield where pieces of the same text may stand: any index, the same alternative, any value."""
    indices = [at for at, step in enumerate(place) if _is_index(step)]
    if indices:
        yield tuple("*" if at in indices else step for at, step in enumerate(place))
    if len(indices) > 1:
        yield tuple("*" if at in indices[:-1] else step for at, step in enumerate(place))
    if place and not _is_index(place[-1]):
        yield (*place[:-1], "*")


def _counted(value: str) -> str:
    """Return digits as a number says them: without zeros ahead."""
    return value.lstrip("0") if value.isdecimal() else value


def _is_index(step: str | int) -> bool:
    return isinstance(step, int) or step.isdecimal()

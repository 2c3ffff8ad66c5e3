"""Finds what was stopped or redacted wherever else a reply says it again. Pure."""

from __future__ import annotations

import html
import json
import urllib.parse
from collections.abc import Iterable
from typing import Any

WINDOW = 24
"""Letters and digits in a row that a text shares with a stopped one only if it repeats it: ordinary
answers share shorter runs, such as names."""
SHORTEST = 6
"""A stopped text with fewer letters and digits is only looked for as a whole string."""
REMOVED = "[REDACTED]"


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
        self._bare = {bare for value in self._values if len(bare := _bare(value)) >= SHORTEST}
        for text in stopped:
            bare = _bare(text)
            self._whole.add(bare)
            if len(bare) >= SHORTEST:
                size = min(WINDOW, len(bare))
                self._windows |= {bare[i : i + size] for i in range(len(bare) - size + 1)}
        self._sizes = sorted({len(window) for window in self._windows})
        self._whole.discard("")

    def __bool__(self) -> bool:
        return bool(self._whole or self._values)

    def is_in(self, text: str) -> bool:
        """Return whether a text says any of it, escaped or not."""
        return any(self._is_in(view) for view in _views(text))

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
        if isinstance(value, int | float) and len(str(value)) >= SHORTEST:
            return None if self.is_in(str(value)) else value
        return [self.removed_from(item) for item in value] if isinstance(value, list) else value

    def _from_string(self, text: str) -> str:
        if text.lstrip()[:1] in ("{", "[", '"'):
            try:
                inner = json.loads(text)
                clean = self.removed_from(inner)
            except (ValueError, RecursionError):
                return self.cleaned(text)
            if clean != inner:
                text = json.dumps(clean, ensure_ascii=False)
        return self.cleaned(text)

    def _is_in(self, view: str) -> bool:
        bare = _bare(view)
        if bare in self._whole or any(value in view for value in self._values):
            return True
        if any(value in bare for value in self._bare):
            return True
        return any(
            bare[i : i + size] in self._windows
            for size in self._sizes
            for i in range(len(bare) - size + 1)
        )


def _bare(text: str) -> str:
    """Return letters and digits alone, so that layout and punctuation hide nothing."""
    return "".join(filter(str.isalnum, text.casefold()))


def _views(text: str) -> Iterable[str]:
    yield text
    if "&" in text:
        yield html.unescape(text)
    if "\\" in text:
        yield _unescaped(text)
    if "%" in text:
        yield urllib.parse.unquote_plus(text)


def _unescaped(text: str) -> str:
    """Return a text with its backslash escapes read, as far as they can be."""
    first, *rest = text.split("\\")
    return first + "".join(map(_read_escape, rest))


def _read_escape(text: str) -> str:
    """Return what stands behind a backslash, the escape's own letters read."""
    for letter, digits in (("u", 4), ("x", 2)):
        code = text[1 : 1 + digits]
        if text.startswith(letter) and len(code) == digits and not set(code) - _HEXADECIMAL:
            return chr(int(code, 16)) + text[1 + digits :]
    return _LAYOUT.get(text[:1], text[:1]) + text[1:]


_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_LAYOUT = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}

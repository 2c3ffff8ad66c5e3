"""Replace parts of a text and still know where everything came from; offsets are code points."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class Edit(NamedTuple):
    """A part [start, end) of a text and what stands there instead."""

    start: int
    end: int
    text: str


class Edited:
    """A text with some parts replaced, and the way back to the offsets before.

    Args:
        source: The text before.
        edits: In order, without overlap.
    """

    def __init__(self, source: str, edits: Iterable[Edit]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._edits: list[Edit] = []
        pieces: list[str] = []
        position = length = 0
        for edit in edits:
            pieces += (source[position : edit.start], edit.text)
            length += edit.start - position
            self._starts.append(length)
            length += len(edit.text)
            self._ends.append(length)
            self._edits.append(edit)
            position = edit.end
        pieces.append(source[position:])
        self.text = "".join(pieces)

    def before(self, start: int, end: int) -> tuple[int, int]:
        """Return where a non-empty part [start, end) of the new text came from."""
        return self._source(start, at_end=False), self._source(end - 1, at_end=True)

    def touched(self, start: int, end: int) -> bool:
        """Return whether a part of the new text holds anything that was replaced or removed."""
        index = bisect_right(self._ends, start)
        while index < len(self._edits) and self._starts[index] < end:
            if self._ends[index] > start or self._starts[index] > start:
                return True
            index += 1
        return False

    def _source(self, offset: int, *, at_end: bool) -> int:
        """Return the offset before of one character: where it begins, or where it ends."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return offset + at_end
        edit = self._edits[index]
        if offset < self._ends[index]:
            if edit.end - edit.start == len(edit.text):  # character for character
                return edit.start + offset - self._starts[index] + at_end
            return edit.end if at_end else edit.start
        return edit.end + offset - self._ends[index] + at_end

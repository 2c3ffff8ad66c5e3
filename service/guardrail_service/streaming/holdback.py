"""Keeps the part of a streamed answer that may not leave yet. Pure: no I/O, no clock.

Text is fed in pieces of any size. `due` says that some of it could leave once it has been searched;
`furthest` says up to where, given what the search found in everything that has arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from guardrail_service.streaming.cut_points import CONTEXT, SOFT_HOLD, cuts

MAX_HOLD = 24_576
"""Code points held at most without a permissible cut: more than the longest key block that the
secrets detector reads (20,000), and what any cut needs behind it."""
SHARE = 64
"""A release is at least this part of what has left. Every release searches the whole text so far,
so the work for n characters stays below 64 n log n instead of n squared."""
_STRIDE = 8
"""Code points to wait after a look in vain."""


class Holdback:
    """One answer's text. Offsets are code points of the answer as its model wrote it.

    Args:
        reach: Code points of the longest finding beside those that `cuts` knows of: as many have to
            have arrived behind a cut.
    """

    def __init__(self, reach: int = 0) -> None:
        self._reach = reach
        self._parts: list[str] = []  # released
        self._context = ""  # their end
        self._held = ""
        self._look_at = 0
        self._due = False
        self.released = 0

    @property
    def size(self) -> int:
        """Return how many code points have arrived."""
        return self.released + len(self._held)

    @property
    def text(self) -> str:
        """Return everything that has arrived."""
        return "".join((*self._parts, self._held))

    @property
    def held(self) -> str:
        """Return what has arrived and not left."""
        return self._held

    def feed(self, text: str) -> None:
        """Add text to the end."""
        self._held += text
        self._due = self._due or any(c.isspace() or c >= "\u2e80" for c in text)

    def due(self) -> bool:
        """Return whether some of the held text could leave once it has been searched."""
        if not self._due or self.size < self._look_at:
            return False
        if len(self._held) * SHARE < self.released:
            return False
        if next(self._cuts(), None) is not None:
            return True
        self._wait()
        return False

    def overflows(self) -> bool:
        """Return whether more is held than ever has to be: a run of text without any end."""
        return len(self._held) > MAX_HOLD

    def furthest(self, findings: Iterable[tuple[int, int]]) -> int:
        """Return the furthest offset that no finding crosses; `released` if nothing can leave.

        Args:
            findings: Where a search of `text` found something, as [start, end).
        """
        spans = list(findings)
        for cut in self._cuts():
            if not any(start < cut < end for start, end in spans):
                return cut
        self._wait()
        return self.released

    def forced(self) -> int:
        """Return where to cut text that overflows: its first quarter goes, ends or not."""
        return self.released + len(self._held) // 4

    def release(self, offset: int) -> str:
        """Return the text up to an offset, which leaves."""
        cut = offset - self.released
        text, self._held = self._held[:cut], self._held[cut:]
        self._parts.append(text)
        self._context = (self._context + text)[-CONTEXT:]
        self.released = offset
        self._look_at = 0
        self._due = True
        return text

    def _cuts(self) -> Iterator[int]:
        before = len(self._context)
        shift = self.released - before
        for cut in cuts(self._context + self._held, before):
            at = cut + shift
            if at + self._reach <= self.size and (at - self.released) * SHARE >= self.released:
                yield at

    def _wait(self) -> None:
        """Look again when there is more; seldom, where much is held, since a look reads all."""
        step = _STRIDE if len(self._held) <= SOFT_HOLD else SOFT_HOLD // 8
        self._look_at = self.size + step

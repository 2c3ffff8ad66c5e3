"""Lets a few checks compute at a time, most urgent first; the others wait and cost nothing."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

AT_ONCE = 2
"""Python runs one thread at a time, so more finish no sooner; but the event loop and every model
worker wait for each of them."""
PATIENCE_S = 0.1
"""If nobody came or went for so long, huge samples have all places: one more joins them, and so on.
Most checks compute for a tenth of that."""


class Turns:
    """Places for threads that compute. One that waits for model rows gives its place back.

    Args:
        at_once: How many threads compute at the same time, unless they take very long.
        patience_s: How long they may take, seconds.
    """

    def __init__(self, at_once: int = AT_ONCE, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._free = at_once
        self._moved = time.monotonic()
        self._waiting: list[tuple[float, int, _Claim]] = []
        self._sequence = itertools.count()

    def turn(self, order: float, due: float | None) -> Turn:
        """Return a turn that is not taken yet.

        Args:
            order: The least comes first.
            due: Monotonic second as of which there is no more waiting: what is known by then must
                go out, so the turn is taken whether or not there is a place. None: never.
        """
        return Turn(self, order, due)

    def take(self, claim: _Claim, order: float, due: float | None) -> bool:
        """Wait for a place; return whether there is one, or False because it is due."""
        with self._lock:
            if self._free > 0:
                return self._use_one()
            heapq.heappush(self._waiting, (order, next(self._sequence), claim))
        while True:
            now = time.monotonic()
            left_s = self._patience_s if due is None else min(due - now, self._patience_s)
            is_woken = claim.woken.wait(max(0.0, left_s))
            with self._lock:
                if is_woken or (due is not None and time.monotonic() >= due):
                    claim.is_over = True
                    return claim.is_granted
                if claim is self._first() and time.monotonic() >= self._moved + self._patience_s:
                    claim.is_over = True
                    return self._use_one()

    def give(self) -> None:
        """Give a place to the most urgent who waits, or back; one that was too many is gone."""
        with self._lock:
            self._moved = time.monotonic()
            claim = self._first() if self._free >= 0 else None
            if claim is None:
                self._free += 1
            else:
                claim.is_over = claim.is_granted = True
                claim.woken.set()

    def _use_one(self) -> bool:
        self._free -= 1
        self._moved = time.monotonic()
        return True

    def _first(self) -> _Claim | None:
        """Return the most urgent who still waits."""
        while self._waiting and self._waiting[0][2].is_over:
            heapq.heappop(self._waiting)
        return self._waiting[0][2] if self._waiting else None


class Turn:
    """One thread's turn: a place from entering to leaving, except while it is `away`.

    Attributes:
        waited_ms: How long it has waited for places.
    """

    def __init__(self, turns: Turns, order: float, due: float | None) -> None:
        self.waited_ms = 0.0
        self._turns = turns
        self._order = order
        self._due = due
        self._lock = threading.Lock()
        self._claim: _Claim | None = None
        self._is_cancelled = False
        self._has_place = False

    def __enter__(self) -> Turn:
        """Wait for a place."""
        self._take()
        return self

    def __exit__(self, *_error: object) -> None:
        """Give it back."""
        self._give()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Give the place back for this block, which waits for something else."""
        self._give()
        try:
            yield
        finally:
            self._take()

    def cancel(self) -> None:
        """Wait no longer: the thread goes on without a place, only to end. From any thread."""
        with self._lock:
            self._is_cancelled = True
            if self._claim is not None:
                self._claim.woken.set()

    def _take(self) -> None:
        claim = _Claim()
        with self._lock:
            if self._is_cancelled:
                return
            self._claim = claim
        started = time.monotonic()
        self._has_place = self._turns.take(claim, self._order, self._due)
        self.waited_ms += (time.monotonic() - started) * 1e3

    def _give(self) -> None:
        if self._has_place:
            self._has_place = False
            self._turns.give()


class _Claim:
    """One wait for a place. `woken` ends it, with the place or without."""

    __slots__ = ("is_granted", "is_over", "woken")

    def __init__(self) -> None:
        self.is_granted = False
        self.is_over = False
        self.woken = threading.Event()

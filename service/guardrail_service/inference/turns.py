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
worker wait for each of them. One alone would let a huge sample keep all others waiting."""


class Turns:
    """Places for threads that compute. One that waits for model rows gives its place back.

    Args:
        at_once: How many threads compute at the same time.
    """

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._lock = threading.Lock()
        self._free = at_once
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
                self._free -= 1
                return True
            heapq.heappush(self._waiting, (order, next(self._sequence), claim))
        claim.wait(due)
        with self._lock:
            claim.is_over = True
            return claim.is_granted

    def give(self) -> None:
        """Give a place to the most urgent who waits, or back."""
        with self._lock:
            while self._waiting:
                _, _, claim = heapq.heappop(self._waiting)
                if not claim.is_over:
                    claim.grant()
                    return
            self._free += 1


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
                self._claim.wake()

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
    """One wait for a place."""

    __slots__ = ("_woken", "is_granted", "is_over")

    def __init__(self) -> None:
        self.is_granted = False
        self.is_over = False
        self._woken = threading.Event()

    def grant(self) -> None:
        """Give it the place; `Turns` holds its lock."""
        self.is_granted = True
        self._woken.set()

    def wake(self) -> None:
        """End the wait without a place."""
        self._woken.set()

    def wait(self, due: float | None) -> None:
        """Wait until granted, woken or due."""
        self._woken.wait(None if due is None else max(0.0, due - time.monotonic()))

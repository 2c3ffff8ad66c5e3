"""A check's waits, for its turn to compute and for its rows, and how it is told to stop."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from guardrail_service.inference.queue.scheduler import Ticket

AT_ONCE = 2
"""Python runs one thread at a time, so more would hardly end sooner; but the event loop and every
model worker wait for each of them."""
PATIENCE_S = 0.1
"""Seconds of computing after which a check takes up no place that a more urgent one wants: a huge
sample must not keep all others waiting. Most checks compute for a tenth of that."""
_STUCK_TIMES = 10.0
"""So many times that long it takes one from those that are less urgent: then it does not give way
because it is stuck in one long step."""
_FAR_S = 1.0
"""Beside a check that is so much more urgent no other one computes: both share one interpreter."""


class Turns:
    """Places for threads that compute. One that waits for model rows gives its place back.

    Args:
        at_once: How many threads compute at the same time, besides those that take very long.
        patience_s: How long a thread may compute until it does not count any more, seconds.
    """

    def __init__(self, at_once: int = AT_ONCE, patience_s: float = PATIENCE_S) -> None:
        self._at_once = at_once
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._held: dict[_Claim, _Held] = {}
        self._waiting: list[tuple[float, int, _Claim]] = []
        self._sequence = itertools.count()
        self._is_closed = False

    def turn(self, order: float, due: float | None) -> Turn:
        """Return a turn that is not taken yet.

        Args:
            order: The least comes first.
            due: Monotonic second as of which there is no more waiting: what is known by then must
                go out, so the turn is taken whether or not there is a place. None: never.
        """
        return Turn(self, order, due)

    def take(self, claim: _Claim, order: float, due: float | None) -> bool:
        """Wait for a place; return whether there is one, or False: due, cancelled or closed."""
        with self._lock:
            if self._is_closed:
                return False
            heapq.heappush(self._waiting, (order, next(self._sequence), claim))
            self._grant()
        try:
            while not claim.is_over:
                is_woken = claim.woken.wait(self._until_next_s(due))
                with self._lock:
                    if is_woken or (due is not None and time.monotonic() >= due):
                        claim.is_over = True
                    else:
                        self._grant()
        except BaseException:  # an interrupt: the place would be nobody's
            claim.is_over = True
            self.give(claim)
            raise
        return claim.is_granted

    def give(self, claim: _Claim) -> None:
        """Give a place to the most urgent who waits."""
        with self._lock:
            self._held.pop(claim, None)
            self._grant()

    def close(self) -> None:
        """Let everybody through, now and later: the service ends, and so does every check."""
        with self._lock:
            self._is_closed = True
            for _, _, claim in self._waiting:
                claim.is_over = True
                claim.woken.set()
            self._waiting.clear()

    @property
    def is_closed(self) -> bool:
        """Return whether the service ends."""
        return self._is_closed

    def waiting(self) -> int:
        """Return how many threads wait for a place."""
        with self._lock:
            return sum(not claim.is_over for _, _, claim in self._waiting)

    def _until_next_s(self, due: float | None) -> float:
        """Return the seconds until somebody no longer counts, or it is due."""
        now = time.monotonic()
        steps = (self._patience_s, _STUCK_TIMES * self._patience_s)
        with self._lock:
            ends = [held.since + step for held in self._held.values() for step in steps]
        next_s = min((end - now for end in ends if end > now), default=self._patience_s)
        return next_s if due is None else max(0.0, min(next_s, due - now))

    def is_passed(self, order: float) -> bool:
        """Return whether who computes in this order should give way to somebody."""
        now = time.monotonic()
        with self._lock:
            first = self._first()
            if first is not None and first < order:
                return True
            return any(self._is_far(held, order, now) for held in self._held.values())

    def _grant(self) -> None:
        """Hand out the places that are free, those of whom takes long among them."""
        now = time.monotonic()
        while (order := self._first()) is not None and self._has_room(order, now):
            _, _, claim = heapq.heappop(self._waiting)
            claim.is_over = claim.is_granted = True
            self._held[claim] = _Held(now, order)
            claim.woken.set()

    def _first(self) -> float | None:
        """Return the order of the most urgent who waits; those who no longer do leave."""
        while self._waiting and self._waiting[0][2].is_over:
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def _has_room(self, order: float, now: float) -> bool:
        taken = sum(self._counts(held, order, now) for held in self._held.values())
        far = any(self._is_far(held, order, now) for held in self._held.values())
        return taken < self._at_once and not far

    def _counts(self, held: _Held, order: float, now: float) -> bool:
        times = _STUCK_TIMES if held.order <= order else 1.0
        return now - held.since < times * self._patience_s

    def _is_far(self, held: _Held, order: float, now: float) -> bool:
        return held.order + _FAR_S < order and now - held.since < self._patience_s


class _Held(NamedTuple):
    """Since when somebody computes, monotonic seconds, and in which order it came."""

    since: float
    order: float


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
        self._claim = _Claim()
        self._is_cancelled = False
        self._has_place = False  # may compute; not if it was due before there was a place

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

    def give_way(self) -> None:
        """Let those compute who are more urgent, and wait for a place again."""
        if self._has_place and self._turns.is_passed(self._order):
            with self.away():
                pass

    def cancel(self) -> None:
        """Wait no longer: the thread goes on without a place, only to end. From any thread."""
        with self._lock:
            self._is_cancelled = True
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
            self._turns.give(self._claim)


class _Claim:
    """One wait for a place. `woken` ends it, with the place or without."""

    __slots__ = ("is_granted", "is_over", "woken")

    def __init__(self) -> None:
        self.is_granted = False
        self.is_over = False
        self.woken = threading.Event()


class Cancellation:
    """Tells a running check that nobody waits for it any more. Thread-safe.

    Args:
        owner: Whose rows the check's are; those of one owner (the items of a batch) are never
            refused because of each other. None: the check's own.
    """

    def __init__(self, owner: object | None = None) -> None:
        self._owner = owner
        self._lock = threading.Lock()
        self._waits: tuple[Ticket | Turn, ...] = ()
        self.cancelled = False

    @property
    def owner(self) -> object:
        """Return whose rows the check's are."""
        return self if self._owner is None else self._owner  # not kept: that would be a cycle

    def cancel(self) -> None:
        """Drop the check's queued rows; the check raises Cancelled."""
        with self._lock:
            self.cancelled = True
            self._drop()

    def attach(self, *waits: Ticket | Turn) -> None:
        """Name what the check waits for as of now; dropped if the caller is already gone."""
        with self._lock:
            self._waits = waits
            if self.cancelled:
                self._drop()

    def _drop(self) -> None:
        for waits in self._waits:
            waits.cancel()

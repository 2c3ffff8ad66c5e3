"""A check's waits, for its turn to compute and for its rows, and how it is told to stop."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from guardrail_service.inference.queue.backlog import FairQueue
from guardrail_service.inference.queue.cost import MOST_SLACK_S, QueuePlace, Shares, UnderWay
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
        shares: What callers have had; computing counts as well. None: nobody has had anything.
    """

    def __init__(
        self,
        at_once: int = AT_ONCE,
        patience_s: float = PATIENCE_S,
        shares: Shares | None = None,
    ) -> None:
        self._at_once = at_once
        self._patience_s = patience_s
        self.shares = Shares() if shares is None else shares
        self._lock = threading.Lock()
        self._held: dict[_Claim, _Held] = {}
        self._under_way = UnderWay(self.shares)
        self._waiting = FairQueue[_Claim](self.shares)
        self._sequence = itertools.count()
        self.is_closed = False
        """Whether the service ends."""

    def turn(self, place: QueuePlace, due: float | None) -> Turn:
        """Return a turn that is not taken yet.

        Args:
            place: The first comes first.
            due: Monotonic second as of which there is no more waiting: what is known by then must
                go out, so the turn is taken whether or not there is a place. None: never.
        """
        return Turn(self, place, due)

    def begin(self, turn: Turn, place: QueuePlace) -> None:
        """Note that a check is under way, whether it computes or waits for its rows."""
        with self._lock:
            self._under_way.places[turn] = place

    def end(self, turn: Turn) -> None:
        """Note that it is done."""
        with self._lock:
            self._under_way.places.pop(turn, None)
            if self._waiting.lanes:
                self._grant()

    def take(self, claim: _Claim, place: QueuePlace, due: float | None) -> bool:
        """Wait for a place; return whether there is one, or False: due, cancelled or closed."""
        with self._lock:
            if self.is_closed:
                return False
            if not self._waiting.lanes and self._has_room(place, time.monotonic()):
                self._hold(claim, place)
                return True
            self._waiting.push(claim, place, next(self._sequence))
            self._grant()
        try:
            while not claim.is_over:
                is_woken = claim.woken.wait(self._until_next_s(due))
                with self._lock:
                    if is_woken or (due is not None and time.monotonic() >= due):
                        claim.is_over = True
                        self._waiting.remove((claim,))
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
            if self._waiting.lanes:
                self._waiting.remove((claim,))
                self._grant()

    def close(self) -> None:
        """Let everybody through, now and later: the service ends, and so does every check."""
        with self._lock:
            self.is_closed = True
            claims = list(self._waiting)
            self._waiting.remove(claims)
            for claim in claims:
                claim.is_over = True
                claim.woken.set()

    def waiting(self) -> int:
        """Return how many threads wait for a place."""
        with self._lock:
            return len(self._waiting)

    def _until_next_s(self, due: float | None) -> float:
        """Return the seconds until somebody no longer counts, or it is due."""
        now = time.monotonic()
        steps = (self._patience_s, _STUCK_TIMES * self._patience_s)
        with self._lock:
            ends = [held.since + step for held in self._held.values() for step in steps]
        next_s = min((end - now for end in ends if end > now), default=self._patience_s)
        return next_s if due is None else max(0.0, min(next_s, due - now))

    def is_passed(self, place: QueuePlace) -> bool:
        """Return whether who computes at this place should give way to somebody."""
        now = time.monotonic()
        with self._lock:
            first = self._waiting.first() if self._waiting.lanes else None
            if first is not None and self.shares.ahead_s(first[0], place) > 0:
                return True
            if self._others_stop(place, now):
                return True
            return any(self._is_far(held, place, now) for held in self._held.values())

    def _grant(self) -> None:
        """Hand out the places that are free, those of whom takes long among them."""
        now = time.monotonic()
        while self._waiting.lanes and (first := self._waiting.first()) is not None:
            place, claim = first
            if not self._has_room(place, now):
                return
            self._waiting.pop()
            self._hold(claim, place)

    def _hold(self, claim: _Claim, place: QueuePlace) -> None:
        claim.is_over = claim.is_granted = True
        self._held[claim] = _Held(time.monotonic(), place)
        claim.woken.set()

    def _has_room(self, place: QueuePlace, now: float) -> bool:
        taken = [held for held in self._held.values() if self._counts(held, place, now)]
        if any(self._is_far(held, place, now) for held in self._held.values()):
            return False
        if self._others_stop(place, now):
            return False
        if place.slack_s >= MOST_SLACK_S and any(h.place.slack_s >= MOST_SLACK_S for h in taken):
            return False  # of huge ones one at a time, or others find no interpreter to share
        return len(taken) < self._at_once

    def _others_stop(self, place: QueuePlace, now: float) -> bool:
        """Return whether huge work at a place stands still for checks besides its own."""
        others = self._under_way
        return len(others.places) > 1 and others.stops(None, place, now)

    def _counts(self, held: _Held, place: QueuePlace, now: float) -> bool:
        times = _STUCK_TIMES if self.shares.ahead_s(held.place, place) >= 0 else 1.0
        return now - held.since < times * self._patience_s

    def _is_far(self, held: _Held, place: QueuePlace, now: float) -> bool:
        is_far = self.shares.ahead_s(held.place, place) > _FAR_S
        return is_far and now - held.since < self._patience_s


class _Held(NamedTuple):
    """Since when somebody computes, monotonic seconds, and at which place."""

    since: float
    place: QueuePlace


class Turn:
    """One thread's turn: a place from entering to leaving, except while it is `away`.

    Attributes:
        waited_ms: How long it has waited for places.
    """

    def __init__(self, turns: Turns, place: QueuePlace, due: float | None) -> None:
        self.waited_ms = 0.0
        self._turns = turns
        self._place = place
        self._due = due
        self._lock = threading.Lock()
        self._claim = _Claim()
        self._is_cancelled = False
        self._has_place = False  # may compute; not if it was due before there was a place
        self._charged_s = 0.0  # up to this second of its thread's processor time

    def __enter__(self) -> Turn:
        """Wait for a place."""
        self._charged_s = time.thread_time()
        self._turns.begin(self, self._place)
        try:
            self._take()
        except BaseException:
            self._turns.end(self)
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        """Give it back, and let the caller pay."""
        self._charge()
        self._give()
        self._turns.end(self)

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
        self._charge()
        if self._has_place and self._turns.is_passed(self._place):
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
        self._has_place = self._turns.take(claim, self._place, self._due)
        self.waited_ms += (time.monotonic() - started) * 1e3

    def _give(self) -> None:
        if self._has_place:
            self._has_place = False
            self._turns.give(self._claim)

    def _charge(self) -> None:
        """Let the caller pay for what this thread has computed."""
        now = time.thread_time()
        self._turns.shares.charge(self._place.caller, (now - self._charged_s) * 1e3)
        self._charged_s = now


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

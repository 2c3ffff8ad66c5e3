"""Limits one thread's work on one text: until a deadline, and never beyond a hard limit.

Code that may take long on some text calls `check_time` inside its loop; outside `spending` the call
costs a look-up and never refuses.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import TypeVar

from guardrail_service.errors import OutOfTime

T = TypeVar("T")
FREE_S = 0.05
"""Seconds of processor time that each half of a check has even after its deadline: five times what
an ordinary one takes, so that only huge texts are cut off, however busy the machine is."""


LOOK_S = 0.005
"""Seconds of processor time after which a thread looks whether somebody wants to go first."""
LARGE_LOOK_S = 0.002
"""The same for large texts, which others wait behind."""


class Budget:
    """The time one thread may spend from now on.

    Args:
        due: Monotonic second from which only `free_s` is left; None: never.
        cpu_s: Seconds of processor time in any case.
        free_s: Seconds of processor time that it has even when it is late.
        give_way: Called now and then between two steps of the work; it may wait.
        look_s: Seconds of processor time between two such calls.
    """

    def __init__(
        self,
        due: float | None,
        cpu_s: float,
        free_s: float = FREE_S,
        give_way: Callable[[], None] | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        now = time.thread_time()
        self._due = due
        self._free_until = now + free_s
        self._hard_until = now + cpu_s
        self._give_way = give_way
        self._look_s = look_s
        self._next_look = now + look_s
        self._unspent_until = -math.inf

    def is_spent(self) -> bool:
        """Return whether nothing is left; may wait before it does."""
        now = time.monotonic()
        if now < self._unspent_until:
            return False
        used = time.thread_time()
        if used >= self._next_look:
            self._next_look = used + self._look_s
            if self._give_way is not None:
                self._give_way()
        if used >= self._hard_until:
            return True
        if used >= self._free_until and self._due is not None and time.monotonic() >= self._due:
            return True
        self._unspent_until = self._ahead(now, used)
        return False

    def _ahead(self, now: float, used: float) -> float:
        """Return the monotonic second before which nothing can change.

        A thread computes for no longer than the clock runs, and the clock is read at a tenth of
        what the system takes to tell processor time.
        """
        has_free = used < self._free_until
        next_s = min(self._next_look, self._hard_until, self._free_until if has_free else math.inf)
        until = now + next_s - used
        return until if has_free or self._due is None else min(until, self._due)


class _Current(threading.local):
    budget: Budget | None = None


_current = _Current()


@contextmanager
def spending(budget: Budget) -> Iterator[None]:
    """Let `check_time` refuse, in this block and thread, when the budget is spent."""
    before, _current.budget = _current.budget, budget
    try:
        yield
    finally:
        _current.budget = before


BETWEEN_LOOKS = 64
"""Steps between two looks: a look takes half a microsecond, a step usually some."""


def in_time(steps: Iterable[T], every: int = BETWEEN_LOOKS) -> Iterator[T]:
    """Return what takes a step each, and look at the time now and every so many steps.

    The steps before the second look are drawn at once: for a short text this costs one look.

    Raises:
        OutOfTime: If this thread's budget is spent.
    """
    left = iter(steps)
    if _current.budget is None:
        return left
    check_time()
    first = list(islice(left, every))
    return iter(first) if len(first) < every else chain(first, _looking(left, every))


def _looking(steps: Iterator[T], every: int) -> Iterator[T]:
    for count, step in enumerate(steps):
        if not count % every:
            check_time()
        yield step


def check_time() -> None:
    """Raise OutOfTime if this thread's budget is spent."""
    budget = _current.budget
    if budget is not None and budget.is_spent():
        raise OutOfTime("the time for this text is over")

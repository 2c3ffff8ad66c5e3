"""Counts each key's requests, in a time and at a time.

`Counters` is all that a place to count has to do. One process counts in memory; processes of one
machine share a file (`shared_counters.py`), those of several machines a Redis
(`redis_counters.py`).
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Protocol

from guardrail_service.types import Rate


class CountersAway(Exception):
    """Nothing could be counted: a server that is not reached, a file that cannot be locked."""


class Counters(Protocol):
    """A place where requests are counted, by caller."""

    is_remote: bool
    """Whether counting may take long, so that the event loop must not do it."""

    def take(self, caller: str, rate: Rate) -> float:
        """Count one request; return 0, or the seconds until one fits, and then count none.

        The number in any window is estimated from the fixed one before and the present one.

        Raises:
            CountersAway: If it could not be counted.
        """
        ...

    def enter(self, caller: str, most: int) -> bool:
        """Return whether one more request is in work now; False: there were `most` already.

        Raises:
            CountersAway: If it could not be counted.
        """
        ...

    def leave(self, caller: str) -> None:
        """End what `enter` began.

        Raises:
            CountersAway: If it could not be counted; it then ends by itself, later.
        """
        ...

    def close(self) -> None:
        """Give back what is held."""
        ...


class RequestWindow(NamedTuple):
    """The requests in a fixed window of time and in the one before."""

    place: int = -1
    present: int = 0
    before: int = 0


def slid(window: RequestWindow, now: float, rate: Rate) -> tuple[RequestWindow, float]:
    """Return a window with one request more, and 0; or as it is, and the seconds until one fits.

    Args:
        window: What was counted, by the same clock.
        now: Seconds of a clock that never goes back; where it did, counting begins anew.
        rate: What is allowed.
    """
    place, passed = int(now // rate.seconds), (now % rate.seconds) / rate.seconds
    if window.place == place - 1:
        window = RequestWindow(place, 0, window.present)
    elif window.place != place:
        window = RequestWindow(place)
    of_before = math.floor(window.before * (1 - passed))
    if of_before + window.present < rate.requests:
        return window._replace(present=window.present + 1), 0.0
    if window.present < rate.requests:  # room comes as the window before is left behind
        share = 1 - (rate.requests - window.present) / window.before - passed
    else:
        share = 1 - passed + max(0.0, 1 - rate.requests / window.present)
    return window, max(0.001, share * rate.seconds)


class MemoryCounters:
    """Counts for one process.

    Args:
        clock: Monotonic seconds.
    """

    is_remote = False

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, RequestWindow] = {}
        self._held: Counter[str] = Counter()

    def take(self, caller: str, rate: Rate) -> float:
        """Count one request; return 0, or the seconds until one fits."""
        before = self._windows.get(caller, RequestWindow())
        self._windows[caller], wait_s = slid(before, self._clock(), rate)
        return wait_s

    def enter(self, caller: str, most: int) -> bool:
        """Return whether one more request is in work now."""
        if self._held[caller] >= most:
            return False
        self._held[caller] += 1
        return True

    def leave(self, caller: str) -> None:
        """End what `enter` began."""
        self._held[caller] -= 1

    def close(self) -> None:
        """Do nothing: what is counted goes with the process."""

"""How late the event loop is: what blocks it delays every request at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

EVERY_S = 0.02
"""Fifty looks a second cost about a thousandth of a core and miss no block of 20 ms."""


class LoopLag:
    """Sleeps, and notes by how much longer it slept than it asked for.

    Args:
        clock: Monotonic seconds.
        sleep: What the loop is asked for; tests pass their own.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._latest = 0.0
        self._largest = 0.0

    async def measure(self) -> None:
        """Go on until cancelled."""
        while True:
            asleep = self._clock()
            await self._sleep(EVERY_S)
            self._latest = max(0.0, self._clock() - asleep - EVERY_S)
            self._largest = max(self._largest, self._latest)

    def latest(self) -> float:
        """Return by how many seconds the loop was late when last looked at."""
        return self._latest

    def take_largest(self) -> float:
        """Return the largest delay since this was asked last, in seconds."""
        largest, self._largest = self._largest, 0.0
        return largest

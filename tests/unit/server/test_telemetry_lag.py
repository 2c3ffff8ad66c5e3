"""The event loop's lag: how much longer a sleep took than was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from guardrail_service.server.telemetry import EVERY_S, LoopLag


class Loop:
    """An event loop that is late by what the test says, then stops."""

    def __init__(self, late: Sequence[float]) -> None:
        self.now = 0.0
        self._late = list(late)

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        if not self._late:
            raise asyncio.CancelledError
        self.now += seconds + self._late.pop(0)


def measured(*late: float) -> LoopLag:
    """Return what was noted of a loop that was late by these seconds."""
    loop = Loop(late)
    lag = LoopLag(lambda: loop.now, loop.sleep)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(lag.measure())
    return lag


def test_the_lag_is_what_a_sleep_took_too_long() -> None:
    """The latest and the largest."""
    lag = measured(0.001, 0.5, 0.002)
    assert lag.latest() == pytest.approx(0.002)
    assert lag.take_largest() == pytest.approx(0.5)


def test_the_largest_is_told_once() -> None:
    """So that each reading is about the time since the one before."""
    lag = measured(0.5)
    lag.take_largest()
    assert lag.take_largest() == 0.0


def test_a_loop_that_is_early_has_no_lag() -> None:
    """Clocks and timers round."""
    assert measured(-EVERY_S / 2).latest() == 0.0

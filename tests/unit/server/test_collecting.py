"""The garbage collector while a service runs."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import suppress

import pytest

from guardrail_service.server import collecting
from guardrail_service.server.collecting import (
    OLDER,
    OLDEST,
    YOUNG_OBJECTS,
    collect_when_idle,
    seldom_collecting,
)


def test_the_collector_passes_over_what_is_loaded_until_the_service_ends() -> None:
    """Cycles made while it serves are still found; afterwards all is as it was."""
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    with seldom_collecting():
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold() == (YOUNG_OBJECTS, OLDER, OLDEST)
        gone = weakref.ref(cyclic())
        gc.collect()
        assert gone() is None
    assert (gc.get_threshold(), gc.get_freeze_count()) == (thresholds, frozen)


@pytest.mark.parametrize(
    ("is_idle", "looks", "finds"),
    [(True, 2, True), (True, 0, False), (False, 2, False), (False, 40, True)],
    ids=["idle and used", "idle, hardly used", "busy", "busy for too long"],
)
def test_everything_is_looked_at_when_nobody_waits(
    monkeypatch: pytest.MonkeyPatch, is_idle: bool, looks: int, finds: bool
) -> None:
    """An old cycle goes once the service is idle, or has been busy for very long."""
    monkeypatch.setattr(collecting, "WELL_USED", 1)
    monkeypatch.setattr(collecting, "OVERDUE", 30)
    with seldom_collecting():
        gc.disable()  # only the looks that are asked for here
        try:
            assert asyncio.run(is_gone(is_idle, looks)) is finds
        finally:
            gc.enable()


async def is_gone(is_idle: bool, looks: int) -> bool:
    """Return whether an old cycle is found after some looks at what is young."""
    one = cyclic()
    for _ in range(2):
        gc.collect(1)  # now it is old
    task = asyncio.ensure_future(collect_when_idle(lambda: is_idle, 0.01))
    await asyncio.sleep(0)  # it has begun to count
    for _ in range(looks):
        gc.collect(1)
    gone = weakref.ref(one)
    del one
    await asyncio.sleep(0.1)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return gone() is None


class Cyclic:
    """Holds itself."""

    def __init__(self) -> None:
        self.me = self


def cyclic() -> Cyclic:
    """Return an object that only the collector can free."""
    return Cyclic()

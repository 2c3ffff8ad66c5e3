"""The garbage collector while a service runs: often a little, and everything when it is idle.

A collection holds the interpreter, so every thread waits for it, the event loop too.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

YOUNG_OBJECTS, OLDER, OLDEST = 500, 4, 1_000_000
"""New objects after which the collector looks for cycles among them, after how many such looks it
looks at what was left, and after how many of those at everything: never by itself. What a look
takes grows with its objects. At 2,000 and 10 one look took 8 ms of processor time, and up to 40 ms
beside a model that runs on the same core; at 500 and 4 it takes 1 ms, and all looks together as
long as before."""
LOOK_S: Final = 5.0
"""Seconds between two questions whether the service is idle."""
WELL_USED, OVERDUE = 1_000, 20_000
"""Looks at what was left, about as many as checks, after which everything is looked at: as soon as
the service is idle, and at last while it works. A check leaves nothing to find unless one of its
rows fails."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Let the garbage collector pass over all that is loaded by now, and take small steps."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, OLDER, OLDEST)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


async def collect_when_idle(is_idle: Callable[[], bool], every_s: float = LOOK_S) -> None:
    """Look at everything when nobody waits, until cancelled.

    Without `seldom_collecting` the collector does so by itself.
    """
    seen = _looks()
    while True:
        await asyncio.sleep(every_s)
        used = _looks() - seen
        if used > (WELL_USED if is_idle() else OVERDUE) and gc.get_threshold()[2] == OLDEST:
            gc.collect()
            seen = _looks()


def _looks() -> int:
    """Return how often the collector has looked at what its first look had left."""
    found: int = gc.get_stats()[1]["collections"]
    return found

"""How often the garbage collector stops a process that answers requests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 2_000
OLDER, OLDEST = 10, 100
"""New objects after which the collector looks for cycles among them, after how many such looks it
looks at what was left, and after how many of those at everything. Python 3.11 says 700, 10 and 10,
which is too often here: a check leaves nothing in a cycle unless one of its rows fails."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Let the garbage collector pass over all that is loaded by now, and come less often.

    It stops every thread, the event loop too: 40 ms for a full collection, which finds nothing
    because what is loaded stays.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(max(YOUNG_OBJECTS, before[0]), OLDER, OLDEST)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()

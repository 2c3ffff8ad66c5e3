"""How often the garbage collector stops a process that answers requests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 10_000
"""New objects after which the garbage collector looks for cycles among them. A check makes many, of
which nearly none are in one; Python's 700 would look fifteen times as often."""


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Let the garbage collector pass over all that is loaded by now, and come less often.

    It stops every thread, the event loop too: 40 ms for a full collection, which finds nothing
    because what is loaded stays.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()

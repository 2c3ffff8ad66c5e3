"""The garbage collector while a service runs."""

from __future__ import annotations

import gc
import weakref

from guardrail_service.server.serve import YOUNG_OBJECTS, seldom_collecting


def test_the_collector_passes_over_what_is_loaded_until_the_service_ends() -> None:
    """Cycles made while it serves are still found; afterwards all is as it was."""
    thresholds, frozen = gc.get_threshold(), gc.get_freeze_count()
    with seldom_collecting():
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold()[0] == max(YOUNG_OBJECTS, thresholds[0])
        gone = weakref.ref(cyclic())
        gc.collect()
        assert gone() is None
    assert (gc.get_threshold(), gc.get_freeze_count()) == (thresholds, frozen)


class Cyclic:
    """Holds itself."""

    def __init__(self) -> None:
        self.me = self


def cyclic() -> Cyclic:
    """Return an object that only the collector can free."""
    return Cyclic()

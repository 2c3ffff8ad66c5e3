"""How tests wait for what another thread is about to do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

BUDGET_S = 60.0


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition; fail if it never comes true."""
    end = time.monotonic() + BUDGET_S
    while not condition():
        assert time.monotonic() < end
        threading.Event().wait(0.001)

"""The threads that carry checks run before the first request, or the service does not start."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from guardrail_service.errors import ConfigurationError
from guardrail_service.server import service as module


def running() -> set[threading.Thread]:
    """Return the threads of pools that are open."""
    return {t for t in threading.enumerate() if t.name.startswith("check")}


def test_threads_run_before_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as there may be checks, up to a bound; the others start when they are needed."""
    monkeypatch.setattr(module, "STARTED", 3)
    for count, expected in ((1, 1), (3, 3), (5, 3)):
        before = running()
        pool = module._started(count)
        try:
            assert len(running() - before) == expected
            assert list(pool.map(len, ["a"] * 8)) == [1] * 8
        finally:
            pool.shutdown()


def test_a_machine_without_threads_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that did start do not wait for the others for ever."""
    before, start, left = running(), threading.Thread.start, [2]

    def scarce(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    with pytest.raises(ConfigurationError, match=r"^GUARDRAIL_MAX_CONCURRENT_REQUESTS: found 4, "):
        module._started(4)
    assert running() == before


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_checks_stand_behind_the_event_loop_and_model_runs_behind_them() -> None:
    """The thread that asks keeps its priority."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    pool = module._started(2)
    try:
        found = {pool.submit(os.getpriority, os.PRIO_PROCESS, 0).result() for _ in range(8)}
    finally:
        pool.shutdown()
    assert found == {own + module.CHECKS_BEHIND}
    assert os.getpriority(os.PRIO_PROCESS, 0) == own
    assert module.ROWS_BEHIND > module.CHECKS_BEHIND > 0
    gone = threading.Thread(target=int)
    gone.start()
    gone.join()
    module._stand_behind(1, gone.native_id)  # nobody has it any more

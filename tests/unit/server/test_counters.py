"""Counting requests in memory and in a file that processes share; tests/databases has a Redis."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.errors import ConfigurationError, NotReady, RateExceeded
from guardrail_service.server.counters import (
    Counters,
    CountersAway,
    MemoryCounters,
    RequestWindow,
    slid,
)
from guardrail_service.server.limiter import Limiter, open_counters
from guardrail_service.server.shared_counters import _SIZE, SharedCounters
from guardrail_service.types import Caller, Rate

Opens = Callable[[], Counters]


@pytest.fixture(params=["memory", "file"])
def counters(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Counters]:
    """Each place to count that needs no server."""
    kind = request.param
    opened = open_counters(kind if kind == "memory" else f"file:{tmp_path / 'counters'}")
    yield opened
    opened.close()


def test_callers_are_counted_apart(counters: Counters) -> None:
    """So many in a time, and the next is told when."""
    rate = Rate(2, 3_600)
    assert [counters.take("a", rate) for _ in range(2)] == [0, 0]
    assert 0 < counters.take("a", rate) <= 7_200
    assert counters.take("b", rate) == 0
    assert [counters.enter("a", 2) for _ in range(3)] == [True, True, False]
    assert counters.enter("b", 2)
    counters.leave("a")
    assert counters.enter("a", 2)


@given(
    st.integers(1, 50),
    st.lists(st.floats(0, 3), min_size=1, max_size=200),
)
def test_a_sliding_window_lets_the_next_pass_when_it_says(requests: int, gaps: list[float]) -> None:
    """And never more than allowed in one fixed window, nor twice that in any other."""
    rate, now, window = Rate(requests, 10), 1_000.0, RequestWindow()
    passed: list[float] = []
    for gap in gaps:
        now += gap
        window, wait_s = slid(window, now, rate)
        if wait_s:
            assert slid(window, now + wait_s + 0.001, rate)[1] == 0
        else:
            passed.append(now)
    for start in passed:
        assert sum(start <= time < start + 10 for time in passed) <= 2 * requests
        assert sum(time // 10 == start // 10 for time in passed) <= requests


@pytest.mark.parametrize("now", [5.0, 5e8])
def test_a_clock_that_jumps_begins_anew(now: float) -> None:
    """A machine that was started again counts from nought."""
    assert slid(RequestWindow(100, 7, 7), now, Rate(1, 1)) == (RequestWindow(int(now), 1, 0), 0.0)


def _other_process(path: str, pipe: Connection) -> None:
    held = SharedCounters(path)
    entered = [held.enter("a", 3), held.enter("a", 3)]
    pipe.send((entered, held.take("a", Rate(2, 3_600))))
    pipe.recv()


def test_processes_share_a_file_and_a_killed_one_is_forgotten(tmp_path: Path) -> None:
    """Its requests in work end with it; the rate that it used stays used."""
    path = str(tmp_path / "counters")
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    other = context.Process(target=_other_process, args=(path, theirs), daemon=True)
    other.start()
    assert ours.recv() == ([True, True], 0.0)
    mine = SharedCounters(path)
    assert [mine.enter("a", 3), mine.enter("a", 3)] == [True, False]
    assert other.pid is not None
    os.kill(other.pid, signal.SIGKILL)
    other.join()
    assert [mine.enter("a", 3) for _ in range(3)] == [True, True, False]
    assert mine.take("a", Rate(2, 3_600)) == 0
    assert mine.take("a", Rate(2, 3_600)) > 0
    mine.close()
    later = SharedCounters(path)
    assert later.take("a", Rate(2, 3_600)) > 0
    assert [later.enter("a", 1), later.enter("a", 1)] == [True, False]
    later.close()


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    """Nor is a folder one."""
    path = tmp_path / "notes"
    path.write_text("mine")
    for other in (path, tmp_path):
        with pytest.raises(ConfigurationError, match="GUARDRAIL_COUNTERS"):
            SharedCounters(str(other))
    assert path.read_text() == "mine"


def test_the_file_has_a_fixed_size(tmp_path: Path) -> None:
    """However many callers it counts."""
    held = SharedCounters(str(tmp_path / "counters"))
    for n in range(300):
        held.take(str(n), Rate(1, 1))
    held.close()
    assert (tmp_path / "counters").stat().st_size == _SIZE


class Away(MemoryCounters):
    """A place that cannot be reached."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def enter(self, caller: str, most: int) -> bool:
        """Fail."""
        self.asked += 1
        raise CountersAway("TimeoutError")

    def take(self, caller: str, rate: Rate) -> float:
        """Fail."""
        self.asked += 1
        raise CountersAway("TimeoutError")


LIMITED = Caller("a", rate=Rate(1, 3_600), concurrency=1)


async def _ask(limiter: Limiter, times: int) -> list[str]:
    seen = []
    for _ in range(times):
        try:
            async with limiter.within(LIMITED):
                seen.append("served")
        except (NotReady, RateExceeded) as error:
            seen.append(error.code)
    return seen


@pytest.mark.parametrize(("is_open", "code"), [(True, "served"), (False, "not_ready")])
def test_what_cannot_be_counted_passes_or_is_refused(
    is_open: bool, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever is away is asked once a second, not by every request."""
    away, now = Away(), [0.0]
    limiter = Limiter(away, is_open=is_open, clock=lambda: now[0])
    assert asyncio.run(_ask(limiter, 5)) == [code] * 5
    assert away.asked == 1
    assert "not counted: TimeoutError" in caplog.text
    now[0] = 2.0
    assert asyncio.run(_ask(limiter, 1)) == [code]
    assert away.asked == 2
    (metric,) = limiter.uncounted.collect()
    result = "served" if is_open else "refused"
    (sample,) = [s for s in metric.samples if s.name.endswith("_total")]
    assert sample.labels == {"result": result}
    assert sample.value >= 6


def test_a_place_is_given_back_whatever_happens() -> None:
    """Also where the rate refuses, or the request fails."""
    held = MemoryCounters()
    assert asyncio.run(_ask(Limiter(held), 3)) == ["served", "rate_exceeded", "rate_exceeded"]
    assert held.enter("a", 1)

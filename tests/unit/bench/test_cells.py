"""A cell is counted from its requests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from guardrail_bench.cells import Usage, summarise
from guardrail_bench.load import LoadRequest

WINDOW = Usage(4, 1.5, 0.2, None, (100.0, 110.0))


def exchange(
    at: float, took: float, status: int = 200, timings: Mapping[str, float] | None = None
) -> LoadRequest:
    """Return a request that was sent 1 ms late and took some seconds from its intended time."""
    return LoadRequest(
        0, intended=at, sent=at + 0.001, done=at + took, status=status, timings=timings or {}
    )


STATED = {"queue": 1.0, "tokenize": 0.5, "inference": 40.0, "total": 45.0, "server": 46.0}


def test_stages_are_those_of_verdicts_and_refusals_stand_apart() -> None:
    """A fast refusal must not make the median look good."""
    found = summarise(
        [
            exchange(0.0, 0.05, timings=STATED),
            exchange(1.0, 0.06, timings={**STATED, "total": 55.0}),
            exchange(1.5, 0.004, status=429, timings={"server": 2.0}),
            exchange(2.0, 0.5, status=500, timings={"server": 9.0}),
        ],
        WINDOW,
        first=3,
        callers=8,
    )
    assert found.stages["total"].n == 2
    assert found.stages["overhead"].p50 == 4.0
    assert found.stages["overhead"].worst == 14.0
    assert found.stages["client"].worst == pytest.approx(60)
    assert found.refused is not None
    assert found.refused.worst == 2.0
    assert (found.tally.complete, found.tally.refused, found.tally.failed) == (2, 1, 1)
    assert found.seconds == pytest.approx(2.5)
    assert found.per_second == pytest.approx(2 / 2.5)
    assert found.send_lag is not None
    assert found.send_lag.p50 == pytest.approx(1.0)
    assert (found.server_counted, found.service_cpu_s, found.title) == (4, 1.5, "8 callers")


def test_lateness_is_the_worst_verdicts_by_both_clocks() -> None:
    """Negative where every verdict came before its deadline."""
    found = summarise(
        [exchange(0.0, 0.05, timings=STATED), exchange(0.0, 0.08, timings=STATED)],
        WINDOW,
        first=0,
        load_percent=300,
        offered_per_s=9.0,
        deadline_ms=60.0,
    )
    assert found.late_ms == {"server": pytest.approx(-14), "client": pytest.approx(20)}
    assert found.title == "300 %, deadline 60 ms"


def test_a_cell_of_refusals_only_has_no_stages() -> None:
    """And no lateness: there is no verdict that could be late."""
    found = summarise(
        [exchange(0.0, 0.004, status=429)], WINDOW, first=0, load_percent=300, deadline_ms=60.0
    )
    assert found.stages == {}
    assert found.late_ms is None
    assert found.refused is None
    assert found.per_second == 0.0


def test_a_cell_without_requests_is_an_error() -> None:
    """It has no numbers."""
    with pytest.raises(ValueError, match="at least one"):
        summarise([], WINDOW, first=0)

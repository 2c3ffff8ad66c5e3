"""Reports are read as they were written, and only like is added to like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from guardrail_bench.latency_results import (
    Usage,
    fastest,
    read_report,
    same_service,
    same_settings,
    summarise,
    write_report,
)
from guardrail_bench.load import LoadRequest, Tally
from guardrail_service.errors import InputError
from tests.unit.bench.conftest import SETTINGS, cell, opened, report, run


def test_a_report_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """Every number of it."""
    path = tmp_path / "report.json"
    write_report(report(), path)
    assert read_report(path) == report()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "message"),
    [("{}", "started: Field required"), ("no json", "(whole file): Invalid JSON")],
)
def test_another_file_is_refused_with_its_first_fault(
    tmp_path: Path, content: str, message: str
) -> None:
    """Instead of being overwritten at the end."""
    path = tmp_path / "report.json"
    path.write_text(content)
    with pytest.raises(InputError) as refused:
        read_report(path)
    assert message in str(refused.value)
    with pytest.raises(InputError, match="No such file"):
        read_report(tmp_path / "none.json")


def test_the_same_settings_and_service_may_be_resumed(tmp_path: Path) -> None:
    """Also after a detour through JSON."""
    path = tmp_path / "report.json"
    write_report(report(), path)
    before = read_report(path)
    same_settings(before, SETTINGS)
    same_service(before, json.loads(json.dumps(before.service)))


def test_other_settings_or_another_service_may_not() -> None:
    """The message names what differs."""
    other = SETTINGS.model_copy(update={"seed": 18, "workers": 2})
    with pytest.raises(InputError, match="other seed, workers;"):
        same_settings(report(), other)
    with pytest.raises(InputError, match="other service;"):
        same_service(report(), {"pack": "another"})


def test_cells_are_found_by_load_and_deadline() -> None:
    """70 % is there twice."""
    found = run()
    assert found.at(70, limited=False) == opened(70)
    assert found.at(70, limited=True) == opened(70, 250.0)
    assert found.at(90, limited=False) is None
    assert found.saturation().callers == 8
    assert report().run("rag", "cold") == run()


def test_capacity_is_that_of_a_loop_in_which_everything_was_judged() -> None:
    """A refused request's rows were not run; without such a loop, the fastest counts."""
    refused = cell(callers=32, per_second=99.0, tally=Tally(sent=10, complete=9, refused=1))
    assert fastest((cell(), cell(callers=8, per_second=12.0), refused)).callers == 8
    assert fastest((refused,)) == refused


def test_a_report_without_a_run_says_so() -> None:
    """It is measured then."""
    assert report().run("rag", "warm") is None


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

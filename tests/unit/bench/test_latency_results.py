"""Reports are read as they were written, and only like is added to like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail_bench.latency_results import (
    fastest,
    read_report,
    same_service,
    same_settings,
    write_report,
)
from guardrail_bench.measures import Tally
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

"""What a plan contains, and that nothing is measured twice."""

from __future__ import annotations

import pytest

from guardrail_bench.latency import LatencyPlan, ScenarioBench, levels, machine, run
from guardrail_bench.latency_results import LatencyReport
from guardrail_bench.samples import (
    SCENARIOS,
    SampleSource,
    SampleTexts,
    default_texts_file,
)
from guardrail_service.errors import InputError, ServiceError
from tests.unit.bench.conftest import SETTINGS, cell, flat, report

READABLE = SETTINGS.model_copy(update={"texts": str(default_texts_file())})


def never(_report: LatencyReport) -> None:
    """Fail: nothing new was measured, so nothing is to be saved."""
    raise AssertionError("saved")


def test_a_plan_has_every_scenario_with_both_kinds_of_passages() -> None:
    """And counts its steps: two closed loops, three open ones, bare sessions, the soak."""
    plan = LatencyPlan(READABLE, soak=10)
    assert list(plan.pairs()) == [
        (scenario, passages)
        for scenario in ("chat", "rag", "report")
        for passages in ("cold", "warm")
    ]
    assert plan.steps() == 6 * (2 + 3 + 1) + 1


def test_what_the_report_has_is_not_measured_again() -> None:
    """No service is started."""
    lines: list[str] = []
    before = report(settings=READABLE)
    after = run(LatencyPlan(READABLE, ("rag",), ("cold",)), before, never, lines.append)
    assert after is before
    assert lines == ["rag, cold: measured before"]


def test_nothing_to_measure_is_an_error() -> None:
    """An empty report would look like a result."""
    with pytest.raises(ServiceError, match="nothing to measure"):
        run(LatencyPlan(READABLE, ()), None, never, str)


def test_texts_that_do_not_exist_stop_it_before_a_service_starts() -> None:
    """With the file's name."""
    with pytest.raises(InputError, match=r"none\.jsonl"):
        run(LatencyPlan(SETTINGS.model_copy(update={"texts": "none.jsonl"})), None, never, str)


def test_the_machine_is_described() -> None:
    """Numbers without it say nothing."""
    found = machine()
    assert found["cores"]
    assert found["cpu"]
    assert found["python"].startswith("3.")


TEXTS = SampleTexts([f"one two three four five six seven {n}" for n in "abc"], ["Why?"])


def test_loads_beyond_capacity_have_a_deadline_and_70_percent_is_measured_both_ways() -> None:
    """A queue without deadlines has no end there."""
    settings = SETTINGS.model_copy(update={"loads": (50, 70, 90, 150, 300)})
    assert list(levels(settings)) == [
        (50, False), (70, False), (70, True), (90, False), (150, True), (300, True),
    ]  # fmt: skip


@pytest.mark.parametrize(("p50", "expected"), [(10.0, 100.0), (41.0, 210.0), (42.0, 210.0)])
def test_the_deadline_is_five_times_what_one_caller_waits(p50: float, expected: float) -> None:
    """In steps of 10 ms, at least 100 ms."""
    source = SampleSource(TEXTS, SCENARIOS["chat"], "warm", 17)
    bench = ScenarioBench(SETTINGS, source, lambda _: None)
    alone, many = cell(stages={"client": flat(p50)}), cell(callers=8)
    assert bench.deadline_ms([many, alone]) == expected
    fixed = SETTINGS.model_copy(update={"deadline_ms": 75.0})
    assert ScenarioBench(fixed, source, lambda _: None).deadline_ms([alone]) == 75.0

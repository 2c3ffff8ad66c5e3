"""Which loads are measured, and under which deadline."""

from __future__ import annotations

import pytest

from guardrail_bench.loops import ScenarioBench, levels
from guardrail_bench.samples import (
    SCENARIOS,
    SampleSource,
    SampleTexts,
)
from tests.unit.bench.conftest import SETTINGS, cell, flat

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

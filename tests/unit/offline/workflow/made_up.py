"""Made-up scores for the workflow's statistics: what is planted in them is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from guardrail_offline.report.run_data import Column
from guardrail_offline.workflow.score_table import MetricColumn, ScoreTable
from guardrail_service.types import Direction, MetricSpec


def column(values: Column, name: str = "made.up", threshold: float | None = 0.5) -> MetricColumn:
    """Return a metric where higher is better."""
    evaluator, _, key = name.partition(".")
    metric = MetricSpec(key=key, direction=Direction.HIGHER, low=0, high=1, threshold=threshold)
    reasons = [None if known else "missing_input" for known in ~np.isnan(values)]
    return MetricColumn(evaluator, metric, values, reasons, "suite")


def table(facts: Sequence[Mapping[str, str]], columns: Sequence[MetricColumn]) -> ScoreTable:
    """Return a table of as many questions as there are facts."""
    cases = [
        {"key": f"c{n}", "group": f"g{n}", "input": f"question {n}", "actual_output": "answer"}
        for n in range(len(facts))
    ]
    found = {one.name: one for one in columns}
    return ScoreTable(cases, found, list(facts), np.arange(len(facts)))


def facts(count: int, rng: np.random.Generator) -> list[dict[str, str]]:
    """Return topics and generators drawn evenly."""
    return [
        {"topic": f"t{rng.integers(4)}", "generator": f"g{rng.integers(3)}"} for _ in range(count)
    ]

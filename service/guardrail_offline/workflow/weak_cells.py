"""Step 7: where the target is weak: by topic, generator and other facts, alone and in pairs.

A case counts once per question. With a threshold, the failing share inside a cell is compared with
the share outside by Fisher's exact test; without one, scores are compared by the rank-sum test. All
tests of a step are one family: Holm's correction keeps the chance of any false alarm at alpha.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from guardrail_offline.report.run_data import Column
from guardrail_offline.runs.paired import holm
from guardrail_offline.workflow.definition import WeaknessParameters
from guardrail_offline.workflow.evaluation import RUN
from guardrail_offline.workflow.score_table import (
    Mask,
    MetricColumn,
    ScoreTable,
    finite,
    mean,
    metric_json,
    rate,
    read_table,
)
from guardrail_offline.workflow.step_engine import StepContext, StepOutcome
from guardrail_service.types import Direction

_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)
_MOST_DOTS = 60
_MOST_VALUES = 40
"""Values of one dimension; the rarest beyond are left out, and a note says so."""


@dataclass(frozen=True)
class ScoreCell:
    """Some cases of one metric against all others.

    Attributes:
        facts: Value by dimension; one or two.
        inside: Cases of the cell among those with a value. Shape (units,).
    """

    column: MetricColumn
    cut: float | None
    facts: Mapping[str, str]
    values: Column
    inside: Mask

    @property
    def rests(self) -> bool:
        """Return whether there are cases on both sides."""
        return bool(self.inside.any()) and not bool(self.inside.all())


def detect(context: StepContext) -> StepOutcome:
    """Return the weak cells of the evaluation, by the thresholds of the calibration."""
    parameters: WeaknessParameters = context.parameters
    table = read_table(context.folder.step_folder("evaluation") / RUN, parameters.seed)
    cuts = {one["metric"]: one["threshold"] for one in context.results("calibration")["thresholds"]}
    found = weaknesses(table, cuts, parameters)
    left = {
        name: len(set(values)) - _MOST_VALUES
        for name in parameters.dimensions
        if len(set(values := [facts.get(name) for facts in table.facts])) > _MOST_VALUES
    }
    told = [f"{name}: the {count} rarest values are left out" for name, count in left.items()]
    inputs = {"cases": len(table.cases), "questions": len(table.units), "metrics": len(cuts)}
    return StepOutcome(found, inputs, notes=told)


def weaknesses(
    table: ScoreTable, cuts: Mapping[str, float | None], parameters: WeaknessParameters
) -> dict[str, Any]:
    """Return the marginal and bivariate tables, grids, and the cells that are weak.

    Args:
        table: Scores and facts.
        cuts: Threshold by metric; a metric that is not named is left out, None tests scores.
        parameters: Dimensions, pairs, alpha and the least cases of a cell.
    """
    found = cells_tested(table, cuts, parameters)
    rows = [_row(cell, p, p_holm, parameters.alpha) for cell, p, p_holm in found]
    weak = sorted((row for row in rows if row["weak"]), key=lambda row: row["p_holm"])
    return {
        "marginal": [row for row in rows if "dimension" in row],
        "bivariate": [row for row in rows if "dimensions" in row],
        "grid": [
            _grid(table, column, cuts[name], pair)
            for name, column in table.columns.items()
            if name in cuts
            for pair in parameters.pairs
        ],
        "weak": [{**row, "words": _words(row)} for row in weak],
        "family": {"tests": len(rows), "alpha": parameters.alpha},
    }


def cells_tested(
    table: ScoreTable, cuts: Mapping[str, float | None], parameters: WeaknessParameters
) -> list[tuple[ScoreCell, float, float]]:
    """Return all cells, alone and in pairs, each with its p-value and the corrected one."""
    kinds = [*((name,) for name in parameters.dimensions), *parameters.pairs]
    cells = list(_cells(table, cuts, kinds, parameters))
    p_values = [p_weak(cell) for cell in cells]
    return list(zip(cells, p_values, holm(p_values), strict=True))


def p_weak(cell: ScoreCell) -> float:
    """Return how likely a cell so much worse than the rest is by chance; one-sided.

    Source:
        R. A. Fisher's exact test on failing and passing inside and outside; without a threshold
        the rank-sum test of Mann and Whitney.
    """
    from scipy.stats import fisher_exact, mannwhitneyu

    inside, outside = cell.values[cell.inside], cell.values[~cell.inside]
    if cell.cut is None:
        worse = "less" if cell.column.metric.direction is Direction.HIGHER else "greater"
        return float(mannwhitneyu(inside, outside, alternative=worse).pvalue)
    bad = _failing(cell.values, cell)
    table = [
        [int((bad & side).sum()), int((~bad & side).sum())] for side in (cell.inside, ~cell.inside)
    ]
    return float(fisher_exact(table, alternative="greater").pvalue)


def _failing(values: Column, cell: ScoreCell) -> Mask:
    assert cell.cut is not None  # noqa: S101 - asked only where there is one
    higher = cell.column.metric.direction is Direction.HIGHER
    return values < cell.cut if higher else values > cell.cut


def _cells(
    table: ScoreTable,
    cuts: Mapping[str, float | None],
    kinds: Sequence[Sequence[str]],
    parameters: WeaknessParameters,
) -> Iterator[ScoreCell]:
    """Yield cells with enough cases, those with everything or nothing inside left out."""
    facts = [table.facts[place] for place in table.units]
    for name, column in table.columns.items():
        if name not in cuts:
            continue
        values = column.values[table.units]
        known = ~np.isnan(values)
        for kind in kinds:
            for chosen in product(*(_values(facts, dimension) for dimension in kind)):
                wanted = dict(zip(kind, chosen, strict=True))
                has = np.array([all(f.get(k) == v for k, v in wanted.items()) for f in facts])
                cell = ScoreCell(column, cuts[name], wanted, values[known], has[known])
                if int(cell.inside.sum()) >= parameters.least and cell.rests:
                    yield cell


def _values(facts: Sequence[Mapping[str, str]], dimension: str) -> list[str]:
    """Return the values of a dimension, the most frequent first; at most `_MOST_VALUES`."""
    counts: dict[str, int] = {}
    for one in facts:
        if dimension in one:
            counts[one[dimension]] = counts.get(one[dimension], 0) + 1
    return sorted(counts, key=lambda value: (-counts[value], value))[:_MOST_VALUES]


def _row(cell: ScoreCell, p: float, p_holm: float, alpha: float) -> dict[str, Any]:
    inside, outside = cell.values[cell.inside], cell.values[~cell.inside]
    failing, rest_failing, difference = None, None, None
    if cell.cut is not None:
        bad = _failing(cell.values, cell)
        failing = rate(int(bad[cell.inside].sum()), len(inside))
        rest_failing = rate(int(bad[~cell.inside].sum()), len(outside))
        difference = failing["rate"] - rest_failing["rate"]
    known = inside[np.isfinite(inside)]
    dimensions, values = list(cell.facts), list(cell.facts.values())
    single = {"dimension": dimensions[0], "value": values[0]}
    return {
        **metric_json(cell.column),
        **(single if len(dimensions) == 1 else {"dimensions": dimensions, "values": values}),
        "threshold": cell.cut,
        "n": len(inside),
        "failing": failing,
        "mean": mean(inside),
        "rest": {"n": len(outside), "failing": rest_failing, "mean": _mean(outside)},
        "difference": difference,
        "p": p,
        "p_holm": p_holm,
        "weak": p_holm < alpha,
        "box": np.quantile(known, _BOX).tolist() if len(known) else None,
    }


def _mean(values: Column) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _grid(
    table: ScoreTable, column: MetricColumn, cut: float | None, pair: tuple[str, str]
) -> dict[str, Any]:
    """Return a cell per pair of values, with its single scores; None where there is no case."""
    facts = [table.facts[place] for place in table.units]
    scores = column.values[table.units]
    rows, columns = _values(facts, pair[0]), _values(facts, pair[1])

    def cell(row: str, other: str) -> dict[str, Any] | None:
        has = np.array([f.get(pair[0]) == row and f.get(pair[1]) == other for f in facts])
        known = scores[has & ~np.isnan(scores)] if len(has) else scores[:0]
        if not len(known):
            return None
        bad = None
        if cut is not None:
            higher = column.metric.direction is Direction.HIGHER
            bad = int((known < cut if higher else known > cut).sum())
        means = known[np.isfinite(known)]
        return {
            "n": len(known),
            "mean": float(means.mean()) if len(means) else None,
            "failing": bad,
            "scores": [finite(value) for value in np.sort(known)[:_MOST_DOTS]],
        }

    return {
        "metric": column.name,
        "threshold": cut,
        "dimensions": list(pair),
        "rows": rows,
        "columns": columns,
        "cells": [[cell(row, other) for other in columns] for row in rows],
    }


def _words(row: Mapping[str, Any]) -> str:
    """Return a weak cell as a sentence."""
    if "dimension" in row:
        where = f"{row['dimension']} {row['value']!r}"
    else:
        pairs = zip(row["dimensions"], row["values"], strict=True)
        where = " with ".join(f"{name} {value!r}" for name, value in pairs)
    if row["failing"] is None:
        inside, outside = row["mean"]["mean"], row["rest"]["mean"]
        return f"{row['metric']} is worse for {where}: mean {inside:.3g} against {outside:.3g}"
    bad, rest = row["failing"], row["rest"]["failing"]
    low, high = bad["interval95"]
    return (
        f"{row['metric']} fails in {bad['x']} of {bad['n']} cases of {where} "
        f"({bad['rate']:.0%}, 95 % interval {low:.0%} to {high:.0%}), "
        f"elsewhere in {rest['rate']:.0%}"
    )

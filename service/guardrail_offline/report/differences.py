"""Models and runs against each other: paired by question, corrected for all comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from guardrail_offline.report.figures import RunFigures
from guardrail_offline.report.run_data import EvaluatorData
from guardrail_offline.report.verdicts import headline
from guardrail_offline.runs.paired import Numbers, holm, mean_interval, p_value

ALPHA = 0.05
MOST_COMPARED = 6
"""With more models each is compared with the first only, so that something can still stand out."""


@dataclass(frozen=True)
class Ahead:
    """One model clearly ahead of another.

    Attributes:
        evaluator: Its name.
        better: Key of the model that is ahead.
        worse: Key of the other.
        size: Mean difference over questions, positive.
        interval: Of it at 95 %, for this metric alone.
        p: Corrected (Holm).
    """

    evaluator: str
    metric: str
    better: str
    worse: str
    size: float
    interval: tuple[float, float] | None
    questions: int
    p: float


def differences(figures: RunFigures) -> dict[str, Any] | None:
    """Return which models are ahead of which, or None where there is nothing to compare."""
    models = [model.key for model in figures.run.models]
    pairs = (
        list(combinations(models, 2))
        if len(models) <= MOST_COMPARED
        else [(models[0], other) for other in models[1:]]
    )
    having = [data for data in figures.run.evaluators.values() if data.has_values]
    found = [one for data in having for pair in pairs for one in _compared(figures, data, pair)]
    if not found:
        return None
    corrected = holm([p for *_, p in found])
    rows = []
    for (data, pair, gains, _), p in zip(found, corrected, strict=True):
        if p < ALPHA:
            rows.append(_ahead(data, pair, gains, p))
    first = f"With so many models each is compared with {figures.run.models[0].title} only."
    return {
        "rows": sorted(rows, key=lambda one: one.p),
        "compared": len(found),
        "note": first if len(models) > MOST_COMPARED else "",
    }


def _ahead(data: EvaluatorData, pair: Sequence[str], gains: Numbers, p: float) -> Ahead:
    """Return a difference with the better model first; gains are those of the first model."""
    better, worse = pair if gains.mean() > 0 else (pair[1], pair[0])
    values = gains if gains.mean() > 0 else -gains
    return Ahead(
        data.name,
        headline(data).key,
        better,
        worse,
        float(values.mean()),
        mean_interval(values),
        len(values),
        p,
    )


def _compared(
    figures: RunFigures, data: EvaluatorData, pair: tuple[str, str]
) -> Iterator[tuple[EvaluatorData, tuple[str, str], Numbers, float]]:
    """Yield how much better the first model of a pair is, question by question."""
    metric = headline(data)
    one, other = (_by_question(figures, data.values[metric.key], model) for model in pair)
    shared = sorted(one.keys() & other.keys())
    if len(shared) < 2:
        return
    gains = np.array([one[group] - other[group] for group in shared])
    if metric.direction.value != "higher_is_better":
        gains = -gains
    yield data, pair, gains, p_value(gains)


def _by_question(figures: RunFigures, values: Numbers, model: str) -> dict[int, float]:
    places = figures.places(model)
    known = places[np.isfinite(values[places])]
    if not len(known):
        return {}
    counts = np.bincount(figures.groups[known])
    sums = np.bincount(figures.groups[known], weights=values[known])
    return {int(group): float(sums[group] / counts[group]) for group in np.flatnonzero(counts)}

"""Do new scores look like those the thresholds were fitted on? Bounds hold only while they do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2_contingency

from guardrail_offline.calibration.gates import Gate
from guardrail_offline.calibration.lab import LabCase
from guardrail_offline.calibration.scales import Vector
from guardrail_offline.calibration.units import one_per_group

BINS = 10
SURE = 0.01
"""Chance of a false alarm per metric."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One metric, then and now.

    Attributes:
        psi: Population stability index; 0.1 is commonly called small and 0.25 large.
        p: Chance of a difference as large between two samples of the same answers.
        then: Share of cases without a score in the calibration sample.
        now: The same in the new one.
    """

    metric: str
    psi: float
    p: float
    then: float
    now: float

    @property
    def found(self) -> bool:
        """Return whether the scores have moved, beyond what chance explains."""
        return self.p < SURE

    def as_json(self) -> dict[str, Any]:
        """Return the comparison for a report."""
        return {
            "metric": self.metric,
            "psi": round(self.psi, 6),
            "p": round(self.p, 6),
            "missing_then": self.then,
            "missing_now": self.now,
            "drift": self.found,
        }


def own_scores(gate: Gate, cases: Sequence[LabCase], seed: int) -> Vector:
    """Return a metric's scores of one case a question; infinite where there is none.

    A second answer to a question looks much like the first and would pass for a trend.
    """
    drawn = one_per_group([case.key for case in cases], [case.group for case in cases], seed)
    scores = (gate.score(cases[i]).value for i in drawn)
    return np.array([math.inf if s is None else s for s in scores], dtype=np.float64)


def baseline(values: Vector) -> dict[str, Any]:
    """Return what to keep of a metric's scores: decile edges, counts between them, missing.

    Args:
        values: Scores on the metric's own scale; infinite where there is none.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return {"edges": [], "counts": [0], "missing": len(values)}
    edges = np.unique(np.quantile(finite, np.linspace(0, 1, BINS + 1)[1:-1]))
    return {
        "edges": edges.tolist(),
        "counts": _counts(finite, edges),
        "missing": len(values) - len(finite),
    }


def compare(metric: str, stored: Mapping[str, Any], values: Vector) -> Drift:
    """Return how far new scores are from a stored baseline."""
    finite = values[np.isfinite(values)]
    edges = np.array(stored["edges"], dtype=np.float64)
    then = [*stored["counts"], stored["missing"]]
    now = [*_counts(finite, edges), len(values) - len(finite)]
    return Drift(
        metric=metric,
        psi=stability_index(then, now),
        p=_chance(then, now),
        then=stored["missing"] / max(1, sum(then)),
        now=now[-1] / max(1, sum(now)),
    )


def stability_index(then: Sequence[int], now: Sequence[int]) -> float:
    """Return the population stability index of two sets of counts; half a case in empty bins."""
    one, other = (np.array(c, dtype=np.float64) + 0.5 for c in (then, now))
    one, other = one / one.sum(), other / other.sum()
    return float(np.sum((other - one) * np.log(other / one)))


def _chance(then: Sequence[int], now: Sequence[int]) -> float:
    table = np.array([then, now])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return 1.0
    return float(chi2_contingency(table, correction=False).pvalue)


def _counts(values: Vector, edges: Vector) -> list[int]:
    """Return counts between edges; a value equal to an edge lies above it."""
    cells = np.searchsorted(edges, values, side="right")
    found: list[int] = np.bincount(cells, minlength=len(edges) + 1).tolist()
    return found

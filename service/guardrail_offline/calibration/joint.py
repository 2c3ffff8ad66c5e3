"""One number that controls how often any of several detectors flags a good answer.

A matrix holds units in rows and metrics in columns, oriented so that higher is better. Minus
infinity flags whatever the thresholds are (a failed yes/no check, a missing score under a rule
that flags); plus infinity never flags (not applicable, or a rule that passes).

Both rules keep P(any metric flags a new good answer) <= alpha with confidence 1 - delta, for
metrics of any dependence and distribution:

* `scaled_min` sorts units by their worst standardised score. The scales must come from other data
  than the units; then the worst scores are independent and their k-th smallest is the cut.
* `by_ranks` removes k units one at a time, each the lowest on the next metric of a fixed schedule;
  every removal claims one of the n + 1 equivalent blocks. It needs no scales and gives the same
  units whatever increasing function is applied to a metric.

Source:
    Wilks 1941 and Tukey 1947, Non-parametric estimation II: statistically equivalent blocks and
    tolerance regions, Annals of Mathematical Statistics 18(4); Tukey 1948 for ties.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context

import numpy as np
from numpy.typing import NDArray

from guardrail_offline.calibration.scales import Axis, Matrix, Scale, Vector

DIGITS = 6
"""Significant digits of a threshold, rounded towards fewer flags."""

_FLOOR = Context(prec=DIGITS, rounding=ROUND_FLOOR)


@dataclass(frozen=True, slots=True)
class JointCut:
    """Thresholds of one joint rule.

    Attributes:
        cuts: Oriented threshold per metric; a value strictly below it flags. Minus infinity or the
            low end of the range never flags.
        rank: k.
        tau: The cut on the standardised scale, for `scaled_min`.
    """

    cuts: tuple[float, ...]
    rank: int
    tau: float | None = None

    def flags(self, values: Matrix) -> NDArray[np.bool_]:
        """Return which rows are flagged: by a threshold, or always."""
        below = (values < np.array(self.cuts)) | (values == -math.inf)
        flagged: NDArray[np.bool_] = below.any(axis=1)
        return flagged


def worst_scores(values: Matrix, scales: Sequence[Scale], weights: Sequence[float]) -> Vector:
    """Return every unit's lowest weighted standardised score."""
    columns = [
        weight * scale.standard(values[:, j])
        for j, (scale, weight) in enumerate(zip(scales, weights, strict=True))
    ]
    lowest: Vector = np.min(np.column_stack(columns), axis=1)
    return lowest


def scaled_min(
    good: Matrix,
    rank: int,
    scales: Sequence[Scale],
    weights: Sequence[float],
    observed: Matrix | None = None,
) -> JointCut | None:
    """Return the cut at the k-th smallest worst score, or None if that unit is flagged anyway.

    Args:
        good: Good units, independent of each other and of `scales` and `weights`.
        rank: k, at least 1.
        scales: One per metric.
        weights: How much more sensitive than the others each metric is; all 1 for none.
        observed: Further scores that no threshold may coincide with.
    """
    worst = worst_scores(good, scales, weights)
    tau = float(np.sort(worst)[rank - 1])
    if math.isinf(tau):
        return JointCut((-math.inf,) * len(scales), rank, None) if tau > 0 else None
    kept = good[worst >= tau]
    seen = good if observed is None else np.vstack([good, observed])
    cuts = []
    for j, (scale, weight) in enumerate(zip(scales, weights, strict=True)):
        cut = scale.value_at(tau / weight)
        lowest_kept = np.min(kept[:, j], initial=math.inf)
        # The way back from the scale rounds; a unit the rule keeps must not be flagged by that.
        cuts.append(between(min(cut, float(lowest_kept)), seen[:, j], scale.axis))
    return JointCut(tuple(cuts), rank, tau)


def by_ranks(
    good: Matrix,
    rank: int,
    axes: Sequence[Axis],
    weights: Sequence[float],
    observed: Matrix | None = None,
) -> JointCut | None:
    """Return the cuts after removing k units, or None if the always flagged use up all of k.

    Args:
        good: Good units, independent of each other and of `weights`.
        rank: k, at least 1.
        axes: One per metric.
        weights: Share of the removals each metric gets, before the data are looked at.
        observed: Further scores that no threshold may coincide with.
    """
    alive: NDArray[np.bool_] = np.all(good > -math.inf, axis=1)
    spent = len(good) - int(alive.sum())
    if spent >= rank:
        return None
    cuts = [-math.inf] * len(axes)
    for j in schedule(weights, rank - spent):
        column = np.where(alive, good[:, j], math.inf)
        lowest = int(np.argmin(column))
        if math.isfinite(column[lowest]):
            cuts[j] = float(column[lowest])
            alive[lowest] = False
    seen = good if observed is None else np.vstack([good, observed])
    placed = [between(cut, seen[:, j], axes[j]) for j, cut in enumerate(cuts)]
    return JointCut(tuple(placed), rank)


def schedule(weights: Sequence[float], steps: int) -> list[int]:
    """Return which metric is cut at each step, so that counts stay in proportion to weights."""
    counts = [0] * len(weights)
    order = []
    for _ in range(steps):
        # The metric that is furthest behind its share; the first of several.
        j = min(range(len(weights)), key=lambda i: ((counts[i] + 1) / weights[i], i))
        counts[j] += 1
        order.append(j)
    return order


def between(cut: float, observed: Vector, axis: Axis) -> float:
    """Return a threshold just below `cut`, strictly between two observed values, in few digits.

    A score equal to its threshold passes, so moving down can only flag less.
    """
    if not math.isfinite(cut) or cut <= axis.low:
        return axis.low
    below = observed[np.isfinite(observed) & (observed < cut)]
    neighbour = float(below.max()) if len(below) else axis.low
    rounded = _floor_digits(cut)
    if neighbour < rounded < cut or (rounded == cut and not np.any(observed == cut)):
        return max(rounded, axis.low)
    # Between two neighbouring floats is nothing; a threshold on the lower one lets it pass.
    return max(math.nextafter(cut, -math.inf), neighbour, axis.low)


def _floor_digits(value: float) -> float:
    return float(_FLOOR.create_decimal_from_float(value))

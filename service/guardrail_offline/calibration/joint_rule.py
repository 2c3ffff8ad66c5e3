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

A scale turns a score into a distance from what good answers usually get: the logit of scores with a
finite range, then the median subtracted and the spread divided out. Every step is increasing, so a
cut on the scale is a cut on the score. Which rule, scales and weights order the answers is their
shape; it is chosen on the design part only, so that the other part's bound stays true.

Source:
    Wilks 1941 and Tukey 1947, Non-parametric estimation II: statistically equivalent blocks and
    tolerance regions, Annals of Mathematical Statistics 18(4); Tukey 1948 for ties.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from guardrail_service.detectors.registry import MetricSpec
from guardrail_service.types import Direction

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Number = TypeVar("Number", float, Vector)

EDGE = 1e-4
"""Shares of the range next to its ends that count as the ends: models saturate there, and the
logit of 0 or 1 would be infinite."""

LOGIT_FLOOR = 0.5
"""Smallest spread on the logit scale, a factor of 1.6 in odds: a metric on which all good answers
agree must not turn the least deviation into the worst score of the sample."""

_NORMAL_TENTH = 1.2816
_NORMAL_90 = 3.29
"""Distance from median to lowest tenth, and width of the middle 90 %, of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One metric turned so that higher is better."""

    spec: MetricSpec

    @property
    def low(self) -> float:
        """Return the worst possible value."""
        return self.spec.low if self._up else -self.spec.high

    @property
    def high(self) -> float:
        """Return the best possible value."""
        return self.spec.high if self._up else -self.spec.low

    @property
    def _up(self) -> bool:
        return self.spec.direction is Direction.HIGHER

    def orient(self, score: Number) -> Number:
        """Return scores as values that are better when higher; the way back is the same."""
        return score if self._up else -score

    @property
    def bounded(self) -> bool:
        """Return whether both ends of the range are finite, so that a logit exists."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def spread_out(self, values: Vector) -> Vector:
        """Return values on the scale where differences are comparable; infinities stay."""
        if not self.bounded:
            return values
        share = np.clip((values - self.low) / (self.high - self.low), EDGE, 1 - EDGE)
        logit = np.log(share) - np.log1p(-share)
        return np.where(np.isinf(values), values, logit)

    def gather(self, value: float) -> float:
        """Return the inverse of `spread_out`; beyond the edges, the ends of the range."""
        if not self.bounded:
            return value
        edge = math.log1p(-EDGE) - math.log(EDGE)
        if value <= -edge:
            return self.low
        if value > edge:
            return self.high
        return self.low + (self.high - self.low) / (1 + math.exp(-value))


@dataclass(frozen=True, slots=True)
class Scale:
    """The good answers on one axis: their `centre` and `spread` in its spread-out units."""

    axis: Axis
    centre: float
    spread: float

    def standard(self, values: Vector) -> Vector:
        """Return how many spreads above the centre each value lies."""
        return (self.axis.spread_out(values) - self.centre) / self.spread

    def value_at(self, standard: float) -> float:
        """Return the oriented score at a number of spreads above the centre."""
        return self.axis.gather(self.centre + standard * self.spread)

    def as_json(self) -> dict[str, Any]:
        """Return centre and spread for the provenance block."""
        return {"centre": self.centre, "spread": self.spread}


def fit_scale(axis: Axis, values: Vector) -> Scale:
    """Return the scale of one axis from good answers' oriented scores; infinite ones are left out.

    The spread is that of the lower side, from the median to the lowest tenth: cuts lie there, and
    a heap of perfect scores says nothing about it (recall on our detectors' scores 0.53 against
    0.47 with the interquartile range, docs/calibration.md). Where that is nothing (ties) it is the
    middle 90 %'s; it is never below the floor. With no finite score the scale is the axis itself.
    """
    finite = axis.spread_out(values[np.isfinite(values)])
    if not len(finite):
        return Scale(axis, 0.0, 1.0)
    q05, q10, q50, q95 = np.quantile(finite, [0.05, 0.10, 0.50, 0.95])
    floor = LOGIT_FLOOR if axis.bounded else max(0.05 * abs(q50), 1e-6)
    spread = (q50 - q10) / _NORMAL_TENTH
    if spread < floor:
        spread = (q95 - q05) / _NORMAL_90
    return Scale(axis, float(q50), float(max(spread, floor)))


def fit_scales(axes: Sequence[Axis], good: Matrix) -> tuple[Scale, ...]:
    """Return one scale per column of a matrix of good answers' oriented scores."""
    return tuple(fit_scale(axis, good[:, j]) for j, axis in enumerate(axes))


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


LEAST_GOOD = 8
"""Good design units below which quartiles, and so scales, are guesses."""

LEAST_BAD = 5
"""Bad design answers below which recall cannot choose between anything."""

STEPS = (0.5, 1.0, 2.0)
"""Factors tried on each weight; a finer grid would fit the few bad answers of the design part."""

GAIN = 0.02
"""Recall a change must add on the design part to be worth its complication."""


@dataclass(frozen=True, slots=True)
class JointShape:
    """The order that the joint rule puts answers in.

    Attributes:
        method: Which of the two rules.
        scales: One per metric, for `scaled_min`; empty for `by_ranks`.
        weights: One per metric.
        why: In words, for the report.
    """

    method: Literal["scaled_min", "by_ranks"]
    axes: tuple[Axis, ...]
    scales: tuple[Scale, ...]
    weights: tuple[float, ...]
    why: str

    def cut(self, good: Matrix, rank: int, observed: Matrix | None = None) -> JointCut | None:
        """Return the cut of this shape at a rank of some good units."""
        if self.method == "by_ranks":
            return by_ranks(good, rank, self.axes, self.weights, observed)
        return scaled_min(good, rank, self.scales, self.weights, observed)

    def as_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the shape for the provenance block, by metric name."""
        scales = {name: s.as_json() for name, s in zip(names, self.scales, strict=False)}
        return {
            "method": self.method,
            "weights": dict(zip(names, self.weights, strict=True)),
            "scales": scales,
            "why": self.why,
        }


def shape_from_json(
    record: dict[str, Any], names: Sequence[str], axes: Sequence[Axis]
) -> JointShape:
    """Return the shape that `as_json` wrote; KeyError if it is of other metrics."""
    scales = (
        Scale(axis, record["scales"][name]["centre"], record["scales"][name]["spread"])
        for name, axis in zip(names, axes, strict=True)
    )
    weights = tuple(record["weights"][name] for name in names)
    if record["method"] == "by_ranks":
        return JointShape("by_ranks", tuple(axes), (), weights, record["why"])
    return JointShape("scaled_min", tuple(axes), tuple(scales), weights, record["why"])


def choose_shape(
    axes: Sequence[Axis],
    good: Matrix,
    bad: Matrix,
    level: float,
    method: Literal["auto", "scaled_min", "by_ranks"],
    weights: Sequence[float],
    learn: bool,
) -> JointShape:
    """Return the shape that catches most bad design answers at a level of false flags.

    Args:
        axes: One per metric.
        good: Good design units.
        bad: Bad design answers.
        level: Share of good units below the cut, as the other part will have it.
        method: `auto` tries both.
        weights: Where to start.
        learn: Whether to change the weights.
    """
    scales = fit_scales(axes, good) if len(good) else ()
    enough = len(good) >= LEAST_GOOD and len(bad) >= LEAST_BAD
    options: list[JointShape] = []
    if method != "by_ranks" and (len(good) >= LEAST_GOOD or method == "scaled_min"):
        options.append(JointShape("scaled_min", tuple(axes), scales, tuple(weights), "as asked"))
    if method != "scaled_min":
        why = "as asked" if method == "by_ranks" else "too few design answers to fit scales"
        options.append(JointShape("by_ranks", tuple(axes), (), tuple(weights), why))
    if not enough:
        return options[-1] if len(good) < LEAST_GOOD else options[0]
    rank = max(1, round(level * len(good)))
    if learn:
        options = [_learnt(shape, good, bad, rank) for shape in options]
    best = options[0]
    for other in options[1:]:
        if recall(other, good, bad, rank) > recall(best, good, bad, rank) + GAIN:
            best = other
    caught = f"{recall(best, good, bad, rank):.3f}"
    why = f"recall {caught} on {len(bad)} bad design answers, the best of {len(options)} tried"
    return JointShape(best.method, best.axes, best.scales, best.weights, why)


def recall(shape: JointShape, good: Matrix, bad: Matrix, rank: int) -> float:
    """Return the share of bad answers a shape flags at a rank; 0 if it admits no cut."""
    cut = shape.cut(good, rank)
    return 0.0 if cut is None else float(np.mean(cut.flags(bad)))


def _learnt(shape: JointShape, good: Matrix, bad: Matrix, rank: int) -> JointShape:
    """Return the shape after one pass over its weights, each changed if that helps clearly."""
    best = shape
    for j in range(len(shape.weights)):
        for step in STEPS:
            weights = list(best.weights)
            weights[j] = shape.weights[j] * step
            tried = JointShape(shape.method, shape.axes, shape.scales, tuple(weights), shape.why)
            if recall(tried, good, bad, rank) > recall(best, good, bad, rank) + GAIN:
                best = tried
    return best


def fittable_columns(values: Matrix, width: int) -> Matrix:
    """Return the columns with thresholds to fit, the first; a failed check flags its row."""
    failed = np.any(values == -math.inf, axis=1)
    plain = values[:, :width].copy() if width else np.full((len(values), 1), math.inf)
    plain[failed] = -math.inf
    return plain


def threshold_intervals(
    shape: JointShape, units: Matrix, rank: int, draws: int, seed: int
) -> dict[int, tuple[float, float]]:
    """Return how far each threshold moves when units are drawn anew (bootstrap, 95 %).

    Args:
        shape: How the rule orders answers; it stays as it is.
        units: Good units. Shape (n, at least one column per axis).
        rank: k of the rule.
        draws: How many samples are drawn.
        seed: Which draw.

    Returns:
        Low and high end on the metric's own scale, by the metric's place; a metric that no draw
        gives a threshold is left out.
    """
    plain = fittable_columns(units, len(shape.axes))
    found = (shape.cut(plain[indices], rank) for indices in resampled(len(plain), draws, seed))
    drawn = [cut for cut in found if cut is not None]
    intervals = {}
    for j, axis in enumerate(shape.axes):
        ends = [cut.cuts[j] for cut in drawn if math.isfinite(cut.cuts[j])]
        if ends:
            low, high = (axis.orient(float(np.quantile(ends, q))) for q in (0.025, 0.975))
            intervals[j] = (min(low, high), max(low, high))
    return intervals


def resampled(count: int, draws: int, seed: int) -> Iterable[NDArray[np.intp]]:
    """Yield index vectors of bootstrap samples of `count` units."""
    generator = np.random.default_rng(seed)
    for _ in range(draws):
        yield generator.integers(0, count, count, dtype=np.intp)

"""Chooses how the joint rule orders answers: method, scales, weights. Proves nothing.

Everything here looks at the design part only, so that the other part's bound stays true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from guardrail_offline.calibration.joint import JointCut, by_ranks, scaled_min
from guardrail_offline.calibration.scales import Axis, Matrix, Scale, fit_scales

LEAST_GOOD = 8
"""Good design units below which quartiles, and so scales, are guesses."""

LEAST_BAD = 5
"""Bad design answers below which recall cannot choose between anything."""

STEPS = (0.5, 1.0, 2.0)
"""Factors tried on each weight; a finer grid would fit the few bad answers of the design part."""

GAIN = 0.02
"""Recall a change must add on the design part to be worth its complication."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the joint rule orders answers.

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


def shape_from_json(record: dict[str, Any], names: Sequence[str], axes: Sequence[Axis]) -> Shape:
    """Return the shape that `as_json` wrote; KeyError if it is of other metrics."""
    scales = (
        Scale(axis, record["scales"][name]["centre"], record["scales"][name]["spread"])
        for name, axis in zip(names, axes, strict=True)
    )
    weights = tuple(record["weights"][name] for name in names)
    if record["method"] == "by_ranks":
        return Shape("by_ranks", tuple(axes), (), weights, record["why"])
    return Shape("scaled_min", tuple(axes), tuple(scales), weights, record["why"])


def choose_shape(
    axes: Sequence[Axis],
    good: Matrix,
    bad: Matrix,
    level: float,
    method: Literal["auto", "scaled_min", "by_ranks"],
    weights: Sequence[float],
    learn: bool,
) -> Shape:
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
    options: list[Shape] = []
    if method != "by_ranks" and (len(good) >= LEAST_GOOD or method == "scaled_min"):
        options.append(Shape("scaled_min", tuple(axes), scales, tuple(weights), "as asked"))
    if method != "scaled_min":
        why = "as asked" if method == "by_ranks" else "too few design answers to fit scales"
        options.append(Shape("by_ranks", tuple(axes), (), tuple(weights), why))
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
    return Shape(best.method, best.axes, best.scales, best.weights, why)


def recall(shape: Shape, good: Matrix, bad: Matrix, rank: int) -> float:
    """Return the share of bad answers a shape flags at a rank; 0 if it admits no cut."""
    cut = shape.cut(good, rank)
    return 0.0 if cut is None else float(np.mean(cut.flags(bad)))


def _learnt(shape: Shape, good: Matrix, bad: Matrix, rank: int) -> Shape:
    """Return the shape after one pass over its weights, each changed if that helps clearly."""
    best = shape
    for j in range(len(shape.weights)):
        for step in STEPS:
            weights = list(best.weights)
            weights[j] = shape.weights[j] * step
            tried = Shape(shape.method, shape.axes, shape.scales, tuple(weights), shape.why)
            if recall(tried, good, bad, rank) > recall(best, good, bad, rank) + GAIN:
                best = tried
    return best

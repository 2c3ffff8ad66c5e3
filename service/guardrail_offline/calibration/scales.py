"""Puts metrics of different ranges and directions on one scale, where higher is better.

A score becomes a distance from what good answers usually get: logit of scores with a finite
range, then the median subtracted and the spread divided out. Every step is increasing, so a cut on
the scale is a cut on the score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guardrail_service.detectors.registry import MetricSpec
from guardrail_service.types import Direction

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

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

    def orient(self, score: float) -> float:
        """Return a score as a value that is better when higher; the way back is the same."""
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
    """Where good answers lie on one axis: `centre` and `spread` in its spread-out units."""

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

"""Geometry of the report's pictures; templates draw them. Every number is a share of 100."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guardrail_offline.report.figures import Figure

RADAR_RADIUS = 38.0
MOST_RADAR_MODELS = 6
"""More lines cannot be told apart; the table beside it has all models."""


@dataclass(frozen=True)
class ChartAxis:
    """The ends of a metric's axis."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return where a value stands, 0 to 100."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)


def strip(figure: Figure, axis: ChartAxis) -> Mapping[str, float | None]:
    """Return what an interval's picture shows: mean, ends, threshold."""
    low, high = figure.interval or (None, None)
    return {
        "mean": None if figure.value is None else axis.at(figure.value),
        "low": None if low is None else axis.at(low),
        "high": None if high is None else axis.at(high),
        "cut": None if figure.cut is None else axis.at(figure.cut.value),
    }


def box(figure: Figure, axis: ChartAxis) -> Mapping[str, Any] | None:
    """Return what a box plot shows: whiskers at 5 and 95 %, quartiles, median, mean, interval."""
    if figure.box is None:
        return None
    names = ("p5", "p25", "p50", "p75", "p95")
    return dict(zip(names, map(axis.at, figure.box), strict=True)) | dict(strip(figure, axis))


@dataclass(frozen=True)
class RadarLine:
    """One model's polygon: `points` for SVG; None where a metric has no value."""

    model: str
    points: str


def radar(
    figures: Sequence[Sequence[Figure]], axes: Sequence[ChartAxis]
) -> tuple[list[RadarLine], list[tuple[float, float, str]]]:
    """Return a line per model and the ends of the spokes with their metrics.

    Outside is always better: a metric that should be low is turned round.

    Args:
        figures: By model, then by metric.
        axes: By metric.
    """
    count = len(axes)
    spokes = [
        (*_point(RADAR_RADIUS, place, count), figure.metric.key)
        for place, figure in enumerate(figures[0] if figures else ())
    ]
    lines = []
    for of_model in figures[:MOST_RADAR_MODELS]:
        shares = [_outward(figure, axis) for figure, axis in zip(of_model, axes, strict=True)]
        points = [
            "{:.2f},{:.2f}".format(*_point(RADAR_RADIUS * share / 100, place, count))
            for place, share in enumerate(shares)
        ]
        if any(figure.value is not None for figure in of_model):
            lines.append(RadarLine(of_model[0].model, " ".join(points)))
    return lines, spokes


SHADES = 5


def shade(figure: Figure, axis: ChartAxis) -> int | None:
    """Return how good a mean is on its axis, 0 the worst to 4 the best; None without a mean."""
    if figure.value is None:
        return None
    return min(SHADES - 1, int(_outward(figure, axis) * SHADES / 100))


def _outward(figure: Figure, axis: ChartAxis) -> float:
    if figure.value is None:
        return 0.0
    share = axis.at(figure.value)
    return share if figure.higher else 100 - share


def _point(radius: float, place: int, count: int) -> tuple[float, float]:
    angle = 2 * math.pi * place / count - math.pi / 2
    return round(50 + radius * math.cos(angle), 2), round(50 + radius * math.sin(angle), 2)

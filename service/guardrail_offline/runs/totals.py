"""Adds up a run's scores per evaluator, model and metric, case by case, in little memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from guardrail_offline.evaluators.case_view import NO_ANSWER, UNANSWERED
from guardrail_offline.evaluators.catalogue import AnyEvaluator
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.result import Result
from guardrail_service.types import Direction, MetricSpec, State

Missing = Literal["exclude", "worst", "both"]
"""What a missing answer counts: nothing, the worst value, or both side by side."""
MISSING: tuple[Missing, ...] = get_args(Missing)


def is_unanswered(reason: str | None) -> bool:
    """Return whether a reason says that the model did not answer what it could have."""
    return reason in UNANSWERED


@dataclass(slots=True)
class ExactSum:
    """A sum without rounding errors: sums of parts add up to the sum of all, in any order.

    Source:
        J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic" (1997), as in `math.fsum`.
    """

    parts: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        """Add one finite number."""
        kept = 0
        parts = self.parts
        for part in parts:
            larger, smaller = (value, part) if abs(value) >= abs(part) else (part, value)
            value = larger + smaller
            rest = smaller - (value - larger)
            if rest:
                parts[kept] = rest
                kept += 1
        parts[kept:] = [value]

    def __float__(self) -> float:
        """Return the sum, rounded once."""
        return math.fsum(self.parts)


@dataclass
class MetricTally:
    """One metric of one model.

    `infinite` counts values such as an overflowing perplexity, which have no place in a mean.
    """

    count: int = 0
    sum: ExactSum = field(default_factory=ExactSum)
    sum_of_squares: ExactSum = field(default_factory=ExactSum)
    infinite: int = 0
    failing: int = 0
    missing: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> float:
        """Return the sum of the finite values."""
        return float(self.sum)

    @property
    def mean(self) -> float | None:
        """Return the mean of the finite values, or None if there is none."""
        return self.total / self.count if self.count else None

    @property
    def deviation(self) -> float | None:
        """Return the standard deviation of the sample, or None below two values."""
        if self.count < 2:
            return None
        spread = float(self.sum_of_squares) - self.total * self.total / self.count
        return math.sqrt(max(0.0, spread) / (self.count - 1))

    @property
    def unanswered(self) -> int:
        """Return for how many cases there is no value because the model did not answer."""
        return sum(count for reason, count in self.missing.items() if is_unanswered(reason))

    def adjusted(self, worst: float | None) -> float | None:
        """Return the mean with the worst value for each case that was not answered.

        None if there is no value, and where no case was answered at all and none failed: then
        nobody was asked.
        """
        silent = 0 if worst is None else self.unanswered
        if not self.count and (not silent or silent == self.missing[NO_ANSWER]):
            return self.mean
        return (self.total + (worst or 0.0) * silent) / (self.count + silent)

    def add(self, value: float, metric: MetricSpec, threshold: float | None) -> None:
        """Count one value."""
        if threshold is not None and fails(value, metric.direction, threshold):
            self.failing += 1
        if not math.isfinite(value):
            self.infinite += 1
            return
        self.count += 1
        self.sum.add(value)
        square = value * value
        if math.isfinite(square):
            self.sum_of_squares.add(square)

    def as_json(self) -> dict[str, Any]:
        """Return what `merge` adds to another tally."""
        return {
            "count": self.count,
            "sum": self.sum.parts,
            "squares": self.sum_of_squares.parts,
            "infinite": self.infinite,
            "failing": self.failing,
            "missing": dict(sorted(self.missing.items())),
        }

    def merge(self, other: Mapping[str, Any]) -> None:
        """Add what another tally counted."""
        self.count += other["count"]
        self.infinite += other["infinite"]
        self.failing += other["failing"]
        self.missing.update(other["missing"])
        for own, parts in ((self.sum, other["sum"]), (self.sum_of_squares, other["squares"])):
            for part in parts:
                own.add(part)


class EvaluatorTally:
    """One evaluator over all cases, by model."""

    def __init__(self, configured: Configured) -> None:
        self.configured = configured
        self.evaluator: AnyEvaluator = configured.evaluator
        self.thresholds = configured.thresholds()
        self.metrics: dict[str, dict[str, MetricTally]] = {}
        self.computed = 0
        self.errors = 0
        self._labels: dict[str, Counter[tuple[str, ...]]] = {}

    def add(self, model: str, result: Result) -> None:
        """Count one case of a model."""
        tallies = self._metrics_of(model)
        for key, score in result.scores.items():
            if score.value is None:
                tallies[key].missing[score.reason or "unknown"] += 1
            else:
                metric = self.evaluator.spec.metric(key)
                tallies[key].add(score.value, metric, self.thresholds[key])
        self.errors += any(score.state is State.ERROR for score in result.scores.values())
        self.computed += any(score.value is not None for score in result.scores.values())
        label = self.evaluator.tally(result)
        if label is not None:
            self._labels.setdefault(model, Counter())[label] += 1

    def as_json(self) -> dict[str, Any]:
        """Return what `merge` adds to another tally of the same evaluator."""
        return {
            "computed": self.computed,
            "errors": self.errors,
            "metrics": {
                model: {key: one.as_json() for key, one in metrics.items() if one != MetricTally()}
                for model, metrics in self.metrics.items()
            },
            "labels": {
                model: [[list(label), count] for label, count in sorted(labels.items())]
                for model, labels in self._labels.items()
            },
        }

    def merge(self, other: Mapping[str, Any]) -> None:
        """Add what a tally of other cases counted."""
        self.computed += other["computed"]
        self.errors += other["errors"]
        for model, metrics in other["metrics"].items():
            own = self._metrics_of(model)
            for key, one in metrics.items():
                own[key].merge(one)
        for model, labels in other["labels"].items():
            counted = self._labels.setdefault(model, Counter())
            counted.update({tuple(label): count for label, count in labels})

    def _metrics_of(self, model: str) -> dict[str, MetricTally]:
        if model not in self.metrics:
            self.metrics[model] = {key: MetricTally() for key in self.evaluator.spec.keys}
        return self.metrics[model]

    def value(self, model: str, key: str) -> float | None:
        """Return a model's value of one metric: its mean, or what exists per model only."""
        if key in self.evaluator.spec.per_model:
            labels = self._labels.get(model)
            return self.evaluator.per_model(labels).get(key) if labels else None
        return self.metrics[model][key].mean

    def adjusted(self, model: str, key: str | None = None) -> float | None:
        """Return a model's value if missing answers have the worst one; None if there is none.

        Metrics that exist per model only, or have no worst end, are as they are.
        """
        spec = self.evaluator.spec
        key = spec.primary.key if key is None else key
        if key in spec.per_model:
            return self.value(model, key)
        return self.metrics[model][key].adjusted(spec.worst(key))

    def labels(self, model: str) -> Mapping[tuple[str, ...], int]:
        """Return how often each pair of labels occurred, for a confusion matrix."""
        return self._labels.get(model, Counter())


def fails(value: float, direction: Direction, threshold: float) -> bool:
    """Return whether a value is on the wrong side; equal passes, as online."""
    return value < threshold if direction is Direction.HIGHER else value > threshold


def is_better(value: float, than: float, direction: Direction) -> bool:
    """Return whether a value is strictly better than another."""
    return value > than if direction is Direction.HIGHER else value < than

"""Says what the means over a sample of questions tell about the whole lab, with intervals.

Only sums per stratum are kept, so memory does not grow with the sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from guardrail_offline.datasets.cases import Model
from guardrail_offline.datasets.sampled_labs import QuestionSample
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.result import Result
from guardrail_offline.intervals import exact_interval
from guardrail_offline.runs.leaderboards import in_cell
from guardrail_offline.runs.paired import CONFIDENCE, Numbers
from guardrail_offline.runs.shards import ScoredCase
from guardrail_offline.runs.totals import is_unanswered
from guardrail_service.types import MetricSpec

SAMPLE = "sample.json"
MOST_COMPARED = 12
"""Models that are compared with each other; of more, each with the first of them."""
_PARTS = 5
_NONE = 1e-12
"""Of squares that are 0 but for rounding."""


class LabMean(NamedTuple):
    """A mean over the whole lab, as the sample tells it.

    Attributes:
        value: The estimate.
        interval: 95 %; None where no spread was seen, which is not a spread of 0.
    """

    value: float
    interval: tuple[float, float] | None


class RatioSums:
    """Sums over questions of a total y, a count x and their products, by stratum.

    Args:
        strata: How many there are.
    """

    def __init__(self, strata: int) -> None:
        self._sums: Numbers = np.zeros((strata, _PARTS))
        self._questions = 0

    def add(self, stratum: int, total: float, count: float) -> None:
        """Add one question: the sum over its cases, and how many those are."""
        products = (total * total, total * count, count * count)
        self._sums[stratum] += (total, count, *products)
        self._questions += 1

    @property
    def questions(self) -> int:
        """Return how many questions have a value."""
        return self._questions

    def estimate(self, sample: QuestionSample, *, is_share: bool) -> LabMean | None:
        """Return the mean over cases of the whole lab; None if no question has a value.

        A stratified ratio estimate with the correction for a finite lab. The interval of a share
        is the exact one of as many answers as would vary as much.

        Source:
            W. G. Cochran, "Sampling Techniques", 3rd edition (1977), section 6.11; E. L. Korn and
            B. I. Graubard, "Confidence Intervals for Proportions with Small Expected Number of
            Positive Counts Estimated from Survey Data" (1998).
        """
        sizes = np.array([one.questions for one in sample.strata], dtype=float)
        drawn = np.array([one.drawn for one in sample.strata], dtype=float)
        y, x, yy, xy, xx = self._sums.T
        weights = sizes / drawn
        total = float((weights * x).sum())
        if not total:
            return None
        mean = float((weights * y).sum()) / total
        rest, squares = y - mean * x, np.maximum(0.0, yy - 2 * mean * xy + mean * mean * xx)
        spread = np.maximum(0.0, squares - rest * rest / drawn) / np.maximum(1.0, drawn - 1)
        parts = sizes * sizes * (1 - drawn / sizes) / drawn * spread
        is_whole = bool((drawn == sizes).all())
        if is_whole:
            return LabMean(mean, (mean, mean))
        if float(squares.sum()) <= _NONE * max(1.0, float(yy.sum())):
            count = self._questions
            return LabMean(mean, exact_interval(mean * count, count) if is_share else None)
        variance = float(parts.sum()) / total**2
        if is_share and variance > 0 and 0 < mean < 1:
            size = mean * (1 - mean) / variance
            return LabMean(mean, exact_interval(mean * size, size))
        freedom = max(1.0, float((drawn - 1)[drawn < sizes].sum()))
        reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(variance)
        return LabMean(mean, (mean - reach, mean + reach))


class SampleEstimates:
    """Filled by question: all cases of one group come together.

    Args:
        configured: What ran.
        models: Of the lab.
        sample: What was drawn.
    """

    def __init__(
        self, configured: Sequence[Configured], models: Sequence[Model], sample: QuestionSample
    ) -> None:
        self._configured, self._sample = tuple(configured), sample
        self._models = [model.key for model in models]
        self._cells: dict[tuple[str, str, str, bool], RatioSums] = {}
        self._pairs: dict[tuple[str, str, str], RatioSums] = {}
        self._cases = 0

    def add(self, group: Sequence[ScoredCase]) -> None:
        """Add the cases of one question."""
        self._cases += len(group)
        stratum = self._sample.place(frozenset(scored.case.model for scored in group))
        for one in self._configured:
            spec = one.evaluator.spec
            for metric in spec.metrics:
                if metric.key in spec.per_model:
                    continue
                found = {
                    adjusted: _by_model(group, one, metric.key, adjusted=adjusted)
                    for adjusted in (False, True)
                }
                for adjusted, values in found.items():
                    for model, inside in values.items():
                        cell = self._cell(spec.id, metric.key, model, adjusted)
                        cell.add(stratum, sum(inside), len(inside))
                if metric.key == spec.primary.key:
                    self._compare(spec.id, stratum, found[True])

    def _compare(self, evaluator: str, stratum: int, values: dict[str, list[float]]) -> None:
        means = {model: sum(inside) / len(inside) for model, inside in values.items()}
        for first, second in _compared(self._models):
            if first in means and second in means:
                sums = self._pairs.setdefault((evaluator, first, second), self._empty())
                sums.add(stratum, means[first] - means[second], 1)

    def _cell(self, evaluator: str, metric: str, model: str, adjusted: bool) -> RatioSums:
        return self._cells.setdefault((evaluator, metric, model, adjusted), self._empty())

    def _empty(self) -> RatioSums:
        return RatioSums(len(self._sample.strata))

    def as_json(self) -> dict[str, Any]:
        """Return the sample, the estimates of every mean and of differences between models."""
        sample = self._sample
        return {
            "asked": asdict(sample.size),
            "drawn": {"cases": self._cases, "questions": sample.drawn},
            "lab": {"cases": sample.cases, "questions": sample.questions},
            "strata": [asdict(one) for one in sample.strata],
            "confidence": CONFIDENCE,
            "estimates": list(self._estimates()),
            "differences": list(self._differences()),
        }

    def _estimates(self) -> Iterator[dict[str, Any]]:
        for one in self._configured:
            spec = one.evaluator.spec
            for metric in spec.metrics:
                for model in self._models:
                    told: dict[str, Any] = {}
                    for adjusted, name in ((False, "value"), (True, "adjusted")):
                        cell = self._cells.get((spec.id, metric.key, model, adjusted))
                        if cell is None:
                            continue
                        found = cell.estimate(self._sample, is_share=metric.boolean)
                        if found is not None:
                            key = "interval" if name == "value" else f"{name}_interval"
                            told |= {name: found.value, key: _within(found.interval, metric)}
                            told["questions"] = cell.questions
                    if told:
                        yield {"evaluator": spec.id, "metric": metric.key, "model": model, **told}

    def _differences(self) -> Iterator[dict[str, Any]]:
        for one in self._configured:
            spec = one.evaluator.spec
            for first, second in _compared(self._models):
                sums = self._pairs.get((spec.id, first, second))
                found = sums and sums.estimate(self._sample, is_share=False)
                if sums and found:
                    yield {
                        "evaluator": spec.id,
                        "metric": spec.primary.key,
                        "models": [first, second],
                        "difference": found.value,
                        "interval": found.interval,
                        "questions": sums.questions,
                    }


def sample_markdown(content: Mapping[str, Any], primary: Mapping[str, str]) -> str:
    """Return what the primary metrics of a sample tell about the whole lab, for people.

    Args:
        content: Of `sample.json`.
        primary: Of each evaluator its primary metric.
    """
    drawn, lab = content["drawn"], content["lab"]
    lines = [
        "## Sample",
        "",
        f"{drawn['questions']} of {lab['questions']} questions ({drawn['cases']} of "
        f"{lab['cases']} cases) were drawn by seed {content['asked']['seed']}. The intervals hold "
        "the mean over the whole lab in 95 of 100 such samples.",
        "",
        "| evaluator | model | mean over the whole lab | 95 % | questions |",
        "|---|---|---|---|---|",
    ]
    for one in content["estimates"]:
        if primary[one["evaluator"]] == one["metric"] and "adjusted" in one:
            interval = one["adjusted_interval"]
            between = f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else "no spread seen"
            cells = (f"{one['evaluator']}.{one['metric']}", one["model"] or "(no model)")
            told = " | ".join(map(in_cell, cells))
            lines.append(f"| {told} | {one['adjusted']:.3f} | {between} | {one['questions']} |")
    return "\n".join(lines) + "\n"


def _within(interval: tuple[float, float] | None, metric: MetricSpec) -> tuple[float, float] | None:
    """Return an interval without the values that the metric cannot have."""
    if interval is None:
        return None
    return max(metric.low, interval[0]), min(metric.high, interval[1])


def _compared(models: Sequence[str]) -> Iterator[tuple[str, str]]:
    if len(models) <= MOST_COMPARED:
        return combinations(models, 2)
    return ((models[0], other) for other in models[1:])


def _by_model(
    group: Sequence[ScoredCase], one: Configured, metric: str, *, adjusted: bool
) -> dict[str, list[float]]:
    """Return the values of a question's cases; adjusted ones have the worst for a missing answer.

    A model of which nothing was judged at all has none.
    """
    worst = one.evaluator.spec.worst(metric) if adjusted else None
    found: dict[str, list[float]] = {}
    for scored in group:
        value = _value(scored.results[one.id], metric, worst)
        if value is not None:
            found.setdefault(scored.case.model, []).append(value)
    return found


def _value(result: Result, metric: str, worst: float | None) -> float | None:
    score = result.scores[metric]
    if score.value is None:
        return worst if is_unanswered(score.reason) else None
    return score.value if math.isfinite(score.value) else None

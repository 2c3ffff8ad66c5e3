"""One metric of one model in numbers: mean with interval, coverage, quartiles, failing answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardrail_offline.report.run_data import Column, DecidingCut, EvaluatorData, RunData, beyond
from guardrail_offline.runs.paired import ratio_interval
from guardrail_service.types import Direction, MetricSpec

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Places = np.ndarray[Any, np.dtype[Any]]
_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)
WORD_FOR_REASON: Mapping[str, str] = {
    "missing_input": "the lab lacks what it reads",
    "needs_judge": "needs a judge",
    "no_answer": "no answer",
    "error_answer": "the answer is an error message",
    "wrong_abstention": "abstained although it could answer",
    "unsupported_language": "in a language that it cannot read",
    "not_in_this_run": "not evaluated in this run",
    "too_few_runs": "fewer than two runs of the question",
    "too_short": "too short",
    "no_citation": "no citation",
    "no_label": "no label",
    "no_labels": "no labels of what should be retrieved",
    "no_entity": "no entity in the expected answer",
    "language_undetermined": "language not recognised",
    "too_few_sentences": "too few sentences",
    "judge_parse_failure": "the judge gave no answer that can be read",
    "judge_refused": "the judge declined",
    "judge_timeout": "the judge did not answer in time",
    "judge_rate_limited": "the judge was asked too often",
    "judge_budget": "the budget did not allow for it",
    "judge_error": "the judge could not be asked",
}


@dataclass(frozen=True)
class Figure:
    """One metric of one model.

    Attributes:
        value: Mean over the finite values, or what exists for the model only; None without one.
        interval: Cluster-bootstrap interval of the mean at 95 %, by question.
        judged: Cases with a value, infinite ones included.
        cases: All cases of the model.
        questions: Questions among the judged cases.
        unanswered: Cases without a value because the model did not answer.
        infinite: Values that have no place in a mean.
        failing: Judged cases on the wrong side of `cut`; None without one.
        cut: The threshold that decides.
        missing: Reasons for missing values, the most frequent first.
        box: 5th, 25th, 50th, 75th and 95th percentile of the finite values.
    """

    evaluator: str
    metric: MetricSpec
    model: str
    value: float | None
    interval: tuple[float, float] | None
    judged: int
    cases: int
    questions: int
    unanswered: int
    infinite: int
    failing: int | None
    cut: DecidingCut | None
    missing: Mapping[str, int]
    box: tuple[float, ...] | None

    @property
    def coverage(self) -> float:
        """Return the share of the model's cases that have a value."""
        return self.judged / self.cases if self.cases else 0.0

    @property
    def higher(self) -> bool:
        """Return whether higher is better."""
        return self.metric.direction is Direction.HIGHER

    @property
    def is_beyond(self) -> bool:
        """Return whether the mean is on the wrong side of the threshold."""
        if self.cut is None or self.value is None:
            return False
        return bool(beyond(np.array([self.value]), self.cut.value, self.metric.direction)[0])


class RunFigures:
    """Computes figures of a run once each."""

    def __init__(self, run: RunData) -> None:
        self.run = run
        models = np.array([case["model_key"] for case in run.cases], dtype=object)
        self._places = {model.key: np.flatnonzero(models == model.key) for model in run.models}
        groups = [str(case["group"]) for case in run.cases]
        self.groups = np.unique(np.array(groups, dtype=object), return_inverse=True)[1]
        self._known: dict[tuple[str, str, str], Figure] = {}

    def places(self, model: str) -> Places:
        """Return where the cases of a model stand."""
        return self._places[model]

    def unanswered(self, model: str) -> int:
        """Return how many cases of a model any evaluator found not to be answered."""
        places = self._places[model]
        found = np.zeros(len(self.run.cases), dtype=bool)
        for data in self.run.evaluators.values():
            reasons = data.reasons[data.primary.key]
            for place in places:
                found[place] |= self.run.is_unanswered(reasons[int(place)])
        return int(found.sum())

    def of(self, data: EvaluatorData, metric: MetricSpec, model: str) -> Figure:
        """Return one metric of one model."""
        place = data.id, metric.key, model
        if place not in self._known:
            self._known[place] = self._figure(data, metric, model)
        return self._known[place]

    def _figure(self, data: EvaluatorData, metric: MetricSpec, model: str) -> Figure:
        places = self._places[model]
        values = data.values[metric.key][places]
        reasons = [data.reasons[metric.key][int(place)] for place in places]
        there, finite = ~np.isnan(values), np.isfinite(values)
        known = values[finite]
        cut = data.cuts.get(metric.key)
        failing = None
        if cut is not None and there.any():
            failing = int(beyond(values, cut.value, metric.direction).sum())
        missing = Counter(reason for reason in reasons if reason)
        groups = self.groups[places][finite]
        mean = float(known.mean()) if len(known) else _of_board(data, metric, model)
        return Figure(
            data.id,
            metric,
            model,
            mean,
            _interval(known, groups),
            int(there.sum()),
            len(places),
            len(np.unique(self.groups[places][there])),
            sum(n for reason, n in missing.items() if self.run.is_unanswered(reason)),
            int(np.isinf(values).sum()),
            failing,
            cut,
            dict(missing.most_common()),
            tuple(np.quantile(known, _BOX).tolist()) if len(known) else None,
        )

    def failing(self, data: EvaluatorData) -> Mask:
        """Return which cases have a metric on the wrong side of a threshold that decides."""
        found = np.zeros(len(self.run.cases), dtype=bool)
        for metric in data.metrics:
            cut = data.cuts.get(metric.key)
            if cut is not None:
                found |= beyond(data.values[metric.key], cut.value, metric.direction)
        return found


def _interval(values: Column, groups: Places) -> tuple[float, float] | None:
    if not len(values):
        return None
    _, inverse = np.unique(groups, return_inverse=True)
    sums = np.bincount(inverse, weights=values).astype(np.float64)
    return ratio_interval(sums, np.bincount(inverse).astype(np.float64))


def _of_board(data: EvaluatorData, metric: MetricSpec, model: str) -> float | None:
    """Return the value of a metric that exists for a model's cases together only."""
    for board in data.boards:
        for row in board["rows"]:
            if row["model"] == model and metric.key in row["metrics"]:
                value = row["metrics"][metric.key]["value"]
                return None if value is None else float(value)
    return None


def in_words(reason: str) -> str:
    """Return a reason for a missing value for people."""
    if reason.startswith("missing_role:"):
        return f"the model pack has no {reason.removeprefix('missing_role:').replace('_', ' ')}"
    return WORD_FOR_REASON.get(reason, reason.replace("_", " "))

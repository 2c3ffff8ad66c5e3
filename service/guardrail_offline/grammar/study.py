"""Holds evaluators against answers that are right or wrong by construction: GRAMMAR's table 1.

Each metric with a threshold is a classifier: on the good side it calls an answer right. Low
precision is optimism about wrong answers, low recall cynicism about right ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from guardrail_offline.agreement import auroc
from guardrail_offline.evaluators.shared.answer_match import match
from guardrail_offline.intervals import exact_interval
from guardrail_offline.runs.result_files import EvaluatorResults, ResultRow
from guardrail_offline.runs.totals import fails
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Direction, MetricSpec

TRUTH = "grammar"
AGREEMENT = "agreement_of_wordings"
"""SelfCheck without a second sample: an answer is called right if those to all other wordings of
its question agree with it."""


@dataclass(frozen=True, slots=True)
class Predictor:
    """One metric as a classifier of right answers, on one lab.

    Attributes:
        metric: `EVALUATOR.METRIC`.
        threshold: Where it decides; None for one without a usable one, which decides nothing.
        right_called_right: Counts of the four outcomes; they are 0 without a threshold.
        unscored: Answers it has no value for.
        area: Under the ROC curve; None where every answer is right, or wrong, or has no value.
        is_primary: It is the first of its evaluator.
    """

    metric: str
    threshold: float | None
    right_called_right: int
    wrong_called_right: int
    right_called_wrong: int
    wrong_called_wrong: int
    unscored: int
    area: float | None
    is_primary: bool = True

    def as_json(self) -> dict[str, Any]:
        """Return counts, precision and recall with exact 95 % intervals."""
        called = self.right_called_right + self.wrong_called_right
        right = self.right_called_right + self.right_called_wrong
        return {
            "metric": self.metric,
            "primary": self.is_primary,
            "threshold": self.threshold,
            "area": self.area,
            **_share("precision", self.right_called_right, called),
            **_share("recall", self.right_called_right, right),
            "right_called_right": self.right_called_right,
            "wrong_called_right": self.wrong_called_right,
            "right_called_wrong": self.right_called_wrong,
            "wrong_called_wrong": self.wrong_called_wrong,
            "unscored": self.unscored,
        }


def _share(name: str, part: int, whole: int) -> dict[str, Any]:
    if not whole:
        return {name: None, f"{name}_95": None}
    return {name: part / whole, f"{name}_95": list(exact_interval(part, whole))}


def study(run: Mapping[str, EvaluatorResults]) -> dict[str, Any]:
    """Return every metric of a run as a predictor of whether answers are right.

    Args:
        run: From `read_run`, with the evaluator `grammar`.

    Raises:
        ConfigurationError: If the run did not have it, or no answer is judged.
    """
    if TRUTH not in run:
        expected = "a run of `guardrail evaluate -e grammar,...`"
        raise ConfigurationError("the run", "no evaluator `grammar`", expected)
    rows = run[TRUTH].rows
    truth = {
        row.key: bool(value) for row in rows if (value := row.scores["correct"].value) is not None
    }
    if not truth:
        raise ConfigurationError("the run", "no judged answer", "answers to generated questions")
    groups = {row.group for row in rows if row.key in truth}
    right = sum(truth.values())
    found = [_agreement(rows, truth)]
    for name, results in sorted(run.items()):
        if name != TRUTH:
            found += _predictors(results, truth)
    return {
        "answers": len(truth),
        "right": right,
        "groups": len(groups),
        "all_called_right": _share("precision", right, len(truth)),
        "predictors": [one.as_json() for one in found],
    }


def _predictors(results: EvaluatorResults, truth: Mapping[str, bool]) -> Iterator[Predictor]:
    first = next(iter(results.metrics))
    for key, metric in results.metrics.items():
        values = [
            (score.value, truth[row.key])
            for row in results.rows
            if row.key in truth and (score := row.scores[key]).value is not None
        ]
        if values:
            unscored = len(truth) - len(values)
            found = _predictor(f"{results.evaluator}.{key}", metric, values, unscored)
            yield replace(found, is_primary=key == first)


def _predictor(
    name: str, metric: MetricSpec, values: Sequence[tuple[float, bool]], unscored: int
) -> Predictor:
    cut = metric.threshold if metric.threshold is not None else 0.5 if metric.boolean else None
    counts = dict.fromkeys(((a, b) for a in (True, False) for b in (True, False)), 0)
    if cut is not None:
        for value, is_right in values:
            counts[not fails(value, metric.direction, cut), is_right] += 1
    sign = 1.0 if metric.direction is Direction.HIGHER else -1.0
    area = _area([sign * value for value, _ in values], [is_right for _, is_right in values])
    return Predictor(
        name,
        cut,
        counts[True, True],
        counts[True, False],
        counts[False, True],
        counts[False, False],
        unscored,
        area,
    )


def _area(scores: Sequence[float], right: Sequence[bool]) -> float | None:
    """Return the area under the ROC curve; None where all are right, or none is."""
    told = np.array(right, dtype=np.bool_)
    return auroc(np.array(scores), told) if 0 < told.sum() < len(told) else None


def _agreement(rows: Sequence[ResultRow], truth: Mapping[str, bool]) -> Predictor:
    """Return SelfCheck over wordings; a lone answer is unscored."""
    groups: dict[tuple[str, str], list[ResultRow]] = defaultdict(list)
    for row in rows:
        if row.key in truth:
            groups[row.model, row.group].append(row)
    values: list[tuple[float, bool]] = []
    for group in groups.values():
        for row in group if len(group) > 1 else ():
            agrees = all(_same(row, other) for other in group if other is not row)
            values.append((float(agrees), truth[row.key]))
    metric = MetricSpec(AGREEMENT, boolean=True)
    return _predictor(AGREEMENT, metric, values, len(truth) - len(values))


def _same(row: ResultRow, other: ResultRow) -> bool:
    texts = [str(one.record.get("actual_output") or "") for one in (row, other)]
    found = match(*texts)
    return found is not None and found.same

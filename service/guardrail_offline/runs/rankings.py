"""The best and the worst model of each evaluator, on the questions that all of them were judged on.

A model that is judged on fewer questions is not compared by its easier ones, and silence is no
strength: a missing answer counts as the worst one unless the run excludes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from guardrail_offline.datasets.cases import Model
from guardrail_offline.evaluators.catalogue import EvaluatorSpec
from guardrail_offline.evaluators.result import Result
from guardrail_offline.runs.paired import CONFIDENCE, Numbers
from guardrail_offline.runs.shards import ScoredCase
from guardrail_offline.runs.totals import EvaluatorTally, Missing, is_unanswered
from guardrail_service.types import Direction

_NAMES = {"retrieval": ("best_retrieval", "worst_retrieval")}


class Lead(NamedTuple):
    """One model ahead of another on the same questions.

    Attributes:
        difference: Mean difference, positive where the first is better.
        interval: Student's 95 % interval of it; one question counts once.
    """

    difference: float
    interval: tuple[float, float]

    @property
    def is_clear(self) -> bool:
        """Return whether the interval leaves out 0."""
        return self.interval[0] > 0


class CommonQuestions:
    """One evaluator's primary metric on the questions that all its models have a value for.

    Only sums are kept, so memory does not grow with the lab.

    Args:
        tally: The evaluator, added up already: which models it judged.
        missing: What a case without an answer counts.
    """

    def __init__(self, tally: EvaluatorTally, missing: Missing) -> None:
        self.tally = tally
        self.spec: EvaluatorSpec = tally.evaluator.spec
        self.models = [model for model in tally.metrics if tally.adjusted(model) is not None]
        self.count = 0
        self._worst = None if missing == "exclude" else self.spec.worst(self.spec.primary.key)
        self._sums = np.zeros(len(self.models))
        self._products = np.zeros((len(self.models), len(self.models)))

    def add(self, group: Sequence[ScoredCase]) -> None:
        """Add one question: the mean of each model's cases, if every model has one."""
        found: dict[str, list[float]] = {}
        for scored in group:
            value = self._value(scored.results[self.spec.id])
            if value is not None:
                found.setdefault(scored.case.model, []).append(value)
        if len(self.models) < 2 or not all(model in found for model in self.models):
            return
        values = np.array([sum(found[m]) / len(found[m]) for m in self.models])
        self.count += 1
        self._sums += values
        self._products += np.outer(values, values)

    def _value(self, result: Result) -> float | None:
        score = result.scores[self.spec.primary.key]
        if score.value is None:
            return self._worst if is_unanswered(score.reason) else None
        return score.value if math.isfinite(score.value) else None

    def order(self) -> list[int]:
        """Return the models' places, the best first; models of one mean in the lab's order."""
        sign = -1.0 if self.spec.primary.direction is Direction.HIGHER else 1.0
        return sorted(range(len(self.models)), key=lambda place: sign * self._sums[place])

    def mean(self, place: int) -> float:
        """Return a model's mean."""
        return float(self._sums[place] / self.count)

    def lead(self, better: int, worse: int) -> Lead:
        """Return how far one model is ahead of another."""
        sign = 1.0 if self.spec.primary.direction is Direction.HIGHER else -1.0
        difference = sign * (self.mean(better) - self.mean(worse))
        products: Numbers = self._products
        squares = products[better, better] + products[worse, worse] - 2 * products[better, worse]
        spread = max(0.0, float(squares) - self.count * difference**2) / (self.count - 1)
        reach = float(stdtrit(self.count - 1, (1 + CONFIDENCE) / 2)) * math.sqrt(
            spread / self.count
        )
        return Lead(difference, (difference - reach, difference + reach))


def rankings(
    common: Sequence[CommonQuestions], models: Sequence[Model]
) -> Iterator[dict[str, Any]]:
    """Yield the best and the worst model of each evaluator where they clearly differ.

    Nothing is said of fewer questions than `min_test_cases`.
    """
    names = {model.key: model.title for model in models}
    for one in common:
        least = max(2, one.tally.configured.common.min_test_cases)
        if len(one.models) < 2 or one.count < least:
            continue
        order = one.order()
        best, worst = order[0], order[-1]
        lead = one.lead(best, worst)
        if not lead.is_clear:
            continue
        kinds = _NAMES.get(one.spec.problem, ("best_model", "worst_model"))
        yield _insight(one, kinds[0], best, (worst, lead), names)
        yield _insight(one, kinds[1], worst, (best, lead), names)


def _insight(
    one: CommonQuestions,
    kind: str,
    place: int,
    against: tuple[int, Lead],
    names: Mapping[str, str],
) -> dict[str, Any]:
    other, lead = against
    key = one.spec.primary.key
    low, high = lead.interval
    side = "ahead of" if kind.startswith("best") else "behind"
    text = (
        f"{names[one.models[place]]}: {key} {one.mean(place):.3f} ({one.spec.name}), "
        f"{lead.difference:.3f} {side} {names[one.models[other]]} on {one.count} common questions "
        f"(95 %: {low:.3f} to {high:.3f})"
    )
    attributes = {
        "evaluator": one.spec.id,
        "metric": key,
        "model": one.models[place],
        "score": one.mean(place),
        "questions": one.count,
        "other": one.models[other],
        "difference": lead.difference,
        "interval95": [low, high],
    }
    return {
        "type": kind,
        "description": text,
        "attrs": attributes,
        "actions_description": "Compare the two models' cases.",
    }

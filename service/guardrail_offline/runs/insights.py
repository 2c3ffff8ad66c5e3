"""Insights of a run: best and worst models, speed, cost, hardest questions, weak points.

Of single cases a few are remembered while a run is put together, whatever its size.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from guardrail_offline.datasets.cases import Case, Model
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.result import Result
from guardrail_offline.runs.rankings import CommonQuestions, rankings
from guardrail_offline.runs.shards import ScoredCase
from guardrail_offline.runs.totals import fails

KEPT = 5
_GROUNDING = ("hallucination", "groundedness", "faithfulness")
LEAST_CASES = 5
"""A category with fewer judged cases says nothing about a weakness."""


class _Mean:
    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value

    @property
    def value(self) -> float:
        return self.total / self.count


class NotableCases:
    """Filled by question: all cases of one group come together."""

    def __init__(self, configured: Sequence[Configured]) -> None:
        self._cuts = {
            one.id: (metric, cut)
            for one in configured
            if (metric := one.evaluator.spec.primary) is not None
            and (cut := one.thresholds()[metric.key]) is not None
        }
        self._durations: dict[str, _Mean] = defaultdict(_Mean)
        self._costs: dict[str, _Mean] = defaultdict(_Mean)
        self._hard: list[tuple[float, int, str, Mapping[str, Any]]] = []
        self._categories: dict[tuple[str, str], _Mean] = defaultdict(_Mean)
        self._grounded: list[tuple[float, str, Mapping[str, Any]]] = []

    def add(self, group: Sequence[ScoredCase]) -> None:
        """Note the cases of one question."""
        failed = judged = 0
        for scored in group:
            self._note_model(scored.case)
            verdicts = self._verdicts(scored.results)
            failed += sum(verdicts.values())
            judged += len(verdicts)
            for category in scored.case.categories:
                for evaluator, is_failure in verdicts.items():
                    self._categories[evaluator, category].add(float(is_failure))
            self._note_grounding(scored)
        if judged:
            first = group[0].case
            entry = {"group": first.group, "question": first.question, "verdicts": judged}
            share = failed / judged
            _keep_largest(self._hard, (share, judged, first.group, entry))

    def _verdicts(self, results: Mapping[str, Result]) -> dict[str, bool]:
        """Return whether each evaluator's primary metric is on the wrong side of its threshold."""
        found = {}
        for evaluator, (metric, cut) in self._cuts.items():
            value = results[evaluator].scores[metric.key].value
            if value is not None:
                found[evaluator] = fails(value, metric.direction, cut)
        return found

    def _note_model(self, case: Case) -> None:
        if case.duration_s is not None:
            self._durations[case.model].add(case.duration_s)
        if case.cost is not None:
            self._costs[case.model].add(case.cost)

    def _note_grounding(self, scored: ScoredCase) -> None:
        for evaluator in _GROUNDING:
            result = scored.results.get(evaluator)
            for span in result.spans if result is not None else ():
                if span.get("score") is not None and scored.case.answer is not None:
                    entry = {
                        "evaluator": evaluator,
                        "case": scored.case.key,
                        "model": scored.case.model,
                        "start": span["start"],
                        "end": span["end"],
                        "sentence": scored.case.answer[span["start"] : span["end"]],
                        "score": span["score"],
                    }
                    _keep_largest(self._grounded, (-span["score"], scored.case.key, entry))

    def speed_and_cost(self, models: Sequence[Model]) -> Iterable[dict[str, Any]]:
        """Yield the fastest and slowest, cheapest and most expensive model, where they differ."""
        names = {model.key: model.title for model in models}
        for means, (low, high), unit in (
            (self._durations, ("fastest_model", "slowest_model"), "s"),
            (self._costs, ("cheapest_model", "most_expensive_model"), "a case"),
        ):
            ordered = [model for _, model in sorted((m.value, key) for key, m in means.items())]
            if len(ordered) < 2 or means[ordered[0]].value == means[ordered[-1]].value:
                continue
            for kind, model in ((low, ordered[0]), (high, ordered[-1])):
                value = means[model].value
                yield {
                    "type": kind,
                    "description": f"{names[model]}: {value:.4g} {unit} on average",
                    "attrs": {"model": model, "mean": value, "cases": means[model].count},
                    "actions_description": "Weigh it against the scores.",
                }

    def hardest(self) -> Iterable[dict[str, Any]]:
        """Yield the questions with the largest share of failed verdicts over models and metrics."""
        for share, _, _, entry in sorted(self._hard, key=lambda item: item[:3], reverse=True):
            if share > 0:
                yield {
                    "type": "hardest_question",
                    "description": f"{share:.0%} of {entry['verdicts']} verdicts fail",
                    "attrs": {**entry, "failed_share": share},
                    "actions_description": "Look at this question's answers and passages.",
                }

    def weak_points(self) -> Iterable[dict[str, Any]]:
        """Yield the categories that fail most often, evaluator by evaluator."""
        found = [
            (mean.value, evaluator, category, mean.count)
            for (evaluator, category), mean in self._categories.items()
            if mean.count >= LEAST_CASES and mean.value > 0
        ]
        for share, evaluator, category, count in heapq.nlargest(KEPT, found):
            yield {
                "type": "weak_point",
                "description": f"{share:.0%} of {count} cases of {category!r} fail {evaluator}",
                "attrs": {"evaluator": evaluator, "category": category, "failed_share": share},
                "actions_description": "Add cases of this kind and look at their passages.",
            }

    def least_grounded(self) -> Iterable[dict[str, Any]]:
        """Yield the answer sentences with the least support in their passages."""
        for _, _, entry in sorted(self._grounded, key=lambda item: item[:2], reverse=True):
            yield {
                "type": "least_grounded_sentence",
                "description": f"{entry['evaluator']} {entry['score']:.3f} in {entry['case']}",
                "attrs": dict(entry),
                "actions_description": "Check the sentence against the passages.",
            }


def _keep_largest(heap: list[Any], entry: tuple[Any, ...]) -> None:
    """Keep the few largest entries; the last element of an entry is never compared."""
    heap.append(entry)
    heap.sort(key=lambda item: item[:-1], reverse=True)
    del heap[KEPT:]


def insights(
    common: Sequence[CommonQuestions], models: Sequence[Model], cases: NotableCases
) -> list[dict[str, Any]]:
    """Return the best and worst models, speed and cost, the hardest question, the weak points."""
    return [
        *rankings(common, models),
        *cases.speed_and_cost(models),
        *cases.hardest(),
        *cases.weak_points(),
        *cases.least_grounded(),
    ]

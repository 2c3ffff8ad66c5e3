"""Figures of each model that no evaluator scores: speed, cost, files, and inputs that are too long.

They are problems only where the lab has them, and one model stands out from the others.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from guardrail_offline.datasets.cases import Case, Model
from guardrail_offline.runs.shards import ScoredCase

KEPT_CASES = 10
"""Keys of the worst cases that a problem names."""
TIMES = {"low": 2.0, "medium": 4.0, "high": 8.0}
"""How much slower, more expensive or larger than the best model is a problem, on the questions
that both answered."""
LONG_INPUT = 32_000
"""Characters of a question with its passages: about 8,000 tokens, which many models read."""
FIGURES: Mapping[str, str] = {"efficiency": "seconds", "cost": "cost", "storage": "MB"}


class ModelFigures:
    """Filled by question: all cases of one group come together."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, dict[str, list[float]]]] = {
            kind: defaultdict(lambda: defaultdict(list)) for kind in FIGURES
        }
        self._worst: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
        self._cases: dict[str, int] = defaultdict(int)
        self._long: dict[str, int] = defaultdict(int)

    def add(self, group: Sequence[ScoredCase]) -> None:
        """Note the cases of one question."""
        for scored in group:
            case = scored.case
            self._cases[case.model] += 1
            for kind, value in _figures(scored):
                self._values[kind][case.model][case.group].append(value)
                self._note(kind, case, value)
            length = len(case.question) + sum(len(p.text) for p in case.contexts or ())
            if length > LONG_INPUT:
                self._long[case.model] += 1
                self._note("long", case, length)

    def _note(self, kind: str, case: Case, value: float) -> None:
        heap = self._worst[kind, case.model]
        heapq.heappush(heap, (value, case.key))
        if len(heap) > KEPT_CASES:
            heapq.heappop(heap)

    def _keys(self, kind: str, model: str) -> list[str]:
        return [key for _, key in sorted(self._worst[kind, model], reverse=True)]

    def stands_out(self, models: Sequence[Model]) -> Iterable[tuple[str, str, str, dict[str, Any]]]:
        """Yield problem type, severity, description and attributes, model by model."""
        for model in models:
            for kind in FIGURES:
                yield from self._against_the_best(kind, model)
            if count := self._long.get(model.key):
                share = count / self._cases[model.key]
                level = "medium" if share > 0.5 else "low"
                text = f"{count} inputs of {model.title} have over {LONG_INPUT:,} characters"
                keys = self._keys("long", model.key)
                attributes = {"model": model.key, "cases": count, "row_keys": keys}
                yield "data quality", level, text, attributes

    def _against_the_best(
        self, kind: str, model: Model
    ) -> Iterable[tuple[str, str, str, dict[str, Any]]]:
        own = self._values[kind].get(model.key, {})
        ratios = []
        for other, theirs in self._values[kind].items():
            shared = own.keys() & theirs.keys()
            if other != model.key and shared and (best := _mean(theirs, shared)) > 0:
                ratios.append((_mean(own, shared) / best, other, best, len(shared)))
        if not ratios:
            return
        ratio, other, best, questions = max(ratios)
        reached = [level for level, least in TIMES.items() if ratio >= least]
        if not reached:
            return
        unit = FIGURES[kind]
        text = (
            f"{model.title}: {ratio * best:.4g} {unit} a case, {ratio:.1f} times those of another "
            f"model on the same {questions} questions"
        )
        yield kind, reached[-1], text, {
            "model": model.key, "compared_with": other, "score": ratio * best, "ratio": ratio,
            "questions": questions, "row_keys": self._keys(kind, model.key),
        }  # fmt: skip


def _figures(scored: ScoredCase) -> Iterable[tuple[str, float]]:
    if scored.case.duration_s is not None:
        yield "efficiency", scored.case.duration_s
    if scored.case.cost is not None:
        yield "cost", scored.case.cost
    agent = scored.results.get("agent_sanity_check")
    size = agent.scores["agent_data_size_mb"].value if agent is not None else None
    if size is not None:
        yield "storage", size


def _mean(values: Mapping[str, Sequence[float]], groups: Iterable[str]) -> float:
    means = [sum(values[group]) / len(values[group]) for group in groups]
    return sum(means) / len(means)

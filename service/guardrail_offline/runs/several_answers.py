"""Scores over several answers: the turns of a conversation, and a model's runs of a question."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from guardrail_offline.evaluators.catalogue import EvaluatorSpec
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.consistency import MIN_RUNS, spread
from guardrail_offline.evaluators.result import json_number
from guardrail_offline.runs.shards import ScoredCase
from guardrail_offline.runs.totals import is_better
from guardrail_service.types import MetricSpec

Note = Callable[[dict[str, Any]], None]


class Conversations:
    """Says what `conversations.json` holds; all turns of a conversation are in one group.

    Args:
        configured: The evaluators.
        note: Takes each record; none is kept.
    """

    def __init__(self, configured: Sequence[Configured], note: Note) -> None:
        self._specs = [one.evaluator.spec for one in configured]
        self._note = note

    def add(self, group: Sequence[ScoredCase]) -> None:
        """Note the conversations of one group."""
        turns = [scored for scored in group if scored.case.conversation is not None]
        for (conversation, model), found in _by(turns, lambda c: (c.conversation, c.model)):
            named = {"conversation": conversation, "model": model, "turns": len(found)}
            for spec, metric, values in _values(self._specs, found):
                worst = values[0]
                for other in values[1:]:
                    worst = other if is_better(worst[0], other[0], metric.direction) else worst
                mean = sum(value for value, _ in values) / len(values)
                self._note({
                    **named,
                    "evaluator": spec.id,
                    "metric": metric.key,
                    "judged": len(values),
                    "mean": json_number(mean),
                    "worst": json_number(worst[0]),
                    "worst_turn": worst[1],
                })  # fmt: skip


class RunConsistency:
    """Says what `run_consistency.json` holds: how much any metric varies over reruns.

    Runs are a model's answers to the same question; fewer than three say nothing.

    Args:
        configured: The evaluators.
        note: Takes each record; none is kept.
    """

    def __init__(self, configured: Sequence[Configured], note: Note) -> None:
        self._specs = [one.evaluator.spec for one in configured]
        self._note = note

    def add(self, group: Sequence[ScoredCase]) -> None:
        """Note the runs of one group."""
        asked = [scored for scored in group if scored.case.question.strip()]
        for (question, model), found in _by(asked, lambda c: (c.question, c.model)):
            if len(found) < MIN_RUNS or not question:
                continue
            named = {"query_id": query_id(found[0]), "model": model, "runs": len(found)}
            for spec, metric, values in _values(self._specs, found):
                numbers = [value for value, _ in values if abs(value) != float("inf")]
                if len(numbers) < MIN_RUNS:
                    continue
                statistics = spread(numbers)._asdict()
                place = {"evaluator": spec.id, "metric": metric.key, "judged": len(numbers)}
                self._note({**named, **place, **statistics})


SEVERAL_ANSWERS: dict[str, type[Conversations | RunConsistency]] = {
    "conversations.json": Conversations,
    "run_consistency.json": RunConsistency,
}
"""What takes several answers together, by the file of a run that its records are for."""


def query_id(scored: ScoredCase) -> str:
    """Return what a case is called apart from its run: Open RAG Eval's runs are `key@1`, `key@2`.

    Cases that only their row tells apart are called after their question.
    """
    case = scored.case
    head, at, run = case.key.rpartition("@")
    if case.test_case_key:
        return case.test_case_key
    if at and run.isdecimal():
        return head
    return case.group if case.key.removeprefix("row-").isdecimal() else case.key


def _by(
    cases: Sequence[ScoredCase], key: Callable[[Any], Hashable]
) -> Iterator[tuple[Any, list[ScoredCase]]]:
    found: dict[Hashable, list[ScoredCase]] = {}
    for scored in cases:
        found.setdefault(key(scored.case), []).append(scored)
    yield from found.items()


def _values(
    specs: Sequence[EvaluatorSpec], cases: Sequence[ScoredCase]
) -> Iterator[tuple[EvaluatorSpec, MetricSpec, list[tuple[float, str]]]]:
    """Yield each metric that some of the cases have, with values and keys."""
    for spec in specs:
        for metric in spec.metrics:
            values = [
                (value, scored.case.key)
                for scored in cases
                if (value := scored.results[spec.id].scores[metric.key].value) is not None
            ]
            if values:
                yield spec, metric, values

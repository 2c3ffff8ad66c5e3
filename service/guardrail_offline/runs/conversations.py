"""The scores of conversations: the mean and the worst of their turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.result import json_number
from guardrail_offline.runs.shards import ScoredCase
from guardrail_offline.runs.totals import is_better


class Conversations:
    """Collects what `conversations.json` holds; all turns of a conversation are in one group."""

    def __init__(self, configured: Sequence[Configured]) -> None:
        self._specs = [one.evaluator.spec for one in configured]
        self.records: list[dict[str, Any]] = []

    def add(self, group: Sequence[ScoredCase]) -> None:
        """Note the conversations of one group."""
        found: dict[tuple[str, str], list[ScoredCase]] = {}
        for scored in group:
            if scored.case.conversation is not None:
                key = (scored.case.conversation, scored.case.model)
                found.setdefault(key, []).append(scored)
        for (conversation, model), turns in found.items():
            named = {"conversation": conversation, "model": model, "turns": len(turns)}
            self.records += [named | record for record in self._of(turns)]

    def _of(self, turns: Sequence[ScoredCase]) -> list[dict[str, Any]]:
        records = []
        for spec in self._specs:
            for metric in spec.metrics:
                values = [
                    (value, turn.case.key)
                    for turn in turns
                    if (value := turn.results[spec.id].scores[metric.key].value) is not None
                ]
                if not values:
                    continue
                worst = values[0]
                for other in values[1:]:
                    worst = other if is_better(worst[0], other[0], metric.direction) else worst
                mean = sum(value for value, _ in values) / len(values)
                records.append(
                    {
                        "evaluator": spec.id,
                        "metric": metric.key,
                        "judged": len(values),
                        "mean": json_number(mean),
                        "worst": json_number(worst[0]),
                        "worst_turn": worst[1],
                    }
                )
        return records

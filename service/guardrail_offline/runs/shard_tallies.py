"""Boards from what each shard adds to them, without reading the scores again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from guardrail_offline.datasets.cases import Model
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.runs.fair_averages import in_averages, why_unanswered
from guardrail_offline.runs.shards import Layout, ScoredCase, ShardPlan, read_scored
from guardrail_offline.runs.totals import EvaluatorTally


class RunTallies:
    """All evaluators over some cases, by model; those of shards add up to those of the run.

    Args:
        configured: What ran.

    Attributes:
        evaluators: One tally each, in their order.
        unanswered: How many cases each model left unanswered.
    """

    def __init__(self, configured: Sequence[Configured]) -> None:
        self._configured = configured
        self.evaluators = [EvaluatorTally(one) for one in configured]
        self.unanswered = Counter[str]()

    def add(self, scored: ScoredCase) -> None:
        """Count one case."""
        fair = in_averages(scored, self._configured)
        if why_unanswered(scored) is not None:
            self.unanswered[scored.case.model] += 1
        for tally in self.evaluators:
            tally.add(scored.case.model, fair.results[tally.configured.id])

    def as_json(self) -> dict[str, Any]:
        """Return what `merge` adds to the tallies of a run."""
        return {
            "unanswered": dict(sorted(self.unanswered.items())),
            "evaluators": {one.configured.id: one.as_json() for one in self.evaluators},
        }

    def merge(self, content: dict[str, Any]) -> None:
        """Add what other cases counted."""
        self.unanswered.update(content["unanswered"])
        for one in self.evaluators:
            one.merge(content["evaluators"][one.configured.id])

    def order(self, models: Iterable[Model]) -> None:
        """Put the models that have cases into the order of the lab."""
        keys = [model.key for model in models]
        for one in self.evaluators:
            one.metrics = {key: one.metrics[key] for key in keys if key in one.metrics}


def tallies_of(layout: Layout, plan: ShardPlan, configured: Sequence[Configured]) -> RunTallies:
    """Return the tallies of a run; those of a shard that has none, of an earlier version, anew."""
    found = RunTallies(configured)
    for shard in range(plan.shards):
        if layout.tallies(shard).exists():
            found.merge(json.loads(layout.tallies(shard).read_text("utf-8")))
        else:
            for scored in read_scored(layout, shard):
                found.add(scored)
    found.order(plan.models)
    return found

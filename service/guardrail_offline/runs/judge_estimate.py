"""Foretells what a judge would be asked about a lab: calls, tokens and cost. Nobody is asked."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.judge_forms import JudgeBacked
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.judge.judge_client import Judge, tokens_in
from guardrail_offline.judge.judge_tasks import Task, answer_schema
from guardrail_offline.judge.limits import cost_of
from guardrail_offline.judge.results import FINAL, JudgeResult, TokenUsage
from guardrail_offline.runs.shards import by_group
from guardrail_service.text.segmentation.sentences import split_sentences

_REASON = (
    "a reason of some fifteen words, as judges are asked to give before each of their verdicts"
)


@dataclass
class _Estimate:
    calls: int = 0
    remembered: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    most: TokenUsage = field(default_factory=TokenUsage)
    constant: int = 0


class ForetellingJudge:
    """Answers every question with an answer of likely size, and counts what asking would take.

    A question that several evaluators have is counted for the first of them, as it is asked once.

    Args:
        judge: Whose addresses, transcripts and price are used.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self.evaluator = ""
        self.counts: dict[str, _Estimate] = {}

    def ask(
        self,
        task: Task,
        inputs: Mapping[str, Any],
        schema: Mapping[str, Any] | None = None,
        vote: int = 0,
    ) -> JudgeResult:
        """Return what is remembered, or an answer of likely size."""
        key = self._judge.key(task, inputs, vote)
        store = self._judge.store
        known = None if store is None else store.get(key)
        counts = self.counts.setdefault(self.evaluator, _Estimate())
        if known is not None and known.status in FINAL:
            counts.remembered += key not in self._seen
            self._seen.add(key)
            return known
        value = assumed(task, inputs)
        if key not in self._seen:
            self._seen.add(key)
            marked = self._judge.settings.marked
            messages = task.messages(inputs, "0" * 8, marked=marked)
            prompt, said = tokens_in(messages), len(json.dumps(value)) // 3 + 8
            usual = None if store is None else store.usual(task.name)
            counts.calls += 1
            counts.constant += tokens_in(messages[:1])
            counts.usage += TokenUsage(prompt, said if usual is None else round(usual[1]))
            counts.most += TokenUsage(2 * prompt + 3 * task.max_tokens, 3 * task.max_tokens)
        return JudgeResult("ok", value)


def estimate(
    cases: Iterable[tuple[int, Case]], configured: Sequence[Configured], judge: Judge
) -> dict[str, Any]:
    """Return calls, tokens and cost of a run, by evaluator and together.

    Tokens are guessed from the length of what would be sent, statements from sentences, answers by
    what the judge has answered before, where transcripts say it. `most` is what a budget has to
    allow for if every question is asked twice.
    """
    judged = [one for one in configured if isinstance(one.evaluator, JudgeBacked)]
    foretelling = ForetellingJudge(judge)
    models = PackModels({}, judge=foretelling)
    for group in by_group(cases):
        together = [case for _, case in group]
        for place, case in group:
            view = CaseView(case, models, together)
            for one in judged:
                limit, evaluator = one.common.max_dataset_rows, one.evaluator
                foretelling.evaluator = one.id
                if isinstance(evaluator, JudgeBacked) and (limit is None or place < limit):
                    evaluator.ask_ahead(view, one.parameters)
    found = {one.id: foretelling.counts.get(one.id, _Estimate()) for one in judged}
    rows = {name: _row(one, judge) for name, one in found.items()}
    total = Counter[str]()
    for row in rows.values():
        total.update({key: value for key, value in row.items() if value is not None})
    priced = judge.settings.price is not None
    whole = {**total} | ({} if priced else {"cost": None, "most": None})
    return {"judge": judge.settings.as_json(), "evaluators": rows, "total": whole}


def _row(one: _Estimate, judge: Judge) -> dict[str, Any]:
    price = judge.settings.price
    return {
        "calls": one.calls,
        "remembered": one.remembered,
        "prompt_tokens": one.usage.prompt,
        "constant_tokens": one.constant,
        "completion_tokens": one.usage.completion,
        "cost": None if price is None else cost_of(one.usage, price),
        "most": None if price is None else cost_of(one.most, price),
    }


def assumed(task: Task, inputs: Mapping[str, Any]) -> Any:
    """Return an answer to a task of likely length, which its schema allows."""
    value = _value(answer_schema(task.schema, marked=False), inputs)
    if task.check is not None and task.check(inputs, value) is not None:
        value = _value(answer_schema(task.schema, marked=False), {})
    return value


def _value(schema: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][-1]
    kind = schema.get("type")
    if kind == "object":
        return {key: _value(one, inputs) for key, one in schema["properties"].items()}
    if kind == "array":
        items = schema["items"]
        if items.get("type") == "object":
            if "i" not in items["properties"]:
                return [_value(items, inputs)] * 3
            count = next((len(v) for v in inputs.values() if _is_listed(v)), 1)
            return [_value(items, inputs) | {"i": n} for n in range(1, count + 1)]
        return [1] if items.get("type") == "integer" else _sentences(inputs)
    return 1 if kind in ("integer", "number") else _REASON


def _is_listed(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _sentences(inputs: Mapping[str, Any]) -> list[str]:
    """Return the sentences of the texts that are taken apart, 30 at most."""
    texts = [value for key, value in inputs.items() if key != "question"]
    flat = [one for value in texts for one in (value if isinstance(value, list) else [value])]
    found = [s.text for one in flat if isinstance(one, str) for s in split_sentences(one)]
    return found[:30] or [_REASON]

"""LlamaIndex: an evaluator of responses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.evaluation import BaseEvaluator, EvaluationResult

from guardrail_offline.framework_evaluators.one_metric import OneMetric


class GuardrailEvaluator(BaseEvaluator):
    """One of our metrics of a response.

    A metric without a score is an invalid result with its reason, never a number.

    Args:
        evaluator: As for `OneMetric`.
        **options: As for `OneMetric`: `metric`, `threshold`, `pack`, `settings`.
    """

    def __init__(self, evaluator: str, **options: Any) -> None:
        self._metric = OneMetric(evaluator, **options)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None:
        """There are none."""

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        reference: str | None = None,
        **kwargs: Any,
    ) -> EvaluationResult:
        """Return the metric of a response."""
        row = {"question": query, "answer": response, "reference": reference}
        passages = None if contexts is None else list(contexts)
        found = await asyncio.to_thread(self._metric, {**row, "contexts": passages})
        return EvaluationResult(
            query=query,
            contexts=passages,
            response=response,
            passing=found.passes,
            score=found.value,
            invalid_result=found.value is None,
            invalid_reason=found.reason,
        )

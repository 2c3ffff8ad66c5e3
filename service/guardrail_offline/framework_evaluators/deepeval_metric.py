"""DeepEval: a metric of test cases."""

from __future__ import annotations

import asyncio
from typing import Any

from deepeval.metrics import BaseMetric

from guardrail_offline.framework_evaluators.one_metric import MetricJudgement, OneMetric


class NoScore(ValueError):
    """An answer has no score; the message says why. DeepEval counts it as an error of the case."""


class GuardrailMetric(BaseMetric):
    """One of our metrics of a test case: input, actual output, retrieval context, expected output.

    Args:
        evaluator: As for `OneMetric`.
        **options: As for `OneMetric`: `metric`, `threshold`, `pack`, `settings`.
    """

    def __init__(self, evaluator: str, **options: Any) -> None:
        self._metric = OneMetric(evaluator, **options)
        self.threshold = self._metric.threshold

    @property
    def __name__(self) -> str:
        """Return what reports call it."""
        return f"rag-guardrail {self._metric.name}"

    def measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
        """Return the score of a test case.

        Raises:
            NoScore: If there is none.
        """
        return self._kept(self._metric(_row(test_case)))

    async def a_measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
        """Return what `measure` does."""
        return self._kept(await asyncio.to_thread(self._metric, _row(test_case)))

    def is_successful(self) -> bool | None:
        """Return whether the score is on the good side of the threshold; None without one."""
        return False if self.error is not None else self.success

    def _kept(self, found: MetricJudgement) -> float:
        self.score, self.success, self.error = found.value, found.passes, found.reason
        self.reason = found.reason
        if found.value is None:
            raise NoScore(f"{self._metric.name} has no score: {found.reason}")
        return found.value


def _row(case: Any) -> dict[str, Any]:
    passages = case.retrieval_context if case.retrieval_context is not None else case.context
    return {
        "question": case.input,
        "answer": case.actual_output,
        "contexts": passages,
        "reference": case.expected_output,
    }

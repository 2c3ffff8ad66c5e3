"""LangSmith: an evaluator of runs, as a class and as a function; LangChain has no other ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langsmith.evaluation import EvaluationResult, RunEvaluator

from guardrail_offline.framework_evaluators.one_metric import OneMetric


class GuardrailRunEvaluator(RunEvaluator):
    """One of our metrics of a run: its question, answer and documents, and the example's answer.

    A metric without a score has none in the result, and its comment says why.

    Args:
        evaluator: As for `OneMetric`.
        question: Key in the run's inputs.
        answer: Key in the run's outputs.
        contexts: Key in the run's outputs, else in its inputs.
        reference: Key in the example's outputs.
        **options: As for `OneMetric`: `metric`, `threshold`, `pack`, `settings`.
    """

    def __init__(
        self,
        evaluator: str,
        *,
        question: str = "question",
        answer: str = "answer",
        contexts: str = "context",
        reference: str = "answer",
        **options: Any,
    ) -> None:
        self._metric = OneMetric(evaluator, **options)
        self._names = (question, answer, contexts, reference)

    def evaluate_run(
        self, run: Any, example: Any = None, evaluator_run_id: Any = None
    ) -> EvaluationResult:
        """Return the metric of a run."""
        expected = example.outputs if example is not None else None
        return self.judged(run.inputs or {}, run.outputs or {}, expected)

    def judged(
        self,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        reference_outputs: Mapping[str, Any] | None = None,
    ) -> EvaluationResult:
        """Return the metric of what an application made of its inputs."""
        question, answer, contexts, reference = self._names
        expected = reference_outputs or {}
        row = {
            "question": inputs.get(question),
            "answer": outputs.get(answer),
            "contexts": texts(outputs.get(contexts, inputs.get(contexts))),
            "reference": expected.get(reference),
        }
        found = self._metric(row)
        key, value = self._metric.name, found.passes
        return EvaluationResult(key=key, score=found.value, value=value, comment=found.reason)


Judge = Callable[..., EvaluationResult]


def guardrail_evaluator(evaluator: str, **options: Any) -> Judge:
    """Return one of our metrics as a function, for `langsmith.evaluate(evaluators=[...])`.

    Args:
        evaluator: As for `OneMetric`.
        **options: As for `GuardrailRunEvaluator`.
    """
    judge = GuardrailRunEvaluator(evaluator, **options)

    def judged(
        inputs: dict[str, Any],
        outputs: dict[str, Any],
        reference_outputs: dict[str, Any] | None = None,
    ) -> EvaluationResult:
        return judge.judged(inputs, outputs, reference_outputs)

    judged.__name__ = evaluator
    return judged


def texts(documents: Any) -> list[str] | None:
    """Return the texts of documents, which may be texts, objects or their JSON."""
    if documents is None:
        return None
    return [_text(document) for document in documents]


def _text(document: Any) -> str:
    if isinstance(document, str):
        return document
    if isinstance(document, Mapping):
        found = document.get("page_content", document.get("text"))
    else:
        found = getattr(document, "page_content", None)
    if not isinstance(found, str):
        raise TypeError(f"contexts: found {type(document).__name__}, expected a document or a text")
    return found

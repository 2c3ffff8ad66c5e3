"""Checks the texts that an answer must and must not contain."""

from collections.abc import Sequence

from pydantic import ConfigDict, field_validator

from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    Parameters,
    boolean_metrics,
    detector,
)
from guardrail_service.detectors.shared.remedies import KEEP_THE_FORM
from guardrail_service.detectors.text_matching.condition import parse_condition
from guardrail_service.detectors.text_matching.condition_tree import Condition
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Coverage, Outcome, RowOutput, Span


class TextMatchingParameters(Parameters):
    """The condition and what it is asked of.

    Attributes:
        condition: See `condition.py`; None: nothing to judge; empty: always holds.
        evaluate_retrieved_context: Ask the condition of the passages too. An operand occurs in
            them if it occurs in one of them; no passages contain nothing.
    """

    model_config = ConfigDict(hide_input_in_errors=True)

    condition: str | None = None
    evaluate_retrieved_context: bool = False

    @field_validator("condition")
    @classmethod
    def _compiles(cls, condition: str | None) -> str | None:
        if condition is not None:
            parse_condition(condition)
        return condition

    @property
    def compiled(self) -> Condition | None:
        """Return the compiled condition; a repeated text is compiled once per process."""
        return None if self.condition is None else parse_condition(self.condition)


@detector
class TextMatching(Detector[TextMatchingParameters]):
    """Judges the answer, and on request the passages, by a condition from the caller or policy.

    `model_passes` is about the answer. When the passages are asked too and fail,
    `model_retrieval_failures` is 1.0 whether or not the answer passes: what the condition wants was
    not retrieved, or what it forbids was.
    """

    spec = DetectorSpec(
        id="text_matching",
        version="rules/1",
        aliases=("h2o_sonar.evaluators.rag_tokens_presence_evaluator.RagStrStrEvaluator",),
        summary="Does the answer contain what it must, and nothing it must not?",
        metrics=boolean_metrics(parse_failures=True),
        inputs=frozenset({"condition", "answer", "contexts"}),
        needs="condition",
        request_parameters=frozenset({"condition"}),
        default_thresholds={"model_passes": 0.5},
        remedy=KEEP_THE_FORM,
        listing=Listing(
            title="Text matching",
            tags=("rule-based", "nist:valid-reliable", "sr11-7:outcomes-analysis"),
        ),
    )
    parameters = TextMatchingParameters

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: TextMatchingParameters,
    ) -> Outcome:
        """Return whether the condition holds; not applicable without one."""
        condition = parameters.compiled
        if condition is None:
            return Outcome.not_applicable("missing_input")
        failure = condition.failure([sample.answer])
        reads_contexts = parameters.evaluate_retrieved_context
        contexts = [passage.text for passage in sample.sample.contexts]
        spans: tuple[Span, ...] = ()
        if failure is not None:
            attributes = {"failed": failure.operand, "column": failure.column}
            spans = (Span(0, len(sample.answer), "condition_failed", attributes=attributes),)
        return Outcome.boolean(
            failure is None,
            retrieval_failure=reads_contexts and condition.failure(contexts) is not None,
            parse_failure=False,
            spans=spans,
            coverage=Coverage.whole(sample.sample, contexts=reads_contexts),
        )

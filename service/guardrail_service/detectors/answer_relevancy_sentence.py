"""Answer relevancy: does at least one answer sentence come close to the question?"""

from __future__ import annotations

from collections.abc import Sequence

from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    MetricSpec,
    Parameters,
    detector,
)
from guardrail_service.detectors.shared.comparison import (
    ROLE,
    cosines,
    read_chars,
    rows,
    unreadable,
    vectors,
)
from guardrail_service.detectors.shared.remedies import ANSWER_THE_QUESTION
from guardrail_service.text.sample import SegmentedSample, unverifiable
from guardrail_service.types import Coverage, Direction, Outcome, Row, RowOutput, Span


class AnswerRelevancyParameters(Parameters):
    """Answer relevancy has nothing to set."""


@detector
class AnswerRelevancySentence(Detector[AnswerRelevancyParameters]):
    """max over answer sentences of the cosine with the question.

    Source:
        H2O Eval Studio manual 1.1.6, "Answer Relevancy (Sentence Similarity) Evaluator".
    """

    spec = DetectorSpec(
        id="answer_relevancy_sentence",
        aliases=(
            "h2o_sonar.evaluators.rag_answer_relevancy_no_judge_evaluator."
            "RagAnswerRelevancyNoJudgeEvaluator",
        ),
        summary="Does some sentence of the answer address the question?",
        metrics=(MetricSpec("answer_relevancy", Direction.HIGHER, low=-1.0, gating=True),),
        inputs=frozenset({"question", "answer"}),
        roles=frozenset({ROLE}),
        cost="model",
        skip_on_abstention=True,
        remedy=ANSWER_THE_QUESTION,
        listing=Listing(
            title="Answer relevancy (sentence similarity)",
            tags=("semantic-similarity", "nist:valid-reliable"),
        ),
    )
    parameters = AnswerRelevancyParameters

    def encode(
        self, sample: SegmentedSample, parameters: AnswerRelevancyParameters
    ) -> Sequence[Row]:
        """Return the question's rows, then a row per answer window."""
        if not sample.question_windows(ROLE) or unverifiable(sample, ROLE, "answer", "question"):
            return ()
        return rows([*sample.question_windows(ROLE), *sample.answer_windows(ROLE)])

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: AnswerRelevancyParameters,
    ) -> Outcome:
        """Return the best cosine between the question and an answer sentence."""
        question, answer = sample.question_windows(ROLE), sample.answer_windows(ROLE)
        if not question:
            return Outcome.not_applicable("missing_input")
        if (reason := unverifiable(sample, ROLE, "answer", "question")) is not None:
            return Outcome.unverified(reason)
        coverage = Coverage(read_chars(len(sample.answer), answer))
        if unreadable(question) or unreadable(answer):
            return Outcome.unverified("unreadable_text", coverage)
        unit = vectors(outputs)
        score = float(cosines(unit[: len(question)], unit[len(question) :]).max())
        span = Span(0, len(sample.answer), "off_topic", score, "answer_relevancy")
        return Outcome.evaluated({"answer_relevancy": score}, (span,), coverage)

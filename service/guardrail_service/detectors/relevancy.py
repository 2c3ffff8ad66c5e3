"""Relevancy: do the answer, its language and each passage fit the question?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import StringConstraints

from guardrail_service.detectors.groundedness import (
    ROLE,
    Array,
    cosines,
    nothing_to_judge,
    read_chars,
    rows,
    unreadable,
    vectors,
)
from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    MetricSpec,
    Parameters,
    boolean_metrics,
    detector,
)
from guardrail_service.detectors.shared.remedies import ANSWER_THE_QUESTION, KEEP_THE_FORM
from guardrail_service.errors import NotScorable
from guardrail_service.text.language import same_language
from guardrail_service.text.sample import SegmentedSample, Window, unverifiable
from guardrail_service.types import Coverage, Direction, Outcome, Row, RowOutput, Span


class _Compared(NamedTuple):
    """The question's windows, and those of each text that is compared with it."""

    question: tuple[Window, ...]
    texts: tuple[tuple[Window, ...], ...]

    @property
    def windows(self) -> Iterator[Window]:
        """All of them, the question's first."""
        return chain(self.question, *self.texts)


def _with_answer(sample: SegmentedSample) -> _Compared | Outcome:
    """Return what is compared for the answer's relevancy, or what is said where nothing can be."""
    return sample.once("answer relevancy", lambda: _compare(sample, "answer"))


def _with_passages(sample: SegmentedSample) -> _Compared | Outcome:
    """Return the same for the passages; those without a sentence are left out."""
    return sample.once("context relevancy", lambda: _compare(sample, "contexts"))


def _compare(sample: SegmentedSample, part: Literal["answer", "contexts"]) -> _Compared | Outcome:
    settled = nothing_to_judge(sample) if part == "answer" else None
    question = sample.question_windows(ROLE)
    if not question:
        return Outcome.not_applicable("missing_input")
    if settled is not None:
        return settled
    if (reason := unverifiable(sample, ROLE, "question", part)) is not None:
        return Outcome.unverified(reason)
    if part == "answer":
        return _Compared(question, (sample.answer_windows(ROLE),))
    return _Compared(question, tuple(filter(None, sample.context_windows(ROLE))))


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
        compared = _with_answer(sample)
        return () if isinstance(compared, Outcome) else rows(compared.windows)

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: AnswerRelevancyParameters,
    ) -> Outcome:
        """Return the best cosine between the question and an answer sentence."""
        compared = _with_answer(sample)
        if isinstance(compared, Outcome):
            return compared
        question, (answer,) = compared
        coverage = Coverage(read_chars(len(sample.answer), answer))
        if unreadable(question) or unreadable(answer):
            return Outcome.unverified("unreadable_text", coverage)
        unit = vectors(outputs)
        score = float(cosines(unit[: len(question)], unit[len(question) :]).max())
        span = Span(0, len(sample.answer), "off_topic", score, "answer_relevancy")
        return Outcome.evaluated({"answer_relevancy": score}, (span,), coverage)


class ContextRelevancySoftParameters(Parameters):
    """Soft context relevancy has nothing to set."""


def chunk_relevancy(chunks: Sequence[Array]) -> tuple[float, float]:
    """Return recall and precision relevancy of passages.

    Args:
        chunks: Per passage the cosines of its sentences with the question; empty passages count
            as nothing retrieved and must be left out.

    Returns:
        Largest and mean over passages of the best sentence's cosine, each in [-1, 1].

    Raises:
        NotScorable: If there is no passage.

    Source:
        H2O Eval Studio manual 1.1.6, "Context Relevancy Evaluator (Soft Recall and Precision)".
    """
    if not chunks:
        raise NotScorable("no passage")
    best = [float(chunk.max()) for chunk in chunks]
    return max(best), float(np.mean(best))


@detector
class ContextRelevancySoft(Detector[ContextRelevancySoftParameters]):
    """Largest and mean best-sentence cosine of the passages with the question."""

    spec = DetectorSpec(
        id="context_relevancy_soft",
        aliases=(
            "h2o_sonar.evaluators.rag_chunk_relevancy_evaluator.ContextChunkRelevancyEvaluator",
        ),
        summary="Did retrieval find passages about the question?",
        metrics=(
            MetricSpec("recall_relevancy", Direction.HIGHER, low=-1.0, gating=True),
            MetricSpec("precision_relevancy", Direction.HIGHER, low=-1.0, gating=True),
        ),
        inputs=frozenset({"question", "contexts"}),
        roles=frozenset({ROLE}),
        cost="model",
        remedy=ANSWER_THE_QUESTION,
        listing=Listing(
            title="Context relevancy (soft recall and precision)",
            tags=("semantic-similarity", "nist:valid-reliable"),
            problem="retrieval",
        ),
    )
    parameters = ContextRelevancySoftParameters

    def encode(
        self, sample: SegmentedSample, parameters: ContextRelevancySoftParameters
    ) -> Sequence[Row]:
        """Return the question's rows, then a row per passage window."""
        compared = _with_passages(sample)
        return () if isinstance(compared, Outcome) else rows(compared.windows)

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: ContextRelevancySoftParameters,
    ) -> Outcome:
        """Return both scores; passages without a sentence are left out."""
        compared = _with_passages(sample)
        if isinstance(compared, Outcome):
            return compared
        question, chunks = compared
        windows = [window for chunk in chunks for window in chunk]
        total = sum(len(passage.text) for passage in sample.sample.contexts)
        coverage = Coverage((0, len(sample.answer)), read_chars(total, windows))
        if unreadable(question) or unreadable(windows):
            return Outcome.unverified("unreadable_text", coverage)
        unit = vectors(outputs)
        similarity = cosines(unit[: len(question)], unit[len(question) :]).max(axis=0)
        ends = np.cumsum([len(chunk) for chunk in chunks])[:-1]
        recall, precision = chunk_relevancy(np.split(similarity, ends))
        scores = {"recall_relevancy": recall, "precision_relevancy": precision}
        return Outcome.evaluated(scores, coverage=coverage)


LanguageCode = Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")]


class LanguageMismatchParameters(Parameters):
    """The languages that are always right, whatever language the question is in.

    Attributes:
        allowed_languages: ISO 639-1 codes an answer may always be in, whatever the question is in;
            for a product that answers in one language, or questions that ask for a translation.
    """

    allowed_languages: tuple[LanguageCode, ...] = ()


@detector
class LanguageMismatch(Detector[LanguageMismatchParameters]):
    """Compares the language of the answer, taken as a whole, with the question's.

    The whole answer decides, so a foreign title or quotation inside it is no mismatch. A text too
    short or too mixed to tell is not judged.
    """

    spec = DetectorSpec(
        id="language_mismatch",
        version="rules/1",
        aliases=(
            "h2o_sonar.evaluators.language_mismatch_byop_evaluator.LanguageMismatchByopEvaluator",
        ),
        summary="Is the answer in the language of the question?",
        metrics=boolean_metrics(parse_failures=True),
        inputs=frozenset({"question", "answer"}),
        default_thresholds={"model_passes": 0.5},
        remedy=KEEP_THE_FORM,
        listing=Listing(
            title="Language mismatch",
            tags=("rule-based", "nist:valid-reliable"),
            original="J",
            surrogate="statistical language identification in place of a judge",
        ),
    )
    parameters = LanguageMismatchParameters

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: LanguageMismatchParameters,
    ) -> Outcome:
        """Return whether the languages agree; not applicable where one cannot be told."""
        if not (sample.sample.question or "").strip():
            return Outcome.not_applicable("missing_input")
        answer, question = sample.language("answer"), sample.language("question")
        if answer is None or question is None:
            return Outcome.not_applicable("language_undetermined")
        passes: bool | None = answer.code in {question.code, *parameters.allowed_languages}
        if not passes:  # close languages count as one, and a difference needs surer readings
            passes = same_language(sample.sample.question or "", sample.answer)
        if passes is None:
            return Outcome.not_applicable("language_undetermined")
        codes = {"question": question.code, "answer": answer.code}
        span = Span(0, len(sample.answer), "language_mismatch", attributes=codes)
        return Outcome.boolean(
            passes,
            parse_failure=False,
            spans=() if passes else (span,),
            coverage=Coverage.whole(sample.sample),
        )

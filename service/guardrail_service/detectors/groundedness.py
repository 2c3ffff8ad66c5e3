"""Groundedness: is the least supported answer sentence still close to some passage sentence?"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

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
    Array,
    PassageWindow,
    claims,
    cosines,
    nothing_to_judge,
    places,
    read_chars,
    read_with_question,
    rows,
    unreadable,
    vectors,
)
from guardrail_service.detectors.shared.remedies import STAY_WITH_PASSAGES
from guardrail_service.errors import NotScorable
from guardrail_service.text.sample import SegmentedSample, Window, unverifiable
from guardrail_service.text.segmentation.sentences import Sentence
from guardrail_service.types import Coverage, Direction, Evidence, Outcome, Row, RowOutput, Span

H2O_MIN_CHARS = 11
"""H2O's code drops sentences of at most 10 characters."""


class GroundednessParameters(Parameters):
    """The way groundedness cuts the answer into claims."""

    h2o_compatible: bool = Field(
        False,
        description="Judge plain sentences, and drop those of at most 10 characters, as H2O's "
        "code does.",
    )


def support(similarity: Array) -> float:
    """Return how well the least supported answer sentence is covered by the passages.

    Args:
        similarity: Cosines of answer sentences with passage sentences. Shape (n_answer, n_context).

    Returns:
        min over answer of max over context, in [-1, 1]. Higher is better.

    Raises:
        NotScorable: If either has no rows.

    Source:
        H2O Eval Studio manual 1.1.6, "Groundedness Evaluator".
    """
    if similarity.size == 0:
        raise NotScorable("no answer sentence or no passage sentence")
    return float(similarity.max(axis=1).min())


@detector
class Groundedness(Detector[GroundednessParameters]):
    """Embeds claims and passage sentences; one span per claim."""

    spec = DetectorSpec(
        id="groundedness",
        aliases=("h2o_sonar.evaluators.rag_groundedness_evaluator.RagGroundednessEvaluator",),
        summary="Is every answer sentence close in meaning to some passage sentence?",
        metrics=(MetricSpec("groundedness", Direction.HIGHER, low=-1.0, gating=True),),
        inputs=frozenset({"answer", "contexts"}),
        roles=frozenset({ROLE}),
        cost="model",
        skip_on_abstention=True,
        in_flight="parts",
        remedy=STAY_WITH_PASSAGES,
        listing=Listing(
            title="Groundedness",
            tags=("semantic-similarity", "nist:valid-reliable"),
            avid="E0400",
            surrogate="claims of at least 50 characters, a short lone one with its question, in "
            "place of plain sentences; `h2o_compatible` follows the manual",
        ),
    )
    parameters = GroundednessParameters

    def encode(self, sample: SegmentedSample, parameters: GroundednessParameters) -> Sequence[Row]:
        """Return a row per claim window, then a row per passage window."""
        if _settled(sample, parameters) or unverifiable(sample, ROLE, "answer", "contexts"):
            return ()
        pieces = _claims(sample, parameters)
        answer = rows(sample.windows_of(ROLE, pieces))
        if len(answer) == 1 and not parameters.h2o_compatible:
            whole = read_with_question(sample, pieces, ROLE)
            answer = [Row(ROLE, whole)] if whole else answer
        return [*answer, *rows(place.window for place in places(sample))]

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: GroundednessParameters,
    ) -> Outcome:
        """Return the score, with every claim as a span and its best passage window."""
        if (settled := _settled(sample, parameters)) is not None:
            return settled
        if (reason := unverifiable(sample, ROLE, "answer", "contexts")) is not None:
            return Outcome.unverified(reason)
        answer = sample.windows_of(ROLE, _claims(sample, parameters))
        found = places(sample)
        passages = [place.window for place in found]
        coverage = _coverage(sample, answer, passages, parameters)
        if not answer:
            return Outcome.not_applicable("no_claim")
        if unreadable(answer) or unreadable(passages):
            return Outcome.unverified("unreadable_text", coverage)
        unit = vectors(outputs)
        similarity = cosines(unit[: len(answer)], unit[len(answer) :])
        spans = _spans(answer, found, similarity)
        return Outcome.evaluated({"groundedness": support(similarity)}, spans, coverage)


def _settled(sample: SegmentedSample, parameters: GroundednessParameters) -> Outcome | None:
    return None if parameters.h2o_compatible else nothing_to_judge(sample)


def _claims(sample: SegmentedSample, parameters: GroundednessParameters) -> tuple[Sentence, ...]:
    if parameters.h2o_compatible:
        return tuple(s for s in sample.raw_answer_sentences if not _is_short(s))
    return claims(sample)


def _is_short(sentence: Sentence) -> bool:
    return len(sentence.text) < H2O_MIN_CHARS


def _coverage(
    sample: SegmentedSample,
    answer: Sequence[Window],
    passages: Sequence[Window],
    parameters: GroundednessParameters,
) -> Coverage:
    """Return what was read; sentences dropped by `h2o_compatible` do not count as read."""
    read, total = read_chars(len(sample.answer), answer)
    if parameters.h2o_compatible:
        read -= sum(len(s.text) for s in sample.raw_answer_sentences if _is_short(s))
    context_chars = sum(len(passage.text) for passage in sample.sample.contexts)
    return Coverage((read, total), read_chars(context_chars, passages))


def _spans(
    answer: Sequence[Window], found: Sequence[PassageWindow], similarity: Array
) -> tuple[Span, ...]:
    best = similarity.argmax(axis=1)
    spans = []
    for window, row, column in zip(answer, similarity, best, strict=True):
        context, passage = found[column]
        score = float(row[column])
        evidence = (Evidence(context, passage.start, passage.end, score),)
        spans.append(
            Span(
                window.start,
                window.end,
                "supported",
                score,
                "groundedness",
                evidence,
                crossed="not_mentioned",
            )
        )
    return tuple(spans)

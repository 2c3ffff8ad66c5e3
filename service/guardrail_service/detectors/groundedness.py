"""Groundedness: is the least supported answer sentence still close to some passage sentence?

It compares the answer's claims with the passages' windows; other detectors read the same claims.
It is the worst claim's support, so one claim that claims nothing decides it. On the half
of `models/thresholds/answers.jsonl` that chooses thresholds, the area under the ROC curve
(invented, unsupported and off-topic answers against good ones) was .73 for plain sentences and .86
for these claims; docs/decisions/0004-claims-for-groundedness.md has each step's part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from guardrail_service.detectors.no_answer.detector import claiming
from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    MetricSpec,
    Parameters,
    detector,
)
from guardrail_service.detectors.shared.remedies import STAY_WITH_PASSAGES
from guardrail_service.errors import NotScorable
from guardrail_service.text.language import has_words
from guardrail_service.text.sample import SegmentedSample, Window, unverifiable
from guardrail_service.text.segmentation.sentences import Sentence, merge_short
from guardrail_service.types import (
    Coverage,
    Direction,
    Evidence,
    Outcome,
    Role,
    Row,
    RowOutput,
    Span,
)

CLAIMS_VERSION = "rag-guardrail-claims/4"
"""Part of the evidence fingerprint: whoever changes a rule here changes scores and thresholds."""

MIN_CLAIM_CHARS = 50
"""Shorter pieces join a neighbour: ROC area .79, .80 and .82 at 25, 25 with lists and 40."""
MAX_QUESTION_CHARS = 150
"""Longer questions would drown a short answer."""
_LEAD_IN_EDGES = "*_ \t`"


def claims(sample: SegmentedSample, min_chars: int = MIN_CLAIM_CHARS) -> tuple[Sentence, ...]:
    """Return the answer's claims, in order; offsets are those of the answer.

    Left out are courtesy and sentences that only say what the sources lack. A lead-in that ends in
    a colon belongs to what it leads in, and a short piece to its neighbour.
    """
    return merge_short(_claiming(sample), sample.answer, min_chars)


def nothing_to_judge(sample: SegmentedSample) -> Outcome | None:
    """Return what is said of an answer without words or without claims, or None for any other.

    Passages support no emoji. Courtesy and sentences about what the sources lack need neither
    passages nor a language that a model reads.
    """
    return sample.once("nothing to judge", lambda: _nothing_to_judge(sample))


def _nothing_to_judge(sample: SegmentedSample) -> Outcome | None:
    if sample.answer.strip() and not has_words(sample.answer):
        return Outcome.unverified("unreadable_text")
    if not _claiming(sample):
        return Outcome.not_applicable("no_claim")
    return None


def read_with_question(
    sample: SegmentedSample, pieces: tuple[Sentence, ...], role: Role
) -> str | None:
    """Return a short answer together with its question, or None if it stands on its own.

    "14 days." says little without "How long may guests stay?".
    """
    question = (sample.sample.question or "").strip()
    if len(pieces) != 1 or not question or len(question) > MAX_QUESTION_CHARS:
        return None
    if len(pieces[0].text) > MIN_CLAIM_CHARS:
        return None
    whole = f"{question} {pieces[0].text}"
    fits = len(sample.windows_of(role, (Sentence(0, len(whole), whole),))) == 1
    return whole if fits else None


def _claiming(sample: SegmentedSample) -> tuple[Sentence, ...]:
    """Return the sentences that claim something, each with what leads it in."""
    return sample.once("claims", lambda: tuple(_led_in(sample)))


def _led_in(sample: SegmentedSample) -> Iterable[Sentence]:
    source = sample.answer
    start: int | None = None
    last: Sentence | None = None
    for sentence in claiming(sample.raw_answer_sentences, sample.sample.question):
        start = sentence.start if start is None else start
        last = sentence
        if not sentence.text.rstrip(_LEAD_IN_EDGES).endswith((":", "：")):  # noqa: RUF001
            yield Sentence(start, sentence.end, source[start : sentence.end])
            start = None
    if start is not None and last is not None:
        yield Sentence(start, last.end, source[start : last.end])


Array = npt.NDArray[np.float64]
ROLE: Final = "embedding"


def rows(windows: Iterable[Window]) -> list[Row]:
    """Return one embedding row per window."""
    return [Row(ROLE, window.text) for window in windows]


def vectors(outputs: Sequence[RowOutput]) -> Array:
    """Return the sentence embeddings of some rows, unit length in double precision.

    Args:
        outputs: Model outputs with a `sentence_embedding` of shape (dim,).

    Returns:
        Shape (n, dim).

    Raises:
        NotScorable: If there is no row, or an embedding has no length.
    """
    if not outputs:
        raise NotScorable("no sentence to embed")
    stacked = np.stack([out["sentence_embedding"] for out in outputs]).astype(np.float64)
    lengths = np.linalg.norm(stacked, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise NotScorable("a sentence embedding has no length")
    unit: Array = stacked / lengths
    return unit


def cosines(left: Array, right: Array) -> Array:
    """Return all pairwise cosines of unit vectors, in [-1, 1].

    Summed pair by pair, not by matrix product: a pair's cosine must not depend on how many other
    pairs there are. The clip only takes off what rounding adds beyond 1.

    Args:
        left: Shape (n, dim).
        right: Shape (m, dim).

    Returns:
        Shape (n, m).
    """
    products: Array = np.einsum("ik,jk->ij", left, right, optimize=False)
    return np.clip(products, -1.0, 1.0)


def read_chars(total: int, windows: Iterable[Window]) -> tuple[int, int]:
    """Return how many of a text's code points the model could read, and how many there are."""
    return total - sum(window.unread for window in windows), total


class PassageWindow(NamedTuple):
    """One passage window and the index of its passage."""

    context: int
    window: Window


def places(sample: SegmentedSample) -> list[PassageWindow]:
    """Return the windows of all passages, in order."""
    return [
        PassageWindow(index, window)
        for index, passage in enumerate(sample.context_windows(ROLE))
        for window in passage
    ]


def unreadable(windows: Sequence[Any]) -> bool:
    """Return whether the model can read nothing at all of these windows."""
    return all(w.unread >= len(w.text.strip()) for w in windows)


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
        compared = _compared(sample, parameters)
        if isinstance(compared, Outcome):
            return ()
        answer = rows(compared.answer)
        if len(answer) == 1 and not parameters.h2o_compatible:
            whole = read_with_question(sample, compared.claims, ROLE)
            answer = [Row(ROLE, whole)] if whole else answer
        return [*answer, *rows(place.window for place in compared.found)]

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: GroundednessParameters,
    ) -> Outcome:
        """Return the score, with every claim as a span and its best passage window."""
        compared = _compared(sample, parameters)
        if isinstance(compared, Outcome):
            return compared
        _, answer, found = compared
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


class _Compared(NamedTuple):
    """The claims, their windows, and those of the passages."""

    claims: tuple[Sentence, ...]
    answer: tuple[Window, ...]
    found: list[PassageWindow]


def _compared(sample: SegmentedSample, parameters: GroundednessParameters) -> _Compared | Outcome:
    """Return what is compared, or what is said where nothing can be."""
    return sample.once(("groundedness", parameters), lambda: _compare(sample, parameters))


def _compare(sample: SegmentedSample, parameters: GroundednessParameters) -> _Compared | Outcome:
    settled = None if parameters.h2o_compatible else nothing_to_judge(sample)
    if settled is not None:
        return settled
    if (reason := unverifiable(sample, ROLE, "answer", "contexts")) is not None:
        return Outcome.unverified(reason)
    pieces = _claims(sample, parameters)
    return _Compared(pieces, sample.windows_of(ROLE, pieces), places(sample))


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

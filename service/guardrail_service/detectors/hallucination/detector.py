"""Hallucination: is every claim of the answer supported by the passages?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from guardrail_service.detectors import groundedness
from guardrail_service.detectors.groundedness import (
    PassageWindow,
    nothing_to_judge,
    places,
    read_chars,
    unreadable,
)
from guardrail_service.detectors.hallucination import verbatim
from guardrail_service.detectors.hallucination.reading import (
    AnswerClaims,
    ReadText,
    Unsaid,
    claims_of,
    read_texts,
)
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
from guardrail_service.text.sample import SegmentedSample, Window, unverifiable
from guardrail_service.types import Coverage, Direction, Evidence, Outcome, Row, RowOutput, Span

ROLE: Final = "grounding"
OUTPUTS = ("probabilities", "places", "cosines")
SUPPORTED = "supported"
AGAINST = ("contradicted", "not_mentioned")
FOUND_BY = "found_by"
"""Attribute of a span: `model`, or `verbatim` where a passage says the claim word by word."""


UNSAID_WEIGHT, MOST_UNSAID = 0.4, 3
"""What each word lowers a claim by that neither passages nor question have, on the logit, and how
many count. On development rows of 24 written sources the macro ROC area gains .008; at 4 % of good
answers 193 of 709 bad ones are found instead of 175. The model is unsure of remarks that claim
little ("It makes sense to do both"), which have hardly such words."""
ALL_UNSAID_WEIGHT, LEAST_UNSAID = 0.5, 2
"""What a claim is lowered by besides if nobody has said any of its words, and it has so many. A
model that accepts free wording is not sure of what the passages do not speak of at all ("They also
get a company car"); of the good answers to the same rows 53 of 2,917 have such a sentence."""


class Reading(NamedTuple):
    """One window of a claim: what the model reads, or where a passage says it word by word."""

    window: Window
    read: ReadText
    copy: verbatim.Copy | None


class HallucinationParameters(Parameters):
    """Hallucination has nothing to set."""


@detector
class Hallucination(Detector[HallucinationParameters]):
    """Reads each claim against the passage sentences nearest to it; one span per claim.

    A claim that a passage says word by word (`verbatim.py`) is supported without being read.
    """

    spec = DetectorSpec(
        id="hallucination",
        aliases=(
            "h2o_sonar.evaluators.rag_hallucination_evaluator.RagHallucinationEvaluator",
            "open_rag_eval:hhem",
        ),
        summary="Is every claim supported by the passages? (grounding model)",
        metrics=(MetricSpec("hallucination", Direction.HIGHER, gating=True),),
        inputs=frozenset({"answer", "contexts"}),
        roles=frozenset({ROLE, groundedness.ROLE}),
        cost="model",
        skip_on_abstention=True,
        in_flight="parts",
        remedy=STAY_WITH_PASSAGES,
        listing=Listing(
            title="Hallucination",
            tags=("nli", "nist:valid-reliable"),
            avid="E0400",
            original="N",
            surrogate="the pack's grounding model in place of HHEM",
        ),
    )
    parameters = HallucinationParameters

    def encode(self, sample: SegmentedSample, parameters: HallucinationParameters) -> Sequence[Row]:
        """Return a grounding row per claim to read, after the rows of the texts these read.

        The latter are the encoder's: they run side by side, and what groundedness asks for too
        runs once. Claims that need no model have no row.
        """
        compared = _compared(sample)
        if isinstance(compared, Outcome):
            return ()
        texts = [reading.read.text for reading in compared.readings if reading.copy is None]
        passages = [place.window for place in compared.places]
        if not texts or unreadable(passages):
            return ()
        evidence = _distinct_texts(passages)
        encoded = [Row(groundedness.ROLE, text) for text in (*texts, *evidence)]
        return [*encoded, *(Row(ROLE, t, outputs=OUTPUTS, evidence=evidence) for t in texts)]

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: HallucinationParameters,
    ) -> Outcome:
        """Return the least supported claim's P(supported), with every claim as a span."""
        compared = _compared(sample)
        if isinstance(compared, Outcome):
            return compared
        windows = [reading.window for reading in compared.readings]
        passages = [place.window for place in compared.places]
        chars = sum(len(passage.text) for passage in sample.sample.contexts)
        code = compared.code
        left_out = code + sum(reading.read.opaque for reading in compared.readings)
        read, total = read_chars(len(sample.answer), windows)
        coverage = Coverage((max(0, read - left_out), total), read_chars(chars, passages))
        if not windows:
            if code:
                return Outcome.unverified("unsupported_language", coverage)
            return Outcome.not_applicable("no_claim")
        if unreadable(windows) or unreadable(passages):
            return Outcome.unverified("unreadable_text", coverage)
        spans = _spans(compared.readings, outputs, compared.places)
        return Outcome.evaluated({"hallucination": worst(spans)}, spans, coverage)


def worst(spans: Sequence[Span]) -> float:
    """Return the least supported claim's score.

    Raises:
        NotScorable: If there is no claim.
    """
    scores = [span.score for span in spans if span.score is not None]
    if not scores:
        raise NotScorable("no claim")
    return min(scores)


class _Compared(NamedTuple):
    """The claims as the model reads them, the passages' windows, and code points of mere code."""

    readings: tuple[Reading, ...]
    places: list[PassageWindow]
    code: int


def _compared(sample: SegmentedSample) -> _Compared | Outcome:
    """Return what is compared, or what is said where nothing can be."""
    return sample.once("hallucination", lambda: _compare(sample))


def _compare(sample: SegmentedSample) -> _Compared | Outcome:
    if (settled := nothing_to_judge(sample)) is not None:
        return settled
    if (reason := unverifiable(sample, ROLE, "answer", "contexts")) is not None:
        return Outcome.unverified(reason)
    claimed = claims_of(sample)
    return _Compared(readings(sample, claimed), places(sample), claimed.layout.unread)


def readings(sample: SegmentedSample, claimed: AnswerClaims) -> tuple[Reading, ...]:
    """Return the windows of the answer's claims, in order."""
    pieces = claimed.judged
    copied = verbatim.copies(sample, pieces, groundedness.ROLE)
    by_start = {piece.start: copy for piece, copy in zip(pieces, copied, strict=True)}
    windows = sample.windows_of(groundedness.ROLE, pieces)
    copies: list[verbatim.Copy | None] = []
    for window in windows:  # the first window of a claim begins with it
        copies.append(by_start.get(window.start, copies[-1] if copies else None))
    return tuple(map(Reading, windows, read_texts(sample, claimed, windows), copies))


def _distinct_texts(windows: Sequence[Window]) -> tuple[str, ...]:
    """Return the texts of passage windows in order: one retrieved twice is one evidence."""
    return tuple(dict.fromkeys(window.text for window in windows))


def _spans(
    read: Sequence[Reading], outputs: Sequence[RowOutput], places: Sequence[PassageWindow]
) -> tuple[Span, ...]:
    """Return a span per window; the last outputs are those of the windows that were read."""
    first: dict[str, PassageWindow] = {}
    for place in places:
        first.setdefault(place.window.text, place)
    distinct = list(first.values())
    asked = sum(reading.copy is None for reading in read)
    found = iter(outputs[len(outputs) - asked :])
    return tuple(
        _span(reading, next(found), distinct)
        if reading.copy is None
        else _settled(reading.window, reading.copy)
        for reading in read
    )


def lowered(supported: float, unsaid: Unsaid) -> float:
    """Return P(supported) of a claim with words that nobody has said, in [0, 1].

    The model's logit less `UNSAID_WEIGHT` for each of them, `MOST_UNSAID` at most, and less
    `ALL_UNSAID_WEIGHT` if these are all of its words.
    """
    less = UNSAID_WEIGHT * min(unsaid.words, MOST_UNSAID)
    if unsaid.words == unsaid.of >= LEAST_UNSAID:
        less += ALL_UNSAID_WEIGHT
    return supported / (supported + (1 - supported) * math.exp(less))


def _settled(window: Window, copy: verbatim.Copy) -> Span:
    shown = Evidence(*copy, verbatim.SUPPORT)
    how = {FOUND_BY: "verbatim"}
    at = (window.start, window.end)
    return Span(*at, SUPPORTED, verbatim.SUPPORT, "hallucination", (shown,), attributes=how)


def _span(reading: Reading, output: RowOutput, places: Sequence[PassageWindow]) -> Span:
    window = reading.window
    supported, *against = (float(p) for p in output["probabilities"])
    supported = lowered(supported, reading.read.unsaid)
    why = AGAINST[int(np.argmax(against))]
    best = places[int(output["places"][0])]
    shown = Evidence(best.context, best.window.start, best.window.end, supported)
    how = {FOUND_BY: "model"}
    at = (window.start, window.end)
    return Span(*at, SUPPORTED, supported, "hallucination", (shown,), attributes=how, crossed=why)

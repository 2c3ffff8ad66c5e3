"""Exact facts: does a passage say another number, date, unit or order than the answer?"""

from __future__ import annotations

from collections.abc import Sequence

from guardrail_service.detectors.facts.judge import (
    NOT_MENTIONED,
    SUPPORTED,
    FactVerdict,
    verdicts,
)
from guardrail_service.detectors.hallucination.reading import claims_of
from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    MetricSpec,
    Parameters,
    detector,
)
from guardrail_service.detectors.shared.remedies import STAY_WITH_PASSAGES
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Coverage, Direction, Evidence, Outcome, RowOutput, Span


class FactsParameters(Parameters):
    """Facts have nothing to set; where they gate is a threshold."""


@detector
class Facts(Detector[FactsParameters]):
    """Compares what the answer states exactly with the passages; one span per fact."""

    spec = DetectorSpec(
        id="facts",
        version="rules/1",
        summary="Do the passages hold other numbers, dates or units than the answer? (rules)",
        metrics=(MetricSpec("facts", Direction.HIGHER, gating=True),),
        inputs=frozenset({"answer", "contexts"}),
        cost="pattern",
        default_thresholds={"facts": 0.5},
        skip_on_abstention=True,
        in_flight="parts",
        remedy=STAY_WITH_PASSAGES,
        listing=Listing(
            title="Exact facts", tags=("rule-based", "nist:valid-reliable"), avid="E0400"
        ),
    )
    parameters = FactsParameters

    def reduce(
        self, sample: SegmentedSample, outputs: Sequence[RowOutput], parameters: FactsParameters
    ) -> Outcome:
        """Return the worst fact's score, with every fact as a span."""
        pieces = claims_of(sample).stated
        if not pieces:
            return Outcome.not_applicable("no_claim")
        if not any(sample.context_sentences):
            return Outcome.unverified("missing_input")
        found = verdicts(sample, pieces)
        coverage = Coverage.whole(sample.sample, contexts=True)
        score = min((verdict.score for verdict in found), default=1.0)
        return Outcome.evaluated({"facts": score}, tuple(map(_span, found)), coverage)


def _span(verdict: FactVerdict) -> Span:
    place = verdict.place
    shown = () if place is None else (Evidence(*place, verdict.score),)
    about: dict[str, str] = {"kind": verdict.kind}
    if verdict.derivation:
        about["derivation"] = verdict.derivation
    against = NOT_MENTIONED if verdict.label == SUPPORTED else verdict.label
    return Span(
        verdict.start, verdict.end, verdict.label, verdict.score, "facts", shown,
        attributes=about, crossed=against,
    )  # fmt: skip

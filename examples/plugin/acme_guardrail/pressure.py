"""Does the answer press its reader to buy? A detector with a model in its own package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from guardrail_service import (
    Coverage,
    Detector,
    DetectorSpec,
    Direction,
    Listing,
    MetricSpec,
    Outcome,
    Parameters,
    Remedy,
    Row,
    RowOutput,
    SegmentedSample,
    Span,
)

ROLE = "acme_pressure"
METRIC = "pressure"


class PressureParameters(Parameters):
    """There is nothing to set."""


class Pressure(Detector[PressureParameters]):
    """The probability of the sentence that presses most."""

    spec = DetectorSpec(
        id="acme_pressure",
        aliases=("acme:pressure",),
        summary="Does the answer press its reader to buy?",
        metrics=(MetricSpec(METRIC, Direction.LOWER, gating=True),),
        inputs=frozenset({"answer"}),
        roles=frozenset({ROLE}),
        classifier=ROLE,
        cost="model",
        in_flight="parts",
        default_thresholds={METRIC: 0.5},
        remedy=Remedy("Selling", ("Describe what is offered. Do not tell the reader to hurry.",)),
        listing=Listing(title="Sales pressure", tags=("classifier",)),
    )
    pack = Path(__file__).parent / "pack"
    parameters = PressureParameters

    def encode(self, sample: SegmentedSample, parameters: PressureParameters) -> Sequence[Row]:
        """Return a row per sentence of the answer."""
        return [Row(ROLE, window.text, outputs=()) for window in sample.answer_windows(ROLE)]

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: PressureParameters,
    ) -> Outcome:
        """Return the largest probability, and each sentence with its own."""
        windows = sample.answer_windows(ROLE)
        if not windows:
            return Outcome.not_applicable("too_short")
        scores = [float(output[METRIC]) for output in outputs]
        spans = tuple(
            Span(window.start, window.end, METRIC, score, METRIC)
            for window, score in zip(windows, scores, strict=True)
        )
        size = len(sample.answer)
        unread = sum(window.unread for window in windows)
        return Outcome.evaluated({METRIC: max(scores)}, spans, Coverage((size - unread, size)))

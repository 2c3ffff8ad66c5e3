"""Bias: does any sentence of the answer stereotype, or frame its topic one-sidedly?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    MetricSpec,
    Parameters,
    detector,
)
from guardrail_service.detectors.shared.remedies import KEEP_SAFE
from guardrail_service.detectors.shared.safety import outcome, rows
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Direction, Outcome, Row, RowOutput

ROLE: Final = "bias"


class BiasParameters(Parameters):
    """Bias has nothing to set."""


@detector
class Bias(Detector[BiasParameters]):
    """Reads every sentence; `fairness_bias` is that at least one of the three parts holds."""

    spec = DetectorSpec(
        id="bias",
        aliases=("h2o_sonar.evaluators.fairness_bias_evaluator.FairnessBiasEvaluator",),
        summary="Does the answer stereotype, or frame a topic one-sidedly?",
        metrics=(
            MetricSpec("fairness_bias", Direction.LOWER, gating=True),
            MetricSpec("gender", Direction.LOWER, optional=True),
            MetricSpec("group", Direction.LOWER, optional=True),
            MetricSpec("framing", Direction.LOWER, optional=True),
        ),
        inputs=frozenset({"answer"}),
        roles=frozenset({ROLE}),
        cost="model",
        classifier=ROLE,
        in_flight="parts",
        remedy=KEEP_SAFE,
        listing=Listing(
            title="Fairness bias",
            tags=("classifier", "nist:fair"),
            problem="fairness",
            avid="E0100",
        ),
    )
    parameters = BiasParameters

    def encode(self, sample: SegmentedSample, parameters: BiasParameters) -> Sequence[Row]:
        """Return a row per sentence of the answer."""
        return rows(sample, ROLE)

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: BiasParameters,
    ) -> Outcome:
        """Return the combined score and its parts, each its largest over the sentences."""
        return outcome(sample, self.spec, ROLE, outputs)

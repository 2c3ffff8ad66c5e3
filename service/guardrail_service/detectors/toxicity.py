"""Toxicity: is any sentence of the answer rude, hateful, obscene or threatening?"""

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

ROLE: Final = "toxicity"
LABELS = ("toxicity", "severe_toxicity", "obscene", "threat", "insult", "identity_attack")
"""Detoxify's six, the gating one first."""


class ToxicityParameters(Parameters):
    """Toxicity has nothing to set."""


@detector
class Toxicity(Detector[ToxicityParameters]):
    """Reads every sentence of the answer; the worst decides, for each label apart."""

    spec = DetectorSpec(
        id="toxicity",
        aliases=("h2o_sonar.evaluators.toxicity_evaluator.ToxicityEvaluator",),
        summary="Is the answer rude, hateful, obscene or threatening?",
        metrics=tuple(
            MetricSpec(key, Direction.LOWER, gating=key == LABELS[0], optional=key != LABELS[0])
            for key in LABELS
        ),
        inputs=frozenset({"answer"}),
        roles=frozenset({ROLE}),
        cost="model",
        classifier=ROLE,
        in_flight="parts",
        remedy=KEEP_SAFE,
        listing=Listing(
            title="Toxicity", tags=("classifier", "nist:fair"), problem="fairness", avid="E0300"
        ),
    )
    parameters = ToxicityParameters

    def encode(self, sample: SegmentedSample, parameters: ToxicityParameters) -> Sequence[Row]:
        """Return a row per sentence of the answer."""
        return rows(sample, ROLE)

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: ToxicityParameters,
    ) -> Outcome:
        """Return the six labels, each its largest probability over the sentences."""
        return outcome(sample, self.spec, ROLE, outputs)

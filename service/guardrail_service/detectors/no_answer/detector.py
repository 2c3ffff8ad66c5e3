"""Does the answer answer at all, or does the whole of it say that it cannot?"""

from collections.abc import Sequence

from guardrail_service.detectors.no_answer.abstention import is_abstention
from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    MetricSpec,
    Parameters,
    detector,
)
from guardrail_service.detectors.shared.coverage import whole_answer
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Direction, Outcome, RowOutput, Span


def abstains(sample: SegmentedSample) -> bool:
    """Return whether the whole answer abstains; then there is no claim to check.

    An abstention followed by claims is not one. Refusals count: they claim nothing either.
    """
    sentences = [sentence.text for sentence in sample.raw_answer_sentences]
    return sample.once("abstains", lambda: is_abstention(sentences, sample.sample.question))


class NoAnswerParameters(Parameters):
    """There is nothing to set."""


@detector
class NoAnswer(Detector[NoAnswerParameters]):
    """Reports abstentions. It gates nothing: an honest "I do not know" is not a fault."""

    spec = DetectorSpec(
        id="no_answer",
        h2o_id=None,
        summary="Does the answer attempt to answer? (reported)",
        metrics=(MetricSpec("answered", Direction.HIGHER, boolean=True),),
        inputs=frozenset({"question", "answer"}),
    )
    parameters = NoAnswerParameters

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: NoAnswerParameters,
    ) -> Outcome:
        """Return 0.0 if the whole answer abstains and 1.0 if it does not."""
        abstained = abstains(sample)
        span = Span(0, len(sample.answer), "abstention", 0.0, "answered")
        return Outcome.evaluated(
            {"answered": float(not abstained)},
            (span,) if abstained else (),
            whole_answer(sample.sample),
        )

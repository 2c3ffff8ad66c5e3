"""Checks that the answer is in the question's language, by statistics and without a model."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import StringConstraints

from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    Parameters,
    boolean_metrics,
    detector,
)
from guardrail_service.detectors.shared.remedies import KEEP_THE_FORM
from guardrail_service.text.language import same_language
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Coverage, Outcome, RowOutput, Span

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

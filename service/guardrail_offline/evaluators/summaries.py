"""Summaries: is everything in them supported, and how much of the source do they cover?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from pydantic import Field

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import (
    Evaluator,
    EvaluatorSpec,
    boolean_metrics,
    evaluator,
    verdict,
)
from guardrail_offline.evaluators.pack_models import Array
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.evaluators.rouge import rouge
from guardrail_offline.evaluators.shared.claim_scores import share
from guardrail_offline.evaluators.shared.support import (
    BY,
    SURROGATE,
    SupportParameters,
    compared,
)
from guardrail_service.detectors.groundedness import cosines
from guardrail_service.errors import NotScorable
from guardrail_service.types import MetricSpec, State

_H2O = "h2o_sonar.evaluators."
SEGMENTS = 3


def summac_zero_shot(
    entailed: npt.NDArray[np.float64], contradicted: npt.NDArray[np.float64]
) -> float:
    """Return mean over summary sentences of (best entailment - worst contradiction), in [-1, 1].

    Args:
        entailed: P(entailment) of each summary sentence (column) by each source sentence (row).
        contradicted: P(contradiction), the same shape.

    Returns:
        0 if there is nothing to compare, as SummaC has it.

    Source:
        P. Laban et al., "SummaC: re-visiting NLI-based models for inconsistency detection", 2022.
    """
    if not entailed.size:
        return 0.0
    return float((entailed.max(axis=0) - contradicted.max(axis=0)).mean())


def coverage(source: Array, summary: Array) -> float:
    """Return how much of the spread of a source's sentences a summary's sentences span, in [0, 1].

    Every summary sentence is moved to the source sentence nearest to it. The source's two main
    directions are taken, both sets of points are cut into three parts along the first, and the
    length of the line through the parts' middles is compared.

    Args:
        source: Unit-length sentence embeddings, shape (n, dim), in order.
        summary: The same for the sentences that the source supports, shape (m, dim).

    Raises:
        NotScorable: If the source has fewer than three distinct sentences or all are one point.

    Source:
        H2O Eval Studio, "Summarization (completeness and faithfulness)". Theirs reduces with UMAP,
        which is random; two principal components are not.
    """
    if len(source) < SEGMENTS or len(np.unique(source, axis=0)) < SEGMENTS:
        raise NotScorable("too few source sentences")
    if not len(summary):
        return 0.0
    nearest = np.unique(cosines(summary, source).argmax(axis=1))
    points = _principal(source)
    whole = _length(points)
    if not whole:
        raise NotScorable("the source's sentences are one point")
    return min(1.0, _length(points[nearest]) / whole)


def _principal(vectors: Array) -> Array:
    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    points: Array = centred @ axes[:2].T
    return points


def _length(points: Array) -> float:
    ordered = points[np.argsort(points[:, 0], kind="stable")]
    parts = [part.mean(axis=0) for part in np.array_split(ordered, SEGMENTS) if len(part)]
    return float(sum(np.linalg.norm(b - a) for a, b in pairwise(parts)))


@evaluator
class Summarization(Evaluator[SupportParameters]):
    """The question of the case is the source text, the answer its summary."""

    spec = EvaluatorSpec(
        id="summarization",
        name="Summarization (completeness and faithfulness)",
        summary="Is the summary supported by its source, and how much of it does it cover?",
        metrics=(
            MetricSpec("completeness", threshold=0.75),
            MetricSpec("faithfulness_conv", threshold=0.75),
            MetricSpec("faithfulness_zs", low=-1.0, threshold=0.75),
        ),
        inputs=frozenset({"question", "answer"}),
        run_class="N",
        h2o_id=_H2O + "summarization_evaluator.SummarizationEvaluator",
        original="N",
        surrogate="principal components in place of UMAP; P(supported) by the whole source in "
        "place of SummaC Conv, whose trained weights belong to another model",
        roles=frozenset({"embedding"}),
        needs_support=True,
        scores="0.2.0",
        avid="E0400",
        tags=("nli", "semantic-similarity", "nist:valid-reliable"),
    )
    parameters = SupportParameters

    def judge(self, view: CaseView, parameters: SupportParameters) -> Result:
        """Return completeness, support by the whole source, and SummaC's zero-shot score."""
        summary = [claim.text for claim in view.claims(view.answer)]
        source = list(view.evidence([view.question]))
        table = [
            [view.models.support(text, (sentence,)) for text in summary] for sentence in source
        ]
        entailed = np.array([[cell.supported for cell in row] for row in table])
        contradicted = np.array([[cell.contradicted for cell in row] for row in table])
        together = [view.models.support(text, tuple(source)).supported for text in summary]
        supported = [
            text
            for text, best in zip(summary, entailed.max(axis=0), strict=True)
            if best >= parameters.support_threshold
        ]
        return Result(
            {
                "completeness": _completeness(view, source, supported),
                "faithfulness_conv": Score(float(np.mean(together))),
                "faithfulness_zs": Score(summac_zero_shot(entailed, contradicted)),
            }
        )


def _completeness(view: CaseView, source: Sequence[str], supported: Sequence[str]) -> Score:
    vectors = view.models.embed(source)
    summary = view.models.embed(supported) if supported else vectors[:0]
    try:
        return Score(coverage(vectors, summary))
    except NotScorable:
        return Score.missing(State.NOT_APPLICABLE, "too_few_sentences")


class SummaryRuleParameters(SupportParameters):
    """The cuts of a good summary. Not calibrated: chosen on the example lab's four summaries.

    Attributes:
        least_rouge_l: Least ROUGE-L F1 with the expected summary.
        least_supported: Least share of claims that the expected summary supports.
        least_covered: Least share of expected claims that the summary supports.
    """

    least_rouge_l: float = Field(0.2, ge=0.0, le=1.0)
    least_supported: float = Field(0.3, ge=0.0, le=1.0)
    least_covered: float = Field(0.3, ge=0.0, le=1.0)


@evaluator
class SummarizationJudge(Evaluator[SummaryRuleParameters]):
    """A rule over word overlap and claims both ways in the place of a judge's verdict."""

    spec = EvaluatorSpec(
        id="summarization_judge",
        name="Summarization (judge)",
        summary="Is it a good summary, compared with the expected one?",
        metrics=boolean_metrics(parse_failures=True),
        inputs=frozenset({"expected", "answer"}),
        run_class="N",
        h2o_id=_H2O + "summarization_byop_evaluator.SummarizationByopEvaluator",
        original="J",
        surrogate=f"a rule over ROUGE-L and claims; {SURROGATE}",
        needs_support=True,
        scores="0.2.0",
        tags=("nli", "ngram", "nist:valid-reliable"),
    )
    parameters = SummaryRuleParameters

    def judge(self, view: CaseView, parameters: SummaryRuleParameters) -> Result:
        """Return whether all three least values are reached."""
        expected, answer = view.expected, view.answer
        found = compared(view, parameters)
        passes = found.same is not False and (
            found.same is True
            or (
                rouge(expected, answer)["rouge_l"].f1 >= parameters.least_rouge_l
                and share(found.claimed.tolist()) >= parameters.least_supported
                and share(found.answered.tolist()) >= parameters.least_covered
            )
        )
        return Result.of(verdict(passes), details={BY: found.by})

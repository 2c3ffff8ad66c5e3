"""Open RAG Eval's retrieval metrics: a grade from 0 to 3 per passage and what follows from it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, field_validator

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import Evaluator, EvaluatorSpec, evaluator
from guardrail_offline.evaluators.embeddings import chunk_scores
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.evaluators.shared.claim_scores import (
    average_precision,
    precision_at,
    reciprocal_rank,
)
from guardrail_service.detectors.registry import Parameters
from guardrail_service.errors import NotScorable
from guardrail_service.types import MetricSpec, State

RELEVANT = 2
"""Open RAG Eval METRICS.md: a passage is relevant from grade 2."""
K_VALUES = (1, 3, 5)


class UmbrelaParameters(Parameters):
    """The cuts that turn cosines into grades.

    Attributes:
        umbrela_bins: Least cosine of grades 1, 2 and 3. Not calibrated: chosen on the example lab,
            where passages that answer the question begin at about 0.5.
    """

    umbrela_bins: tuple[float, float, float] = Field((0.25, 0.5, 0.65))

    @field_validator("umbrela_bins")
    @classmethod
    def _ascends(cls, bins: tuple[float, float, float]) -> tuple[float, float, float]:
        if not bins[0] < bins[1] < bins[2]:
            raise ValueError("expected three ascending cosines")
        return bins


def grades(scores: Sequence[float], bins: Sequence[float]) -> list[int]:
    """Return a grade from 0 to 3 for each score."""
    return [bisect_right(bins, score) for score in scores]


def retrieval_scores(graded: Sequence[int], k_values: Sequence[int] = K_VALUES) -> dict[str, Score]:
    """Return mean grade, precision and average precision at some ranks, and reciprocal rank.

    Where fewer than k passages were retrieved there is no precision at k; nothing is padded.

    Args:
        graded: A grade per passage, best rank first.
        k_values: The ranks.

    Raises:
        NotScorable: If there is no passage.

    Source:
        Open RAG Eval METRICS.md, "Traditional retrieval metrics".
    """
    if not graded:
        raise NotScorable("no passage")
    relevant = [grade >= RELEVANT for grade in graded]
    scores = {"umbrela": Score(sum(graded) / len(graded)), "mrr": Score(reciprocal_rank(relevant))}
    for k in k_values:
        if len(graded) < k:
            missing = Score.missing(State.NOT_APPLICABLE, "fewer_passages")
            scores |= {f"precision_at_{k}": missing, f"average_precision_at_{k}": missing}
        else:
            scores[f"precision_at_{k}"] = Score(precision_at(relevant, k))
            scores[f"average_precision_at_{k}"] = Score(average_precision(relevant[:k]))
    return scores


class Ranks(Parameters):
    """The ranks that are looked at.

    Attributes:
        k_values: Ranks of precision and average precision; Open RAG Eval's option.
    """

    k_values: tuple[Annotated[int, Field(ge=1)], ...] = Field(K_VALUES, min_length=1, max_length=20)

    @field_validator("k_values")
    @classmethod
    def _once_each(cls, values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(set(values)))


class RankedParameters(UmbrelaParameters, Ranks):
    """The cuts that turn cosines into grades, and the ranks that are looked at."""


def _metrics(k_values: Sequence[int]) -> tuple[MetricSpec, ...]:
    return (
        MetricSpec("umbrela", high=3.0),
        MetricSpec("mrr"),
        *(MetricSpec(f"precision_at_{k}") for k in k_values),
        *(MetricSpec(f"average_precision_at_{k}") for k in k_values),
    )


@evaluator
class Umbrela(Evaluator[RankedParameters]):
    """Grades passages by their best sentence's cosine with the question.

    Average precision at k is divided by the relevant passages among the first k, as Open RAG Eval
    does; trec_eval's divides by all relevant ones (`retrieval_labels.map_at_k`).
    """

    spec = EvaluatorSpec(
        id="umbrela",
        name="UMBRELA and retrieval metrics",
        summary="How relevant is each passage, from 0 to 3, and are relevant ones ranked first?",
        metrics=_metrics(K_VALUES),
        inputs=frozenset({"question", "contexts"}),
        run_class="E",
        also=("open_rag_eval:umbrela",),
        original="J",
        surrogate="four bins of cosines in place of a judge's grades",
        roles=frozenset({"embedding"}),
        problem="retrieval",
        tags=("semantic-similarity", "nist:valid-reliable"),
    )
    parameters = RankedParameters

    def metrics_with(self, parameters: Ranks) -> tuple[MetricSpec, ...]:
        """Return the metrics at the ranks that are asked for."""
        ranks = parameters.k_values
        return self.spec.metrics if ranks == K_VALUES else _metrics(ranks)

    def judge(self, view: CaseView, parameters: RankedParameters) -> Result:
        """Return the metrics; the grades are in the details."""
        graded = grades(chunk_scores(view), parameters.umbrela_bins)
        scores = retrieval_scores(graded, parameters.k_values)
        return Result(scores, details={"umbrela_scores": graded})

"""Counts which pieces of the passages' information the answer holds, without a judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import Evaluator, EvaluatorSpec, evaluator
from guardrail_offline.evaluators.embeddings import chunk_scores
from guardrail_offline.evaluators.pack_models import Array
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.evaluators.retrieval import UmbrelaParameters, grades
from guardrail_offline.evaluators.shared.support import (
    SURROGATE,
    SupportParameters,
    lone_claim,
    supports,
)
from guardrail_service.detectors.groundedness import cosines
from guardrail_service.errors import NotScorable
from guardrail_service.types import MetricSpec, State

Assignment = Literal["support", "partial", "none"]
POINTS: Mapping[Assignment, float] = {"support": 1.0, "partial": 0.5, "none": 0.0}
CREATED, KEPT, LEAST_GRADE = 30, 20, 1
"""Open RAG Eval METRICS.md: at most 30 nuggets from passages of grade 1 and more, best 20 kept."""


class Nugget(NamedTuple):
    """One piece of information and what the answer does with it."""

    vital: bool
    assignment: Assignment


def nugget_scores(nuggets: Sequence[Nugget]) -> dict[str, Score]:
    """Return all, vital and weighted scores, and the strict one of each.

    Weighted is (sum over vital + half the sum over okay) / (vital + half of okay), as documented.
    (The original's code divides by at least one okay nugget, so that a perfect answer to two vital
    nuggets scores 0.8.) Without a vital nugget there is no vital score.

    Raises:
        NotScorable: If there is no nugget.

    Source:
        Open RAG Eval METRICS.md, "AutoNuggetizer".
    """
    if not nuggets:
        raise NotScorable("no nugget")
    return _scores(nuggets, "", POINTS) | _scores(
        nuggets, "_strict", {"support": 1.0, "partial": 0.0, "none": 0.0}
    )


def _scores(
    nuggets: Sequence[Nugget], ending: str, points: Mapping[Assignment, float]
) -> dict[str, Score]:
    vital = [points[n.assignment] for n in nuggets if n.vital]
    okay = [points[n.assignment] for n in nuggets if not n.vital]
    weight = len(vital) + 0.5 * len(okay)
    return {
        f"nugget_all{ending}": Score((sum(vital) + sum(okay)) / len(nuggets)),
        f"nugget_vital{ending}": Score(sum(vital) / len(vital))
        if vital
        else Score.missing(State.NOT_APPLICABLE, "no_vital_nugget"),
        f"nugget_weighted{ending}": Score((sum(vital) + 0.5 * sum(okay)) / weight),
    }


class NuggetParameters(SupportParameters, UmbrelaParameters):
    """The cuts that turn sentences into nuggets. None of them is calibrated.

    Attributes:
        partial_threshold: Least P(supported) of partial support.
        vital_threshold: Least cosine with the question of a vital nugget.
        same_nugget_threshold: Sentences at least this alike are one nugget.
    """

    partial_threshold: float = Field(0.2, ge=0.0, le=1.0)
    vital_threshold: float = Field(0.5, ge=-1.0, le=1.0)
    same_nugget_threshold: float = Field(0.9, ge=-1.0, le=1.0)


@evaluator
class Nuggets(Evaluator[NuggetParameters]):
    """Distinct passage sentences as nuggets, the answer read against each."""

    spec = EvaluatorSpec(
        id="nuggets",
        name="AutoNuggetizer",
        summary="Which share of the passages' pieces of information does the answer hold?",
        metrics=tuple(
            MetricSpec(f"nugget_{kind}{ending}")
            for kind in ("vital", "all", "weighted")
            for ending in ("", "_strict")
        ),
        inputs=frozenset({"question", "contexts", "answer"}),
        run_class="N",
        also=("open_rag_eval:autonuggetizer",),
        original="J",
        surrogate=f"passage sentences as nuggets; {SURROGATE}",
        roles=frozenset({"embedding"}),
        needs_support=True,
        scores="0.2.0",
        tags=("nli", "semantic-similarity", "nist:valid-reliable"),
    )
    parameters = NuggetParameters

    def judge(self, view: CaseView, parameters: NuggetParameters) -> Result:
        """Return the six scores."""
        answer = view.answer
        view.refuse_abstention()
        texts, closeness = view.of_question(
            ("nuggets", parameters), lambda: _create(view, parameters)
        )
        least = min(parameters.partial_threshold, parameters.support_threshold)
        found = supports(view, list(map(lone_claim, texts)), [answer], least, known_right=True)
        nuggets = [
            Nugget(
                bool(close >= parameters.vital_threshold),
                _assigned(supported, parameters),
            )
            for supported, close in zip(found, closeness, strict=True)
        ]
        return Result(nugget_scores(nuggets), details={"nuggets": len(nuggets)})


def _create(view: CaseView, parameters: NuggetParameters) -> tuple[list[str], Array]:
    """Return the nuggets nearest to the question, and their cosines with it."""
    graded = grades(chunk_scores(view), parameters.umbrela_bins)
    useful = [p for p, g in zip(view.contexts, graded, strict=True) if g >= LEAST_GRADE]
    texts = list(dict.fromkeys(piece for p in useful for piece in view.pieces(p.text)))
    if not texts:
        raise Unavailable(State.NOT_APPLICABLE, "no_nugget")
    vectors = view.models.embed(texts)
    kept = _distinct(vectors, parameters.same_nugget_threshold)[:CREATED]
    question = view.models.embed(view.pieces(view.question))
    closeness = cosines(question, vectors[kept]).max(axis=0)
    order = np.argsort(-closeness, kind="stable")[:KEPT]
    return [texts[kept[i]] for i in order], closeness[order]


def _distinct(vectors: Array, same: float) -> list[int]:
    """Return the places of vectors that are not nearly the same as an earlier one."""
    kept: list[int] = []
    for index in range(len(vectors)):
        if not kept or cosines(vectors[index][None], vectors[kept]).max() < same:
            kept.append(index)
    return kept


def _assigned(supported: float, parameters: NuggetParameters) -> Assignment:
    if supported >= parameters.support_threshold:
        return "support"
    return "partial" if supported >= parameters.partial_threshold else "none"

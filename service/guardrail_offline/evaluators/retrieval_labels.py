"""Ranks against labels: recall, precision, MRR, MAP and NDCG of retrieved passages.

The lab says which passages are relevant, by a grade for each, by ids, or by texts of those that
should have been found. No model is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import Evaluator, EvaluatorSpec, evaluator
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.evaluators.shared.answer_words import squad_words
from guardrail_offline.evaluators.shared.claim_scores import average_precision
from guardrail_offline.evaluators.shared.string_similarity import edit_similarity
from guardrail_service.detectors.registry import Parameters
from guardrail_service.types import MetricSpec, State

Grades = Sequence[float | None]
"""Of each retrieved passage, best rank first: above 0 relevant, None where nobody judged it."""


class LabelledRanking(NamedTuple):
    """A ranking with its labels.

    Attributes:
        grades: Of what was retrieved, best rank first; a passage found twice counts once.
        ideal: Of everything relevant, retrieved or not, the highest first.
    """

    grades: Grades
    ideal: tuple[float, ...]


def ranked_scores(judged: LabelledRanking, k: int) -> dict[str, float]:
    """Return the metrics at rank k. Passages that nobody judged count as not relevant.

    Precision is over k even where fewer were retrieved; average precision is over all that is
    relevant, not over what was found; NDCG takes grades as gains and log2(rank + 1) as discount.

    Args:
        judged: With something relevant.
        k: Ranks looked at.

    Source:
        trec_eval: P, recall, success, recip_rank, map_cut, ndcg_cut. "Judged@k" as in ir_measures.
    """
    top = list(judged.grades[:k])
    hits = [bool(grade and grade > 0) for grade in top]
    total = len(judged.ideal)
    first = next((rank for rank, hit in enumerate(hits, 1) if hit), None)
    precisions = [sum(hits[:rank]) / rank for rank, hit in enumerate(hits, 1) if hit]
    return {
        "ndcg_at_k": _gain([grade or 0.0 for grade in top]) / _gain(judged.ideal[:k]),
        "recall_at_k": sum(hits) / total,
        "precision_at_k": sum(hits) / k,
        "hit_at_k": float(any(hits)),
        "mrr_at_k": 1 / first if first else 0.0,
        "map_at_k": sum(precisions) / total,
        "judged_at_k": sum(grade is not None for grade in top) / len(top) if top else 0.0,
    }


def _gain(grades: Sequence[float]) -> float:
    return sum(max(0.0, grade) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


class LabelParameters(Parameters):
    """The rules by which labels are read.

    Attributes:
        text_similarity: Least edit similarity of a retrieved text with a reference text, or share
            of its words that are in it; Ragas' default.
        unjudged: Whether passages without a label stay in the ranking as not relevant, or are
            taken out of it (T. Sakai, "Alternatives to bpref", 2007).
    """

    text_similarity: float = Field(0.5, ge=0.0, le=1.0)
    unjudged: Literal["not_relevant", "left_out"] = "not_relevant"


class RankParameters(LabelParameters):
    """The rules, and the part of a ranking that counts.

    Attributes:
        k: Ranks looked at; `--k` of the command.
    """

    k: int = Field(10, ge=1)


def judged_ranking(case: Case, parameters: LabelParameters) -> LabelledRanking:
    """Return what a case's labels say of its passages: grades first, then ids, then texts.

    Raises:
        Unavailable: If there are no labels or passages, or nothing is relevant.
    """
    if case.contexts is None:
        raise Unavailable(State.UNVERIFIED, "missing_input")
    found = _by_grade(case) or _by_id(case) or _by_text(case, parameters.text_similarity)
    if found is None:
        raise Unavailable(State.NOT_APPLICABLE, "no_labels")
    if not found.ideal:
        raise Unavailable(State.NOT_APPLICABLE, "nothing_relevant")
    if parameters.unjudged == "left_out":
        return LabelledRanking([grade for grade in found.grades if grade is not None], found.ideal)
    return found


def _by_grade(case: Case) -> LabelledRanking | None:
    """Return the lab's own grades; what is relevant is what has one above 0.

    Ids of relevant passages that were not retrieved count for recall, with grade 1.
    """
    if not case.relevance:
        return None
    known = {p.id for p in case.contexts or () if p.id is not None}
    missed = [1.0 for name in dict.fromkeys(case.reference_ids) if name not in known]
    ideal = [grade for grade in case.relevance if grade and grade > 0]
    return LabelledRanking(case.relevance, tuple(sorted((*ideal, *missed), reverse=True)))


def _by_id(case: Case) -> LabelledRanking | None:
    wanted = dict.fromkeys(case.reference_ids)
    ids = [passage.id for passage in case.contexts or ()]
    if not wanted or (ids and not any(name is not None for name in ids)):
        return None
    seen: set[str | None] = set()
    grades = []
    for name in ids:
        grades.append(float(name in wanted and name not in seen))
        seen.add(name)
    return LabelledRanking(grades, (1.0,) * len(wanted))


def _by_text(case: Case, least: float) -> LabelledRanking | None:
    """Return grades by reference texts: the first passage that is like one finds it."""
    wanted = [text for text in dict.fromkeys(case.reference_contexts) if text.strip()]
    if not wanted:
        return None
    left = list(wanted)
    grades = []
    for passage in case.contexts or ():
        found = next((text for text in left if is_alike(text, passage.text, least)), None)
        grades.append(float(found is not None))
        if found is not None:
            left.remove(found)
    return LabelledRanking(grades, (1.0,) * len(wanted))


def is_alike(reference: str, passage: str, least: float) -> bool:
    """Return whether a passage is a reference text, cut or written a little differently.

    Source:
        Ragas, `NonLLMContextRecall`: edit similarity of at least 0.5. Ours also takes a passage
        that was cut out of the reference, or holds it: the words of the shorter are in the longer.
    """
    ours, theirs = squad_words(reference), squad_words(passage)
    if not ours or not theirs:
        return False
    short, long = sorted((" ".join(ours), " ".join(theirs)), key=len)
    return f" {short} " in f" {long} " or edit_similarity(reference, passage) >= least


@evaluator
class LabelledRetrieval(Evaluator[RankParameters]):
    """Metrics of a ranking at one k; the mean over cases is MRR and MAP."""

    spec = EvaluatorSpec(
        id="retrieval_labels",
        name="Retrieval against labels",
        summary="Are the passages that the lab calls relevant found, and ranked first?",
        metrics=tuple(
            MetricSpec(f"{name}_at_k")
            for name in ("ndcg", "recall", "precision", "hit", "mrr", "map", "judged")
        ),
        inputs=frozenset({"contexts"}),
        run_class="D",
        original="D",
        problem="retrieval",
        tags=("rule-based", "nist:valid-reliable", "sr11-7:outcomes-analysis"),
    )
    parameters = RankParameters

    def judge(self, view: CaseView, parameters: RankParameters) -> Result:
        """Return the metrics."""
        return Result.of(ranked_scores(judged_ranking(view.case, parameters), parameters.k))


@evaluator
class ContextMatch(Evaluator[LabelParameters]):
    """Ragas' metrics without a judge, over ids where the lab has them, else over texts."""

    spec = EvaluatorSpec(
        id="context_match",
        name="Context against references",
        summary="Which share of the passages is relevant, and of relevant ones retrieved?",
        metrics=(MetricSpec("recall"), MetricSpec("precision"), MetricSpec("average_precision")),
        inputs=frozenset({"contexts"}),
        run_class="D",
        also=(
            "ragas:id_based_context_precision",
            "ragas:id_based_context_recall",
            "ragas:non_llm_context_precision_with_reference",
            "ragas:non_llm_context_recall",
        ),
        original="D",
        problem="retrieval",
        tags=("rule-based", "nist:valid-reliable", "sr11-7:outcomes-analysis"),
    )
    parameters = LabelParameters

    def judge(self, view: CaseView, parameters: LabelParameters) -> Result:
        """Return recall, precision, and average precision over what was found.

        Ragas' average precision is divided by the relevant passages that were retrieved, and so
        is high where half of them are missing; `map_at_k` is divided by all.
        """
        judged = judged_ranking(view.case, parameters)
        hits = [bool(grade and grade > 0) for grade in judged.grades]
        if not hits:
            return Result.of(dict.fromkeys(self.spec.keys, 0.0))
        values = {
            "recall": sum(hits) / len(judged.ideal),
            "precision": sum(hits) / len(hits),
            "average_precision": average_precision(hits),
        }
        return Result({key: Score(value) for key, value in values.items()})

"""Rankings against labels: trec_eval's digits, and where the labels come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.datasets.columns import RowPlace, case_of
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.retrieval_labels import LabelledRanking, ranked_scores
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Passage
from tests.unit.offline.stand_ins import models

GOLDEN = Path(__file__).parents[3] / "golden" / "evaluators" / "rankings.json"
RANKINGS = json.loads(GOLDEN.read_text("utf-8"))["rankings"]
CAT, DOG = "A cat sleeps for sixteen hours a day.", "Dogs bark at strangers in the night."


@pytest.mark.parametrize("ranking", RANKINGS, ids=range(len(RANKINGS)))
def test_values_are_those_of_trec_eval(ranking: dict[str, Any]) -> None:
    """See the file for the versions."""
    grades = ranking["grades"]
    relevant = [float(grade) for grade in grades if grade] + [1.0] * ranking["missed"]
    judged = LabelledRanking(grades, tuple(sorted(relevant, reverse=True)))
    assert ranked_scores(judged, ranking["k"]) == pytest.approx(ranking["values"], rel=1e-6)


def found(evaluator_id: str, case: Case, *options: str) -> dict[str, Any]:
    """Return each metric's value, or why it has none."""
    evaluator = CATALOGUE[evaluator_id]
    parameters = configure([evaluator_id], options)[0].parameters
    (result,) = evaluator.evaluate([CaseView(case, models())], parameters)
    return {key: s.reason if s.value is None else s.value for key, s in result.scores.items()}


def ids(*names: str) -> tuple[Passage, ...]:
    """Return passages of which only the ids are known."""
    return tuple(Passage("", name) for name in names)


def test_ids_are_labels() -> None:
    """One of two relevant passages at rank 2; a passage found twice counts once."""
    case = Case("1", "?", contexts=ids("c", "a", "a"), reference_ids=("a", "b"))
    scores = found("retrieval_labels", case, "retrieval_labels.k=2")
    assert scores["recall_at_k"] == scores["precision_at_k"] == scores["mrr_at_k"] == 0.5
    assert scores["map_at_k"] == 0.25
    ragas = found("context_match", case)
    assert ragas["recall"] == 0.5
    assert ragas["average_precision"] == 0.5


def test_texts_are_labels() -> None:
    """A passage that is a reference text, cut or differently written."""
    contexts = (Passage(DOG), Passage(f"{CAT} It also eats."), Passage("Unlike anything."))
    case = Case("1", "?", contexts=contexts, reference_contexts=(CAT,))
    assert found("retrieval_labels", case)["mrr_at_k"] == 0.5
    assert found("context_match", case)["recall"] == 1.0


def test_grades_are_labels_and_may_be_unknown() -> None:
    """An unjudged passage is not relevant, or left out of the ranking."""
    record = {"question": "?", "contexts": [DOG, CAT], "relevance": [None, 2]}
    case = case_of(record, RowPlace("f", 1))
    kept = found("retrieval_labels", case)
    assert (kept["mrr_at_k"], kept["judged_at_k"]) == (0.5, 0.5)
    out = found("retrieval_labels", case, "retrieval_labels.unjudged=left_out")
    assert (out["mrr_at_k"], out["ndcg_at_k"]) == (1.0, 1.0)


def test_passages_may_carry_their_own_labels() -> None:
    """As objects with text and relevance."""
    passages = [{"text": DOG, "relevant": False}, {"text": CAT, "relevant": True}]
    case = case_of({"question": "?", "contexts": passages}, RowPlace("f", 1))
    assert case.relevance == (0.0, 1.0)


@pytest.mark.parametrize("relevance", [[1], "yes", [1, "high"]])
def test_labels_have_to_be_a_grade_per_passage(relevance: Any) -> None:
    """Refused with the column's name."""
    with pytest.raises(ConfigurationError, match="relevance"):
        case_of({"question": "?", "contexts": [DOG, CAT], "relevance": relevance}, RowPlace("f", 1))


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case("1", "?", contexts=(Passage(CAT),)), "no_labels"),
        (Case("1", "?", reference_ids=("a",)), "missing_input"),
        (Case("1", "?", contexts=(Passage(CAT),), relevance=(0.0,)), "nothing_relevant"),
    ],
)
def test_without_labels_there_is_no_number(case: Case, reason: str) -> None:
    """And the reason says what is missing."""
    assert set(found("retrieval_labels", case).values()) == {reason}


def test_a_retriever_that_found_nothing_has_found_nothing() -> None:
    """Known to be empty is not unknown."""
    case = Case("1", "?", contexts=(), reference_ids=("a",))
    assert set(found("retrieval_labels", case).values()) == {0.0}
    assert set(found("context_match", case).values()) == {0.0}


@pytest.mark.parametrize(("said", "means"), [("true", True), (0, False), ("No", False), ("", None)])
def test_whether_a_question_has_an_answer_can_be_said(said: Any, means: bool | None) -> None:
    """In the column `answerable`."""
    record = {"question": "?", "answer": "x", "answerable": said}
    assert case_of(record, RowPlace("f", 1)).answerable is means

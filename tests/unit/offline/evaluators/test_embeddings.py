"""Metrics over embeddings: formulas on given matrices, evaluators on made-up vectors."""

from __future__ import annotations

import numpy as np
import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.embeddings import (
    bert_score,
    sentence_similarity,
    similarity,
    whole_vector,
)
from guardrail_offline.evaluators.result import Result
from guardrail_service.detectors.groundedness import support
from guardrail_service.detectors.relevancy import chunk_relevancy
from guardrail_service.errors import NotScorable
from guardrail_service.types import Passage
from tests.unit.offline.stand_ins import models, vector

TABLE = np.array([[0.9, 0.2, 0.4], [0.3, 0.6, 0.5]])


def view(answer: str, **fields: object) -> CaseView:
    """Return a view of one case."""
    return CaseView(Case("1", "What does parking cost?", answer, **fields), models())  # type: ignore[arg-type]


def judge(evaluator_id: str, seen: CaseView, **parameters: object) -> Result:
    """Return the result of one case."""
    evaluator = CATALOGUE[evaluator_id]
    return evaluator.evaluate([seen], evaluator.parameters(**parameters))[0]


def test_a_matrix_of_answer_and_context_sentences() -> None:
    """Groundedness .6; per sentence mean .75 and minimum .6. Known answer 45."""
    assert support(TABLE) == pytest.approx(0.6)
    assert sentence_similarity(TABLE) == pytest.approx((0.75, 0.6))


def test_the_best_sentence_of_each_passage() -> None:
    """Maximum .8 and mean .466667 over passages. Known answer 46."""
    chunks = [np.array([0.2, 0.8]), np.array([0.5, 0.4]), np.array([0.1])]
    assert chunk_relevancy(chunks) == pytest.approx((0.8, 1.4 / 3))


def test_a_cross_encoder_has_the_word_where_a_pack_has_one() -> None:
    """Two of three words are the same; the cosine of made-up vectors is another number."""
    case = Case("1", "When?", "opens at nine", "opens at ten")
    seen = CaseView(case, models("embedding", "grounding", "similarity"))
    found = judge("answer_semantic_similarity", seen)
    assert found.scores["answer_similarity"].value == pytest.approx(0.5)
    assert judge("answer_semantic_similarity", seen, threshold=0.6).scores[
        "answer_similarity"
    ].value == pytest.approx(0.0)


def test_no_sentence_has_no_similarity() -> None:
    """Instead of a warning and NaN."""
    with pytest.raises(NotScorable):
        sentence_similarity(np.zeros((0, 3)))


def test_bert_score_matches_tokens_greedily() -> None:
    """Two tokens of three are there; recall is perfect."""
    expected = np.stack([vector("a"), vector("b")])
    actual = np.stack([vector("a"), vector("b"), vector("a")])
    assert bert_score(expected, actual) == pytest.approx((1.0, 1.0, 1.0))
    lower = bert_score(expected, np.stack([vector("a")]))
    assert lower.precision == pytest.approx(1.0)
    assert lower.recall == pytest.approx((1 + float(vector("a") @ vector("b"))) / 2)


def test_bert_score_of_opposites_is_negative_and_of_nothing_is_missing() -> None:
    """F1 of negative parts would be meaningless: the lower one stands."""
    one = vector("a")[None]
    assert bert_score(one, -one) == pytest.approx((-1.0, -1.0, -1.0))
    with pytest.raises(NotScorable):
        bert_score(one, one[:0])


def test_a_text_longer_than_the_model_reads_is_read_whole() -> None:
    """Its end counts: two long texts that differ only there are not the same."""
    long = "parking costs five euros per night " * 10
    seen = view("x")
    assert similarity(seen, long + "today", long + "today") == pytest.approx(1.0)
    assert similarity(seen, long + "today", long + "zebra quagga") < 1.0 - 1e-6
    assert np.linalg.norm(whole_vector(seen, long)) == pytest.approx(1.0)


def test_the_same_answer_in_words_and_meaning_scores_one() -> None:
    """Similarity, per sentence, and BERTScore."""
    seen = view("Parking costs five euros.", expected="Parking costs five euros.")
    for evaluator_id in ("answer_semantic_similarity", "answer_semantic_sentence_similarity"):
        values = [score.value for score in judge(evaluator_id, seen).scores.values()]
        assert values == pytest.approx([1.0] * len(values))
    assert judge("bertscore", seen).scores["bertscore_f1"].value == pytest.approx(1.0)


def test_answer_relevancy_takes_the_best_sentence() -> None:
    """One sentence that answers is enough."""
    seen = view("Zebras graze quietly elsewhere. Parking does cost five euros, what a bargain.")
    one = view("Zebras graze quietly elsewhere.")
    relevancy = judge("answer_relevancy", seen).scores["answer_relevancy"].value
    assert relevancy is not None
    assert relevancy > (judge("answer_relevancy", one).scores["answer_relevancy"].value or 0)


def test_an_abstention_has_no_relevancy() -> None:
    """It repeats the question's words and answers nothing."""
    assert judge("answer_relevancy", view("I don't know.")).scores["answer_relevancy"].reason == (
        "abstention"
    )


@pytest.mark.parametrize(("first", "rank"), [(0, 1.0), (1, 0.5), (9, 0.0)])
def test_the_reciprocal_rank_of_the_first_relevant_passage(first: int, rank: float) -> None:
    """A passage past `mrr_relevant_chunk_oor_idx` counts as none."""
    texts = ["Zebras graze elsewhere."] * 10
    texts[first] = "What does parking cost?"
    seen = view("x", contexts=tuple(map(Passage, texts)))
    found = judge("context_mrr", seen, mrr_relevant_chunk_oor_idx=5)
    assert found.scores["mean_reciprocal_rank"].value == rank


def test_context_relevancy_is_the_share_of_sentences_about_the_question() -> None:
    """One of two."""
    text = "What does parking cost in winter? Zebras graze quietly elsewhere."
    seen = view("x", contexts=(Passage(text),))
    assert judge("context_relevancy", seen).scores["context_relevancy"].value == 0.5


@pytest.mark.parametrize(
    ("evaluator_id", "metric"),
    [
        ("answer_semantic_similarity", "answer_similarity"),
        ("bertscore", "bertscore_f1"),
        ("context_mrr", "mean_reciprocal_rank"),
    ],
)
def test_what_is_not_there_is_missing_input(evaluator_id: str, metric: str) -> None:
    """No expected answer, no passages."""
    assert judge(evaluator_id, view("x")).scores[metric].reason == "missing_input"

"""Claim metrics on made-up support: which texts are read against which."""

from __future__ import annotations

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.result import Result
from guardrail_service.types import Passage
from tests.unit.offline.stand_ins import Session, models

PARKING = "Parking behind the house costs five euros per night."
POOL = "The heated pool opens at seven in the morning."
FALSE = "Breakfast buffets include lobster with caviar and champagne."
ELSEWHERE = "Zebras graze quietly upon distant grassland."
QUESTION = "What does parking cost, and when does the pool open?"


def case(answer: str, *contexts: str, expected: str | None = f"{PARKING} {POOL}") -> Case:
    """Return a case."""
    return Case("1", QUESTION, answer, expected, tuple(map(Passage, contexts)) or None)


def values(evaluator_id: str, asked: Case) -> dict[str, float | None]:
    """Return the metrics of one case."""
    return {key: score.value for key, score in judge(evaluator_id, asked).scores.items()}


def judge(evaluator_id: str, asked: Case) -> Result:
    """Return the result of one case."""
    evaluator = CATALOGUE[evaluator_id]
    return evaluator.evaluate([CaseView(asked, models())], evaluator.parameters())[0]


def test_faithfulness_is_the_share_of_claims_the_passages_support() -> None:
    """One of two; every claim is a scored part of the answer."""
    found = judge("faithfulness", case(f"{PARKING} {FALSE}", PARKING, POOL))
    assert found.scores["faithfulness"].value == 0.5
    assert [span["start"] for span in found.spans] == [0, len(PARKING) + 1]
    assert found.spans[1]["score"] < 0.5


def test_context_recall_is_the_share_of_expected_claims_the_passages_support() -> None:
    """Whatever the answer says."""
    assert values("context_recall", case("x", PARKING))["context_recall"] == 0.5


def test_context_precision_looks_at_rank() -> None:
    """A useless passage in front halves it."""
    assert values("context_precision", case("x", PARKING, ELSEWHERE))["context_precision"] == 1.0
    assert values("context_precision", case("x", ELSEWHERE, PARKING))["context_precision"] == 0.5


def test_context_utilisation_asks_which_passages_the_answer_used() -> None:
    """Not which ones it should have used."""
    used = values("context_utilization", case(POOL, PARKING, POOL, expected=None))
    assert used["context_utilization"] == 0.5


def test_answer_correctness_of_the_expected_answer_is_one() -> None:
    """And of an unrelated one close to nothing."""
    right = values("answer_correctness", case(f"{PARKING} {POOL}"))["answer_correctness"]
    wrong = values("answer_correctness", case(FALSE))["answer_correctness"]
    assert right == pytest.approx(1.0)
    assert wrong is not None
    assert wrong < 0.25


def test_noise_is_a_wrong_claim_taken_from_a_passage() -> None:
    """Here from a passage that is of no use otherwise."""
    found = values("noise_sensitivity", case(f"{PARKING} {FALSE}", PARKING, FALSE))
    assert found == {"noise_sensitivity_relevant": 0.0, "noise_sensitivity_irrelevant": 0.5}


def test_ragas_is_missing_if_one_part_is() -> None:
    """Without an expected answer there is no context precision, so there is no mean."""
    found = judge("ragas", case(PARKING, PARKING, expected=None))
    assert {score.reason for score in found.scores.values()} == {"missing_input"}


def test_ragas_lies_between_its_parts_and_their_least() -> None:
    """A harmonic mean."""
    found = values("ragas", case(f"{PARKING} {FALSE}", PARKING, POOL))
    parts = [value for key, value in found.items() if key != "ragas" and value is not None]
    assert found["ragas"] is not None
    assert min(parts) <= found["ragas"] <= max(parts)


def test_rag_checker_reads_claims_both_ways() -> None:
    """One right claim, one invented one, one expected claim missing."""
    found = values("ragchecker", case(f"{PARKING} {FALSE}", PARKING, ELSEWHERE))
    assert found["precision"] == found["recall"] == found["claim_recall"] == 0.5
    assert found["hallucination"] == found["faithfulness"] == found["context_precision"] == 0.5
    assert found["context_utilization"] == 1.0


def test_the_triad_has_its_three_parts() -> None:
    """Groundedness is graded, not a share."""
    found = values("rag_triad", case(PARKING, PARKING))
    assert found["triad_groundedness"] == pytest.approx(1.0)
    assert set(found) == {
        "triad_groundedness",
        "triad_context_relevance",
        "triad_answer_relevance",
    }


@pytest.mark.parametrize(
    "evaluator_id", ["faithfulness", "context_utilization", "ragchecker", "rag_triad", "ragas"]
)
def test_an_abstention_is_not_applicable(evaluator_id: str) -> None:
    """It claims nothing that could be unsupported; the reason says that it could have answered."""
    found = judge(evaluator_id, case("I don't know.", PARKING))
    assert {score.reason for score in found.scores.values()} == {"wrong_abstention"}


@pytest.mark.parametrize("evaluator_id", ["faithfulness", "context_recall", "ragchecker"])
def test_missing_and_empty_passages_are_missing_input(evaluator_id: str) -> None:
    """Ragas once gave a recall of 1 here."""
    for asked in (case(PARKING), case(PARKING, "  ")):
        found = judge(evaluator_id, asked)
        assert {score.reason for score in found.scores.values()} == {"missing_input"}


def test_a_pack_with_an_entailment_model_is_asked_instead() -> None:
    """The role `nli` reads every passage sentence by itself, where no rule decides before it."""
    nli, claim = Session("nli"), PARKING.replace("per", "every single")
    view = CaseView(case(claim, POOL, PARKING), models("embedding", nli=nli))
    evaluator = CATALOGUE["faithfulness"]
    (result,) = evaluator.evaluate([view], evaluator.parameters())
    assert result.scores["faithfulness"].value == 1.0
    assert [(row.text, row.second) for row in nli.ran] == [(POOL, claim), (PARKING, claim)]


def test_more_passages_never_lower_context_recall() -> None:
    """What one passage supports, all of them support."""
    few = values("context_recall", case("x", PARKING))["context_recall"]
    more = values("context_recall", case("x", PARKING, ELSEWHERE))["context_recall"]
    assert few is not None
    assert more is not None
    assert more >= few

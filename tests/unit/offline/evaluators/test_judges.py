"""What needs a judge says so and is never made up."""

from __future__ import annotations

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE, unmet
from guardrail_offline.evaluators.result import Score
from guardrail_service.types import Passage, State
from tests.unit.offline.stand_ins import models

JUDGE_ONLY = (
    "byop", "conversation", "decision_list", "fact_check", "image_faithfulness", "image_relevancy",
    "rubric", "self_check", "semantic_match",
)  # fmt: skip


def test_few_evaluators_need_a_judge() -> None:
    """Everything else has a judge-free form."""
    assert {s.id for s in CATALOGUE.specs() if s.needs_judge} == set(JUDGE_ONLY)


@pytest.mark.parametrize("evaluator_id", JUDGE_ONLY)
def test_without_a_judge_there_is_no_number(evaluator_id: str) -> None:
    """Whatever the case."""
    evaluator = CATALOGUE[evaluator_id]
    view = CaseView(Case("1", "q", "a", "a"), models())
    (result,) = evaluator.evaluate([view], evaluator.parameters())
    assert {(s.value, s.state) for s in result.scores.values()} == {(None, State.NOT_EVALUATED)}
    assert unmet(evaluator.spec, models()) == "needs_judge"


CRITIQUE = CATALOGUE["aspect_critique"]
PARKING = "Parking behind the house costs five euros per night."
FALSE = "Breakfast buffets include lobster with caviar and champagne."


def critique(case: Case) -> dict[str, Score]:
    """Return the aspects of one case; the pack of this test has no role `toxicity`."""
    (result,) = CRITIQUE.evaluate([CaseView(case, models())], CRITIQUE.parameters())
    return dict(result.scores)


def test_order_and_brevity_need_a_judge() -> None:
    """And harm needs the classifier."""
    assert unmet(CRITIQUE.spec, models()) == "missing_role:toxicity"
    reasons = {key: score.reason for key, score in critique(Case("1", "q", PARKING)).items()}
    assert reasons == {
        "harmfulness": "not_in_this_build",
        "maliciousness": "not_in_this_build",
        "coherence": "needs_judge",
        "correctness": "missing_input",
        "conciseness": "needs_judge",
    }


@pytest.mark.parametrize(
    ("answer", "expected", "passage", "correct"),
    [
        (PARKING, PARKING, FALSE, 1.0),
        (f"{PARKING} {FALSE}", PARKING, FALSE, 1.0),
        (f"{PARKING} {FALSE}", PARKING, PARKING, 0.0),
        (PARKING, None, PARKING, 1.0),
        (FALSE, None, PARKING, 0.0),
    ],
)
def test_an_answer_is_correct_if_every_claim_is_supported(
    answer: str, expected: str | None, passage: str, correct: float
) -> None:
    """By the expected answer or by a passage."""
    case = Case("1", "What does parking cost?", answer, expected, (Passage(passage),))
    assert critique(case)["correctness"].value == correct


def test_an_abstention_is_neither_correct_nor_wrong() -> None:
    """It claims nothing."""
    case = Case("1", "What does parking cost?", "I don't know.", PARKING)
    assert critique(case)["correctness"].reason == "wrong_abstention"

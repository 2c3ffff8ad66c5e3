"""Nugget scores follow the documented formula, not the code that differs from it."""

from __future__ import annotations

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.nuggets import Nugget, nugget_scores
from guardrail_service.errors import NotScorable
from guardrail_service.types import Passage
from tests.unit.offline.stand_ins import models

EVALUATOR = CATALOGUE["nuggets"]


def test_one_supported_vital_and_one_partly_supported_okay_nugget() -> None:
    """Open RAG Eval's test case. Known answer 25."""
    scores = nugget_scores([Nugget(True, "support"), Nugget(False, "partial")])
    assert {key: score.value for key, score in scores.items()} == pytest.approx(
        {
            "nugget_all": 0.75,
            "nugget_all_strict": 0.5,
            "nugget_vital": 1.0,
            "nugget_vital_strict": 1.0,
            "nugget_weighted": 1.25 / 1.5,
            "nugget_weighted_strict": 1 / 1.5,
        },
        rel=1e-9,
    )


def test_two_supported_vital_nuggets_are_perfect() -> None:
    """The documented formula gives 1.0 where the original's code gives 0.8. Known answer 26."""
    scores = nugget_scores([Nugget(True, "support")] * 2)
    assert scores["nugget_weighted"].value == 1.0


def test_without_a_vital_nugget_there_is_no_vital_score() -> None:
    """The others stand."""
    scores = nugget_scores([Nugget(False, "partial")])
    assert scores["nugget_vital"].reason == "no_vital_nugget"
    assert scores["nugget_weighted"].value == 0.5


def test_no_nugget_is_no_number() -> None:
    """Never 0."""
    with pytest.raises(NotScorable):
        nugget_scores([])


def test_nuggets_are_distinct_sentences_of_useful_passages() -> None:
    """The same passage twice adds nothing, one about something else is left out."""
    text = "Parking costs five euros per night."
    passages = (Passage(text), Passage(text), Passage("Zebras graze quietly elsewhere."))
    view = CaseView(Case("1", "Parking costs what per night?", text, contexts=passages), models())
    (result,) = EVALUATOR.evaluate([view], EVALUATOR.parameters())
    assert result.details == {"nuggets": 1}
    assert result.scores["nugget_all_strict"].value == 1.0

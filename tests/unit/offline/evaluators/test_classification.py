"""Labels are compared as people write them; scores over classes are macro averages."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.classification import classified, label_of
from guardrail_service.errors import NotScorable
from guardrail_service.types import State
from tests.unit.offline.stand_ins import models

EVALUATOR = CATALOGUE["classification"]


def test_the_scores_of_four_cases_and_three_classes() -> None:
    """y = a, b, a, c and p = a, b, c, c: what scikit-learn's macro averages say.

    Known answer 49.
    """
    found = classified(Counter(zip("abac", "abcc", strict=True)))
    assert found == pytest.approx((0.75, 5 / 6, 5 / 6, 7 / 9), rel=1e-9)


def test_a_class_that_was_never_predicted_has_no_precision() -> None:
    """Zero, and it counts."""
    assert classified({("a", "b"): 1}) == (0.0, 0.0, 0.0, 0.0)


def test_no_case_has_no_score() -> None:
    """Neither 0 nor 1."""
    with pytest.raises(NotScorable):
        classified({})


@pytest.mark.parametrize("text", ["Refund", " refund. ", '"REFUND"', "**Refund**"])
def test_case_blanks_and_punctuation_around_a_label_do_not_count(text: str) -> None:
    """Models decorate labels."""
    assert label_of(text) == "refund"


def test_a_case_keeps_its_labels_for_the_models_confusion_matrix() -> None:
    """Precision, recall and F1 exist per model only."""
    view = CaseView(Case("1", "?", "Refund.", "refund"), models())
    (result,) = EVALUATOR.evaluate([view], EVALUATOR.parameters())
    assert result.scores["accuracy"].value == 1.0
    assert result.scores["f1"].reason == "per_model"
    counts = Counter([EVALUATOR.tally(result) or ()])
    assert EVALUATOR.per_model(counts) == {"precision": 1.0, "recall": 1.0, "f1": 1.0}


def test_a_long_expected_answer_is_no_label() -> None:
    """A lab of questions and answers is not scored as if it were classification."""
    view = CaseView(Case("1", "?", "x", "this is a whole sentence, no label"), models())
    (result,) = EVALUATOR.evaluate([view], EVALUATOR.parameters())
    assert result.scores["accuracy"].state is State.NOT_APPLICABLE
    assert EVALUATOR.tally(result) is None


@pytest.mark.parametrize(
    ("expected", "fields", "options", "is_one"),
    [
        ("refund", {}, {}, True),
        ("Not relevant", {}, {}, True),
        ("SPAM", {}, {}, True),
        ("565", {}, {}, False),
        ("14 March 1879", {}, {}, False),
        ("Jane Austen", {}, {}, False),
        ("Jane Austen", {"categories": ("classification",)}, {}, True),
        ("Jane Austen", {}, {"labels": ("jane austen", "other")}, True),
        ("refund", {}, {"labels": ("spam", "ham")}, False),
    ],
)
def test_free_text_is_no_label(
    expected: str, fields: dict[str, Any], options: dict[str, Any], is_one: bool
) -> None:
    """A number, a date or a name answers a question, unless lab or settings say otherwise."""
    view = CaseView(Case("1", "?", "x", expected, **fields), models())
    (result,) = EVALUATOR.evaluate([view], EVALUATOR.parameters(**options))
    assert (result.scores["accuracy"].value is not None) is is_one

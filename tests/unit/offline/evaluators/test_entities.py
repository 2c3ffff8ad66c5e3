"""Entities are sets; which of the expected ones the passages have is a share."""

from __future__ import annotations

import pytest

from guardrail_offline.evaluators.entities import entities, entity_recall
from guardrail_service.errors import NotScorable

EXPECTED = {"Taj Mahal", "Yamuna", "Agra", "1631", "Shah Jahan", "Mumtaz Mahal"}


@pytest.mark.parametrize(
    ("found", "recall"),
    [
        ({"Taj Mahal", "Agra", "Shah Jahan", "Mumtaz Mahal", "India"}, 4 / 6),
        ({"Taj Mahal", "UNESCO", "India"}, 1 / 6),
    ],
)
def test_the_share_of_expected_entities(found: set[str], recall: float) -> None:
    """Ragas' two contexts. Known answers 5, 6."""
    assert entity_recall(EXPECTED, found) == pytest.approx(recall, rel=1e-9)


def test_no_expected_entity_is_no_number() -> None:
    """Ragas divides by 1e-8 here."""
    with pytest.raises(NotScorable):
        entity_recall(set(), {"India"})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The bridge was opened by Queen Margit in 1931.", {"queen margit", "1931"}),
        ("In Oslo it costs $1,200.50 or 12 %.", {"oslo", "$1,200.50", "12 %"}),
        ("The University of Bergen teaches law.", {"university of bergen"}),
        ("It was there.", set()),
        ("", set()),
    ],
)
def test_entities_are_capitalised_words_and_numbers(text: str, found: set[str]) -> None:
    """A small word at the start of a sentence is none."""
    assert entities([text]) == found

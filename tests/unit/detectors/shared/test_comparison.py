"""Which sentences of an answer are politeness and which claim something."""

from __future__ import annotations

import pytest

from guardrail_service.detectors.no_answer.detector import is_courtesy


@pytest.mark.parametrize(
    "sentence",
    [
        "I hope this helps!",
        "For more information, please visit our website.",
        "For further assistance, contact our support team.",
        "If you have any other questions, feel free to ask!",
        "If you need more help, let me know.",
        "If you'd like more details, let me know.",
        "If you need further assistance, please don't hesitate to ask.",
        "Please check the hotel's website for the current opening hours.",
        "You may want to check your contract or contact Greenvolt directly.",
        "Please consult your doctor before you take it.",
        "Bitte wenden Sie sich an den Kundendienst.",
    ],
)
def test_politeness_claims_nothing(sentence: str) -> None:
    """Offers of help, and where else to ask."""
    assert is_courtesy(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "For more than ten years every guest has received a free car from the hotel.",
        "For further travel the hotel lends every guest a private jet.",
        "If you have a reservation the hotel pays you a thousand euros in cash.",
        "If you provide a code every guest receives a free car from the hotel.",
        "You can check into the penthouse with three dogs at no extra charge.",
        "You can visit the spa for free with one guest per day.",
        "You can ask for a free upgrade at the desk at any time of the day.",
        "Please contact support at 555-0199 between 9 and 17.",
        "Thank you for choosing the hotel that won the prize for the best pool in Europe.",
        "Feel free to contact us since all rooms are free in May and June for families of four.",
    ],
)
def test_what_only_begins_politely_is_a_claim(sentence: str) -> None:
    """Nobody would check it otherwise; a telephone number may be invented, too."""
    assert not is_courtesy(sentence)


def test_a_sentence_of_any_number_of_clauses_is_looked_at() -> None:
    """More than Python lets functions call each other."""
    assert not is_courtesy("the first of many tracks is closed and " * 2_000)

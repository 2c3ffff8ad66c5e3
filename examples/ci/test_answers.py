"""Bounds as tests: `pytest examples/ci`, where rag-guardrail-offline is installed."""

from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).with_name("change.jsonl")


def test_answers_are_grounded_and_close_to_what_was_expected(assert_rag: Any) -> None:
    """Means over the whole set; nine of ten cases have to be judged."""
    assert_rag(ANSWERS, "rouge_1=0.3", faithfulness=0.5, min_coverage=0.9)


def test_one_answer(assert_rag: Any) -> None:
    """As your system gave it a moment ago."""
    row = {
        "question": "What does parking cost?",
        "contexts": ["Parking behind the house costs five euros per night."],
        "answer": "Parking costs five euros per night.",
    }
    assert_rag(row, faithfulness=0.5, pii=1)

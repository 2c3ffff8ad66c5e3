"""Word perturbations: commas, swaps, synonyms and opposites from a lexicon."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.perturbation.lexicon import lexicon
from guardrail_offline.perturbation.wordnet import Relation
from guardrail_offline.perturbation.words import with_commas, with_related, with_swaps

TEXT = "What does the large boat cost per hour in summer?"
WORDS = st.lists(st.sampled_from(["cost", "the", "big", "boat,", ""]), max_size=12).map(" ".join)


def rng(seed: int) -> random.Random:
    """Return a seeded generator."""
    return random.Random(seed)  # noqa: S311 - typing errors, not secrets


def test_commas_are_added_behind_words() -> None:
    """Nothing else changes."""
    found = with_commas(TEXT, 0.3, rng(1))
    assert found.replace(",", "") == TEXT
    assert found.count(",") == round(0.3 * 9)


@given(WORDS, st.floats(0.1, 1.0), st.integers(0, 20))
def test_swapping_keeps_the_words(text: str, share: float, seed: int) -> None:
    """In another order."""
    found = with_swaps(text, share, rng(seed))
    assert sorted(found.split(" ")) == sorted(text.split(" "))


SHIPPED = lexicon("shipped")


@pytest.mark.parametrize(
    ("relation", "found"),
    [
        ("synonyms", {"big", "sizeable", "price", "charge", "vessel", "summertime"}),
        ("antonyms", {"small", "winter"}),
    ],
)
def test_known_words_are_replaced_and_the_others_stay(relation: Relation, found: set[str]) -> None:
    """Marks and capitals, too."""
    changed = with_related(TEXT, 1.0, rng(1), relation, SHIPPED)
    assert set(changed.strip("?").split()) - set(TEXT.strip("?").split()) <= found
    assert changed != TEXT
    assert changed.endswith("?")
    assert with_related("Big!", 1.0, rng(2), "antonyms", SHIPPED) == "Small!"


def test_unknown_words_stay() -> None:
    """There is nothing to replace."""
    assert with_related("Qzx vvk", 1.0, rng(1), "synonyms", SHIPPED) == "Qzx vvk"

"""The word-by-word features of a claim and its evidence."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.inference.models.lexical import (
    CLAIM_FEATURES,
    PAIR_FEATURES,
    PASSAGE_FEATURES,
    Lexical,
    lexical,
    pair_features,
)
from guardrail_service.text.sample import TokenSpan


def view(text: str) -> Lexical:
    """Return the lexical view of a text whose tokens are words, digits and single signs."""
    spans = [TokenSpan(m.start(), m.end(), True) for m in re.finditer(r"\w+|[^\w\s]", text)]
    ids = [1000 + sum(map(ord, text[s.start : s.end].lower())) % 7000 for s in spans]
    return lexical(text, spans, ids)


@pytest.mark.parametrize(
    ("left", "right"),
    [("1,200", "1200"), ("two", "2"), ("Twenty-six", "26"), ("2.50", "2.5"), ("Paris", "paris")],
)
def test_spellings_of_one_word_are_one_word(left: str, right: str) -> None:
    """Digits, number words, thousands separators and case do not make another fact."""
    assert view(left).words[0] == view(right).words[0]


def test_a_number_with_separators_is_one_number() -> None:
    """Every token of 12,500 belongs to the same word."""
    assert len(set(view("12,500").words.tolist())) == 1
    assert len(set(view("12, 500").words.tolist())) == 3


def test_a_changed_number_is_unmatched_and_a_kept_one_is_not() -> None:
    """The share of numbers that the evidence lacks is what tells an invented number."""
    evidence = [view("The fee is 30 euros for 14 days.")]
    kept = pair_features(view("It costs 30 euros."), evidence, [0.5]).pair
    changed = pair_features(view("It costs 35 euros."), evidence, [0.5]).pair
    assert kept[2] == 0.0
    assert changed[2] == 1.0


def test_a_name_is_capital_only_inside_a_sentence() -> None:
    """The first word of a sentence is capital anyway."""
    assert view("Guests met Anna.").capital.tolist() == [False, False, True, False]


def test_negation_on_one_side_only_is_a_mismatch() -> None:
    """Column 9 compares the claim with the nearest sentence."""
    evidence = [view("Dogs are allowed.")]
    assert pair_features(view("Dogs are not allowed."), evidence, [0.9]).pair[9] == 1.0
    assert pair_features(view("Dogs are allowed."), evidence, [0.9]).pair[9] == 0.0


@given(st.text(min_size=1, max_size=60), st.lists(st.text(min_size=1, max_size=40), min_size=1))
def test_any_text_has_finite_features_of_fixed_width(claim: str, sentences: list[str]) -> None:
    """Shapes are what the head was exported with."""
    left, right = view(claim), [view(s) for s in sentences]
    found = pair_features(left, right, [0.1] * len(right))
    n, m = len(left.ids), sum(len(s.ids) for s in right)
    assert found.claim.shape == (n, CLAIM_FEATURES)
    assert found.passage.shape == (m, PASSAGE_FEATURES)
    assert found.match.shape == (n, m)
    assert found.pair.shape == (PAIR_FEATURES,)
    assert all(np.isfinite(part).all() for part in found)

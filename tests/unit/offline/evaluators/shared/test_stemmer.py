"""Stems are those of the reference implementation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.evaluators.shared.stemmer import stem

GOLDEN = Path(__file__).parents[4] / "golden" / "evaluators" / "stems.json"


def test_every_golden_word_has_the_reference_stem() -> None:
    """Words of the documentation and of the 1980 paper; see the file for the source."""
    stems = json.loads(GOLDEN.read_text("utf-8"))["stems"]
    assert len(stems) > 1_500
    assert {word: stem(word) for word in stems} == stems


@pytest.mark.parametrize("word", ["", "a", "by"])
def test_words_of_at_most_two_letters_stay(word: str) -> None:
    """There is nothing to take off."""
    assert stem(word) == word


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789", max_size=15))
def test_a_stem_is_never_longer_than_its_word_by_more_than_an_e(word: str) -> None:
    """The only letters ever added are an e ("filing", "file") or an l of a suffix."""
    assert len(stem(word)) <= len(word) + 1

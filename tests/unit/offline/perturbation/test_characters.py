"""Character perturbations change what they say, as much as they say, and never fail."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.perturbation import characters

TEXT = "How many tools may a member borrow?"
KEEP_LENGTH = [characters.replaced, characters.typed, characters.deleted, characters.scanned]
ALL = [*KEEP_LENGTH, characters.inserted]
Change = Callable[[str, float, random.Random], str]


def rng(seed: int) -> random.Random:
    """Return a seeded generator."""
    return random.Random(seed)  # noqa: S311 - typing errors, not secrets


@pytest.mark.parametrize("change", ALL)
@given(st.text(max_size=30), st.floats(0.01, 1.0), st.integers(0, 99))
def test_any_text_can_be_perturbed_by_any_share(
    change: Change, text: str, share: float, seed: int
) -> None:
    """H2O's typos raise for large shares, its OCR errors for letters outside ASCII."""
    one = change(text, share, rng(seed))
    assert one == change(text, share, rng(seed))


@pytest.mark.parametrize("change", KEEP_LENGTH)
def test_replacing_keeps_the_length_and_changes_the_share(change: Change) -> None:
    """At a tenth of 29 letters about three."""
    found = change(TEXT, 0.1, rng(1))
    assert len(found) == len(TEXT)
    assert 1 <= sum(a != b for a, b in zip(TEXT, found, strict=True)) <= 4


def test_insertion_keeps_every_character_in_its_order() -> None:
    """Only letters are added."""
    found = characters.inserted(TEXT, 0.2, rng(1))
    assert len(found) == len(TEXT) + round(0.2 * len(TEXT))
    rest = iter(found)
    assert all(character in rest for character in TEXT)


def test_typos_are_neighbours_on_the_keyboard_and_keep_their_case() -> None:
    """Q next to A and W, for instance."""
    found = {characters.typed("Q", 1.0, rng(seed)) for seed in range(20)}
    assert found == {"A", "W"}


def test_deletion_shows_an_x() -> None:
    """As H2O's does."""
    assert characters.deleted("ab", 1.0, rng(1)) == "XX"


def test_scanning_takes_similar_characters_for_each_other() -> None:
    """And leaves the others, those outside ASCII included."""
    assert characters.scanned("o0lé漢", 1.0, rng(1)) == "0o1é漢"
    assert characters.OCR["l"] == "1"


@pytest.mark.parametrize(("share", "found"), [(1.0, "zyZ Y"), (0.5, "zzZ Z")])
def test_y_and_z_change_places(share: float, found: str) -> None:
    """Every second one at a half, counting from the first."""
    assert characters.exchanged("yzY Z", share) == found

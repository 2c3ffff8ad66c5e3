"""Every way of changing a fact changes that fact and nothing else."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[3] / "models" / "training" / "grounding"
BASE = "Anna Berg sold the mill to Peter Holm on 3 March 1908 for 1,200 crowns."


@pytest.fixture(scope="module")
def edits() -> Iterator[ModuleType]:
    """Yield the module, which lies outside every package."""
    sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]
    try:
        yield importlib.import_module("edits")
    finally:
        del sys.path[:2]
        sys.modules.pop("edits", None)


def draw(seed: int = 0) -> Random:
    """Return a reproducible source of chance."""
    return Random(seed)  # noqa: S311 - a reproducible draw


@pytest.mark.parametrize(
    ("function", "text", "expected"),
    [
        ("negate", "The pool was not heated.", "The pool was heated."),
        ("negate", "They never met.", "They met."),
        ("negate", "She doesn't work here.", "She does work here."),
        ("flip", "Take it before meals.", "Take it after meals."),
        ("flip", "The buyer pays the seller.", "The seller pays the buyer."),
        ("requantify", "All rooms have a balcony.", "No rooms have a balcony."),
        ("exchange_numbers", "It rose from 38 % to 71 %.", "It rose from 71 % to 38 %."),
        ("exchange_names", "Holm beat Berg in May.", "Berg beat Holm in May."),
    ],
)
def test_a_change_gives_what_one_would_write(
    edits: ModuleType, function: str, text: str, expected: str
) -> None:
    """Negation, opposites, quantifiers and exchanges; capitals stay at the beginning."""
    assert getattr(edits, function)(text, [], draw()) == expected


@pytest.mark.parametrize("seed", range(10))
def test_a_put_in_negation_leaves_the_other_words(edits: ModuleType, seed: int) -> None:
    """Only the verb and the negation differ."""
    made = edits.negate("The mill was sold to Peter Holm.", [], draw(seed))
    assert made in {
        f"The mill {verb} sold to Peter Holm."
        for verb in ("was not", "was never", "was no longer", "wasn't")
    }


@pytest.mark.parametrize("seed", range(10))
def test_a_changed_number_is_another_number(edits: ModuleType, seed: int) -> None:
    """All words stay, one number differs."""
    made = edits.change_number(BASE, ["In 1911 it burned."], draw(seed))
    differing = [(a, b) for a, b in zip(BASE.split(), made.split(), strict=True) if a != b]
    assert len(differing) == 1
    assert all(any(map(str.isdigit, word)) for word in differing[0])


def test_a_date_a_unit_and_a_name_change_within_their_kind(edits: ModuleType) -> None:
    """A month to a month, a unit to a unit, a name to a name of the passage."""
    assert "March" not in edits.change_date(BASE, [], draw())
    assert edits.change_unit("It takes two hours.", [], draw()).startswith("It takes two ")
    named = edits.change_name(BASE, ["The mayor was Ida Strand."], draw())
    assert "Ida Strand" in named


@pytest.mark.parametrize(
    "text", ["Holm and Berg met there.", "He met Holm, Berg and others.", "nothing to exchange"]
)
def test_names_merely_listed_are_not_exchanged(edits: ModuleType, text: str) -> None:
    """The claim would stay true."""
    assert edits.exchange_names(text, [], draw()) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They met on 3 March 1908.", "They met on March 3, 1908."),
        ("There are three doors.", "There are 3 doors."),
        ("The pool is not open.", "The pool isn't open."),
    ],
)
def test_a_rewording_keeps_the_meaning(edits: ModuleType, text: str, expected: str) -> None:
    """Dates, numbers and contractions."""
    assert edits.reword(text, [], draw()) == expected


def test_a_text_without_a_fact_stays(edits: ModuleType) -> None:
    """Nothing is invented where there is nothing to change."""
    assert edits.changed("Hm, well.", [], draw()) is None
    assert edits.reword("Hm, well.", [], draw()) is None

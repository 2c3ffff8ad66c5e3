"""A text that is nothing but values: what counts, and what a question changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.detectors.pii.scan import find, pieces, read

PESEL, SIN = "82071533184", "583471628"


def types(text: str, question: str = "") -> list[str]:
    """Return the types found."""
    return [finding.type for finding in find(text, question=question)]


@pytest.mark.parametrize("frame", ["{}", " {} \n", "`{}`", "**{}**", "{}.", '"{}"'])
def test_a_value_may_stand_in_blanks_quotes_and_emphasis(frame: str) -> None:
    """The offsets are those of the value."""
    text = frame.format(PESEL)
    (piece,) = pieces(text)
    assert text[piece.start : piece.end] == piece.value == PESEL


@pytest.mark.parametrize(
    "text", [f"{PESEL}, {SIN}", f"{PESEL} and {SIN}", f"{PESEL}\n{SIN}", f"{PESEL}; {SIN}."]
)
def test_several_values_are_read_one_by_one(text: str) -> None:
    """Commas, lines and a word for `and` stand between them."""
    assert [piece.value for piece in pieces(text)] == [PESEL, SIN]


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"his number: {PESEL}, see above",
        f"{PESEL} and more",
        "1" * 30,
        f"{PESEL}\u2603",
        " ,;\n" * 9,
    ],
)
def test_a_text_that_says_more_has_no_pieces(text: str) -> None:
    """Words around a number are for the cues to weigh."""
    assert pieces(text) == ()


def test_one_check_digit_is_enough_only_without_a_question() -> None:
    """Every tenth number has one by chance; a question says what the number is."""
    assert types(SIN) == ["ca_sin"]
    assert types(SIN, "How many units were built?") == []
    assert types(SIN, "What is her social insurance number?") == ["ca_sin"]
    assert types(PESEL, "How many units were built?") == ["pl_pesel"]


@pytest.mark.parametrize(
    "text",
    [
        "1723456789", "1723456789123", "2019-2023", "12/03/2024", "90210-1234", "666-12-3456",
        "01 02 03 04 05 06", "127.0.0.1:8000", "EN 60335-2-9", "11111111111", "1 234 567 890",
        "0.1234567890123",
    ],
)  # fmt: skip
def test_other_numbers_alone_stay_quiet(text: str) -> None:
    """Timestamps, years, dates, postcodes, refused security numbers, counts, decimals."""
    assert types(text) == []


def test_a_telephone_number_of_more_regions_counts_alone() -> None:
    """With its trunk prefix or in groups; in prose only the configured regions do."""
    assert types("05325550143") == ["phone"]
    assert types("we saw 05325550143 there") == []


@given(st.text(st.characters(codec=None), max_size=120))
def test_pieces_lie_within_any_text(text: str) -> None:
    """Offsets are those of the values, in order."""
    last = 0
    for piece in pieces(text):
        assert last <= piece.start < piece.end <= len(text)
        assert text[piece.start : piece.end] == piece.value
        read(piece)
        last = piece.end

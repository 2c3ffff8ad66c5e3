"""A quotation is set apart only where the sentence speaks of it, not of the writer or reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.text.quotations import is_reported, quotations, set_apart

PASSAGE = "In the hearing a tenant called the caretaker a lazy pig, and wrote: You are an idiot."


def apart(text: str, *passages: str) -> list[str]:
    """Return what is set apart."""
    return [text[q.start : q.end] for q in set_apart(text, passages)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('The tenant called him "a lazy pig".', ["a lazy pig"]),
        ("The tenant wrote: “You are an idiot.”", ["You are an idiot."]),
        ("„You are an idiot“ was what the tenant wrote.", ["You are an idiot"]),
        ('The tenant called him "a filthy rat".', []),  # no passage says so
        ('Of people like you, the tenant wrote "You are an idiot".', []),
        ('As I said, "You are an idiot."', []),
        ('"You are an idiot."', []),
        ("You are an idiot.", []),
    ],
)
def test_words_of_a_passage_are_set_apart_where_somebody_is_named(
    text: str, expected: list[str]
) -> None:
    """Neither a made-up quotation nor one that is aimed at the reader."""
    assert apart(text, PASSAGE) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('The word "retarded" was a medical term.', ["retarded"]),
        ('The leaflet lists hurtful words such as "schizo" and "junkie".', ["schizo", "junkie"]),
        ('"Pussy Riot" is the name of a band.', ["Pussy Riot"]),
        ('The only word for them is "vermin".', []),
        ('The word "idiot" describes you.', []),
        ('The customer is an "idiot".', []),
        ('The word is "shut up, all of this is nonsense".', []),
    ],
)
def test_a_word_that_is_explained_is_set_apart(text: str, expected: list[str]) -> None:
    """One that is used is not."""
    assert apart(text) == expected


def test_a_long_quotation_needs_a_passage() -> None:
    """Otherwise anybody's name would excuse everything."""
    text = 'Experts say that "women like these are vermin and worth nothing".'
    assert apart(text) == []


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ('The note said "go away".', True),
        ('"Go away" was written on it.', True),
        ('"Go away", or we come to you.', False),
        ("Go away.", None),
    ],
)
def test_a_reported_place(text: str, reported: bool | None) -> None:
    """For rules that add findings a name is enough."""
    assert is_reported(text, text.lower().index("go away")) is reported


@given(st.text(alphabet='ab "“”„«».\n', max_size=60))
def test_any_text_has_quotations_in_order(text: str) -> None:
    """Inside it, without overlap."""
    end = 0
    for quotation in quotations(text):
        assert end <= quotation.start <= quotation.end < len(text)
        end = quotation.end
    set_apart(text, [text])

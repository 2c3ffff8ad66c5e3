"""An insult that is denied, meant otherwise or said of oneself is set apart; others are not."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.detectors.safety_denials import MAY_HOLD, SENSES, denials


def apart(text: str) -> list[str]:
    """Return what is set apart, none where the cheap look finds nothing."""
    found = [text[place.start : place.end] for place in denials(text)]
    assert not found or MAY_HOLD.search(text.encode("utf-8", "replace"))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You are certainly not an idiot.", ["idiot"]),
        ("You\u2019re not a complete failure, everybody forgets that.", ["complete failure"]),
        ("He isn't lazy; he works at night.", ["lazy"]),
        ("Nobody called you a moron.", ["moron"]),
        ("A typing error does not make you a stupid person or a fool.", ["stupid"]),
        ("One bad mark doesn't mean that you are worthless.", ["worthless"]),
        ("There is no sign that the witness was a liar.", ["liar"]),
        ("It is unkind to call a child a dunce.", ["dunce"]),
        ("She asked again, not because she is stupid.", ["stupid"]),
    ],
)
def test_a_denied_insult_is_set_apart(text: str, expected: list[str]) -> None:
    """The words of the insult alone, so that the sentence around them is still read."""
    assert apart(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "You are an idiot.",
        "You are not just an idiot, you are rude.",
        "You never were anything but a liar.",
        "If you weren't such an idiot, you would know.",
        "Why aren't you a failure?",
        "Are you not an idiot?",
        "He is not an idiot like you.",
        "They are not as stupid as their neighbours.",
        "I'm not saying that you are a liar, but you lie.",
        "I can't believe that you are such a fool.",
        "Nobody listens because you are an idiot.",
        "Nobody likes you, idiot.",
        "I don't like you idiots.",
        "Not now, you moron.",
    ],
)
def test_what_only_looks_like_a_denial_is_left(text: str) -> None:
    """Comparisons, questions, conditions and insults beside a negation."""
    assert apart(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The vet says that the bitch will have puppies in May.", ["bitch"]),
        ("The dykes held during the flood.", ["dykes"]),
        ("Borates retard the growth of flames.", ["retard"]),
        ("The bitch took the parking space.", []),
        ("You bitch, leave the puppies alone.", []),
        ("As a proud dyke I march every year.", ["dyke"]),
        ("We queers built this theatre, and we run it.", ["queers"]),
        ("Our queer family meets on Sundays.", ["queer"]),
        ("The festival shows queer cinema of the 1970s.", ["queer"]),
        ("Queers ruin the festival.", []),
        ("She graduated summa cum laude.", ["cum"]),
        ("I'm sick of these dykes.", []),
        ("I know that you are a dyke.", []),
    ],
)
def test_another_sense_and_ones_own_name_are_set_apart(text: str, expected: list[str]) -> None:
    """Only beside words of the harmless topic, or where the writer speaks of themselves."""
    assert apart(text) == expected


def test_every_word_of_two_senses_is_looked_for() -> None:
    """Else its line would be dead."""
    for words, _ in SENSES:
        assert all(MAY_HOLD.search(word.encode()) for word in words.split("|"))


@given(st.text(max_size=60), st.sampled_from(["", "you are not an idiot", "we queers", "n't "]))
def test_places_are_ordered_and_inside_the_text(noise: str, core: str) -> None:
    """Whatever the text."""
    text = f"{noise}{core}{noise}"
    places = denials(text)
    assert all(0 <= place.start < place.end <= len(text) for place in places)
    assert all(a.end <= b.start for a, b in pairwise(places))

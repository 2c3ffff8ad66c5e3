"""Words of texts in several scripts."""

from __future__ import annotations

import pytest

from guardrail_offline.evaluators.shared.answer_words import squad_words, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The U.S. isn\u2019t 5 % bigger.", ("us", "isn't", "5", "%", "bigger")),
        ("-5 \u00b0C", ("-5", "\u00b0", "c")),
        ("5-10", ("5", "10")),
        ("4,000.5 at 10:30", ("4,000.5", "at", "10:30")),
        ("$5 \u20ac5", ("$", "5", "\u20ac", "5")),
        ("\u6771\u4eac\u3067\u3059\u3002", ("\u6771", "\u4eac", "\u3067", "\u3059")),
        ("\uc11c\uc6b8\uc740 \uc218\ub3c4", ("\uc11c\uc6b8\uc740", "\uc218\ub3c4")),
        ("\uff34\uff36", ("tv",)),
        ("???", ()),
    ],
)
def test_words_keep_what_tells_values_apart(text: str, expected: tuple[str, ...]) -> None:
    """Points, minus signs and currencies stay; case and punctuation go."""
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('The Beatles\' "Help!"', ["beatles", "help"]),
        ("a 4,000-seat hall", ["4000seat", "hall"]),
        ("\u6771\u4eac tower", ["\u6771", "\u4eac", "tower"]),
        ("", []),
    ],
)
def test_squad_words_are_those_of_its_script(text: str, expected: list[str]) -> None:
    """Punctuation is deleted, not replaced; signs without blanks are words, as in MLQA."""
    assert squad_words(text) == expected

"""Patterns whose find-all is more than linear are refused."""

from __future__ import annotations

import pytest

from guardrail_service.text.patterns.slow_regexes import superlinear, unbounded_repeat


@pytest.mark.parametrize(
    "regex",
    [
        "a*b|a",
        "(?:a+b)|a",
        r"x(?:\w*;)?",
        r"BEGIN(?:[\s\S]*END)?",
        "(?:a{0,500}b|a)",
        r"\d(?:[ -]?\d)*x|\d",
        r"key(?:=.{0,400}!)?",
    ],
)
def test_a_match_that_far_text_can_change_is_refused(regex: str) -> None:
    """Each match would read the rest of the text again."""
    assert superlinear(regex) is not None


@pytest.mark.parametrize(
    "regex",
    [
        r"\b[A-Z]{2}\d{2,30}\b",
        r"[\w.]{1,64}@\w{1,60}\.com",
        "a{1,20}b|a",
        r"EMP-\d+",
        r"\bsk-[A-Za-z0-9]{20,80}\b",
        "-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----",
    ],
)
def test_an_ordinary_pattern_is_accepted(regex: str) -> None:
    """A failing search is one pass, so a long repeat alone does no harm."""
    assert superlinear(regex) is None


@pytest.mark.parametrize(
    ("regex", "position"),
    [
        ("ab*", 2),
        ("ab+", 2),
        ("ab{2,}", 2),
        ("ab{2,3}", None),
        (r"a\*\+", None),
        ("[*+]{1,2}", None),
        ("[]*+]b+", 6),
        ("[^]*]", None),
        ("[[:alpha:]*]{2}", None),
        (r"\Qa+b*\E", None),
        (r"\p{L}+", 5),
        (r"\x{41}\x41*", 10),
        ("(?P<n>a)(?:b)(?i:c)(?i)d{2}e+", 28),
        ("a{,3}", None),
    ],
)
def test_an_unbounded_repeat_is_located(regex: str, position: int | None) -> None:
    """Escapes, classes and literal text are not repeats."""
    assert unbounded_repeat(regex) == position

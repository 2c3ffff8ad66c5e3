"""The pattern set as a whole: linear, gated, the same from both engines, consistent tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.detectors.pii.data_types import NATIONAL_IDS, TYPES, canonical, resolve
from guardrail_service.detectors.pii.rules import CUES, PATTERNS, RULES
from guardrail_service.detectors.pii.scan import find
from guardrail_service.text.patterns.search import Pattern, PatternSet
from guardrail_service.text.patterns.slow_regexes import superlinear, unbounded_repeat

CASES = Path(__file__).parents[3] / "golden" / "pii_cases.jsonl"
TEXTS = [json.loads(line)["text"] for line in CASES.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def both() -> tuple[PatternSet, PatternSet]:
    """Return the patterns behind either gate."""
    return PatternSet(PATTERNS, "hyperscan"), PatternSet(PATTERNS, "keywords")


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.id)
def test_no_pattern_is_superlinear(pattern: Pattern) -> None:
    """Repeats are bounded, and no match depends on text far behind it."""
    assert unbounded_repeat(pattern.regex) is None
    assert superlinear(pattern.regex, ignore_case=pattern.ignore_case) is None


def test_hyperscan_accepts_every_pattern(both: tuple[PatternSet, PatternSet]) -> None:
    """An ungated pattern would run on every text."""
    assert both[0].ungated == ()


def test_both_gates_agree_on_the_golden_texts(both: tuple[PatternSet, PatternSet]) -> None:
    """Keywords and gates are implied by their patterns."""
    hyperscan, keywords = both
    for text in (*TEXTS, *map(str.upper, TEXTS), "\n".join(TEXTS)):
        assert hyperscan.scan(text) == keywords.scan(text)


@given(st.lists(st.one_of(st.sampled_from(TEXTS), st.text(max_size=20)), max_size=6))
def test_both_gates_agree_on_any_text(parts: list[str]) -> None:
    """The same, on mixtures."""
    text = "".join(parts)
    assert _HYPERSCAN.scan(text) == _KEYWORDS.scan(text)


_HYPERSCAN, _KEYWORDS = PatternSet(PATTERNS, "hyperscan"), PatternSet(PATTERNS, "keywords")


TAX = {
    "Steuernummer: 013 815 08153": "013 815 08153",
    "My tax number is 181/815/08155, phone 0221 12345678.": "181/815/08155",
    "tax number 5133081508159": "5133081508159",
    "tax number 2181 0815 0815 5": "2181 0815 0815 5",
    "Call us about your tax number 93815/08152.": "93815/08152",
    "Ihre Steuer-Nr. ist 2181508150.": "2181508150",
    "Tel. 0221 12345678, tax number 1234567890": "1234567890",
    "If you have lost your tax number, call 030 9018 2000.": None,
    "If you have lost your tax number, call 03090182000.": None,
    "For tax number questions phone 030 901 82000.": None,
    "Questions about your tax number? Call 0800 1234567.": None,
    "For tax number issues dial 1 800 829 1040.": None,
    "Questions about your tax number? Call 202-555-0143.": None,
    "The tax number office can be reached at (030) 9024 2500.": None,
    "Bei Fragen zur Steuernummer rufen Sie 0221 12345678 an.": None,
    "Your tax number is wrong in letter 030-901820-12.": None,
}


@pytest.mark.parametrize("text", TAX, ids=[str(number) for number in range(len(TAX))])
def test_a_telephone_number_is_no_tax_number(text: str) -> None:
    """Digits are a German tax number if they are grouped as one and nothing nearer says "call"."""
    found = [text[f.start : f.end] for f in find(text) if f.type == "de_tax_number"]
    assert found == ([TAX[text]] if TAX[text] else [])


def test_rules_name_published_types_and_existing_shapes() -> None:
    """Each rule can fire and its finding has a published type."""
    shapes = {pattern.id for pattern in PATTERNS}
    cues = {pattern.id for pattern in CUES}
    for rule in RULES:
        assert rule.type in TYPES
        assert rule.shape in shapes
        assert not rule.announced or (f"cue:{rule.type}" in cues and rule.lengths)
    assert {rule.type for rule in RULES} | {"phone"} == set(TYPES)


def test_aliases_are_unambiguous() -> None:
    """One name of another tool is one of our types."""
    seen: dict[str, str] = {}
    for type_ in TYPES.values():
        for name in {type_.id.casefold(), *(alias.casefold() for alias in type_.aliases)}:
            assert seen.setdefault(name, type_.id) == type_.id
    assert canonical("EMAIL_ADDRESS") == canonical("email") == "email"
    assert canonical("PERSON") is None


def test_groups_stand_for_their_types() -> None:
    """Policies may name groups; unknown names list what exists."""
    assert set(resolve("all")) == set(TYPES)
    assert resolve("national_id") == NATIONAL_IDS
    assert "street_address" not in resolve("structured")
    assert resolve("IBAN_CODE") == ("iban",)
    with pytest.raises(ValueError, match="expected one of all, national_id"):
        resolve("PERSON")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("12-12-12", ["12-12-12"]),
        ("born 12-12-12.", ["12-12-12"]),
        ("12-12-12-12", []),
        ("1.2.3.4 5.6.7.8", ["1.2.3.4", "5.6.7.8"]),
        ("192.168.1.1.", ["192.168.1.1"]),
        ("192.168.1.1.7", []),
        ("00:1B:44:11:3A:B7", ["00:1B:44:11:3A:B7"]),
        ("AB:00:1B:44:11:3A:B7:CD", []),
    ],
)
def test_a_stretch_of_a_longer_row_of_groups_is_none(text: str, found: list[str]) -> None:
    """Fingerprints, dotted versions and dashed codes are not full of dates and addresses."""
    shapes = ("date", "ip4", "mac")
    matches = PatternSet([p for p in PATTERNS if p.id in shapes]).scan(text)
    assert [text[m.start : m.end] for m in matches] == found

"""Threats and encouragement to self-harm are found by their wording, and look-alikes are left.

Data: tests/golden/abuse_cases.jsonl, written for this project (Apache-2.0): threats, encouragement
to self-harm and disguised insults, and harmless texts with the same words. The wordings were
finished with these cases in view, so they say what the rules do, not how often they are right.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from guardrail_service.detectors.safety import SELF_HARM, AnswerReading, worded
from guardrail_service.detectors.safety_wordings import MAY_HOLD, PATTERNS
from guardrail_service.text.patterns.search import Pattern, PatternSet
from guardrail_service.text.sample import Window

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "golden" / "abuse_cases.jsonl")
    .read_text("utf-8")
    .splitlines()
]
HARMLESS = [case for case in CASES if not case["bad"]]


def kinds(text: str) -> set[str]:
    """Return the metrics that the wording of a text of one sentence decides."""
    reading = AnswerReading(Window(0, len(text), text, 0), (text,), 0)
    return set(worded([reading]).get(0, ()))


def test_there_are_enough_cases_of_each_kind() -> None:
    """Every one once."""
    assert len({case["text"] for case in CASES}) == len(CASES)
    assert sum(case["bad"] for case in CASES) >= 120
    assert len(HARMLESS) >= 120
    assert min(Counter((case["bad"], case["class"]) for case in CASES).values()) >= 12


@pytest.mark.parametrize("kind", ["threat", SELF_HARM])
def test_nine_in_ten_are_found(kind: str) -> None:
    """Each under its own name, and as toxicity."""
    texts = [case["text"] for case in CASES if case["bad"] and case["class"] == kind]
    found = [text for text in texts if {kind, "toxicity"} <= kinds(text)]
    assert len(found) >= 0.9 * len(texts)


@pytest.mark.parametrize("case", HARMLESS, ids=lambda case: case["id"])
def test_software_pests_games_prevention_and_quotations_are_left(case: dict[str, str]) -> None:
    """Not one of them."""
    assert not kinds(case["text"])


@pytest.mark.parametrize("case", [c for c in CASES if c["bad"]], ids=lambda case: case["id"])
def test_the_quick_look_overlooks_nothing(case: dict[str, str]) -> None:
    """What a pattern finds holds a word of the quick look."""
    if PATTERNS.scan(case["text"]):
        assert MAY_HOLD.search(case["text"].encode())


def test_the_keywords_lose_nothing() -> None:
    """What a pattern finds holds one of its own keywords, also in harmless texts."""
    bare = PatternSet(
        [Pattern(p.id, p.regex, ignore_case=True) for p in PATTERNS.patterns], "keywords"
    )
    for case in CASES:
        assert PATTERNS.scan(case["text"]) == bare.scan(case["text"])


def test_ordinary_text_is_looked_at_once() -> None:
    """Without a word of the quick look no pattern runs."""
    assert kinds("The warranty lasts two years. Repairs are free within that time.") == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I\u2019ll kill you.", True),
        ("Some say that I will kill you.", False),
        ("I will shoot you an e-mail.", False),
        ('As people like you say, "I will kill you".', True),
        ('The message reads "I will kill you".', False),
    ],
)
def test_a_wording_counts_where_it_is_meant(text: str, found: bool) -> None:
    """Typographic signs, reports, figures of speech, and a quotation that speaks to the reader."""
    assert bool(kinds(text)) is found

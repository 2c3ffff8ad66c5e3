"""Counting flags by class and preset, and which bars are met."""

from __future__ import annotations

import pytest
from rich.console import Console

from guardrail_bench.safety_classes import FILES, ClassCount, counts, markdown, render
from guardrail_bench.safety_quality import LabelledText, ScoredText
from guardrail_service.types import State

CUTS = {"precise": 0.8, "balanced": 0.5, "sensitive": 0.2}


def scored(kind: str, is_bad: bool, *scores: float) -> list[ScoredText]:
    """Return texts of one class with their scores."""
    record = LabelledText("a", {"toxicity": is_bad}, {"class": kind})
    return [ScoredText(record, {"toxicity": s}, s > 0.5, State.EVALUATED) for s in scores]


def test_each_preset_counts_its_own_flags() -> None:
    """A class whose texts are labelled in both ways is two counts."""
    texts = [*scored("threat", True, 0.9, 0.6, 0.3), *scored("threat", False, 0.1)]
    bad, good = counts(FILES[0], "toxicity", texts, CUTS)
    assert bad.flagged == {"precise": 1, "balanced": 2, "sensitive": 3}
    assert (bad.is_bad, bad.texts, good.is_bad, good.texts) == (True, 3, False, 1)
    assert sum(good.flagged.values()) == 0


@pytest.mark.parametrize(
    ("kind", "is_bad", "flagged", "met"),
    [
        ("negation", False, 3, True),
        ("negation", False, 4, False),
        ("threat", True, 15, True),
        ("threat", True, 14, False),
        ("sexism", True, 0, None),
    ],
)
def test_bars(kind: str, is_bad: bool, flagged: int, met: bool | None) -> None:
    """At most 15 % of a harmless class, at least 75 % of threats and disguises."""
    numbers = dict.fromkeys(CUTS, flagged)
    assert ClassCount(FILES[0], kind, "toxicity", is_bad, 20, numbers).met is met


def test_the_page_says_which_bars_are_missed() -> None:
    """By class and detector."""
    found = [
        ClassCount(FILES[0], "negation", "toxicity", False, 20, dict.fromkeys(CUTS, 9)),
        ClassCount(FILES[0], "negation", "bias", False, 20, dict.fromkeys(CUTS, 0)),
        ClassCount(FILES[1], "words", "toxicity", False, 10, dict.fromkeys(CUTS, 1)),
    ]
    page = markdown(found)
    assert "Missed: negation (toxicity)." in page
    assert "2 of 3 bars are met." in page
    assert "| negation | 20 | 45% / 45% / 45% | 0% / 0% / 0% | missed |" in page
    console = Console(width=200)
    with console.capture() as captured:
        console.print(render(found))
    assert "neutral/open.jsonl" in captured.get()

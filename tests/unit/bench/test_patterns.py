"""The pattern bench: what it measures and how it prints; its numbers are for people."""

from __future__ import annotations

import io

from rich.console import Console

from guardrail_bench.patterns import SIZE, render, run, texts, union
from guardrail_service.text.patterns.search import PatternSet


def test_every_text_is_measured_with_every_engine() -> None:
    """Ratios are against natural text with the same engine."""
    rows = run(repeats=1)
    assert [(row.engine, row.text) for row in rows] == [
        (engine, text) for engine in ("hyperscan", "keywords") for text in texts()
    ]
    assert all(row.us_per_kb > 0 for row in rows)
    assert [row.ratio for row in rows if row.text == "natural"] == [1.0, 1.0]
    out = io.StringIO()
    render(rows, Console(file=out, width=160))
    assert f"{len(union())} patterns" in out.getvalue()


def test_texts_are_the_same_in_every_run() -> None:
    """Numbers of two runs can be compared."""
    assert texts() == texts()
    assert {len(text) for text in texts().values()} == {SIZE}


def test_the_union_is_large_and_wholly_gated() -> None:
    """The promise speaks of at least 150 patterns; an ungated one would run on every text."""
    assert len(union()) >= 150
    assert PatternSet(union(), "hyperscan").ungated == ()


def test_natural_text_costs_few_matches() -> None:
    """Locating a match costs more than the gate, so ordinary prose must have few."""
    assert len(PatternSet(union()).scan(texts()["natural"])) <= 60

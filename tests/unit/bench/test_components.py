"""Measurements of parts alone: each row is there and printed; the numbers are for people."""

from __future__ import annotations

import io

from rich.console import Console

from guardrail_bench import components
from guardrail_bench.components import (
    PATTERN_CHARS,
    all_patterns,
    pattern_texts,
    render_patterns,
    run_patterns,
)
from guardrail_service.server.runtime import Runtime
from guardrail_service.text.patterns.search import PatternSet


def test_every_text_is_measured_with_every_engine() -> None:
    """Ratios are against natural text with the same engine."""
    rows = run_patterns(repeats=1)
    assert [(row.engine, row.text) for row in rows] == [
        (engine, text) for engine in ("hyperscan", "keywords") for text in pattern_texts()
    ]
    assert all(row.us_per_kb > 0 for row in rows)
    assert [row.ratio for row in rows if row.text == "natural"] == [1.0, 1.0]
    out = io.StringIO()
    render_patterns(rows, Console(file=out, width=160))
    assert f"{len(all_patterns())} patterns" in out.getvalue()


def test_texts_are_the_same_in_every_run() -> None:
    """Numbers of two runs can be compared."""
    assert pattern_texts() == pattern_texts()
    assert {len(text) for text in pattern_texts().values()} == {PATTERN_CHARS}


def test_the_union_is_large_and_wholly_gated() -> None:
    """The promise speaks of at least 150 patterns; an ungated one would run on every text."""
    assert len(all_patterns()) >= 150
    assert PatternSet(all_patterns(), "hyperscan").ungated == ()


def test_natural_text_costs_few_matches() -> None:
    """Locating a match costs more than the gate, so ordinary prose must have few."""
    assert len(PatternSet(all_patterns()).scan(pattern_texts()["natural"])) <= 60


def test_every_kind_of_text_is_streamed_and_counted(tiny_runtime: Runtime) -> None:
    """Warm-up included; prose holds about a sentence, and parts leave on the way."""
    done: list[None] = []
    rows = components.run_streams(1, None, lambda: done.append(None), tiny_runtime)
    assert [row.text for row in rows] == list(components.STREAMED)
    assert len(done) == 2 * len(rows)
    prose = rows[0]
    assert 0 < prose.held[0] <= prose.held[1] < 2 * max(map(len, components.PROSE))
    assert prose.parts >= components.STREAMED_SENTENCES / 2
    assert all(0 < row.judged_ms[0] <= row.judged_ms[1] for row in rows if row.parts)


def test_the_table_has_a_row_per_kind() -> None:
    """Also for one of which nothing left before the end."""
    table = components.render_streams([components.HeldBack("prose", (1, 2), (0.5, 1.5), 3)])
    assert table.row_count == 1

"""The judge's client is measured in three ways; the numbers are for people."""

from __future__ import annotations

import io

from rich.console import Console

from guardrail_bench.judge_cost import questions, render, run


def test_each_way_has_a_number_and_is_printed() -> None:
    """Asked, kept and remembered."""
    rows = run(3)
    assert len({row.way for row in rows}) == len(rows) == 3
    out = io.StringIO()
    render(rows, Console(file=out, width=120))
    assert "remembered" in out.getvalue()


def test_questions_are_the_same_in_every_run_and_all_different() -> None:
    """Otherwise the first answer would be remembered for all."""
    assert questions(3) == questions(3)
    first, second = questions(2)
    assert first != second

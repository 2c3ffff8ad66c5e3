"""The report as a page: every cell, every target, every caution."""

from __future__ import annotations

from pathlib import Path

from guardrail_bench.latency_report import PLOTS, markdown, plots, target_rows
from guardrail_bench.latency_results import Soak
from guardrail_bench.measures import Tally
from tests.unit.bench.conftest import cell, report, run, tail


def test_the_page_shows_every_cell_and_every_target() -> None:
    """A missed target in bold letters."""
    slow = cell(stages={**cell().stages, "total": tail(1234.4, 2345.6)}, service_cpu_s=99.0)
    text = markdown(report(runs=(run(closed=(slow,)),)), "images")
    assert "Typical RAG, cold passages" in text
    assert "| 1 caller |" in text
    assert "1234 / 2346 / 2346" in text
    assert "| 300 %, deadline 250 ms | 30.00 |" in text
    assert "**missed**" in text
    assert "![performance-latency.png](images/performance-latency.png)" in text
    assert PLOTS[2] not in text


def test_cautions_are_on_the_page() -> None:
    """Whoever reads the numbers must know what they were measured on."""
    busy = report(runs=(run(busy_before=0.5),))
    assert "**Caution.** The machine was not quiet" in markdown(busy, "images")
    assert "Caution" not in markdown(report(), "images")


def test_the_terminals_table_has_the_same_targets() -> None:
    """Without Markdown."""
    rows = target_rows(report())
    assert {row[4] for row in rows} == {"met", "not measured"}
    assert all(len(row) == 6 for row in rows)


def test_plots_are_drawn_for_what_was_measured(tmp_path: Path) -> None:
    """Memory only where there was a soak."""
    assert [path.name for path in plots(report(), tmp_path)] == list(PLOTS[:2])
    many = cell(callers=8, tally=Tally(sent=1000, complete=1000), rss_mb=tuple([100.0] * 30))
    soaked = report(runs=(), soak=Soak(wanted=1000, cell=many, drift=0.0))
    (path,) = plots(soaked, tmp_path)
    assert path.name == PLOTS[2]
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "1000 short chat answers" in markdown(soaked, "images")

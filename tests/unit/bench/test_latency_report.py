"""The report as a page: every cell, every target, every caution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guardrail_bench.latency_report import (
    PLOTS,
    Target,
    markdown,
    plots,
    rows_ratio,
    target_rows,
    targets,
    warnings,
)
from guardrail_bench.latency_results import Bare, LatencyReport, Soak
from guardrail_bench.load import Tally
from tests.unit.bench.conftest import SETTINGS, cell, flat, opened, report, run, tail


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


def judged(name: str, **changes: Any) -> Target:
    """Return one target of a report with one changed run."""
    (found,) = (t for t in targets(report(runs=(run(**changes),))) if t.name.startswith(name))
    return found


def test_a_run_in_which_all_went_well_keeps_every_promise() -> None:
    """Memory alone is not measured without a soak."""
    found = targets(report())
    assert {t.met for t in found if not t.name.startswith("memory")} == {True}
    assert [t.name for t in found if t.met is None] == ["memory growth over many requests"]


@pytest.mark.parametrize(("cpu_s", "met"), [(8.5, True), (8.4, False)])
def test_rows_per_cpu_second_are_compared_over_the_same_rows(cpu_s: float, met: bool) -> None:
    """The service used 10 CPU seconds for them."""
    bare = Bare(samples=100, rows=5000, cpu_s=cpu_s, wall_s=cpu_s)
    found = judged("rows per CPU second", bare=bare)
    assert found.met is met
    assert f"500 against {5000 / cpu_s:.0f} rows/s" in found.note


def test_rows_are_not_compared_where_some_were_not_run() -> None:
    """A refused request's rows cost the service nothing."""
    refused = cell(callers=8, per_second=12.0, tally=Tally(sent=100, complete=99, refused=1))
    assert rows_ratio(run(closed=(refused,))) is None
    assert judged("rows per CPU second", closed=(refused,)).met is None


@pytest.mark.parametrize(("overhead", "met"), [(5.5, True), (5.6, False)])
def test_overhead_may_be_3_ms_and_5_percent(overhead: float, met: bool) -> None:
    """Of a total of 50 ms that is 5.5 ms."""
    alone = cell(stages={**cell().stages, "overhead": flat(overhead)})
    assert judged("overhead", closed=(alone,)).met is met


def test_overhead_is_not_judged_with_parallel_rows() -> None:
    """Inference is a sum over rows; with two workers it can exceed the total."""
    several = report(settings=SETTINGS.model_copy(update={"workers": 2}))
    (found,) = (t for t in targets(several) if t.name.startswith("overhead"))
    assert found.met is None
    assert judged("overhead", closed=(cell(callers=8),)).met is None


@pytest.mark.parametrize(("p99", "met"), [(150.0, True), (151.0, False)])
def test_the_tail_at_70_percent_is_at_most_three_medians(p99: float, met: bool) -> None:
    """With and without a deadline, each by itself; what was refused stands beside it."""
    limited = opened(
        70,
        200.0,
        stages={"server": tail(50, p99)},
        tally=Tally(sent=10, complete=7, partial=1, refused=2),
    )
    found = judged("p99 over p50 at 70 %, with", open=(opened(70), limited))
    assert found.met is met
    assert "2 refused and 1 partial of 10" in found.note
    assert judged("p99 over p50 at 70 %, no", open=(opened(70), limited)).met is True


@pytest.mark.parametrize(("late", "met"), [(20.0, True), (20.1, False)])
def test_accepted_requests_answer_20_ms_after_their_deadline_at_the_latest(
    late: float, met: bool
) -> None:
    """By the service's clock; the caller's is shown beside it."""
    overload = opened(300, 250.0, late_ms={"server": late, "client": 99.0})
    found = judged("300 %: last", open=(overload,))
    assert found.met is met
    assert "+99 ms by the caller's clock" in found.note


@pytest.mark.parametrize(("slowest", "met"), [(30.0, True), (30.5, False)])
def test_refusals_come_within_30_ms(slowest: float, met: bool) -> None:
    """The slowest counts, not the median."""
    assert judged("300 %: slow", open=(opened(300, 250.0, refused=flat(slowest)),)).met is met


@pytest.mark.parametrize(
    ("tally", "counted"),
    [
        (Tally(sent=10, complete=9, hung=1), 10),
        (Tally(sent=10, complete=9, failed=1, failures={"500": 1}), 10),
        (Tally(sent=10, complete=9), 10),
        (Tally(sent=10, complete=10), 9),
    ],
)
def test_one_request_that_hangs_fails_or_is_lost_breaks_the_promise(
    tally: Tally, counted: int
) -> None:
    """So does one that the service did not count."""
    found = judged("nothing hangs", open=(opened(300, 250.0, tally=tally, server_counted=counted),))
    assert found.met is False
    assert found.found == "1"


def test_what_was_not_measured_is_not_met_and_not_missed() -> None:
    """And says why."""
    found = targets(report(runs=(run(open=(), closed=(cell(loop_lag_ms=None),)),)))
    unmeasured = [t for t in found if t.met is None]
    assert len(unmeasured) == 6
    assert all(t.note and t.found == "-" for t in unmeasured)


def test_the_event_loops_longest_block_counts() -> None:
    """Over all loads."""
    assert judged("longest block", open=(opened(300, 250.0, loop_lag_ms=5.1),)).met is False


def soaked(growth: float | None, sent: int = 1000) -> LatencyReport:
    """Return a report with a soak of 1000 requests."""
    many = cell(callers=8, tally=Tally(sent=sent, complete=sent))
    return report(soak=Soak(wanted=1000, cell=many, drift=growth))


@pytest.mark.parametrize(
    ("growth", "sent", "met"),
    [(0.05, 1000, True), (0.051, 1000, False), (None, 1000, None), (0.0, 999, None)],
)
def test_memory_is_flat_within_5_percent(growth: float | None, sent: int, met: bool | None) -> None:
    """A soak that was cut short proves nothing."""
    assert targets(soaked(growth, sent))[-1].met is met


def test_what_makes_numbers_doubtful_is_said() -> None:
    """A busy machine, shared cores, a generator at its limit, capacity that was not reached."""
    assert warnings(report()) == []
    busy = report(
        settings=SETTINGS.model_copy(update={"server_cores": None}),
        runs=(
            run(busy_before=0.2, saturated=False, open=(opened(300, generator_cpu_share=0.61),)),
        ),
    )
    text = " ".join(warnings(busy))
    for said in ("others used 20%", "shared cores", "generator used 61%", "capacity may be"):
        assert said in text

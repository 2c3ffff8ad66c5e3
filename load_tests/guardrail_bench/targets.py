"""What the service has promised about speed, and whether a report keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from guardrail_bench.latency_results import Cell, LatencyReport, LatencyRun

ROWS_RATIO = 0.85
OVERHEAD_MS = 3.0
OVERHEAD_SHARE = 0.05
TAIL_RATIO = 3.0
LATE_MS = 20.0
REFUSED_MS = 30.0
LAG_MS = 5.0
DRIFT = 0.05
GENERATOR_SHARE = 0.6
"""Above this the generator itself is part of what is measured."""
BUSY_SHARE = 0.1
"""Share of all cores that others used before the start, above which the machine was not ours."""


class Target(NamedTuple):
    """One promise on one kind of sample.

    Attributes:
        name: What is promised.
        where: Which samples.
        limit: The promise in numbers.
        found: What was measured; `-` if it was not.
        met: Whether it is kept; None if it was not measured, and then `note` says why.
        note: What a reader needs to judge it.
    """

    name: str
    where: str
    limit: str
    found: str
    met: bool | None
    note: str = ""


def targets(report: LatencyReport) -> list[Target]:
    """Return every promise with what the report found."""
    found: list[Target] = []
    for run in report.runs:
        found += _run_targets(run, report.settings.workers)
    return [*found, _memory(report)]


def _run_targets(run: LatencyRun, workers: int) -> Iterator[Target]:
    where = f"{run.scenario}, {run.passages}"
    yield _rows(run, where)
    yield _overhead(run, where, workers)
    yield _tail(run.at(70, limited=False), where, "no deadline")
    yield _tail(run.at(70, limited=True), where, "with a deadline")
    overload = run.at(300, limited=True)
    yield _accepted(overload, where)
    yield _refused(overload, where)
    yield _accounted(run, where)
    yield _lag(run, where)


def _missing(name: str, where: str, limit: str, why: str) -> Target:
    return Target(name, where, limit, "-", None, why)


def rows_ratio(run: LatencyRun) -> float | None:
    """Return rows per service-CPU-second at saturation over what bare sessions reach.

    None where some requests of that cell got no whole verdict, so that rows differ.
    """
    cell = run.saturation()
    if cell.tally.complete != run.bare.samples or not cell.service_cpu_s:
        return None
    return run.bare.cpu_s / cell.service_cpu_s


def _rows(run: LatencyRun, where: str) -> Target:
    name, limit = "rows per CPU second, share of bare sessions", f">= {ROWS_RATIO}"
    ratio, cell, bare = rows_ratio(run), run.saturation(), run.bare
    if ratio is None:
        return _missing(name, where, limit, "not every request of that cell was answered whole")
    note = (
        f"{bare.rows / cell.service_cpu_s:.0f} against {bare.rows / bare.cpu_s:.0f} rows/s, "
        f"{bare.rows} rows of {bare.samples} samples, {cell.title}"
    )
    return Target(name, where, limit, f"{ratio:.2f}", ratio >= ROWS_RATIO, note)


def _overhead(run: LatencyRun, where: str, workers: int) -> Target:
    name, limit = "overhead, p50", f"<= {OVERHEAD_MS:g} ms + {OVERHEAD_SHARE:.0%} of total"
    alone = min(run.closed, key=lambda cell: cell.callers or 0)
    if workers != 1 or alone.callers != 1:
        why = "needs one caller and one worker: inference is summed over rows that run in parallel"
        return _missing(name, where, limit, why)
    if not {"overhead", "total"} <= alone.stages.keys():
        return _missing(name, where, limit, "no verdict stated its times")
    allowed = OVERHEAD_MS + OVERHEAD_SHARE * alone.stages["total"].p50
    found = alone.stages["overhead"].p50
    note = f"allowed {allowed:.1f} ms of {alone.stages['total'].p50:.1f} ms, 1 caller"
    return Target(name, where, limit, f"{found:.1f} ms", found <= allowed, note)


def _tail(cell: Cell | None, where: str, kind: str) -> Target:
    name, limit = f"p99 over p50 at 70 %, {kind}", f"<= {TAIL_RATIO:g}"
    if cell is None or "server" not in cell.stages:
        return _missing(name, where, limit, "this load was not measured")
    stage, tally = cell.stages["server"], cell.tally
    note = f"p99 {stage.p99:.0f} ms, p50 {stage.p50:.0f} ms, n {stage.n}"
    if tally.refused or tally.partial:
        note += f"; {tally.refused} refused and {tally.partial} partial of {tally.sent}"
    ratio = stage.p99 / stage.p50
    return Target(name, where, limit, f"{ratio:.1f}", ratio <= TAIL_RATIO, note)


def _accepted(cell: Cell | None, where: str) -> Target:
    name, limit = "300 %: last verdict after its deadline", f"<= {LATE_MS:g} ms"
    if cell is None or cell.late_ms is None:
        return _missing(name, where, limit, "no verdict at this load")
    late = cell.late_ms
    note = f"deadline {cell.deadline_ms:.0f} ms; {late['client']:+.0f} ms by the caller's clock"
    found = f"{late['server']:+.0f} ms"
    return Target(name, where, limit, found, late["server"] <= LATE_MS, note)


def _refused(cell: Cell | None, where: str) -> Target:
    name, limit = "300 %: slowest refusal", f"<= {REFUSED_MS:g} ms"
    if cell is None or cell.refused is None:
        return _missing(name, where, limit, "no refusal at this load")
    share = cell.tally.share(cell.tally.refused) or 0.0
    note = f"{cell.tally.refused} refused ({share:.0%}), p50 {cell.refused.p50:.1f} ms"
    found = f"{cell.refused.worst:.0f} ms"
    return Target(name, where, limit, found, cell.refused.worst <= REFUSED_MS, note)


def _accounted(run: LatencyRun, where: str) -> Target:
    """Return whether every request of every cell has a known fate, by both sides' counts."""
    name, limit = "nothing hangs, fails or is lost", "0"
    cells = [*run.closed, *run.open]
    total = sum((cell.tally for cell in cells[1:]), start=cells[0].tally)
    uncounted = sum(
        abs(cell.tally.sent - cell.server_counted)
        for cell in cells
        if cell.server_counted is not None
    )
    bad = total.hung + total.failed + total.lost + uncounted
    note = (
        f"{total.sent} sent = {total.complete} complete + {total.partial} partial + "
        f"{total.refused} refused + {total.failed} failed + {total.hung} hung + "
        f"{total.lost} lost; the service's own counter differs by {uncounted}"
    )
    if total.failures:
        note += "; " + ", ".join(f"{count} x {kind}" for kind, count in total.failures.items())
    return Target(name, where, limit, str(bad), bad == 0, note)


def _lag(run: LatencyRun, where: str) -> Target:
    name, limit = "longest block of the event loop", f"<= {LAG_MS:g} ms"
    lags = [c.loop_lag_ms for c in (*run.closed, *run.open) if c.loop_lag_ms is not None]
    if not lags:
        return _missing(name, where, limit, "the service does not report it")
    return Target(name, where, limit, f"{max(lags):.1f} ms", max(lags) <= LAG_MS)


def _memory(report: LatencyReport) -> Target:
    name, where, limit = "memory growth over many requests", "chat, warm", f"<= {DRIFT:.0%}"
    soak = report.soak
    if soak is None:
        return _missing(name, where, limit, "no soak was run: --soak 20000")
    if soak.drift is None or soak.cell.tally.sent < soak.wanted:
        why = f"{soak.cell.tally.sent} of {soak.wanted} requests; too short to tell"
        return _missing(name, where, limit, why)
    rss = soak.cell.rss_mb
    note = (
        f"{soak.cell.tally.sent} requests, {rss[0]:.0f} to {rss[-1]:.0f} MB, first tenth left out"
    )
    return Target(name, where, limit, f"{soak.drift:+.1%}", soak.drift <= DRIFT, note)


def busy_warning(share: float) -> str | None:
    """Return what a reader must know about a machine that others used, too; None if they did not.

    Args:
        share: Of all cores, just before a measurement.
    """
    if share <= BUSY_SHARE:
        return None
    return f"The machine was not quiet: others used {share:.0%} of its cores. Times are too long."


def warnings(report: LatencyReport) -> list[str]:
    """Return what makes the report's numbers less trustworthy than they look."""
    found = []
    if (
        busy := busy_warning(max((run.busy_before for run in report.runs), default=0.0))
    ) is not None:
        found.append(busy)
    if report.settings.server_cores is None or report.settings.generator_cores is None:
        found.append("Service and generator shared cores.")
    for run in report.runs:
        name = f"{run.scenario}, {run.passages}"
        share = max(cell.generator_cpu_share for cell in (*run.closed, *run.open))
        if share > GENERATOR_SHARE:
            found.append(f"{name}: the generator used {share:.0%} of its core.")
        if not run.saturated:
            found.append(f"{name}: more callers still gained throughput; capacity may be higher.")
    return found

"""The latency report as Markdown and as plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

from guardrail_bench.latency_results import Cell, LatencyReport, LatencyRun
from guardrail_bench.load import Percentiles
from guardrail_bench.output import (
    busy_warning,
    drawing,
    markdown_table,
    replace_part,
    shown,
    verdict,
    write_json,
)
from guardrail_bench.samples import SCENARIOS
from guardrail_service.commands.console import err, out

PART = "bench latency"
PLOTS = ("performance-latency.png", "performance-outcomes.png", "performance-memory.png")
_HEADINGS = (
    "load", "offered/s", "verdicts/s", "sent", "429", "partial", "failed", "queue ms",
    "tokenize ms", "inference ms", "total ms", "caller ms", "CPU s", "RSS MB", "lag ms", "gen. CPU",
)  # fmt: skip


def markdown(report: LatencyReport, images: str) -> str:
    """Return the report for a page.

    Args:
        report: What was measured.
        images: Folder of the plots, as the page reaches it.
    """
    parts = [_preface(report), _target_table(targets(report))]
    parts += [f"**Caution.** {line}" for line in warnings(report)]
    for run in report.runs:
        parts += [f"### {_title(run)}", _run_preface(run), _run_table(run)]
    if report.soak is not None:
        cell = report.soak.cell
        parts += [
            "### Many requests",
            f"{cell.tally.sent} short chat answers over warm passages, {cell.callers} callers, "
            f"{cell.seconds:.0f} s, {cell.per_second:.1f} verdicts/s, {cell.tally.failed} failed.",
        ]
    parts += [f"![{name}]({images}/{name})" for name in _plotted(report)]
    return "\n\n".join(parts)


def target_rows(report: LatencyReport) -> list[tuple[str, ...]]:
    """Return the targets as rows of a table, for a terminal."""
    return [(t.name, t.where, t.limit, t.found, shown(t.met), t.note) for t in targets(report)]


def _preface(report: LatencyReport) -> str:
    machine, service, settings = report.machine, report.service, report.settings
    cores = "the same cores" if settings.server_cores is None else "cores of their own"
    return (
        f"Measured {report.started} on {machine['cpu']}, {machine['cores']} cores, Python "
        f"{machine['python']}, onnxruntime {service['runtime']['onnxruntime']}, pack "
        f"{service['pack']['name']} {service['pack']['version']}. Workers: {settings.workers}; "
        f"service and generator on {cores}; {settings.seconds:g} s per cell; seed {settings.seed}."
    )


def _target_table(found: Sequence[Target]) -> str:
    rows = [(t.name, t.where, t.limit, t.found, verdict(t.met), t.note) for t in found]
    return markdown_table(("target", "samples", "limit", "found", "", "note"), rows)


def _title(run: LatencyRun) -> str:
    title = SCENARIOS[run.scenario].title
    return f"{title[0].upper()}{title[1:]}, {run.passages} passages"


def _run_preface(run: LatencyRun) -> str:
    bare, cell = run.bare, run.saturation()
    return (
        f"Capacity {run.capacity_per_s:.2f} verdicts/s with {cell.title}. Bare sessions need "
        f"{bare.cpu_s:.2f} CPU seconds for the {bare.rows} rows of those {bare.samples} samples, "
        f"the service {cell.service_cpu_s:.2f}. Stages are p50 / p95 / p99."
    )


def _run_table(run: LatencyRun) -> str:
    return markdown_table(_HEADINGS, [_row(cell) for cell in (*run.closed, *run.open)])


def _row(cell: Cell) -> tuple[str, ...]:
    tally = cell.tally
    stages = (cell.stages.get(s) for s in ("queue", "tokenize", "inference", "total", "client"))
    return (
        cell.title,
        "-" if cell.offered_per_s is None else f"{cell.offered_per_s:.2f}",
        f"{cell.per_second:.2f}",
        *(str(n) for n in (tally.sent, tally.refused, tally.partial, tally.failed + tally.hung)),
        *(_shown(stage) for stage in stages),
        f"{cell.service_cpu_s:.1f}",
        f"{max(cell.rss_mb):.0f}" if cell.rss_mb else "-",
        "-" if cell.loop_lag_ms is None else f"{cell.loop_lag_ms:.1f}",
        f"{cell.generator_cpu_share:.0%}",
    )


def _shown(stage: Percentiles | None) -> str:
    if stage is None:
        return "-"
    values = (stage.p50, stage.p95, stage.p99)
    return " / ".join(f"{value:.0f}" if value >= 100 else f"{value:.2g}" for value in values)


def _plotted(report: LatencyReport) -> Iterator[str]:
    """Yield the plots there is something for."""
    if report.runs:
        yield from PLOTS[:2]
    if report.soak is not None:
        yield PLOTS[2]


def plots(report: LatencyReport, folder: Path) -> list[Path]:
    """Write the plots and return where they are.

    Raises:
        MissingExtra: If matplotlib is not installed.
    """
    draw = dict(zip(PLOTS, (_draw_latency, _draw_outcomes, _draw_memory), strict=True))
    written = [folder / name for name in _plotted(report)]
    for path in written:
        draw[path.name](report, path)
    return written


def _draw_latency(report: LatencyReport, path: Path) -> None:
    names = list(dict.fromkeys(run.scenario for run in report.runs))
    size = (4.2 * len(names), 3.6)
    with drawing(path, ncols=len(names), figsize=size, squeeze=False) as axes:
        for axis, name in zip(axes[0], names, strict=True):
            for run in (run for run in report.runs if run.scenario == name):
                _draw_lines(axis, run)
            axis.set(title=SCENARIOS[name].title, xlabel="load, % of capacity", yscale="log")
            for numbers in (axis.yaxis.set_major_formatter, axis.yaxis.set_minor_formatter):
                numbers("{x:.0f}")
            axis.grid(alpha=0.3)
            axis.legend(fontsize=7, handlelength=4)
        axes[0][0].set_ylabel("ms in the service, no deadline")


def _draw_lines(axis: Any, run: LatencyRun) -> None:
    colour = "tab:blue" if run.passages == "cold" else "tab:orange"
    cells = [c for c in run.open if c.deadline_ms is None and "server" in c.stages]
    loads = [c.load_percent for c in cells]
    for percentile, line in (("p50", "-"), ("p99", "--")):
        values = [getattr(c.stages["server"], percentile) for c in cells]
        label = f"{run.passages}, {percentile}"
        axis.plot(loads, values, line, color=colour, marker="o", ms=3, label=label)


def _draw_outcomes(report: LatencyReport, path: Path) -> None:
    bars = [
        (f"{run.scenario}, {run.passages}, {cell.load_percent} %", cell.tally)
        for run in report.runs
        for cell in run.open
        if cell.deadline_ms is not None
    ]
    below = [0.0] * len(bars)
    with drawing(path, figsize=(7, max(2.0, 0.28 * len(bars) + 1.2))) as axis:
        for group, colour in _COLOURS.items():
            shares = [100 * getattr(tally, group) / max(1, tally.sent) for _, tally in bars]
            axis.barh(range(len(bars)), shares, left=below, color=colour, label=group)
            below = [low + share for low, share in zip(below, shares, strict=True)]
        axis.set_yticks(range(len(bars)), [name for name, _ in bars], fontsize=7)
        axis.invert_yaxis()
        axis.set(xlabel="% of requests, with a deadline", xlim=(0, 100))
        axis.figure.legend(fontsize=7, ncols=len(_COLOURS), loc="outside upper center")


_COLOURS = {
    "complete": "tab:green",
    "partial": "gold",
    "refused": "tab:grey",
    "failed": "tab:red",
    "hung": "black",
}


def _draw_memory(report: LatencyReport, path: Path) -> None:
    with drawing(path, figsize=(6, 3)) as axis:
        if report.soak is not None:
            series = report.soak.cell.rss_mb
            step = report.soak.cell.tally.sent / max(1, len(series) - 1)
            axis.plot([place * step for place in range(len(series))], series)
            axis.set_ylim(0, 1.1 * max(series, default=1.0))
        axis.set(xlabel="requests", ylabel="resident MB")
        axis.grid(alpha=0.3)


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


def publish(report: LatencyReport, json_file: Path | None, doc: Path | None) -> None:
    """Print the targets, or the whole report as JSON; rewrite the page."""

    if str(json_file) == "-":
        write_json(report.model_dump_json(), json_file)
    else:
        table = Table("target", "samples", "limit", "found", "", "note", title="latency")
        for row in target_rows(report):
            table.add_row(*row)
        out.print(table)
    for line in warnings(report):
        err.print(f"[yellow]caution[/yellow] {line}")
    if doc is not None:
        plots(report, doc.parent / "images")
        replace_part(doc, PART, markdown(report, "images"))

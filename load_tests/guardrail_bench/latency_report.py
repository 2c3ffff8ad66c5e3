"""The latency report as Markdown and as plots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from guardrail_bench.document import markdown_table
from guardrail_bench.latency_results import Cell, LatencyReport, LatencyRun
from guardrail_bench.measures import Percentiles
from guardrail_bench.samples import SCENARIOS
from guardrail_bench.targets import Target, targets, warnings
from guardrail_service.errors import MissingExtra

PLOTS = ("performance-latency.png", "performance-outcomes.png", "performance-memory.png")
_WORDS = {True: "met", False: "**missed**", None: "not measured"}
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


def shown(met: bool | None) -> str:
    """Return in words whether a target is met."""
    return verdict(met).strip("*")


def verdict(met: bool | None) -> str:
    """Return the same for a page, where a missed target stands out."""
    return _WORDS[met]


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


@contextmanager
def drawing(path: Path, **figure: Any) -> Iterator[Any]:
    """Yield the axes of a figure that is written to `path` at the end of the block.

    Args:
        path: A PNG; its folder is made.
        figure: Arguments of matplotlib's `subplots`.

    Raises:
        MissingExtra: If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingExtra("bench") from error
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    drawn, axes = plt.subplots(layout="constrained", **figure)
    try:
        yield axes
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn.savefig(path, dpi=110, metadata={"Software": None})
    finally:
        plt.close(drawn)


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

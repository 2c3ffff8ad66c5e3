"""What `guardrail bench peers` found: times side by side, ratios, the page's part."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from guardrail_bench.document import markdown_table
from guardrail_bench.latency_report import drawing, verdict
from guardrail_bench.measures import Percentiles, percentiles
from guardrail_bench.samples import SCENARIOS, Passages
from guardrail_bench.targets import Target, busy_warning

LIMITS: dict[Passages, float] = {"cold": 0.6, "warm": 0.25}
"""Of the torch pipeline's p50, promised for typical RAG."""
HEADINGS = ("passages", "pipeline", "p50 ms", "p95 ms", "worst ms", "service / it", "work")
PLOT = "performance-peers.png"
NAMES = {
    "service": "the service",
    "torch": "torch: sentence-transformers, CrossEncoder, classifier",
    "onnx": "ONNX Runtime loop, INT8 file, batches of 32",
}


class Timed(BaseModel):
    """One sample: milliseconds of the service by the caller's clock, and of each peer."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    passages: Literal["cold", "warm"]
    service_ms: float
    peers_ms: dict[str, float]
    steps_ms: dict[str, dict[str, float]]
    texts: dict[str, int]


class PeersReport(BaseModel):
    """Service and peers on the same samples in one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal["1"] = "1"
    started: str
    machine: dict[str, Any]
    busy_before: float
    service: dict[str, Any]
    scenario: str
    workers: int
    seed: int
    timed: tuple[Timed, ...]

    def times(self, name: str, passages: Passages) -> Percentiles | None:
        """Return one side's times on cold or warm samples; None if there are none."""
        chosen = [t for t in self.timed if t.passages == passages]
        return percentiles(
            [t.service_ms if name == "service" else t.peers_ms[name] for t in chosen]
        )

    def ratio(self, name: str, passages: Passages) -> float | None:
        """Return the service's p50 over a peer's p50 on the same samples."""
        ours, theirs = self.times("service", passages), self.times(name, passages)
        return ours.p50 / theirs.p50 if ours and theirs else None


def peers_targets(report: PeersReport) -> list[Target]:
    """Return the promises about the torch pipeline."""
    found = []
    for passages, limit in LIMITS.items():
        name, where = "p50 over the torch pipeline's p50", f"{report.scenario}, {passages}"
        ratio = report.ratio("torch", passages)
        if ratio is None or report.scenario != "rag":
            why = "promised for typical RAG; no such sample was measured"
            found.append(Target(name, where, f"<= {limit}", "-", None, why))
        else:
            found.append(Target(name, where, f"<= {limit}", f"{ratio:.2f}", ratio <= limit))
    return found


def peers_rows(report: PeersReport) -> list[tuple[str, ...]]:
    """Return a row per side and kind of passages: p50, p95, worst, ratio, texts."""
    rows: list[tuple[str, ...]] = []
    for passages in LIMITS:
        texts = [t.texts for t in report.timed if t.passages == passages]
        for name, title in NAMES.items():
            times, ratio = report.times(name, passages), report.ratio(name, passages)
            if times is None:
                continue
            numbers = (f"{times.p50:.0f}", f"{times.p95:.0f}", f"{times.worst:.0f}")
            share = "1" if name == "service" or ratio is None else f"{ratio:.2f}"
            rows.append((passages, title, *numbers, share, _work(name, texts)))
    return rows


def _work(name: str, texts: list[dict[str, int]]) -> str:
    """Return how much a peer had to read per sample, on average."""
    if name == "service":
        return "every detector of the default policy, over HTTP"
    means = {key: sum(t[key] for t in texts) / len(texts) for key in texts[0]}
    return ", ".join(f"{mean:.0f} {key}" for key, mean in means.items())


def peers_markdown(report: PeersReport, images: str) -> str:
    """Return the report for a page."""
    machine = report.machine
    samples = f"{len(report.timed) // 2} samples ({SCENARIOS[report.scenario].title})"
    parts = [
        f"Measured {report.started} on {machine['cpu']}, {machine['cores']} cores: {samples}, each "
        f"with cold and then, with another answer, with warm passages. {report.workers} workers.",
        markdown_table(HEADINGS, peers_rows(report)),
        markdown_table(
            ("target", "samples", "limit", "found", ""),
            [(t.name, t.where, t.limit, t.found, verdict(t.met)) for t in peers_targets(report)],
        ),
    ]
    if (busy := busy_warning(report.busy_before)) is not None:
        parts.append(f"**Caution.** {busy}")
    return "\n\n".join([*parts, f"![{PLOT}]({images}/{PLOT})"])


def peers_plot(report: PeersReport, folder: Path) -> Path:
    """Write the plot and return where it is.

    Raises:
        MissingExtra: If matplotlib is not installed.
    """
    with drawing(folder / PLOT, figsize=(7, 2.6)) as axis:
        labels, values, colours = [], [], []
        for passages in reversed(LIMITS):
            for name in reversed(NAMES):
                if times := report.times(name, passages):
                    labels.append(f"{name}, {passages}")
                    values.append(times.p50)
                    colours.append("tab:green" if name == "service" else "tab:grey")
        axis.barh(labels, values, color=colours)
        axis.bar_label(axis.containers[0], fmt="%.0f", padding=3, fontsize=8)
        axis.set(xlabel="p50, ms", title=SCENARIOS[report.scenario].title)
        axis.margins(x=0.1)
    return folder / PLOT

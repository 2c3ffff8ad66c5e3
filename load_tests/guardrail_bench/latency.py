"""Measures a service it starts under load: closed and open loops, bare sessions, a soak.

Server and generator have a core each. Every kind of sample gets a service of its own, so that
caches and memory begin empty.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from guardrail_bench.bare import BareJob
from guardrail_bench.latency_results import (
    Bare,
    Cell,
    LatencyReport,
    LatencyRun,
    LatencySettings,
    Soak,
    fastest,
    same_service,
    same_settings,
)
from guardrail_bench.loops import Note, ScenarioBench, levels
from guardrail_bench.measures import drift, is_saturated
from guardrail_bench.samples import SCENARIOS, Passages, SampleSource, SampleTexts, read_texts
from guardrail_bench.server import Server, busy_share, pinned, serving
from guardrail_service.errors import GuardrailError

SOAK_CALLERS = 8
SOAK_BUDGET_S = 3600.0
T = TypeVar("T")
Save = Callable[[LatencyReport], None]


@dataclass(frozen=True, slots=True)
class LatencyPlan:
    """What to measure: settings that every run shares, and which runs."""

    settings: LatencySettings
    scenarios: tuple[str, ...] = tuple(SCENARIOS)
    passages: tuple[Passages, ...] = ("cold", "warm")
    soak: int = 0

    def pairs(self) -> Iterator[tuple[str, Passages]]:
        """Yield the kinds of samples in order."""
        for scenario in self.scenarios:
            for passages in self.passages:
                yield scenario, passages

    def steps(self) -> int:
        """Return how many cells there are if no search for capacity goes beyond the ladder."""
        settings = self.settings
        each = len(settings.concurrency) + len(list(levels(settings))) + 1
        return each * len(list(self.pairs())) + (self.soak > 0)


def run(plan: LatencyPlan, previous: LatencyReport | None, save: Save, note: Note) -> LatencyReport:
    """Return the report of everything planned; what `previous` has is not measured again.

    Args:
        plan: What to measure.
        previous: A report to go on with.
        save: Called with the report after each kind of sample.
        note: Called with a line before each cell.

    Raises:
        InputError: If `previous` was measured otherwise, or a core or text file does not exist.
        GuardrailError: If a service does not start or ends.
    """
    texts = read_texts(Path(plan.settings.texts))
    report = previous
    if report is not None:
        same_settings(report, plan.settings)
    for scenario, passages in plan.pairs():
        source = SampleSource(texts, SCENARIOS[scenario], passages, plan.settings.seed)
        if report is not None and report.run(scenario, passages) is not None:
            note(f"{scenario}, {passages}: measured before")
            continue
        bench = ScenarioBench(plan.settings, source, note)
        busy = busy_share()
        with _served(plan.settings) as server:
            report = _begun(report, plan.settings, server)
            closed, loops = _on_cores(plan.settings, bench.loops(server))
        done = _finished(bench, busy, closed, loops)
        report = report.model_copy(update={"runs": (*report.runs, done)})
        save(report)
    if plan.soak and (report is None or report.soak is None):
        report = _soaked(plan, texts, report, note)
        save(report)
    if report is None:
        raise GuardrailError("nothing to measure; expected a scenario or a soak")
    return report


def _served(settings: LatencySettings) -> Any:
    arguments = ["--workers", str(settings.workers)]
    for path in settings.config:
        arguments += ["--config", path]
    if settings.pack is not None:
        arguments += ["--pack", settings.pack]
    return serving(arguments, settings.server_cores)


def _on_cores(settings: LatencySettings, work: Coroutine[Any, Any, T]) -> T:
    import uvloop

    with pinned(settings.generator_cores):
        return uvloop.run(work)


def _begun(
    report: LatencyReport | None, settings: LatencySettings, server: Server
) -> LatencyReport:
    """Return the report with this service's description, which must be the earlier runs' own."""
    service = server.get("/v1/info").json()
    if report is not None:
        same_service(report, service)
        return report
    started = datetime.now(UTC).isoformat(timespec="seconds")
    return LatencyReport(started=started, machine=machine(), service=service, settings=settings)


def machine() -> dict[str, Any]:
    """Return what the numbers depend on beside the service."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


def _finished(
    bench: ScenarioBench, busy: float, closed: list[Cell], loops: list[Cell]
) -> LatencyRun:
    """Return the run with the bare sessions' part, once the service has left its core."""
    cell = fastest(closed)
    bench.note(f"{bench.name}: bare sessions")
    return LatencyRun(
        scenario=bench.source.scenario.name,
        passages=bench.source.passages,
        capacity_per_s=cell.per_second,
        busy_before=busy,
        saturated=is_saturated({found.callers or 0: found.per_second for found in closed}),
        deadline_ms=bench.deadline_ms(closed),
        closed=tuple(closed),
        open=tuple(loops),
        bare=_bare(bench.settings, bench.source, cell),
    )


def _bare(settings: LatencySettings, source: SampleSource, cell: Cell) -> Bare:
    """Return what bare sessions need for the rows of one cell's samples, on the service's cores.

    Raises:
        GuardrailError: If the process that runs them fails.
    """
    task = BareJob(
        scenario=source.scenario.name,
        passages=source.passages,
        seed=settings.seed,
        first=cell.first,
        count=cell.tally.sent,
        texts=Path(settings.texts),
        config=tuple(Path(path) for path in settings.config),
        pack=settings.pack,
    )
    command = [sys.executable, "-m", "guardrail_bench.bare"]
    with pinned(settings.server_cores):
        done = subprocess.run(  # noqa: S603 - our own command
            command, input=task.model_dump_json(), capture_output=True, text=True, check=False
        )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no output"]
        raise GuardrailError(f"bare sessions ended with {done.returncode}: {last[0][:300]}")
    return Bare.model_validate_json(done.stdout)


def _soaked(
    plan: LatencyPlan, texts: SampleTexts, report: LatencyReport | None, note: Note
) -> LatencyReport:
    """Return the report with memory over many requests."""
    source = SampleSource(texts, SCENARIOS["chat"], "warm", plan.settings.seed)
    bench = ScenarioBench(plan.settings, source, lambda _line: note(f"soak: {plan.soak} requests"))

    async def soak(server: Server) -> Cell:
        await bench.warm_up(server)
        return await bench.closed(server, SOAK_CALLERS, SOAK_BUDGET_S, plan.soak)

    with _served(plan.settings) as server:
        report = _begun(report, plan.settings, server)
        cell = _on_cores(plan.settings, soak(server))
    found = Soak(wanted=plan.soak, cell=cell, drift=drift(cell.rss_mb))
    return report.model_copy(update={"soak": found})

"""Measures a service it starts under load: closed and open loops, bare sessions, a soak.

Server and generator have a core each. Every kind of sample gets a service of its own, so that
caches and memory begin empty.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from guardrail_bench.components import BareJob
from guardrail_bench.latency_results import (
    Bare,
    Cell,
    LatencyReport,
    LatencyRun,
    LatencySettings,
    Soak,
    Usage,
    fastest,
    same_service,
    same_settings,
    summarise,
)
from guardrail_bench.load import (
    Generator,
    LoadRequest,
    drift,
    is_saturated,
    next_concurrency,
    poisson_arrivals,
)
from guardrail_bench.samples import SCENARIOS, Passages, SampleSource, SampleTexts, read_texts
from guardrail_bench.server import Server, busy_share, loop_lag_ms, machine, pinned, serving
from guardrail_service.errors import ServiceError

SOAK_CALLERS = 8
SOAK_BUDGET_S = 3600.0
T = TypeVar("T")
Save = Callable[[LatencyReport], None]


@dataclass(frozen=True, slots=True)
class LatencyPlan:
    """The plan of a measurement: settings that every run shares, and which runs."""

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
        ServiceError: If a service does not start or ends.
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
        raise ServiceError("nothing to measure; expected a scenario or a soak")
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
        ServiceError: If the process that runs them fails.
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
    command = [sys.executable, "-m", "guardrail_bench.components"]
    with pinned(settings.server_cores):
        done = subprocess.run(  # noqa: S603 - our own command
            command, input=task.model_dump_json(), capture_output=True, text=True, check=False
        )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no output"]
        raise ServiceError(f"bare sessions ended with {done.returncode}: {last[0][:300]}")
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


MOST_CALLERS = 64
"""The service judges at most 64 answers at the same time unless told otherwise."""
DEADLINE_FACTOR = 5
LEAST_DEADLINE_MS = 100.0
"""Where none is given, the deadline is five times what one caller waits, in steps of 10 ms: enough
for a queue at 70 %, and a bound on what an overloaded service may still accept."""
STRETCH = 4
"""An open loop runs up to four times as long as asked to reach the least number of requests."""
LEAST_ARRIVALS = 5
"""However slow the machine, a load is more than one request."""
PATIENCE_S = 300.0
"""Thirty-two long reports over cold passages keep one slow core busy for a minute or two."""
RSS_EVERY_S = 0.5
_WARM_UP = 3
Note = Callable[[str], None]


def levels(settings: LatencySettings) -> Iterator[tuple[int, bool]]:
    """Yield each open-loop load and whether its requests have a deadline.

    Up to capacity there is none, so latency shows the queue as it is; 70 % is measured with one,
    too, as callers who bound their tail would. Beyond capacity a queue without deadlines only ends
    at the limit of concurrent requests.
    """
    for load in settings.loads:
        if load <= 100:
            yield load, False
        if load > 100 or load == 70:
            yield load, True


class ScenarioBench:
    """One kind of sample on one service."""

    def __init__(self, settings: LatencySettings, source: SampleSource, note: Note) -> None:
        self.settings = settings
        self.source = source
        self.note = note
        self._next = 0
        self.name = f"{source.scenario.name}, {source.passages}"

    async def loops(self, server: Server) -> tuple[list[Cell], list[Cell]]:
        """Return the closed loops' and the open loops' cells."""
        await self.warm_up(server)
        closed: list[Cell] = []
        measured: dict[int, float] = {}
        ladder = self.settings.concurrency
        while (callers := next_concurrency(measured, ladder, MOST_CALLERS)) is not None:
            closed.append(await self.closed(server, callers, self.settings.seconds))
            measured[callers] = closed[-1].per_second
        capacity = fastest(closed).per_second
        if not capacity:
            raise ServiceError(f"{self.name}: no request got a verdict: {closed[-1].tally}")
        deadline = self.deadline_ms(closed)
        loops = [
            await self.open(server, load, capacity, deadline if limited else None)
            for load, limited in levels(self.settings)
        ]
        return closed, loops

    async def warm_up(self, server: Server) -> None:
        """Show the service the shelf and a few samples, unmeasured."""
        bodies = [*self.source.shelf(), *map(self.source.sample, range(_WARM_UP))]
        self._next = _WARM_UP
        encoded = [json.dumps(body).encode() for body in bodies]
        generator = Generator(server.address, encoded.__getitem__, PATIENCE_S)
        try:
            sent = await generator.closed_loop(1, math.inf, 0, most=len(bodies))
        finally:
            generator.close()
        if failed := [e for e in sent if e.status != 200]:
            raise ServiceError(
                f"{self.name}: {len(failed)} of {len(sent)} requests to warm up failed: "
                f"{failed[0].failure or failed[0].status}"
            )

    def deadline_ms(self, closed: Sequence[Cell]) -> float:
        """Return the deadline of the open loops that have one."""
        if self.settings.deadline_ms is not None:
            return self.settings.deadline_ms
        alone = min(closed, key=lambda cell: cell.callers or 0).stages["client"].p50
        return max(LEAST_DEADLINE_MS, math.ceil(DEADLINE_FACTOR * alone / 10) * 10)

    async def closed(
        self, server: Server, callers: int, seconds: float, most: int | None = None
    ) -> Cell:
        """Return the cell of one closed loop."""
        self.note(f"{self.name}: {callers} callers")
        first = self._next

        def send(generator: Generator) -> Coroutine[Any, Any, list[LoadRequest]]:
            return generator.closed_loop(callers, seconds, first, most)

        window, exchanges = await self._watched(server, send, None)
        return summarise(exchanges, window, first=first, callers=callers)

    async def open(
        self, server: Server, load: int, capacity: float, deadline_ms: float | None
    ) -> Cell:
        """Return the cell of one open loop."""
        self.note(f"{self.name}: {load} %{'' if deadline_ms is None else ' with a deadline'}")
        rate = capacity * load / 100
        wanted = self.settings.seconds
        seconds = min(STRETCH * wanted, max(wanted, self.settings.least_requests / rate))
        seed = f"{self.settings.seed}/{self.name}/{load}/{deadline_ms is None}"
        arrivals = poisson_arrivals(rate, seconds, seed, LEAST_ARRIVALS)
        first = self._next

        def send(generator: Generator) -> Coroutine[Any, Any, list[LoadRequest]]:
            return generator.open_loop(arrivals, first)

        window, exchanges = await self._watched(server, send, deadline_ms)
        return summarise(
            exchanges,
            window,
            first=first,
            load_percent=load,
            offered_per_s=rate,
            deadline_ms=deadline_ms,
        )

    async def _watched(
        self,
        server: Server,
        send: Callable[[Generator], Coroutine[Any, Any, list[LoadRequest]]],
        deadline_ms: float | None,
    ) -> tuple[Usage, list[LoadRequest]]:
        """Return what was sent, and what service and generator used meanwhile."""

        def body(number: int) -> bytes:
            sample = self.source.sample(number)
            return json.dumps({**sample, "deadline_ms": deadline_ms}).encode()

        generator = Generator(server.address, body, PATIENCE_S)
        checks = server.metrics()["checks"]
        rss: list[float] = []
        watcher = asyncio.create_task(_watch(server, rss))
        used, own, wall = server.cpu_s(), time.process_time(), time.perf_counter()
        try:
            exchanges = await send(generator)
        finally:
            watcher.cancel()
            generator.close()
        wall, own, used = (
            time.perf_counter() - wall,
            time.process_time() - own,
            server.cpu_s() - used,
        )
        self._next += len(exchanges)
        found = server.metrics()
        window = Usage(
            server_counted=round(found["checks"] - checks),
            service_cpu_s=used,
            generator_cpu_share=own / wall,
            loop_lag_ms=loop_lag_ms(found),
            rss_mb=tuple(rss),
        )
        return window, exchanges


async def _watch(server: Server, rss: list[float]) -> None:
    with suppress(asyncio.CancelledError):
        while True:
            rss.append(server.rss_mb())
            await asyncio.sleep(RSS_EVERY_S)

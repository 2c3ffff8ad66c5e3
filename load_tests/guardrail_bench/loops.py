"""The loads on one kind of sample: the search for capacity, then arrivals at shares of it."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any

from guardrail_bench.cells import Usage, summarise
from guardrail_bench.latency_results import Cell, LatencySettings, fastest
from guardrail_bench.load import Generator, LoadRequest
from guardrail_bench.measures import next_concurrency, poisson_arrivals
from guardrail_bench.samples import SampleSource
from guardrail_bench.server import Server, loop_lag_ms
from guardrail_service.errors import GuardrailError

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
            raise GuardrailError(f"{self.name}: no request got a verdict: {closed[-1].tally}")
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
            raise GuardrailError(
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

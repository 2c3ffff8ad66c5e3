"""One cell of the latency report from the requests that were sent and what was used meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from guardrail_bench.latency_results import Cell, Stage
from guardrail_bench.load import LoadRequest, tally
from guardrail_bench.measures import Percentiles, percentiles

_STATED: tuple[Stage, ...] = ("queue", "tokenize", "inference", "total", "server")


class Usage(NamedTuple):
    """What service and generator used while a cell was measured; see `Cell`."""

    server_counted: int | None
    service_cpu_s: float
    generator_cpu_share: float
    loop_lag_ms: float | None
    rss_mb: tuple[float, ...]


def summarise(
    exchanges: Sequence[LoadRequest],
    window: Usage,
    *,
    first: int,
    callers: int | None = None,
    load_percent: int | None = None,
    offered_per_s: float | None = None,
    deadline_ms: float | None = None,
) -> Cell:
    """Return the cell of some requests.

    Raises:
        ValueError: If there are none.
    """
    if not exchanges:
        raise ValueError("found no requests; expected at least one")
    counted = tally(exchanges)
    seconds = max(e.done or e.sent for e in exchanges) - min(e.intended for e in exchanges)
    verdicts = [e for e in exchanges if e.status == 200 and e.failure is None]
    refused = [e.timings["server"] for e in exchanges if e.status == 429 and "server" in e.timings]
    return Cell(
        callers=callers,
        load_percent=load_percent,
        offered_per_s=offered_per_s,
        deadline_ms=deadline_ms,
        seconds=seconds,
        first=first,
        tally=counted,
        per_second=counted.answered / seconds if seconds > 0 else 0.0,
        stages=_stages(verdicts),
        refused=percentiles(refused),
        late_ms=_late(verdicts, deadline_ms),
        send_lag=percentiles([(e.sent - e.intended) * 1e3 for e in exchanges]),
        **window._asdict(),
    )


def _stages(verdicts: Sequence[LoadRequest]) -> dict[Stage, Percentiles]:
    """Return each stage's distribution; a stage nobody stated is left out."""
    values: dict[Stage, list[float]] = {
        stage: [e.timings[stage] for e in verdicts if stage in e.timings] for stage in _STATED
    }
    values["overhead"] = list(_overheads(verdicts))
    values["client"] = [e.client_ms for e in verdicts if e.client_ms is not None]
    found = {stage: percentiles(numbers) for stage, numbers in values.items()}
    return {stage: distribution for stage, distribution in found.items() if distribution}


def _overheads(verdicts: Iterable[LoadRequest]) -> Iterable[float]:
    for exchange in verdicts:
        if {"total", "queue", "inference"} <= exchange.timings.keys():
            stated = exchange.timings
            yield stated["total"] - stated["queue"] - stated["inference"]


def _late(
    verdicts: Sequence[LoadRequest], deadline_ms: float | None
) -> dict[Literal["server", "client"], float] | None:
    if deadline_ms is None or not verdicts:
        return None
    server = [e.timings["server"] for e in verdicts if "server" in e.timings]
    client = [e.client_ms for e in verdicts if e.client_ms is not None]
    if not server or not client:
        return None
    return {"server": max(server) - deadline_ms, "client": max(client) - deadline_ms}

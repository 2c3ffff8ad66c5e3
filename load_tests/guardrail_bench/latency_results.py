"""The results of `guardrail bench latency`: written to JSON, and read again to resume."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from guardrail_bench.load import LoadRequest, Percentiles, Tally, percentiles, tally
from guardrail_bench.samples import Passages
from guardrail_service.errors import InputError

Stage = Literal["queue", "tokenize", "inference", "total", "overhead", "server", "client"]
"""Milliseconds: the first four as the reply states them; `overhead` is total minus queue minus
inference; `server` is X-Total-Time, from the request's arrival in the process to its response;
`client` counts from the intended send time to the complete reply."""


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LatencySettings(_Result):
    """The settings of a measurement; only equal settings may be resumed."""

    concurrency: tuple[int, ...]
    loads: tuple[int, ...]
    seconds: float
    least_requests: int
    workers: int
    server_cores: tuple[int, ...] | None
    generator_cores: tuple[int, ...] | None
    deadline_ms: float | None
    seed: int
    texts: str
    config: tuple[str, ...]
    pack: str | None


class Cell(_Result):
    """One load on one kind of sample.

    Attributes:
        callers: Of a closed loop; None in an open one.
        load_percent: Offered load in percent of the measured capacity; None in a closed loop.
        offered_per_s: Requests per second that were to be sent; None in a closed loop.
        deadline_ms: What every request asked for; None: no deadline.
        seconds: From the first request to the last reply.
        first: Number of the first sample.
        tally: What became of every request.
        server_counted: Requests the service's own counter saw; None if it did not answer.
        per_second: Verdicts per second over `seconds`.
        stages: Of requests with a verdict.
        refused: Of 429s, `server` milliseconds.
        late_ms: How far the last verdict passed its deadline, by `server` and by `client` time;
            negative if none did, None without a deadline.
        service_cpu_s: CPU seconds of the service's process meanwhile.
        generator_cpu_share: CPU share of the generator's core.
        send_lag: Milliseconds from the intended to the real sending.
        loop_lag_ms: Longest lag of the service's event loop it reports; None if it does not.
        rss_mb: Resident memory of the service, every half second.
    """

    callers: int | None = None
    load_percent: int | None = None
    offered_per_s: float | None = None
    deadline_ms: float | None = None
    seconds: float
    first: int
    tally: Tally
    server_counted: int | None
    per_second: float
    stages: dict[Stage, Percentiles]
    refused: Percentiles | None
    late_ms: dict[Literal["server", "client"], float] | None
    service_cpu_s: float
    generator_cpu_share: float
    send_lag: Percentiles | None
    loop_lag_ms: float | None
    rss_mb: tuple[float, ...]

    @property
    def title(self) -> str:
        """Return what the load was, for people."""
        if self.callers is not None:
            return f"{self.callers} caller{'s' * (self.callers != 1)}"
        limit = "" if self.deadline_ms is None else f", deadline {self.deadline_ms:.0f} ms"
        return f"{self.load_percent} %{limit}"


class Bare(_Result):
    """The rows of a cell's samples, run one after another without the service.

    Attributes:
        samples: How many samples.
        rows: Distinct rows that had not been run before.
        cpu_s: CPU seconds they took.
        wall_s: Seconds they took.
    """

    samples: int
    rows: int
    cpu_s: float
    wall_s: float


class LatencyRun(_Result):
    """All loads on one kind of sample, on a service of its own.

    Attributes:
        busy_before: Share of all cores that others used just before.
        capacity_per_s: Highest throughput of the closed loops, verdicts per second.
        saturated: Whether more callers gained nothing any more.
        deadline_ms: Of the open loops that have one.
    """

    scenario: str
    passages: Passages
    busy_before: float
    capacity_per_s: float
    saturated: bool
    deadline_ms: float
    closed: tuple[Cell, ...]
    open: tuple[Cell, ...]
    bare: Bare

    def saturation(self) -> Cell:
        """Return the closed loop that shows the capacity."""
        return fastest(self.closed)

    def at(self, load_percent: int, *, limited: bool) -> Cell | None:
        """Return the open loop at one load, with or without a deadline."""
        found = (
            cell
            for cell in self.open
            if cell.load_percent == load_percent and (cell.deadline_ms is not None) == limited
        )
        return next(found, None)


def fastest(closed: Sequence[Cell]) -> Cell:
    """Return the closed loop with the highest throughput, of those without a refusal if any is.

    Only where every request was judged whole are the rows that were run those that were sent.
    """
    return max(closed, key=lambda c: (c.tally.complete == c.tally.sent, c.per_second))


class Soak(_Result):
    """Memory over many requests: short chat answers, warm passages, 8 callers."""

    wanted: int
    cell: Cell
    drift: float | None


class LatencyReport(_Result):
    """The measurements of one run of the command, or of several that resumed it."""

    schema_version: Literal["1"] = "1"
    started: str
    machine: dict[str, Any]
    service: dict[str, Any]
    settings: LatencySettings
    runs: tuple[LatencyRun, ...] = ()
    soak: Soak | None = None

    def run(self, scenario: str, passages: Passages) -> LatencyRun | None:
        """Return what was measured on one kind of sample, if it was."""
        for run in self.runs:
            if (run.scenario, run.passages) == (scenario, passages):
                return run
        return None


def read_report(path: Path) -> LatencyReport:
    """Return a report that was written before.

    Raises:
        InputError: If the file is none.
    """
    try:
        return LatencyReport.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a report of this command") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "(whole file)"
        raise InputError(f"{path}: {key}: {first['msg']}; expected a report of this command") from (
            error
        )


def same_settings(report: LatencyReport, settings: LatencySettings) -> None:
    """Raise InputError unless further runs under these settings belong into the report."""
    _same(report.settings.model_dump(mode="json"), settings.model_dump(mode="json"))


def same_service(report: LatencyReport, service: dict[str, Any]) -> None:
    """Raise InputError unless further runs of this service belong into the report.

    How full its memories are says how often it was started, not what it is.
    """
    before, now = (
        {key: value for key, value in told.items() if key != "caches"}
        for told in (report.service, service)
    )
    _same({"service": before}, {"service": now})


def _same(before: dict[str, Any], now: dict[str, Any]) -> None:
    if other := sorted(key for key in now if now[key] != before[key]):
        raise InputError(
            f"the report to resume was measured with other {', '.join(other)}; "
            "expected the same, or a new file"
        )


def write_report(report: LatencyReport, path: Path) -> None:
    """Write a report so that a stop half way leaves the earlier one whole."""
    partial = path.with_suffix(path.suffix + ".partial")
    partial.write_text(report.model_dump_json(indent=1) + "\n", "utf-8")
    partial.replace(path)


_STATED: tuple[Stage, ...] = ("queue", "tokenize", "inference", "total", "server")


class Usage(NamedTuple):
    """The resources service and generator used while a cell was measured; see `Cell`."""

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

"""Growth of a check's cost with passages and sentences, and of the service with callers and cores.

Costs are processor time of the service, which other work on the machine stretches least; rates are
what callers saw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Literal

from pydantic import BaseModel, ConfigDict

from guardrail_bench.load import CheckedLoad, percentiles
from guardrail_bench.output import MarkdownTable, drawing, tables_page
from guardrail_bench.samples import SCENARIOS, Passages, SampleSource, SampleTexts, Scenario
from guardrail_bench.server import Server, busy_share, default_cores, machine, serving
from guardrail_service.errors import ServiceError

PART = "bench growth"
PASSAGES = (1, 2, 5, 10, 20, 40)
WORDS = (20, 40, 80, 160, 320, 640, 1280)
CALLERS = (1, 2, 4, 8, 16, 32, 64)
KINDS: tuple[Passages, ...] = ("cold", "warm")
_USUAL = SCENARIOS["rag"]
_WARM_UP = 3


class Point(BaseModel):
    """The cost of one size of check.

    Attributes:
        grows: What is varied.
        size: Passages, or words of the answer.
        passages: Whether the service has met them.
        cpu_ms: Processor time of a check, mean.
        rows: Texts and pairs that the models read for a check, mean.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    grows: Literal["passages", "answer"]
    size: int
    passages: Passages
    cpu_ms: float
    rows: float


class ServedRate(BaseModel):
    """The replies that some callers got from some form of the service.

    Attributes:
        form: Cores, processes and workers.
        kind: `scenario:passages`.
        callers: Requests under way at the same time.
        per_second: Verdicts.
        p50_ms: Of the callers' times.
        p99_ms: The same.
        cpu_ms: Processor time of a verdict, of all processes.
        mb: Resident memory at the end; what processes share counts in each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    form: str
    kind: str
    callers: int
    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    mb: float


class GrowthReport(BaseModel):
    """Findings of `guardrail bench growth`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    machine: dict[str, str | int | None]
    busy_before: float
    points: tuple[Point, ...]
    callers: tuple[ServedRate, ...]
    cores: tuple[ServedRate, ...]


FORMS: dict[str, tuple[int, tuple[str, ...]]] = {
    "one core, one process, one worker": (1, ("--workers", "1")),
    "two cores, one process, two workers": (2, ("--workers", "2")),
    "two cores, two processes, a worker each": (2, ("--workers", "2", "--processes", "2")),
}
"""Cores and options of the forms of the service that are compared."""
FORM_KINDS = ("chat:warm", "rag:warm", "rag:cold")
FORM_CALLERS = 16


def run(
    texts: SampleTexts, seconds: float, checks: int, seed: int, note: Callable[[str], None]
) -> GrowthReport:
    """Return the report.

    Args:
        texts: What samples are made of.
        seconds: How long each load lasts.
        checks: Checks of each size.
        seed: Of the samples.
        note: Called before each step.
    """
    busy = busy_share()
    return GrowthReport(
        machine=machine(),
        busy_before=busy,
        points=tuple(_points(texts, checks, seed, note)),
        callers=tuple(_callers(texts, seconds, seed, note)),
        cores=tuple(_cores(texts, seconds, seed, note)),
    )


def steps() -> int:
    """Return how many steps `run` notes."""
    sizes = len(KINDS) * (len(PASSAGES) + len(WORDS))
    return sizes + len(CALLERS) + len(FORMS) * len(FORM_KINDS)


def _points(texts: SampleTexts, checks: int, seed: int, note: Callable[[str], None]) -> list[Point]:
    sizes: list[tuple[Literal["passages", "answer"], int, Scenario]] = []
    for number in PASSAGES:
        sized = Scenario(f"p{number}", "", _USUAL.answer_words, number, _USUAL.passage_words)
        sizes.append(("passages", number, sized))
    for words in WORDS:
        sized = Scenario(f"a{words}", "", words, _USUAL.passages, _USUAL.passage_words)
        sizes.append(("answer", words, sized))
    found = []
    for kind in KINDS:
        core, own = default_cores()
        used = 0  # passages that the service has met: a sample's number says which are its own
        with serving(["--workers", "1"], core) as server:
            load = CheckedLoad(server.address, own)
            for grows, size, scenario in sizes:
                note(f"{grows} {size}, {kind}")
                source = SampleSource(texts, scenario, kind, seed)
                first = math.ceil(used / scenario.passages)
                cpu_ms, rows = _cost(server, load, source, first, checks)
                used = (first + _WARM_UP + checks) * scenario.passages
                found.append(Point(grows=grows, size=size, passages=kind, cpu_ms=cpu_ms, rows=rows))
    return found


def _cost(
    server: Server, load: CheckedLoad, source: SampleSource, first: int, checks: int
) -> tuple[float, float]:
    """Return processor milliseconds and model rows of a check; `first` is its first sample."""
    _warm_up(load, source, first)
    samples = [source.sample(first + _WARM_UP + number) for number in range(checks)]
    before, rows = server.cpu_s(), _rows(server)
    load.one_by_one(samples)
    return (server.cpu_s() - before) / checks * 1e3, (_rows(server) - rows) / checks


def _rows(server: Server) -> float:
    return server.metrics()["guardrail_cache_misses_total"]


def _warm_up(load: CheckedLoad, source: SampleSource, first: int = 0) -> None:
    load.one_by_one([*source.shelf(), *map(source.sample, range(first, first + _WARM_UP))])


def _callers(
    texts: SampleTexts, seconds: float, seed: int, note: Callable[[str], None]
) -> list[ServedRate]:
    core, own = default_cores()
    source = SampleSource(texts, _USUAL, "warm", seed)
    with serving(["--workers", "1"], core) as server:
        load = CheckedLoad(server.address, own)
        _warm_up(load, source)
        numbers = count(_WARM_UP)
        found = []
        for callers in CALLERS:
            note(f"{callers} callers")
            rate = _rate(server, load, source, numbers, callers, seconds)
            found.append(rate.model_copy(update={"form": next(iter(FORMS)), "kind": "rag:warm"}))
    return found


def _cores(
    texts: SampleTexts, seconds: float, seed: int, note: Callable[[str], None]
) -> list[ServedRate]:
    """Return every form's rates; the generator shares the cores, at 20 to 40 us a request."""
    found = []
    core, _ = default_cores()
    for form, (cores, arguments) in FORMS.items():
        with serving(arguments, core if cores == 1 else None) as server:
            load = CheckedLoad(server.address)
            for kind in FORM_KINDS:
                note(f"{form}: {kind}")
                scenario, _, passages = kind.partition(":")
                source = SampleSource(
                    texts, SCENARIOS[scenario], "cold" if passages == "cold" else "warm", seed
                )
                _warm_up(load, source)
                rate = _rate(server, load, source, count(_WARM_UP), FORM_CALLERS, seconds)
                found.append(rate.model_copy(update={"form": form, "kind": kind}))
    return found


def _rate(
    server: Server,
    load: CheckedLoad,
    source: SampleSource,
    numbers: count[int],
    callers: int,
    seconds: float,
) -> ServedRate:
    before = server.cpu_s()
    exchanges = load.closed_loop(lambda _: source.sample(next(numbers)), callers, seconds)
    used = server.cpu_s() - before
    times = percentiles([e.client_ms for e in exchanges if e.client_ms is not None])
    if times is None:
        raise ServiceError("no check got a verdict; expected at least one")
    wall = max(e.done or e.sent for e in exchanges) - min(e.intended for e in exchanges)
    return ServedRate(
        form="",
        kind="",
        callers=callers,
        per_second=len(exchanges) / wall,
        p50_ms=times.p50,
        p99_ms=times.p99,
        cpu_ms=used / len(exchanges) * 1e3,
        mb=server.rss_mb(),
    )


def tables(report: GrowthReport) -> list[MarkdownTable]:
    """Return title, headings and rows of each table."""
    by_size: dict[tuple[str, int], dict[Passages, Point]] = {}
    for point in report.points:
        by_size.setdefault((point.grows, point.size), {})[point.passages] = point
    sizes: list[Sequence[str]] = [
        (
            f"passages: {size}" if grows == "passages" else f"words of answer: {size}",
            *(f"{by_kind[kind].cpu_ms:.0f}" for kind in KINDS),
            *(f"{by_kind[kind].rows:.0f}" for kind in KINDS),
        )
        for (grows, size), by_kind in by_size.items()
    ]
    callers: list[Sequence[str]] = [
        (str(rate.callers), f"{rate.per_second:.1f}", f"{rate.p50_ms:.0f}", f"{rate.p99_ms:.0f}")
        for rate in report.callers
    ]
    first = {rate.kind: rate for rate in report.cores if rate.form == next(iter(FORMS))}
    cores: list[Sequence[str]] = [
        (
            rate.form, rate.kind.replace(":", ", "),
            f"{rate.per_second:.1f} ({rate.per_second / first[rate.kind].per_second:.2f})",
            f"{rate.p50_ms:.0f}", f"{rate.p99_ms:.0f}", f"{rate.cpu_ms:.0f}", f"{rate.mb:.0f}",
        )
        for rate in report.cores
    ]  # fmt: skip
    return [
        MarkdownTable(
            f"One check, {_USUAL.passages} passages of {_USUAL.passage_words} words and an answer "
            f"of {_USUAL.answer_words} where nothing else is said; processor time and rows of the "
            f"models per check. {_per_row(report.points)}",
            ("", "ms, new passages", "ms, known", "rows, new", "rows, known"),
            sizes,
        ),
        MarkdownTable(
            "One core, typical RAG, known passages:",
            ("callers", "verdicts/s", "p50 ms", "p99 ms"),
            callers,
        ),
        MarkdownTable(
            f"Cores, {FORM_CALLERS} callers; generator and service share them:",
            ("service", "checks", "verdicts/s", "p50 ms", "p99 ms", "ms of processor", "MB"),
            cores,
        ),
    ]


def _per_row(points: Sequence[Point]) -> str:
    each = median(point.cpu_ms / point.rows for point in points if point.rows >= 1)
    return f"A row takes {each:.1f} ms of a processor (median over sizes, everything counted)."


def markdown(report: GrowthReport, image: Path) -> str:
    """Return the part of the page, and draw its picture."""
    draw(report, image)
    about = f"Measured on {report.machine['cpu']}, {report.machine['cores']} cores."
    picture = f"![Growth with passages, words, rows, callers and cores](images/{image.name})"
    return tables_page(about, report.busy_before, tables(report), picture)


def draw(report: GrowthReport, image: Path) -> None:
    """Draw cost by passages, words and rows, and rates by callers and cores."""
    with drawing(image, nrows=2, ncols=3, figsize=(13, 7)) as axes:
        panels = (("passages", "passages"), ("answer", "words of the answer"))
        for place, (grows, label) in enumerate(panels):
            for kind in KINDS:
                points = [p for p in report.points if p.grows == grows and p.passages == kind]
                sizes = [p.size for p in points]
                axes[0][place].plot(sizes, [p.cpu_ms for p in points], marker="o", label=kind)
            axes[0][place].set(xlabel=label, ylabel="ms of processor per check")
            axes[0][place].legend()
        for kind in KINDS:
            points = [p for p in report.points if p.passages == kind]
            axes[0][2].scatter([p.rows for p in points], [p.cpu_ms for p in points], label=kind)
        axes[0][2].set(xlabel="model rows per check", ylabel="ms of processor per check")
        axes[0][2].legend()
        callers = [rate.callers for rate in report.callers]
        axes[1][0].plot(callers, [rate.per_second for rate in report.callers], marker="o")
        axes[1][0].set(xscale="log", xlabel="callers", ylabel="verdicts per second", ylim=(0, None))
        for name in ("p50_ms", "p99_ms"):
            axes[1][1].plot(
                callers, [getattr(rate, name) for rate in report.callers], marker="o", label=name
            )
        axes[1][1].set(xscale="log", yscale="log", xlabel="callers", ylabel="milliseconds")
        axes[1][1].legend()
        for name in FORM_KINDS:
            rates = [rate for rate in report.cores if rate.kind == name]
            shares = [rate.per_second / rates[0].per_second for rate in rates]
            axes[1][2].plot(range(len(rates)), shares, marker="o", label=name)
        axes[1][2].set(ylabel="verdicts/s over one core's", ylim=(0, None))
        axes[1][2].set_xticks(
            range(len(FORMS)), ["1 core", "2 cores,\n2 workers", "2 cores,\n2 processes"]
        )
        axes[1][2].legend()
        for axis in axes.flat:
            axis.grid(alpha=0.3)

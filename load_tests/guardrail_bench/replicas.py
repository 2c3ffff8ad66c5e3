"""Measures what checks cost and how the simulated queue fits a real one, and advises replicas."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, pstdev
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict

from guardrail_bench.load import CheckedLoad, Percentiles, percentiles, poisson_arrivals
from guardrail_bench.output import MarkdownTable, drawing, tables_page
from guardrail_bench.queue_simulation import (
    ROUTES,
    Advice,
    Arrival,
    CheckKind,
    Route,
    advise,
    simulate,
)
from guardrail_bench.samples import SCENARIOS, Passages, SampleSource, SampleTexts
from guardrail_bench.server import Server, busy_share, default_cores, machine, serving
from guardrail_service.errors import ConfigurationError, ServiceError

PART = "bench replicas"
LOADS = (50, 70, 90)
"""Percent of one replica's capacity at which the simulation is compared with a real service."""
RUNS = 40
"""Simulated runs beside each measured one: its few requests could have been others."""
CALLERS = 8
_WARM_UP = 3
_QUANTILES = ("p50", "p95", "p99", "worst")


def parse_mix(given: Sequence[str]) -> dict[str, float]:
    """Return the share of each kind of check.

    Args:
        given: `scenario:passages=weight` each; weights need not add up to 1.

    Raises:
        ConfigurationError: If one is no such text, or twice there.
    """
    known = [f"{scenario}:{passages}" for scenario in SCENARIOS for passages in get_args(Passages)]
    weights: dict[str, float] = {}
    for text in given:
        name, _, weight = text.partition("=")
        if name not in known or name in weights:
            expected = f"each of {', '.join(known)} at most once, as in rag:warm=3"
            raise ConfigurationError("--mix", repr(text[:60]), expected)
        try:
            weights[name] = float(weight)
        except ValueError:
            weights[name] = math.nan
        if not 0 < weights[name] < math.inf:
            raise ConfigurationError("--mix", repr(text[:60]), "a positive number behind the =")
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


class SimulatedLoad(BaseModel):
    """A real service at one load, beside the simulation of the same arrivals.

    Attributes:
        load_percent: Of what one replica can bear.
        per_second: Requests that were to come.
        measured: Milliseconds from the intended send time to the reply, of whole verdicts.
        refused: Requests without one: the service refused them, or had no time for every detector.
        simulated: Medians over simulated runs; `worst` is the median of their worst.
        p99_range: Of the simulated runs, the smallest and largest p99.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    load_percent: int
    per_second: float
    measured: Percentiles
    refused: int
    simulated: Percentiles
    p99_range: tuple[float, float]

    @property
    def agrees(self) -> bool:
        """Return whether the measured p99 is one the simulation could have had."""
        return self.p99_range[0] <= self.measured.p99 <= self.p99_range[1]


class ReplicasReport(BaseModel):
    """Findings of `guardrail bench replicas`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    machine: dict[str, str | int | None]
    busy_before: float
    kinds: tuple[CheckKind, ...]
    compared: tuple[SimulatedLoad, ...]
    advice: tuple[Advice, ...]


class _Mix:
    """The samples of a mix; no cold passage comes twice."""

    def __init__(self, texts: SampleTexts, shares: dict[str, float], seed: int) -> None:
        self.shares = shares
        self.sources = {}
        for name in shares:
            scenario, _, passages = name.partition(":")
            chosen: Passages = "cold" if passages == "cold" else "warm"
            self.sources[name] = SampleSource(texts, SCENARIOS[scenario], chosen, seed)
        self._taken = dict.fromkeys(shares, 0)

    def next(self, name: str) -> dict[str, Any]:
        """Return a new sample of a kind."""
        self._taken[name] += 1
        return self.sources[name].sample(self._taken[name] - 1)

    def warm_up(self, load: CheckedLoad) -> None:
        """Show the service every shelf and a few samples of each kind."""
        for name, source in self.sources.items():
            load.one_by_one([*source.shelf(), *(self.next(name) for _ in range(_WARM_UP))])


def measure(
    texts: SampleTexts,
    shares: dict[str, float],
    seconds: float,
    seed: int,
    note: Callable[[str], None],
) -> tuple[list[CheckKind], list[SimulatedLoad]]:
    """Return what each kind costs, and the service beside the simulation at each of `LOADS`.

    Args:
        texts: What samples are made of.
        shares: Of the kinds of checks.
        seconds: How long each load lasts.
        seed: Of samples and arrivals.
        note: Called before each step.
    """
    mix = _Mix(texts, shares, seed)
    service_core, own_core = default_cores()
    with serving(["--workers", "1"], service_core) as server:
        load = CheckedLoad(server.address, own_core)
        note("warming up")
        mix.warm_up(load)
        kinds = []
        for name, share in shares.items():
            note(f"cost of {name}")
            kinds.append(_cost(server, load, mix, name, share, seconds))
        compared = []
        for percent in LOADS:
            note(f"{percent} % of one replica")
            compared.append(_compare(load, mix, kinds, percent, seconds, seed))
    return kinds, compared


def _cost(
    server: Server, load: CheckedLoad, mix: _Mix, name: str, share: float, seconds: float
) -> CheckKind:
    """Return a kind's cost: the mean from a busy service, the spread from one caller alone."""
    alone = load.closed_loop(lambda _: mix.next(name), 1, seconds)
    spread = pstdev(math.log(e.client_ms) for e in alone if e.client_ms)
    before = server.cpu_s()
    many = load.closed_loop(lambda _: mix.next(name), CALLERS, seconds)
    mean = (server.cpu_s() - before) / len(many)
    return CheckKind(name=name, share=share, mean_s=mean, sigma=spread)


def _compare(
    load: CheckedLoad,
    mix: _Mix,
    kinds: Sequence[CheckKind],
    percent: int,
    seconds: float,
    seed: int,
) -> SimulatedLoad:
    work = sum(kind.share * kind.mean_s for kind in kinds)
    rate = percent / 100 / work
    rng = random.Random(f"{seed}/{percent}")  # noqa: S311 - a schedule, not a secret
    times = poisson_arrivals(rate, seconds, f"{seed}/{percent}", 100)
    drawn = rng.choices(kinds, [kind.share for kind in kinds], k=len(times))
    exchanges = load.open_loop([mix.next(kind.name) for kind in drawn], times)
    whole = [e.client_ms for e in exchanges if e.complete and e.client_ms is not None]
    measured = percentiles(whole)
    simulated = []
    for _ in range(RUNS):
        requests = [
            Arrival(at, kind.draw_s(rng), kind.mean_s)
            for at, kind in zip(times, drawn, strict=True)
        ]
        simulated.append(percentiles([took * 1e3 for took in simulate(requests, 1)]))
    runs = [run for run in simulated if run is not None]
    if measured is None or not runs:
        raise ServiceError("nothing was measured; expected at least one check")
    p99 = [run.p99 for run in runs]
    return SimulatedLoad(
        load_percent=percent,
        per_second=rate,
        measured=measured,
        refused=len(exchanges) - len(whole),
        simulated=Percentiles(
            n=len(times),
            **{key: median(getattr(run, key) for run in runs) for key in _QUANTILES},
        ),
        p99_range=(min(p99), max(p99)),
    )


def run(
    texts: SampleTexts,
    shares: dict[str, float],
    rates: Sequence[float],
    targets: Sequence[float],
    seconds: float,
    seed: int,
    note: Callable[[str], None],
) -> ReplicasReport:
    """Return the report: costs, comparison, and the replicas for every rate and target."""
    busy = busy_share()
    kinds, compared = measure(texts, shares, seconds, seed, note)
    advice = []
    for rate in rates:
        note(f"{rate:g} checks a second")
        advice += [
            advise(kinds, rate, target, route, seed=seed) for target in targets for route in ROUTES
        ]
    return ReplicasReport(
        machine=machine(),
        busy_before=busy,
        kinds=tuple(kinds),
        compared=tuple(compared),
        advice=tuple(advice),
    )


def steps(shares: dict[str, float], rates: Sequence[float]) -> int:
    """Return how many steps `run` notes."""
    return 1 + len(shares) + len(LOADS) + len(rates)


def tables(report: ReplicasReport) -> list[MarkdownTable]:
    """Return title, headings and rows of each table."""
    costs: list[Sequence[str]] = [
        (kind.name, f"{kind.share:.0%}", f"{kind.mean_s * 1e3:.0f}", f"{kind.sigma:.2f}")
        for kind in report.kinds
    ]
    beside: list[Sequence[str]] = [
        (
            f"{one.load_percent} %", f"{one.per_second:.1f}", str(one.measured.n), str(one.refused),
            f"{one.measured.p50:.0f} / {one.simulated.p50:.0f}",
            f"{one.measured.p95:.0f} / {one.simulated.p95:.0f}",
            f"{one.measured.p99:.0f} / {one.simulated.p99:.0f}",
            f"{one.p99_range[0]:.0f} to {one.p99_range[1]:.0f}",
            "yes" if one.agrees else "**no**",
        )
        for one in report.compared
    ]  # fmt: skip
    return [
        MarkdownTable(
            "", ("kind of check", "of all", "ms of a core, mean", "spread of its logarithm"), costs
        ),
        MarkdownTable(
            "One replica, measured / simulated, milliseconds:",
            (
                "load",
                "checks/s",
                "n",
                "refused",
                "p50",
                "p95",
                "p99",
                "simulated p99",
                "measured is within",
            ),
            beside,
        ),
        MarkdownTable(
            "Replicas of one core (share of time each works):",
            ("checks/s", "p99 at most", *(f"to {words}" for words in ROUTES.values())),
            _advice_rows(report.advice),
        ),
    ]


def _advice_rows(advice: Sequence[Advice]) -> list[Sequence[str]]:
    found: dict[tuple[float, float], dict[Route, Advice]] = {}
    for one in advice:
        found.setdefault((one.per_second, one.p99_ms), {})[one.route] = one
    return [
        (f"{rate:g}", f"{target:g} ms", *(_cell(by_route[route]) for route in ROUTES))
        for (rate, target), by_route in found.items()
    ]


def _cell(one: Advice) -> str:
    if one.replicas is None or one.busy is None:
        return f"none: alone {one.found_p99_ms:.0f} ms"
    return f"{one.replicas} ({one.busy:.0%})"


def markdown(report: ReplicasReport, image: Path) -> str:
    """Return the part of the page, and draw its picture."""
    draw(report, image)
    about = f"Measured on {report.machine['cpu']}, service and generator on a core each."
    picture = f"![Replicas by checks a second](images/{image.name})"
    return tables_page(about, report.busy_before, tables(report), picture)


def draw(report: ReplicasReport, image: Path) -> None:
    """Draw how replicas grow with the rate, a line for each target and way."""
    with drawing(image, figsize=(8, 4)) as axes:
        lines: dict[tuple[float, Route], list[Advice]] = {}
        for one in report.advice:
            if one.replicas is not None:
                lines.setdefault((one.p99_ms, one.route), []).append(one)
        for (target, route), points in lines.items():
            axes.plot(
                [point.per_second for point in points],
                [point.replicas for point in points],
                marker="o",
                linestyle="-" if route == "least" else "--",
                label=f"p99 {target:g} ms, to {ROUTES[route]}",
            )
        axes.set(xscale="log", yscale="log", xlabel="checks per second", ylabel="replicas")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)

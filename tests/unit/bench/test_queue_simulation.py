"""The simulation against queues whose answers are known, and its advice."""

from __future__ import annotations

import math
import random
from pathlib import Path
from statistics import fmean

import pytest

from guardrail_bench.load import percentiles, poisson_arrivals
from guardrail_bench.queue_simulation import (
    ROUTES,
    Advice,
    Arrival,
    CheckKind,
    advise,
    arrivals,
    simulate,
)
from guardrail_bench.replicas import ReplicasReport, SimulatedLoad, markdown, parse_mix, tables
from guardrail_service.errors import ConfigurationError, InputError

CHAT = CheckKind(name="chat:warm", share=0.8, mean_s=0.05, sigma=0.3)
REPORT = CheckKind(name="report:cold", share=0.2, mean_s=0.4, sigma=0.2)


def test_requests_that_never_meet_take_what_they_cost() -> None:
    """Whichever replica they find."""
    requests = [Arrival(float(second), 0.25, 0.25) for second in range(20)]
    for route in ROUTES:
        assert simulate(requests, 3, route) == pytest.approx([0.25] * 20)


def test_one_queue_of_exponential_work_waits_as_the_formula_says() -> None:
    """M/M/1 at 60 %: the mean time is 1 / (mu - lambda). Equal expectations keep the order."""
    rng = random.Random(5)  # noqa: S311 - made-up work
    times = poisson_arrivals(6.0, 8_000, "m/m/1")
    requests = [Arrival(at, rng.expovariate(10.0), 0.1) for at in times]
    assert fmean(simulate(requests, 1)) == pytest.approx(1 / (10 - 6), rel=0.05)


def test_random_replicas_are_queues_of_their_own() -> None:
    """Four at the same load each wait as one does; the one with the fewest waits less."""
    rng = random.Random(6)  # noqa: S311 - made-up work
    times = poisson_arrivals(24.0, 1_500, "4 x m/m/1")
    requests = [Arrival(at, rng.expovariate(10.0), 0.1) for at in times]
    by_chance = fmean(simulate(requests, 4, "random"))
    assert by_chance == pytest.approx(1 / (10 - 6), rel=0.1)
    assert fmean(simulate(requests, 4, "least")) < 0.7 * by_chance


def test_small_requests_pass_a_huge_one_and_it_is_not_forgotten() -> None:
    """The order is arrival plus five times the cost: what is small goes first for so long."""
    huge = Arrival(0.0, 2.0, 2.0)
    small = [Arrival(0.1 * number, 0.02, 0.02) for number in range(1, 6)]
    late = Arrival(10.0, 0.02, 0.02)
    took = simulate([huge, *small, late], 1)
    assert took[1:6] == pytest.approx([0.02] * 5)
    assert took[0] == pytest.approx(2.1)
    assert took[6] == pytest.approx(0.02)


def test_no_replica_is_refused() -> None:
    """Requests would wait for ever."""
    with pytest.raises(ValueError, match="at least one"):
        simulate([], 0)


def test_arrivals_have_the_mix_and_the_costs_asked_for() -> None:
    """A fifth are reports; the mean is that of the kinds."""
    drawn = arrivals([CHAT, REPORT], 10.0, 20_000, "mix")
    assert drawn[-1].at == pytest.approx(2_000, rel=0.03)
    assert sum(request.expected_s == 0.4 for request in drawn) == pytest.approx(4_000, rel=0.05)
    assert fmean(request.work_s for request in drawn) == pytest.approx(0.12, rel=0.03)


def test_advice_is_the_fewest_replicas_that_meet_the_target() -> None:
    """One fewer does not; routing to the least busy never needs more."""
    by_route = {route: advise([CHAT, REPORT], 20.0, 1_500, route, checks=4_000) for route in ROUTES}
    requests = arrivals([CHAT, REPORT], 20.0, 4_000, "1/20.0")
    for route, advice in by_route.items():
        assert advice.replicas is not None
        fewer = percentiles(simulate(requests, advice.replicas - 1, route))
        assert advice.found_p99_ms <= 1_500
        assert fewer is not None
        assert fewer.p99 * 1e3 > 1_500
        assert advice.busy == pytest.approx(20 * 0.12 / advice.replicas, rel=0.05)
    assert (by_route["least"].replicas or 0) <= (by_route["random"].replicas or 0)


def test_a_target_below_an_idle_replica_gets_no_number() -> None:
    """More replicas make no check cheaper."""
    advice = advise([REPORT], 1.0, 300, "least", checks=500)
    assert advice.replicas is None
    assert advice.found_p99_ms > 400


def test_a_rate_beyond_all_reason_is_refused() -> None:
    """Rather than simulated for hours."""
    with pytest.raises(InputError, match="over 1000 replicas"):
        advise([REPORT], 1e5, 5_000, "random", checks=200)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["novel:warm=1"], "each of chat:cold"),
        (["rag:warm=1", "rag:warm=2"], "at most once"),
        (["rag:warm"], "positive number"),
        (["rag:warm=0"], "positive number"),
        (["rag:warm=nan"], "positive number"),
    ],
)
def test_a_wrong_mix_names_itself(given: list[str], message: str) -> None:
    """Before anything starts."""
    with pytest.raises(ConfigurationError, match=message):
        parse_mix(given)


def test_weights_become_shares() -> None:
    """They need not add up to 1."""
    assert parse_mix(["chat:warm=3", "rag:cold=1"]) == {"chat:warm": 0.75, "rag:cold": 0.25}


def test_the_page_says_where_simulation_and_service_differ(tmp_path: Path) -> None:
    """In bold, beside what it advises."""
    found = percentiles([50.0, 60.0, 300.0])
    assert found is not None
    report = ReplicasReport(
        machine={"cpu": "a processor"},
        busy_before=0.0,
        kinds=(CHAT, REPORT),
        compared=(
            SimulatedLoad(
                load_percent=50, per_second=4.0, measured=found, refused=0,
                simulated=found, p99_range=(250.0, 400.0),
            ),
            SimulatedLoad(
                load_percent=90, per_second=7.0, measured=found, refused=0,
                simulated=found, p99_range=(350.0, 400.0),
            ),
        ),
        advice=(
            Advice(per_second=5, p99_ms=1000, route="random", replicas=3, busy=0.2,
                   found_p99_ms=900.0),
            Advice(per_second=5, p99_ms=1000, route="least", replicas=None, busy=None,
                   found_p99_ms=math.pi * 1000),
        ),
    )  # fmt: skip
    _, (_, _, beside), (_, _, advice) = tables(report)
    assert [row[-1] for row in beside] == ["yes", "**no**"]
    assert advice == [("5", "1000 ms", "3 (20%)", "none: alone 3142 ms")]
    image = tmp_path / "replicas.png"
    page = markdown(report, image)
    assert "images/replicas.png" in page
    assert image.stat().st_size > 1_000

"""Percentiles, arrivals, capacity and accounting against values computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_bench.measures import (
    Tally,
    drift,
    is_saturated,
    next_concurrency,
    percentile,
    percentiles,
    poisson_arrivals,
)

LADDER = (1, 8, 32)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 50.0), (0.95, 95.0), (0.99, 99.0), (1.0, 100.0), (0.001, 1.0)]
)
def test_a_percentile_is_the_nearest_rank(share: float, expected: float) -> None:
    """Of 1..100 the 99th percentile is 99, not something between two values."""
    assert percentile([float(n) for n in range(1, 101)], share) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_percentile_is_a_value_that_occurred_and_covers_its_share(
    values: list[float], share: float
) -> None:
    """At least the share lies at or below it; without it, fewer do."""
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert found in ordered
    assert sum(v <= found for v in ordered) >= share * len(ordered) - 1e-9
    assert sum(v < found for v in ordered) < share * len(ordered) + 1e-9


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 0.0), ([1.0], 1.1)])
def test_a_percentile_of_nothing_or_outside_the_range_is_an_error(
    values: list[float], share: float
) -> None:
    """Empty data raises; it is no 0."""
    with pytest.raises(ValueError, match="expected some"):
        percentile(values, share)


def test_the_p99_of_few_values_is_the_worst() -> None:
    """So a table of ten requests cannot hide its slowest one."""
    found = percentiles([5.0, 1.0, 3.0])
    assert found is not None
    assert (found.n, found.p50, found.p99, found.worst) == (3, 3.0, 5.0, 5.0)
    assert percentiles([]) is None


def test_arrivals_are_seeded_ascending_and_inside_the_interval() -> None:
    """The same seed gives the same load; another one does not."""
    times = poisson_arrivals(50, 10, "a")
    assert times == poisson_arrivals(50, 10, "a")
    assert times != poisson_arrivals(50, 10, "b")
    assert times == sorted(times)
    assert times[0] > 0
    assert times[-1] < 10


def test_arrivals_are_poisson() -> None:
    """As many as offered within four deviations; gaps vary as much as their mean."""
    times = poisson_arrivals(100, 100, "x")
    assert abs(len(times) - 10_000) < 400
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((g - mean) ** 2 for g in gaps) / len(gaps)) ** 0.5
    assert 0.95 < deviation / mean < 1.05


def test_a_slow_machine_still_gets_some_arrivals() -> None:
    """A cell without requests would have no numbers."""
    times = poisson_arrivals(0.01, 1, "a", least=5)
    assert len(times) == 5
    assert times[0] > 1
    assert poisson_arrivals(50, 10, "a", least=5) == poisson_arrivals(50, 10, "a")


@pytest.mark.parametrize(("rate", "seconds"), [(0, 1), (1, 0), (-1, 1)])
def test_arrivals_without_rate_or_time_are_refused(rate: float, seconds: float) -> None:
    """Instead of a loop without end."""
    with pytest.raises(ValueError, match="positive"):
        poisson_arrivals(rate, seconds, "a")


def search(throughput: Callable[[int], float], most: int = 64) -> dict[int, float]:
    """Return what a whole search measures."""
    measured: dict[int, float] = {}
    while (step := next_concurrency(measured, LADDER, most)) is not None:
        measured[step] = throughput(step)
    return measured


def test_the_search_measures_the_ladder_and_stops_where_nothing_is_gained() -> None:
    """A single worker is saturated by eight callers."""
    assert list(search(lambda n: min(n, 8) * 10.0)) == [1, 8, 32]


def test_the_search_doubles_while_throughput_grows_and_never_passes_the_limit() -> None:
    """Beyond the limit the service refuses, so more callers would measure refusals."""
    assert list(search(lambda n: float(n), most=200)) == [1, 8, 32, 64, 128]
    assert not is_saturated(search(lambda n: float(n), most=200))
    assert list(search(lambda n: min(n, 50) * 1.0, most=200)) == [1, 8, 32, 64, 128]


def test_five_percent_more_is_no_more_capacity() -> None:
    """It is the size of the noise between runs."""
    assert is_saturated({1: 5.0, 8: 10.0, 32: 10.4})
    assert not is_saturated({1: 5.0, 8: 10.0, 32: 10.6})
    assert not is_saturated({1: 5.0})


def test_every_request_is_accounted_for_once() -> None:
    """What no group explains is lost."""
    tally = Tally(sent=12, complete=5, partial=1, refused=3, failed=2, hung=1, failures={"500": 2})
    assert (tally.answered, tally.lost) == (6, 0)
    assert tally.share(tally.refused) == 0.25
    assert tally.model_copy(update={"sent": 13}).lost == 1
    assert Tally().share(0) is None


def test_tallies_add_up() -> None:
    """Counts and failures by kind."""
    one = Tally(sent=3, complete=1, failed=2, failures={"500": 1, "reset": 1})
    two = Tally(sent=2, complete=1, failed=1, failures={"500": 1})
    total = one + two
    assert (total.sent, total.complete, total.failed, total.lost) == (5, 2, 3, 0)
    assert total.failures == {"500": 2, "reset": 1}


def test_drift_compares_the_end_with_the_beginning_after_warming_up() -> None:
    """A cache that fills at first is no leak; growth afterwards is."""
    assert drift([50.0] * 10 + [100.0] * 90) == 0.0
    assert drift([100.0] * 90 + [110.0] * 10) == pytest.approx(0.1)
    assert drift([100.0] * 19) is None

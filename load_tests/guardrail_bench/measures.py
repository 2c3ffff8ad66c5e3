"""What a load test counts: percentiles, arrivals, where capacity lies, who got which answer."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Self

from pydantic import BaseModel, ConfigDict

GAIN = 1.05
"""More concurrency that adds at most 5 % is no more capacity: run-to-run noise is of that size."""


class Percentiles(BaseModel):
    """The distribution of `n` values in their own unit; percentiles are values that occurred."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    n: int
    p50: float
    p95: float
    p99: float
    worst: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all values does not exceed.

    Nearest rank, without interpolation: the 99th percentile of fewer than 100 values is the worst.

    Args:
        ordered: Ascending; not empty.
        share: In (0, 1].

    Raises:
        ValueError: If there is no value, or the share is outside its range.
    """
    if not ordered or not 0 < share <= 1:
        raise ValueError(f"found {len(ordered)} values and share {share}; expected some, in (0, 1]")
    return ordered[math.ceil(share * len(ordered)) - 1]


def percentiles(values: Collection[float]) -> Percentiles | None:
    """Return the distribution of some values, or None where there are none."""
    if not values:
        return None
    ordered = sorted(values)
    p50, p95, p99 = (percentile(ordered, share) for share in (0.5, 0.95, 0.99))
    return Percentiles(n=len(ordered), p50=p50, p95=p95, p99=p99, worst=ordered[-1])


def poisson_arrivals(per_second: float, seconds: float, seed: str, least: int = 0) -> list[float]:
    """Return the intended send times of independent callers, ascending, in [0, seconds).

    Args:
        per_second: How many come per second on average.
        seconds: How long they come.
        seed: Another seed gives other times.
        least: Go on beyond `seconds` until so many have come.

    Raises:
        ValueError: If the rate or the duration is not positive.
    """
    if not (per_second > 0 and seconds > 0):
        raise ValueError(f"found {per_second}/s for {seconds} s; expected positive numbers")
    rng = random.Random(seed)  # noqa: S311 - a schedule, not a secret
    times: list[float] = []
    now = rng.expovariate(per_second)
    while now < seconds or len(times) < least:
        times.append(now)
        now += rng.expovariate(per_second)
    return times


def next_concurrency(measured: Mapping[int, float], ladder: Sequence[int], most: int) -> int | None:
    """Return the next number of callers to measure on the search for capacity; None when found.

    Every step of the ladder is measured; beyond it callers double while throughput still grows.

    Args:
        measured: Answers per second by number of callers.
        ladder: Steps to measure in any case, ascending.
        most: Largest number of callers to try.
    """
    for step in ladder:
        if step not in measured:
            return step
    if is_saturated(measured):
        return None
    doubled = 2 * max(measured)
    return doubled if doubled <= most else None


def is_saturated(measured: Mapping[int, float]) -> bool:
    """Return whether the most callers got hardly more answers per second than some fewer."""
    last = max(measured)
    fewer = [rate for callers, rate in measured.items() if callers != last]
    return bool(fewer) and measured[last] <= GAIN * max(fewer)


class Tally(BaseModel):
    """What became of every request that was sent. Nothing is counted twice.

    Attributes:
        sent: Requests handed to a connection.
        complete: 200, every detector ran.
        partial: 200, the deadline came first.
        refused: 429.
        failed: Any other status, or a connection that broke; never a verdict.
        hung: No reply within the generator's patience.
        failures: `failed` by status or kind of error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    sent: int = 0
    complete: int = 0
    partial: int = 0
    refused: int = 0
    failed: int = 0
    hung: int = 0
    failures: dict[str, int] = {}

    @property
    def answered(self) -> int:
        """Return how many got a verdict."""
        return self.complete + self.partial

    @property
    def lost(self) -> int:
        """Return how many are in none of the groups; 0 unless the generator lost count."""
        return self.sent - self.answered - self.refused - self.failed - self.hung

    def share(self, count: int) -> float | None:
        """Return a count as a share of what was sent; None where nothing was."""
        return count / self.sent if self.sent else None

    def __add__(self, other: Self) -> Tally:
        """Return both tallies together."""
        names = ("sent", "complete", "partial", "refused", "failed", "hung")
        summed = {name: getattr(self, name) + getattr(other, name) for name in names}
        kinds = sorted({*self.failures, *other.failures})
        counts = {k: self.failures.get(k, 0) + other.failures.get(k, 0) for k in kinds}
        return Tally(**summed, failures=counts)


def drift(series: Sequence[float], warmup: float = 0.1) -> float | None:
    """Return by which share a quantity grew: its end against its beginning, after warming up.

    Args:
        series: Values at even steps.
        warmup: Share of the series that is left out at the beginning, in which caches fill.

    Returns:
        Median of the last tenth over the median of the first tenth after warming up, minus 1;
        None where the series is shorter than 20 values, so that a tenth would be less than two.
    """
    tenth = len(series) // 10
    if tenth < 2:
        return None
    start = math.ceil(warmup * len(series))
    return median(series[-tenth:]) / median(series[start : start + tenth]) - 1

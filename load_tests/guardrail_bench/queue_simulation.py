"""A simulation of replicas' queues: how long requests take, and how many replicas a p99 needs.

A replica is one core. It works on the request that is first in the service's own order and leaves
it when a more urgent one comes, as the service does between two rows (decision 10). The cost of a
check is log-normal, with mean and spread as measured on this machine. Deadlines, refusals, the
network and starts of replicas are not simulated: they make a wait shorter or are another question.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from guardrail_bench.load import percentiles
from guardrail_service.errors import InputError
from guardrail_service.inference.queue.cost import PASSED

Route = Literal["random", "least"]
ROUTES: dict[Route, str] = {"random": "any replica", "least": "the one with the fewest requests"}
CHECKS = 20_000
"""Requests of one simulated point: 200 of them are beyond the 99th percentile."""
MOST_REPLICAS = 1_000


class CheckKind(BaseModel):
    """One kind of check and what it costs.

    Attributes:
        name: `scenario:passages`.
        share: Of all requests.
        mean_s: Seconds of one core, mean.
        sigma: Standard deviation of the logarithm of the cost.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    share: float = Field(gt=0, le=1)
    mean_s: float = Field(gt=0, allow_inf_nan=False)
    sigma: float = Field(ge=0, allow_inf_nan=False)

    def draw_s(self, rng: random.Random) -> float:
        """Return the cost of one check in seconds."""
        return rng.lognormvariate(math.log(self.mean_s) - self.sigma**2 / 2, self.sigma)


class Arrival(NamedTuple):
    """A request: when it comes, what it takes and what it is expected to take; seconds."""

    at: float
    work_s: float
    expected_s: float


def arrivals(
    kinds: Sequence[CheckKind], per_second: float, checks: int, seed: str
) -> list[Arrival]:
    """Return requests of independent callers, each of a kind drawn by its share."""
    rng = random.Random(seed)  # noqa: S311 - a schedule, not a secret
    shares = [kind.share for kind in kinds]
    found, now = [], 0.0
    for kind in rng.choices(kinds, shares, k=checks):
        now += rng.expovariate(per_second)
        found.append(Arrival(now, kind.draw_s(rng), kind.mean_s))
    return found


class _Replica:
    """One core with the service's order of work."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, float, Arrival]] = []
        self._now = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, number: int, request: Arrival) -> None:
        place = request.at + PASSED * request.expected_s
        heapq.heappush(self._waiting, (place, number, request.work_s, request))

    def run_until(self, end: float) -> Iterator[tuple[int, float]]:
        """Yield the number of each request that is done by then, and how long it took."""
        while self._waiting and self._now < end:
            place, number, left, request = self._waiting[0]
            self._now = max(self._now, request.at)
            if self._now + left > end:
                left -= end - self._now
                heapq.heapreplace(self._waiting, (place, number, left, request))
                break
            heapq.heappop(self._waiting)
            self._now += left
            yield number, self._now - request.at
        self._now = max(self._now, end)


def simulate(
    requests: Sequence[Arrival], replicas: int, route: Route = "least", seed: int = 1
) -> list[float]:
    """Return how many seconds each request takes, in the order in which they come.

    Args:
        requests: By the time at which they come.
        replicas: Of one core each.
        route: `random`: to any replica, as a Kubernetes Service does; `least`: to one of those with
            the fewest requests, as proxies can.
        seed: Of the draw among replicas.

    Raises:
        ValueError: If there is no replica.
    """
    if replicas < 1:
        raise ValueError(f"found {replicas} replicas; expected at least one")
    rng = random.Random(seed)  # noqa: S311 - a draw, not a secret
    pool = [_Replica() for _ in range(replicas)]
    took = [math.nan] * len(requests)
    for number, request in enumerate(requests):
        if route == "random":
            chosen = pool[rng.randrange(replicas)]
            _note(took, chosen.run_until(request.at))
        else:
            for replica in pool:
                _note(took, replica.run_until(request.at))
            fewest = min(map(len, pool))
            chosen = rng.choice([replica for replica in pool if len(replica) == fewest])
        chosen.add(number, request)
    for replica in pool:
        _note(took, replica.run_until(math.inf))
    return took


def _note(took: list[float], done: Iterator[tuple[int, float]]) -> None:
    for number, seconds in done:
        took[number] = seconds


class Advice(BaseModel):
    """The number of replicas that a rate and a target need.

    Attributes:
        per_second: Requests that come.
        p99_ms: The target.
        route: How requests find their replica.
        replicas: The fewest that meet it; None: no number does.
        busy: Share of the time each works.
        found_p99_ms: Of the simulation with so many; without a number, of idle replicas.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    per_second: float
    p99_ms: float
    route: Route
    replicas: int | None
    busy: float | None
    found_p99_ms: float


def advise(
    kinds: Sequence[CheckKind],
    per_second: float,
    p99_ms: float,
    route: Route,
    *,
    checks: int = CHECKS,
    seed: int = 1,
) -> Advice:
    """Return the fewest replicas whose simulated p99 is within the target.

    Raises:
        InputError: If more than `MOST_REPLICAS` would be needed.
    """
    requests = arrivals(kinds, per_second, checks, f"{seed}/{per_second}")
    work = per_second * fmean(request.work_s for request in requests)

    def p99(replicas: int) -> float:
        found = percentiles(simulate(requests, replicas, route, seed))
        return math.inf if found is None else found.p99 * 1e3

    alone = percentiles([request.work_s for request in requests])
    if alone is None or alone.p99 * 1e3 > p99_ms:
        floor = math.inf if alone is None else alone.p99 * 1e3
        return Advice(per_second=per_second, p99_ms=p99_ms, route=route, replicas=None,
                      busy=None, found_p99_ms=floor)  # fmt: skip
    low = high = max(1, math.ceil(work))
    while high <= MOST_REPLICAS and (found := p99(high)) > p99_ms:
        low, high = high + 1, math.ceil(high * 1.5) + 1
    if high > MOST_REPLICAS:
        raise InputError(f"{per_second:g} checks a second need over {MOST_REPLICAS} replicas")
    while low < high:
        middle = (low + high) // 2
        if (p := p99(middle)) <= p99_ms:
            high, found = middle, p
        else:
            low = middle + 1
    return Advice(per_second=per_second, p99_ms=p99_ms, route=route, replicas=high,
                  busy=work / high, found_p99_ms=found)  # fmt: skip

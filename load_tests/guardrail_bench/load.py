"""Sends load to a service and counts what becomes of it.

Callers that wait for each other's turn, or arrivals that do not wait. Open-loop latency counts from
the intended send time, so a generator or a connection that falls behind makes the measured latency
worse, never better (no coordinated omission). Locust cannot: its users wait for their replies.

The connection is our own because generator and service share a machine: a request costs 20 to 40 us
of processor time here, and 1.0, 2.5 and 4.7 ms with httpx and 1, 32 and 200 callers.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict

from guardrail_bench.server import pinned
from guardrail_service.errors import ServiceError

PATH = "/v1/check"
Bodies = Callable[[int], bytes]
"""The body of the n-th request; the same number always gives the same one."""
Sleep = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class LoadRequest:
    """One request and what became of it; times are `time.perf_counter` seconds.

    Attributes:
        number: Which sample it carried.
        intended: When it should have been sent.
        sent: When it was.
        done: When its reply was complete, or its connection broke; None while it is under way.
        status: HTTP status; 0 without a reply.
        failure: Why there is no reply: the kind of error, or `hung`.
        partial: Whether the reply says so.
        timings: The reply's `timings_ms`, and `server`: X-Total-Time.
        retry_after_s: When a refused caller may come back.
    """

    number: int
    intended: float
    sent: float
    done: float | None = None
    status: int = 0
    failure: str | None = None
    partial: bool = False
    timings: Mapping[str, float] = field(default_factory=dict)
    retry_after_s: float = 0.0

    @property
    def client_ms(self) -> float | None:
        """Return the milliseconds from the intended send time to the complete reply."""
        return None if self.done is None else (self.done - self.intended) * 1e3

    @property
    def complete(self) -> bool:
        """Return whether every detector had its say."""
        return self.status == 200 and not self.partial

    def take(self, reply: HttpReply) -> None:
        """Note a reply."""
        self.status = reply.status
        timings: dict[str, float] = {}
        if reply.status == 200:
            found = json.loads(reply.body)
            self.partial = found["status"] == "partial"
            timings = dict(found["timings_ms"])
        if (server := reply.headers.get("x-total-time")) is not None:
            timings["server"] = float(server)
        self.timings = timings
        self.retry_after_s = float(reply.headers.get("retry-after", 0.0))


def tally(exchanges: Sequence[LoadRequest]) -> Tally:
    """Return what became of some requests."""
    failures: dict[str, int] = {}
    counts = dict.fromkeys(("complete", "partial", "refused", "failed", "hung"), 0)
    for exchange in exchanges:
        group = _group(exchange)
        if group is not None:
            counts[group] += 1
        if group == "failed":
            kind = exchange.failure or str(exchange.status)
            failures[kind] = failures.get(kind, 0) + 1
    return Tally(sent=len(exchanges), failures=failures, **counts)


def _group(exchange: LoadRequest) -> str | None:
    """Return which group of a tally a request is in; None if nobody knows what became of it."""
    if exchange.done is None:
        return None
    if exchange.failure is not None:
        return "hung" if exchange.failure == "hung" else "failed"
    if exchange.status == 200:
        return "partial" if exchange.partial else "complete"
    return "refused" if exchange.status == 429 else "failed"


class Generator:
    """Sends requests over as many connections as are needed at a time.

    Args:
        address: `http://host:port`.
        bodies: What to send.
        patience_s: A request without a reply for this long counts as hung.
        sleep: How a refused caller waits; tests pass their own.
        key: The callers' key; empty: none.
    """

    def __init__(
        self,
        address: str,
        bodies: Bodies,
        patience_s: float,
        sleep: Sleep = asyncio.sleep,
        key: str = "",
    ) -> None:
        self._address = address
        self._bodies = bodies
        self._patience_s = patience_s
        self._sleep = sleep
        self._key = key
        self._idle: list[LoadConnection] = []

    async def closed_loop(
        self, callers: int, seconds: float, first: int, most: int | None = None
    ) -> list[LoadRequest]:
        """Return the requests of callers that each wait for a reply before they send again.

        A refused caller waits as long as `Retry-After` says, as a client should.

        Args:
            callers: Requests under way at the same time.
            seconds: No request begins later than this; those under way are finished.
            first: Number of the first sample.
            most: Stop after this many requests.
        """
        exchanges: list[LoadRequest] = []
        end = time.perf_counter() + seconds

        async def caller() -> None:
            while (now := time.perf_counter()) < end and (most is None or len(exchanges) < most):
                exchange = LoadRequest(first + len(exchanges), now, now)
                exchanges.append(exchange)
                body = self._bodies(exchange.number)
                exchange.intended = time.perf_counter()
                await self._send(exchange, body)
                if exchange.status == 429:
                    await self._sleep(exchange.retry_after_s)

        await asyncio.gather(*(caller() for _ in range(callers)))
        return exchanges

    async def open_loop(self, arrivals: Sequence[float], first: int) -> list[LoadRequest]:
        """Return the requests of independent callers.

        Args:
            arrivals: When each is to be sent, in seconds from now, ascending.
            first: Number of the first sample.
        """
        bodies = [self._bodies(first + place) for place in range(len(arrivals))]
        exchanges: list[LoadRequest] = []
        start = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for place, arrival in enumerate(arrivals):
                intended = start + arrival
                await asyncio.sleep(max(0.0, intended - time.perf_counter()))
                exchange = LoadRequest(first + place, intended, intended)
                exchanges.append(exchange)
                group.create_task(self._send(exchange, bodies[place]))
        return exchanges

    async def _send(self, exchange: LoadRequest, body: bytes) -> None:
        exchange.sent = time.perf_counter()
        with self._connection() as connection:
            try:
                async with asyncio.timeout(self._patience_s):
                    exchange.take(await connection.post(PATH, body))
            except TimeoutError:
                exchange.failure = "hung"
            except (OSError, asyncio.IncompleteReadError, ValueError, KeyError) as error:
                exchange.failure = type(error).__name__
        exchange.done = time.perf_counter()

    @contextmanager
    def _connection(self) -> Iterator[LoadConnection]:
        connection = self._idle.pop() if self._idle else LoadConnection(self._address, self._key)
        yield connection
        self._idle.append(connection)

    def close(self) -> None:
        """Close every connection."""
        for connection in self._idle:
            connection.close()


Sample = Mapping[str, Any]


class CheckedLoad:
    """Sends load from a core of its own; a reply that is an error ends the measurement.

    Args:
        address: `http://host:port`.
        cores: Where the generator runs meanwhile; None leaves it to the system.
        patience_s: A request without a reply for this long counts as hung.

    Raises:
        ServiceError: Whatever is sent, if a request fails or hangs, or is cut short or refused
            where the callers wait for each other.
    """

    def __init__(
        self, address: str, cores: Collection[int] | None = None, patience_s: float = 300.0
    ) -> None:
        self._address = address
        self._cores = cores
        self._patience_s = patience_s

    def closed_loop(
        self, sample: Callable[[int], Sample], callers: int, seconds: float
    ) -> list[LoadRequest]:
        """Return the requests of callers that wait for each reply; see `Generator`."""
        return self._run(sample, lambda sender: sender.closed_loop(callers, seconds, 0))

    def open_loop(self, samples: Sequence[Sample], arrivals: Sequence[float]) -> list[LoadRequest]:
        """Return the requests of independent callers; see `Generator`."""
        return self._run(
            samples.__getitem__, lambda sender: sender.open_loop(arrivals, 0), may_refuse=True
        )

    def one_by_one(self, samples: Sequence[Sample]) -> list[LoadRequest]:
        """Return the requests of a single caller, one for each sample."""
        return self._run(
            samples.__getitem__, lambda sender: sender.closed_loop(1, math.inf, 0, len(samples))
        )

    def _run(
        self,
        sample: Callable[[int], Sample],
        work: Callable[[Generator], Coroutine[Any, Any, list[LoadRequest]]],
        *,
        may_refuse: bool = False,
    ) -> list[LoadRequest]:
        import uvloop

        def body(number: int) -> bytes:
            return json.dumps(sample(number)).encode()

        async def sent() -> list[LoadRequest]:
            generator = Generator(self._address, body, self._patience_s)
            try:
                return await work(generator)
            finally:
                generator.close()

        with pinned(self._cores):
            exchanges = uvloop.run(sent())
        found = tally(exchanges)
        fine = found.complete + (found.partial + found.refused) * may_refuse
        if not found.complete or fine != found.sent:
            raise ServiceError(f"{found.complete} of {found.sent} checks got a whole verdict")
        return exchanges


class HttpReply(NamedTuple):
    """One response; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class LoadConnection:
    """One connection to a service, opened on first use and again after it broke.

    Args:
        address: `http://host:port`, as the service prints it.
        key: Sent with every request; empty: none.
    """

    def __init__(self, address: str, key: str = "") -> None:
        parts = urlsplit(address)
        self._host = parts.hostname or "127.0.0.1"
        self._port = parts.port or 80
        self._key = f"Authorization: Bearer {key}\r\n" if key else ""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes) -> HttpReply:
        """Send a JSON body and return the reply.

        Raises:
            OSError: If the connection cannot be opened or breaks.
            asyncio.IncompleteReadError: If the service closes it before the reply is complete.
        """
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n{self._key}\r\n"
        )
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        try:
            return await self._exchange(*self._streams, head.encode() + body)
        except BaseException:
            self.close()  # what is left of the reply must not be read as the next one
            raise

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
    ) -> HttpReply:
        writer.write(request)
        status, headers = parse_head(await reader.readuntil(b"\r\n\r\n"))
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection") == "close":
            self.close()
        return HttpReply(status, headers, body)

    def close(self) -> None:
        """Drop the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    """Return a response's status and headers."""
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return int(first.split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in pairs}


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
    """The counts of replies to all requests that were sent. Nothing is counted twice.

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

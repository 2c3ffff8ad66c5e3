"""Sends load to a service: callers that wait for each other's turn, or arrivals that do not wait.

Open-loop latency counts from the intended send time, so a generator or a connection that falls
behind makes the measured latency worse, never better (no coordinated omission).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from guardrail_bench.measures import Tally
from guardrail_bench.wire import Connection, HttpReply

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
    """

    def __init__(
        self, address: str, bodies: Bodies, patience_s: float, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._address = address
        self._bodies = bodies
        self._patience_s = patience_s
        self._sleep = sleep
        self._idle: list[Connection] = []

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
    def _connection(self) -> Iterator[Connection]:
        connection = self._idle.pop() if self._idle else Connection(self._address)
        yield connection
        self._idle.append(connection)

    def close(self) -> None:
        """Close every connection."""
        for connection in self._idle:
            connection.close()

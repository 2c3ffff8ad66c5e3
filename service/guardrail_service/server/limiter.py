"""Refuses the requests of keys beyond their limits. Not entered for a caller without limits."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from prometheus_client import Counter as Metric
from starlette.concurrency import run_in_threadpool

from guardrail_service.errors import NotReady, RateExceeded
from guardrail_service.server.counters import Counters, CountersAway, MemoryCounters
from guardrail_service.types import Caller

if TYPE_CHECKING:
    from guardrail_service.settings import Settings

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
PAUSE_S = 1.0
"""Seconds in which a place that could not count is not asked again: each try costs a time-out."""
BUSY_S = 1.0
"""Seconds after which a caller with too many requests in work may try again: a guess."""


def open_counters(where: str) -> Counters:
    """Return the place to count that a setting names.

    Args:
        where: `memory`, `file:PATH` or `redis://HOST:PORT/NUMBER`.

    Raises:
        ConfigurationError: If the file cannot be used or is another's.
        MissingExtra: If Redis is named and its library is not installed.
    """
    if where.startswith(("redis://", "rediss://", "unix://")):
        from guardrail_service.server.redis_counters import RedisCounters

        return RedisCounters(where)
    if where.startswith("file:"):
        from guardrail_service.server.shared_counters import SharedCounters

        return SharedCounters(where.removeprefix("file:"))
    return MemoryCounters()


class Limiter:
    """Keeps callers within the limits of their keys.

    Attributes:
        uncounted: How often nothing could be counted, by what followed; in no registry yet.

    Args:
        counters: Where requests are counted.
        is_open: Whether a request passes that could not be counted; if not, it is refused (503).
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        counters: Counters,
        *,
        is_open: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._counters = counters
        self._is_open = is_open
        self._clock = clock
        self._again = -math.inf
        self.uncounted = Metric(
            "guardrail_uncounted_requests",
            "Requests of keys with limits that could not be counted, by what became of them.",
            ["result"],
            registry=None,
        )

    @classmethod
    def of(cls, settings: Settings) -> Limiter:
        """Return what limits keys as the settings say."""
        return cls(open_counters(settings.counters), is_open=settings.counters_away == "serve")

    @asynccontextmanager
    async def within(self, caller: Caller) -> AsyncIterator[None]:
        """Hold a place for one request of a caller.

        Raises:
            RateExceeded: If it has none left.
            NotReady: If nothing can be counted and requests are refused then.
        """
        holds = False
        if (most := caller.concurrency) is not None:
            entered = await self._ask(lambda: self._counters.enter(caller.id, most))
            if entered is False:
                found = f"{most} requests of this key are in work, its limit; try again later"
                raise RateExceeded(found, BUSY_S)
            holds = entered is True
        try:
            if (rate := caller.rate) is not None:
                wait_s = await self._ask(lambda: self._counters.take(caller.id, rate))
                if wait_s:
                    found = f"this key allows {rate.requests} requests in {rate.seconds} s"
                    raise RateExceeded(f"{found}; try again later", wait_s)
            yield
        finally:
            if holds:
                await self._leave(caller)

    def close(self) -> None:
        """Give back what is held."""
        self._counters.close()

    async def _leave(self, caller: Caller) -> None:
        try:
            await self._run(lambda: self._counters.leave(caller.id))
        except CountersAway:
            _LOG.warning("the end of a request was not counted; its place is free again later")

    async def _ask(self, count: Callable[[], T]) -> T | None:
        """Return what counting gives; None if it failed and the request may pass all the same."""
        if self._clock() >= self._again:
            try:
                return await self._run(count)
            except CountersAway as error:
                self._again = self._clock() + PAUSE_S
                _LOG.error("requests of keys are not counted: %s", error)
        self.uncounted.labels("served" if self._is_open else "refused").inc()
        if self._is_open:
            return None
        raise NotReady("the limits of this key cannot be checked right now; try again later")

    async def _run(self, count: Callable[[], T]) -> T:
        return await run_in_threadpool(count) if self._counters.is_remote else count()

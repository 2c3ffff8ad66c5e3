"""Counts requests for processes of several machines, in a Redis.

The only file that imports `limits` and, through it, Redis' client.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeVar

from guardrail_service.errors import ConfigurationError, MissingExtra
from guardrail_service.server.counters import CountersAway
from guardrail_service.types import Rate

T = TypeVar("T")
ANSWER_S = 0.25
"""Seconds that Redis has for an answer; a check takes about a tenth of a second."""
LEASE_S = 600
"""Seconds after which a place counts as free that nobody gave back: its process was killed."""
PREFIX = "guardrail"
_ENTER = """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[4])
redis.call('EXPIRE', KEYS[1], ARGV[5])
return 1
"""


class RedisCounters:
    """Counts in a Redis.

    Args:
        url: Of the server, with its number and, where it asks for one, its password.

    Raises:
        MissingExtra: If the library is not installed.
        ConfigurationError: If the URL is none.
    """

    is_remote = True

    def __init__(self, url: str) -> None:
        try:
            from limits.storage import storage_from_string
            from limits.strategies import SlidingWindowCounterRateLimiter
        except ImportError as error:
            raise MissingExtra("rag-guardrail[redis]") from error
        given: dict[str, Any] = {"socket_timeout": ANSWER_S, "socket_connect_timeout": ANSWER_S}
        try:
            storage: Any = storage_from_string(url, wrap_exceptions=True, **given)
        except Exception as error:  # the library's own errors, and those of what it imports
            found = type(error).__name__
            expected = "a URL such as redis://127.0.0.1:6379/0"
            raise ConfigurationError("GUARDRAIL_COUNTERS", found, expected) from error
        self._windows = SlidingWindowCounterRateLimiter(storage)
        self._redis = storage.storage
        self._enter = self._redis.register_script(_ENTER)
        self._places: defaultdict[str, list[str]] = defaultdict(list)

    def take(self, caller: str, rate: Rate) -> float:
        """Count one request; return 0, or the seconds until one fits."""
        from limits import RateLimitItemPerSecond

        item = RateLimitItemPerSecond(rate.requests, rate.seconds, namespace=PREFIX)

        def hit() -> float:
            if self._windows.hit(item, caller):
                return 0.0
            until: float = self._windows.get_window_stats(item, caller).reset_time
            return max(0.001, until - time.time())

        return _answered(hit)

    def enter(self, caller: str, most: int) -> bool:
        """Return whether one more request is in work now, in all processes together."""
        now, place = time.time(), uuid.uuid4().hex
        given = [now, most, now + LEASE_S, place, LEASE_S]
        entered = bool(_answered(lambda: self._enter(keys=[_key(caller)], args=given)))
        if entered:
            self._places[caller].append(place)
        return entered

    def leave(self, caller: str) -> None:
        """End what `enter` began."""
        place = self._places[caller].pop()
        _answered(lambda: self._redis.zrem(_key(caller), place))

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()


def _key(caller: str) -> str:
    return f"{PREFIX}:in_work:{caller}"


def _answered(ask: Callable[[], T]) -> T:
    """Return what Redis says.

    Raises:
        CountersAway: If it is not reached, or refuses.
    """
    try:
        return ask()
    except Exception as error:
        raise CountersAway(type(error).__name__) from error

"""Limits of pace and cost, and the end of asking when nobody answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from guardrail_offline.hosts.prices import TokenPrice
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.judge.results import TokenUsage


class HoldsBudget(Protocol):
    """A cap on what is spent; `Purse` says more."""

    @property
    def spent(self) -> float:
        """Return the cost so far."""

    def lay_aside(self, most: TokenUsage) -> float | None:
        """Return the cost of a call at most; None if the budget does not allow for it."""

    def settle(self, aside: float, usage: TokenUsage) -> None:
        """Count what a call has cost in the place of what was laid aside."""


class HoldsPace(Protocol):
    """A limit of so much a minute; `TokenBucket` says more."""

    def take(self, amount: float) -> None:
        """Wait until an amount may begin."""


class EndsAsking(Protocol):
    """The end of asking when nobody answers; `Breaker` says more."""

    @property
    def is_open(self) -> bool:
        """Return whether nobody is to be asked any more."""

    @property
    def succeeded(self) -> bool:
        """Return whether any try was answered."""

    def note(self, *, answered: bool) -> None:
        """Count one try."""


class JudgeLimits(NamedTuple):
    """Everything that bounds the asking of one run; several machines may share it."""

    purse: HoldsBudget
    requests: HoldsPace
    tokens: HoldsPace
    breaker: EndsAsking


def cost_of(usage: TokenUsage, price: TokenPrice) -> float:
    """Return the cost of some tokens."""
    return price.cost((usage.prompt, usage.completion), usage.cached)


class Purse:
    """A hard cap on what is spent. Threads share it.

    Before a call its highest cost is laid aside, so that calls at the same time do not exceed the
    cap together.

    Args:
        price: Of the judge; None if unknown, then nothing has a cost.
        budget: The cap; None for none.
        spent: What the run has cost before.
    """

    def __init__(self, price: TokenPrice | None, budget: float | None, spent: float = 0.0) -> None:
        self._price, self._budget = price, budget
        self._spent, self._aside = spent, 0.0
        self._lock = threading.Lock()

    @property
    def spent(self) -> float:
        """Return the cost so far."""
        with self._lock:
            return self._spent

    def lay_aside(self, most: TokenUsage) -> float | None:
        """Return the cost of a call at most; None if the budget does not allow for it."""
        cost = cost_of(most, self._price) if self._price else 0.0
        with self._lock:
            if self._budget is not None and self._spent + self._aside + cost > self._budget:
                return None
            self._aside += cost
            return cost

    def settle(self, aside: float, usage: TokenUsage) -> None:
        """Count what a call has cost in the place of what was laid aside."""
        with self._lock:
            self._aside -= aside
            self._spent += cost_of(usage, self._price) if self._price else 0.0


class TokenBucket:
    """Lets at most so much begin in a minute. Threads share it.

    Args:
        per_minute: How much; None for no limit.
        clock: Tells seconds.
        sleep: Waits.
    """

    def __init__(
        self,
        per_minute: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = per_minute / 60 if per_minute else None
        self._most = per_minute or 0.0
        self._left, self._at = self._most, clock()
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()

    def wait_for(self, amount: float) -> float:
        """Take an amount, a minute's at most, and return how long to wait for it."""
        if self._rate is None:
            return 0.0
        with self._lock:
            now = self._clock()
            self._left = min(self._most, self._left + (now - self._at) * self._rate)
            self._at = now
            self._left -= min(amount, self._most)
            return max(0.0, -self._left / self._rate)

    def take(self, amount: float) -> None:
        """Wait until an amount may begin."""
        seconds = self.wait_for(amount)
        if seconds > 0:
            self._sleep(seconds)


class Breaker:
    """Stops asking when nobody has answered for a while. Threads share it.

    Args:
        most: Failures in a row.
    """

    def __init__(self, most: int) -> None:
        self._most, self._failures = most, 0
        self._lock = threading.Lock()
        self._succeeded = False

    @property
    def succeeded(self) -> bool:
        """Return whether any try was answered."""
        return self._succeeded

    @property
    def is_open(self) -> bool:
        """Return whether nobody is to be asked any more."""
        return self._failures >= self._most

    def note(self, *, answered: bool) -> None:
        """Count one try."""
        with self._lock:
            self._failures = 0 if answered else self._failures + 1
            self._succeeded |= answered


def limits_of(
    settings: JudgeSettings,
    spent: TokenUsage,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> JudgeLimits:
    """Return the limits that settings name, for one process.

    Args:
        settings: Of the judge.
        spent: What the run has taken before.
        clock: Tells seconds.
        sleep: Waits.
    """
    price = settings.price
    return JudgeLimits(
        Purse(price, settings.budget, cost_of(spent, price) if price else 0.0),
        TokenBucket(settings.requests_per_minute, clock, sleep),
        TokenBucket(settings.tokens_per_minute, clock, sleep),
        Breaker(settings.give_up_after),
    )

"""What the scheduler keeps of a row that waits or runs, and of everybody who waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import NamedTuple

from guardrail_service.types import Row, RowOutput, RowResult


class RowDone(NamedTuple):
    """One finished row; times in milliseconds, zero where another request's run was shared."""

    outputs: RowOutput
    queue_ms: float
    tokenize_ms: float
    inference_ms: float


class Known:
    """The future of a row that was known when it was asked for: done, and cheap to make."""

    __slots__ = ("_done",)

    def __init__(self, outputs: RowOutput) -> None:
        self._done = RowDone(outputs, 0.0, 0.0, 0.0)

    def result(self, timeout: float | None = None) -> RowDone:
        """Return the row's outputs."""
        return self._done

    def exception(self, timeout: float | None = None) -> None:
        """Return None: nothing was run that could have failed."""

    def done(self) -> bool:
        """Return True."""
        return True

    def cancelled(self) -> bool:
        """Return False: there was nothing to cancel."""
        return False


RowFuture = Future[RowDone] | Known


@dataclass(slots=True, eq=False)
class Waiter:
    """One request's interest in one row."""

    future: Future[RowDone]
    due: float
    submitted: float


@dataclass(slots=True, eq=False)
class Barrier:
    """Jobs that start when some others have ended, however they ended."""

    left: int
    jobs: list[Job]


@dataclass(slots=True, eq=False)
class Job:
    """A distinct row on its way through the scheduler, with everybody who waits for it."""

    row: Row
    order: float
    sequence: int
    cost_ms: float
    owner: object
    waiters: list[Waiter]
    barriers: list[Barrier] = field(default_factory=list)
    is_held: bool = False
    is_single: bool = False
    """Whether the row was in a call that failed as a whole, and must not share one again."""
    run: Run | None = None
    """The call it is in; None while it waits."""

    def __lt__(self, other: Job) -> bool:
        return (self.order, self.sequence) < (other.order, other.sequence)

    def succeed(self, result: RowResult) -> None:
        """Give the outputs to everybody who still waits; the first one is told the times."""
        first = True
        started = 0.0 if self.run is None else self.run.started
        for waiter in self.waiters:
            if not waiter.future.done():
                queue_ms = max(0.0, (started - waiter.submitted) * 1e3)
                times = (result.tokenize_ms, result.inference_ms) if first else (0.0, 0.0)
                waiter.future.set_result(RowDone(result.outputs, queue_ms, *times))
                first = False

    def fail(self, error: BaseException) -> None:
        """Give an error to everybody who still waits."""
        for waiter in self.waiters:
            if not waiter.future.done():
                waiter.future.set_exception(error)

    def forget_late(self, now: float) -> None:
        """Cancel the waiters whose deadline has passed."""
        for waiter in self.waiters:
            if waiter.due < now:
                cancel(waiter.future)
        self.waiters = [waiter for waiter in self.waiters if not waiter.future.done()]


@dataclass(slots=True, eq=False)
class Run:
    """One model call.

    Attributes:
        jobs: Whose rows are in it; one, unless the model's file allows more.
        started: Monotonic second.
    """

    jobs: list[Job]
    started: float

    @property
    def cost_ms(self) -> float:
        """Return what the call takes, as estimated."""
        return sum(job.cost_ms for job in self.jobs)

    def left_ms(self, now: float) -> float:
        """Return how much longer the call takes, as estimated."""
        return max(0.0, self.cost_ms - (now - self.started) * 1e3)


class Ticket:
    """The rows of one request, in the order they were submitted.

    Attributes:
        futures: One per row.
        cost_ms: What the rows that nobody else had asked for cost, as estimated.
    """

    def __init__(
        self,
        futures: Sequence[RowFuture],
        drop: Callable[[Sequence[Future[RowDone]]], None] = lambda _futures: None,
        cost_ms: float = 0.0,
    ) -> None:
        self.futures = tuple(futures)
        self.cost_ms = cost_ms
        self._drop = drop
        self._has_left = False

    def cancel(self) -> None:
        """Leave: rows that nobody else waits for are dropped; one that runs is not waited for.

        Who leaves again has nothing left to drop; a check and the request around it both do.
        """
        if self._has_left:
            return
        self._has_left = True
        if left := self._left():
            self._drop(left)

    def wait(
        self, futures: Iterable[RowFuture] | None = None, timeout: float | None = None
    ) -> bool:
        """Return whether some rows (None: all) are done within some seconds."""
        return not wait(self._left(futures), timeout).not_done

    def _left(self, futures: Iterable[RowFuture] | None = None) -> list[Future[RowDone]]:
        asked = self.futures if futures is None else futures
        return [f for f in asked if not isinstance(f, Known) and not f.done()]


def cancel(future: Future[RowDone]) -> None:
    """Cancel a future and wake who waits for it: `cancel` alone leaves `wait` waiting.

    One that is done stays as it is: deadline and departure may drop the same row one after the
    other. The scheduler's lock is held.
    """
    if not future.done() and future.cancel():
        future.set_running_or_notify_cancel()

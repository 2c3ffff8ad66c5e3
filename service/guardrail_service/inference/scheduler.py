"""Runs model rows on a fixed pool: earliest deadline first, bounded, each row alone."""

from __future__ import annotations

import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from guardrail_service.errors import NotReady, Overloaded, RowFailed
from guardrail_service.types import Role, Row, RowOutput, RowResult

Runner = Callable[[Row], RowResult]


class RowDone(NamedTuple):
    """One finished row; times in milliseconds."""

    outputs: RowOutput
    queue_ms: float
    tokenize_ms: float
    inference_ms: float


@dataclass(order=True, slots=True)
class _Job:
    deadline: float
    sequence: int
    row: Row = field(compare=False)
    future: Future[RowDone] = field(compare=False)
    submitted: float = field(compare=False)


class Ticket:
    """The rows of one request, in the order they were submitted."""

    def __init__(
        self,
        futures: Sequence[Future[RowDone]],
        drop: Callable[[Sequence[Future[RowDone]]], None] = lambda _futures: None,
    ) -> None:
        self.futures = tuple(futures)
        self._drop = drop

    def cancel(self) -> None:
        """Drop the rows that have not started; running ones finish and are ignored."""
        if not all(future.done() for future in self.futures):
            self._drop(self.futures)


class Scheduler:
    """A fixed pool of workers over one queue.

    Args:
        runners: What runs a row of each role.
        workers: Rows that run at the same time, each on one thread.
        max_queued_rows: Rows that may wait. A request that would pass this is refused only if
            other requests' rows are waiting; alone, it is accepted whatever its size.
        clock: Monotonic seconds; tests pass their own.
    """

    def __init__(
        self,
        runners: Mapping[Role, Runner],
        workers: int,
        max_queued_rows: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runners = dict(runners)
        self._max_queued_rows = max_queued_rows
        self._clock = clock
        self._queue: list[_Job] = []
        self._sequence = itertools.count()
        self._changed = threading.Condition()
        self._closing = False
        self._running = 0
        self._row_ms = 10.0  # first guess for Retry-After, replaced by what rows really take
        self._threads = [
            threading.Thread(target=self._work, name=f"rows-{n}", daemon=True)
            for n in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, rows: Sequence[Row], deadline: float | None = None) -> Ticket:
        """Queue rows and return at once.

        Args:
            rows: Model inputs; a role without a runner is a KeyError.
            deadline: Monotonic second after which a row not yet started is dropped; None: never.

        Raises:
            Overloaded: If other requests' rows fill the queue.
            NotReady: If the scheduler is closing.
        """
        for row in rows:
            self._runners[row.role]
        now = self._clock()
        until = math.inf if deadline is None else deadline
        jobs = [_Job(until, next(self._sequence), row, Future(), now) for row in rows]
        with self._changed:
            self._admit(len(jobs))
            for job in jobs:
                heapq.heappush(self._queue, job)
            self._changed.notify(len(jobs))
        return Ticket([job.future for job in jobs], self._drop)

    def _admit(self, rows: int) -> None:
        if self._closing:
            raise NotReady("the service is shutting down")
        waiting = len(self._queue)
        if waiting and waiting + rows > self._max_queued_rows:
            raise Overloaded(
                f"{waiting} rows are waiting and {rows} more would pass the limit of "
                f"{self._max_queued_rows}; try again later",
                retry_after_s=waiting * self._row_ms / 1e3 / len(self._threads),
            )

    def _drop(self, futures: Sequence[Future[RowDone]]) -> None:
        """Take waiting rows out of the queue, so that they neither hold a place nor a waiter."""
        unwanted = set(futures)
        with self._changed:
            dropped = [job for job in self._queue if job.future in unwanted]
            self._queue = [job for job in self._queue if job.future not in unwanted]
            heapq.heapify(self._queue)
            self._changed.notify_all()
        for job in dropped:
            _cancel(job.future)

    def depth(self) -> int:
        """Return how many rows are waiting."""
        with self._changed:
            return len(self._queue)

    def healthy(self) -> bool:
        """Return whether every worker is alive."""
        return all(thread.is_alive() for thread in self._threads)

    def close(self, drain_s: float = 0.0) -> None:
        """Refuse new rows, finish what is queued within `drain_s` seconds, drop the rest."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._queue and not self._running, drain_s)
            for job in self._queue:
                _cancel(job.future)
            self._queue.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=drain_s + 1.0)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                self._run(job)
            finally:
                with self._changed:
                    self._running -= 1
                    self._changed.notify_all()

    def _next(self) -> _Job | None:
        """Return the most urgent job that somebody still waits for; None when closed."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._queue or self._closing)
                if not self._queue:
                    return None
                job = heapq.heappop(self._queue)
                if job.deadline < self._clock():
                    _cancel(job.future)
                elif job.future.set_running_or_notify_cancel():
                    self._running += 1
                    return job

    def _run(self, job: _Job) -> None:
        queued_ms = (self._clock() - job.submitted) * 1e3
        try:
            result = self._runners[job.row.role](job.row)
        except RowFailed as error:
            job.future.set_exception(error)
        except Exception as error:  # noqa: BLE001 - the worker loop: one bad row fails alone
            failure = RowFailed(f"{job.row.role} row failed: {type(error).__name__}")
            failure.__cause__ = error
            job.future.set_exception(failure)
        else:
            spent = result.tokenize_ms + result.inference_ms
            self._row_ms += 0.05 * (spent - self._row_ms)
            job.future.set_result(RowDone(result.outputs, queued_ms, *result[1:]))


def _cancel(future: Future[RowDone]) -> None:
    """Cancel a future and wake who waits for it: `cancel` alone leaves `wait` waiting."""
    future.cancel()
    future.set_running_or_notify_cancel()

"""The rows that wait and run: order, sharing and what is ahead of whom. Not thread-safe alone."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from guardrail_service.inference.queue.batch import Batch
from guardrail_service.inference.queue.cost import RowCost
from guardrail_service.types import Role, Row, RowOutput, RowResult

PATIENCE_S = 1.0
"""A row is as urgent as its deadline, but at least as one due this long after it came. So nothing
starves: after one second a row without a deadline is ahead of everything that comes later."""
BACKGROUND_S = 30.0
"""The same for work that nobody waits for, such as encoding passages ahead of traffic."""
PASSED = 5.0
"""By how many times its own cost work lets other work pass, so that ordinary requests do not stand
behind huge ones. It is fixed on arrival, so none waits for ever."""


class Urgency(NamedTuple):
    """The settings that the rows of one submission share.

    Attributes:
        deadline: Monotonic second after which a row not yet started is dropped; None: never.
        owner: Whose rows these are; rows of one owner never stand in each other's way. None: alone.
        patience_s: How long the rows may be overtaken by more urgent ones.
    """

    deadline: float | None = None
    owner: object | None = None
    patience_s: float = PATIENCE_S


def order_of(
    deadline: float | None, now: float, patience_s: float = PATIENCE_S, cost_ms: float = 0.0
) -> float:
    """Return the place of work among others, a monotonic second; the least comes first.

    Args:
        deadline: Monotonic second as of which it is of no use; None: never.
        now: When it came.
        patience_s: How long others may pass it because they are more urgent.
        cost_ms: What it takes; for `PASSED` times as long others may pass it as well.
    """
    due = now + patience_s if deadline is None else min(deadline, now + patience_s)
    return due + PASSED * cost_ms / 1e3


class Submission:
    """One submission on its way into the backlog; the scheduler's lock is held."""

    def __init__(
        self,
        backlog: Backlog,
        request: Urgency,
        now: float,
        after: Mapping[Role, Role],
        sequence: Iterator[int],
        cost_ms: float,
    ) -> None:
        self._backlog = backlog
        self._request = request
        self._now = now
        self._after = after
        self._sequence = sequence
        self._order = order_of(request.deadline, now, request.patience_s, cost_ms)
        self._barriers = {role: Barrier(0, []) for role in after.values()}

    def place(self, row: Row, cost: RowCost, future: Future[RowDone]) -> None:
        """Let a row join an equal one, or queue it. Readers come last."""
        due = math.inf if self._request.deadline is None else self._request.deadline
        waiter = Waiter(future, due, self._now)
        job = self._backlog.find(row, self._now)
        if job is not None:
            job.waiters.append(waiter)
            self._backlog.hasten(job, self._order)
        else:
            sequence = next(self._sequence)
            job = RowJob(row, self._order, sequence, cost, self._request.owner, [waiter])
            needs = self._after.get(row.role)
            self._backlog.add(job, None if needs is None else self._barriers[needs])
        barrier = self._barriers.get(row.role)
        if barrier is not None:
            barrier.left += 1
            job.barriers.append(barrier)


class RowDone(NamedTuple):
    """One finished row; times in milliseconds, zero where another request's run was shared."""

    outputs: RowOutput
    queue_ms: float
    tokenize_ms: float
    inference_ms: float


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
    jobs: list[RowJob]


@dataclass(slots=True, eq=False)
class RowJob:
    """A distinct row on its way through the scheduler, with everybody who waits for it."""

    row: Row
    order: float
    sequence: int
    cost: RowCost
    owner: object
    waiters: list[Waiter]
    barriers: list[Barrier] = field(default_factory=list)
    is_held: bool = False
    is_single: bool = False
    """Whether the row was in a call that failed as a whole, and must not share one again."""
    run: ModelCall | None = None
    """The call it is in; None while it waits."""

    def __lt__(self, other: RowJob) -> bool:
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
class ModelCall:
    """One model call.

    Attributes:
        jobs: Whose rows are in it; one, unless the model's file allows more.
        started: Monotonic second.
    """

    jobs: list[RowJob]
    started: float

    @property
    def cost_ms(self) -> float:
        """Return what the call takes, as estimated."""
        return sum(job.cost.ms for job in self.jobs)

    @property
    def tokens(self) -> int:
        """Return about how many tokens its rows have together."""
        return sum(job.cost.tokens for job in self.jobs)

    def left_ms(self, now: float) -> float:
        """Return how much longer the call takes, as estimated."""
        return max(0.0, self.cost_ms - (now - self.started) * 1e3)


def cancel(future: Future[RowDone]) -> None:
    """Cancel a future and wake who waits for it: `cancel` alone leaves `wait` waiting.

    One that is done stays as it is: deadline and departure may drop the same row one after the
    other. The scheduler's lock is held.
    """
    if not future.done() and future.cancel():
        future.set_running_or_notify_cancel()


STUCK_S = 2.0
"""A row that has run this long and twenty times its estimate is taken for stuck: the longest row
of the embedded pack takes 0.1 s."""
_STUCK_TIMES = 20.0
_LOOKED_AT = 256
"""Waiting rows, the most urgent ones, among which a call's further rows are looked for. The lock is
held meanwhile, for a fraction of a millisecond."""


class Backlog:
    """Every row that is queued, held back or running. The scheduler locks around each call."""

    def __init__(self) -> None:
        self.running: set[ModelCall] = set()
        self._queue: list[RowJob] = []
        self._held: set[RowJob] = set()
        self._by_row: dict[Row, RowJob] = {}
        self._by_owner: Counter[object] = Counter()

    def __len__(self) -> int:
        return len(self._queue) + len(self._held)

    @property
    def is_ready(self) -> bool:
        """Return whether a job could start now."""
        return bool(self._queue)

    def find(self, row: Row, now: float) -> RowJob | None:
        """Return the job of an equal row, unless it is stuck: a stuck one helps nobody."""
        job = self._by_row.get(row)
        return None if job is None or is_stuck(job.run, now) else job

    def of_others(self, owner: object) -> int:
        """Return how many waiting rows are not this owner's."""
        return len(self) - self._by_owner[owner]

    def add(self, job: RowJob, barrier: Barrier | None = None) -> None:
        """Queue a job, or hold it until its barrier opens."""
        self._by_row[job.row] = job
        self._by_owner[job.owner] += 1
        if barrier is not None and barrier.left:
            job.is_held = True
            barrier.jobs.append(job)
            self._held.add(job)
        else:
            heapq.heappush(self._queue, job)

    def hasten(self, job: RowJob, order: float) -> None:
        """Let a waiting job be as urgent as a further request needs it."""
        if order < job.order:
            job.order = order
            if job.run is None and not job.is_held:
                heapq.heapify(self._queue)

    def pop(self, now: float) -> ModelCall | None:
        """Return a call of the most urgent job that somebody still waits for; or None."""
        while self._queue:
            job = heapq.heappop(self._queue)
            if self._is_wanted(job, now):
                job.run = ModelCall([job], now)
                self.running.add(job.run)
                return job.run
        return None

    def fill(self, run: ModelCall, batch: Batch, workers: int) -> None:
        """Add waiting rows that may be in the same call, most urgent first, up to its budget.

        Every worker gets its share of the rows that wait: on a processor two calls side by side
        end sooner than one of twice the size.
        """
        (first,) = run.jobs
        if first.is_single:
            return
        alike = [job for job in self._queue if _is_alike(job, first)]
        share = math.ceil((len(alike) + 1) / workers)
        sizes = [first.cost.tokens]
        taken: set[RowJob] = set()
        for job in heapq.nsmallest(_LOOKED_AT, alike):
            if len(run.jobs) == share:
                break
            size = job.cost.tokens
            if batch.holds([*sizes, size]):
                taken.add(job)
                if self._is_wanted(job, run.started):
                    sizes.append(size)
                    run.jobs.append(job)
                    job.run = run
        if taken:
            self._queue = [job for job in self._queue if job not in taken]
            heapq.heapify(self._queue)

    def finish(self, run: ModelCall) -> None:
        """Take the jobs of a call that ended off the books and start what waited for them."""
        self.running.discard(run)
        for job in run.jobs:
            self._close(job)
        run.jobs = []  # jobs know their call: a cycle would keep every output until it is collected

    def take_apart(self, run: ModelCall, now: float) -> None:
        """Queue the jobs of a call that failed as a whole again, each for a call of its own."""
        self.running.discard(run)
        for job in run.jobs:
            job.run = None
            job.is_single = True
            job.forget_late(now)
            if job.waiters:
                self._by_owner[job.owner] += 1
                heapq.heappush(self._queue, job)
            else:
                self._close(job)
        run.jobs = []

    def drop(self, futures: Sequence[Future[RowDone]]) -> None:
        """Cancel some waiters; jobs that nobody waits for any more leave the queue."""
        unwanted = {id(future) for future in futures}
        for future in futures:
            cancel(future)
        for job in (*self._queue, *self._held, *self._started()):
            job.waiters = [w for w in job.waiters if id(w.future) not in unwanted]
        self._leave(job for job in (*self._queue, *self._held) if not job.waiters)

    def clear(self) -> list[RowJob]:
        """Take everything off the books; return what was waiting or running."""
        jobs = [*self._queue, *self._held, *self._started()]
        self._leave([*self._queue, *self._held])
        self.running.clear()
        self._by_row.clear()
        return jobs

    def is_idle(self) -> bool:
        """Return whether nothing waits, and nothing runs that somebody waits for."""
        return not len(self) and not any(job.waiters for job in self._started())

    def ahead_ms(self, order: float, now: float) -> float:
        """Return the milliseconds of one thread until work of this order could start."""
        waiting = sum(job.cost.ms for job in self._queue if job.order <= order)
        waiting += sum(job.cost.ms for job in self._held if job.order <= order)
        running = sum(run.left_ms(now) for run in self.running)
        return waiting + running

    def stuck(self, now: float) -> int:
        """Return how many workers hold a stuck call."""
        return sum(is_stuck(run, now) for run in self.running)

    def _started(self) -> Iterator[RowJob]:
        return (job for run in self.running for job in run.jobs)

    def _is_wanted(self, job: RowJob, now: float) -> bool:
        """Return whether somebody still waits for a job that leaves the queue; or close it."""
        self._by_owner[job.owner] -= 1
        job.forget_late(now)
        if not job.waiters:
            self._close(job)
        return bool(job.waiters)

    def _leave(self, jobs: Iterable[RowJob]) -> None:
        gone = set(jobs)
        if not gone:
            return
        self._queue = [job for job in self._queue if job not in gone]
        heapq.heapify(self._queue)
        self._held -= gone
        for job in gone:
            self._by_owner[job.owner] -= 1
            self._close(job)

    def _close(self, job: RowJob) -> None:
        if self._by_row.get(job.row) is job:
            del self._by_row[job.row]
        if self._by_owner[job.owner] <= 0:
            del self._by_owner[job.owner]
        for barrier in job.barriers:
            barrier.left -= 1
            if not barrier.left:
                self._open(barrier)
        job.barriers = []

    def _open(self, barrier: Barrier) -> None:
        for job in barrier.jobs:
            if job in self._held:
                self._held.discard(job)
                job.is_held = False
                heapq.heappush(self._queue, job)


def is_stuck(run: ModelCall | None, now: float) -> bool:
    """Return whether a call, if there is one, has been running for far too long."""
    if run is None:
        return False
    return now - run.started > max(STUCK_S, _STUCK_TIMES * run.cost_ms / 1e3)


def _is_alike(job: RowJob, first: RowJob) -> bool:
    """Return whether two rows may be in one call: the same model and the same outputs."""
    return (
        job.row.role == first.row.role
        and job.row.outputs == first.row.outputs
        and job.row.tenant == first.row.tenant
        and not job.is_single
    )

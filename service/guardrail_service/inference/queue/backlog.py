"""The rows that wait and run: order, sharing and what is ahead of whom. Not thread-safe alone."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future

from guardrail_service.inference.queue.batch import Batch
from guardrail_service.inference.queue.cost import tokens
from guardrail_service.inference.queue.job import Barrier, Job, RowDone, Run, cancel
from guardrail_service.types import Row

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
        self.running: set[Run] = set()
        self._queue: list[Job] = []
        self._held: set[Job] = set()
        self._by_row: dict[Row, Job] = {}
        self._by_owner: Counter[object] = Counter()

    def __len__(self) -> int:
        return len(self._queue) + len(self._held)

    @property
    def is_ready(self) -> bool:
        """Return whether a job could start now."""
        return bool(self._queue)

    def find(self, row: Row, now: float) -> Job | None:
        """Return the job of an equal row, unless it is stuck: a stuck one helps nobody."""
        job = self._by_row.get(row)
        return None if job is None or is_stuck(job.run, now) else job

    def of_others(self, owner: object) -> int:
        """Return how many waiting rows are not this owner's."""
        return len(self) - self._by_owner[owner]

    def add(self, job: Job, barrier: Barrier | None = None) -> None:
        """Queue a job, or hold it until its barrier opens."""
        self._by_row[job.row] = job
        self._by_owner[job.owner] += 1
        if barrier is not None and barrier.left:
            job.is_held = True
            barrier.jobs.append(job)
            self._held.add(job)
        else:
            heapq.heappush(self._queue, job)

    def hasten(self, job: Job, order: float) -> None:
        """Let a waiting job be as urgent as a further request needs it."""
        if order < job.order:
            job.order = order
            if job.run is None and not job.is_held:
                heapq.heapify(self._queue)

    def pop(self, now: float) -> Run | None:
        """Return a call of the most urgent job that somebody still waits for; or None."""
        while self._queue:
            job = heapq.heappop(self._queue)
            if self._is_wanted(job, now):
                job.run = Run([job], now)
                self.running.add(job.run)
                return job.run
        return None

    def fill(self, run: Run, batch: Batch, workers: int) -> None:
        """Add waiting rows that may be in the same call, most urgent first, up to its budget.

        Every worker gets its share of the rows that wait: on a processor two calls side by side
        end sooner than one of twice the size.
        """
        (first,) = run.jobs
        if first.is_single:
            return
        alike = [job for job in self._queue if _is_alike(job, first)]
        share = math.ceil((len(alike) + 1) / workers)
        sizes = [tokens(first.row)]
        taken: set[Job] = set()
        for job in heapq.nsmallest(_LOOKED_AT, alike):
            if len(run.jobs) == share:
                break
            size = tokens(job.row)
            if batch.holds([*sizes, size]):
                taken.add(job)
                if self._is_wanted(job, run.started):
                    sizes.append(size)
                    run.jobs.append(job)
                    job.run = run
        if taken:
            self._queue = [job for job in self._queue if job not in taken]
            heapq.heapify(self._queue)

    def finish(self, run: Run) -> None:
        """Take the jobs of a call that ended off the books and start what waited for them."""
        self.running.discard(run)
        for job in run.jobs:
            self._close(job)
        run.jobs = []  # jobs know their call: a cycle would keep every output until it is collected

    def take_apart(self, run: Run, now: float) -> None:
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

    def clear(self) -> list[Job]:
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
        waiting = sum(job.cost_ms for job in self._queue if job.order <= order)
        waiting += sum(job.cost_ms for job in self._held if job.order <= order)
        running = sum(run.left_ms(now) for run in self.running)
        return waiting + running

    def stuck(self, now: float) -> int:
        """Return how many workers hold a stuck call."""
        return sum(is_stuck(run, now) for run in self.running)

    def _started(self) -> Iterator[Job]:
        return (job for run in self.running for job in run.jobs)

    def _is_wanted(self, job: Job, now: float) -> bool:
        """Return whether somebody still waits for a job that leaves the queue; or close it."""
        self._by_owner[job.owner] -= 1
        job.forget_late(now)
        if not job.waiters:
            self._close(job)
        return bool(job.waiters)

    def _leave(self, jobs: Iterable[Job]) -> None:
        gone = set(jobs)
        if not gone:
            return
        self._queue = [job for job in self._queue if job not in gone]
        heapq.heapify(self._queue)
        self._held -= gone
        for job in gone:
            self._by_owner[job.owner] -= 1
            self._close(job)

    def _close(self, job: Job) -> None:
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


def is_stuck(run: Run | None, now: float) -> bool:
    """Return whether a call, if there is one, has been running for far too long."""
    if run is None:
        return False
    return now - run.started > max(STUCK_S, _STUCK_TIMES * run.cost_ms / 1e3)


def _is_alike(job: Job, first: Job) -> bool:
    """Return whether two rows may be in one call: the same model and the same outputs."""
    return (
        job.row.role == first.row.role
        and job.row.outputs == first.row.outputs
        and not job.is_single
    )

"""The rows that wait and run: order, sharing and what is ahead of whom. Not thread-safe alone."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from guardrail_service.inference.queue.batch import Batch
from guardrail_service.inference.queue.cost import (
    QueuePlace,
    RowCost,
    Shares,
    UnderWay,
    Urgency,
)
from guardrail_service.types import Role, Row, RowOutput, RowResult


class Submission:
    """One submission on its way into the backlog; the scheduler's lock is held."""

    def __init__(
        self,
        backlog: Backlog,
        request: Urgency,
        now: float,
        after: Mapping[Role, Role],
        sequence: Iterator[int],
        place: QueuePlace,
    ) -> None:
        self._backlog = backlog
        self._request = request
        self._now = now
        self._after = after
        self._sequence = sequence
        self._place = place
        if request.owner in backlog.under_way.places:
            backlog.under_way.places[request.owner] = self._place
        self._barriers = {role: Barrier(0, []) for role in after.values()}

    def place(self, row: Row, cost: RowCost, future: Future[RowDone]) -> None:
        """Let a row join an equal one, or queue it. Readers come last."""
        due = math.inf if self._request.deadline is None else self._request.deadline
        waiter = Waiter(future, due, self._now)
        job = self._backlog.find(row, self._now)
        if job is not None:
            job.waiters.append(waiter)
            self._backlog.hasten(job, self._place)
        else:
            sequence = next(self._sequence)
            job = RowJob(row, self._place, sequence, cost, self._request.owner, [waiter])
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
    place: QueuePlace
    """The first of those at which it waits."""
    sequence: int
    cost: RowCost
    owner: object
    waiters: list[Waiter]
    barriers: list[Barrier] = field(default_factory=list)
    is_single: bool = False
    """Whether the row was in a call that failed as a whole, and must not share one again."""
    run: ModelCall | None = None
    """The call it is in; None while it waits."""
    shared: dict[str, QueuePlace] = field(default_factory=dict)
    """Where it waits besides, for other callers that want it too."""

    def __lt__(self, other: RowJob) -> bool:
        return (self.place.order, self.sequence) < (other.place.order, other.sequence)

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

    def succeed(self, results: Sequence[RowResult]) -> bool:
        """Give each job its result; return whether anything was computed for one."""
        has_computed = False
        for job, result in zip(self.jobs, results, strict=True):
            job.succeed(result)
            has_computed = has_computed or result.inference_ms > 0
        return has_computed

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


T = TypeVar("T", bound=Hashable)
_Entry = tuple[float, int, QueuePlace, T]
"""Order, sequence, place and the work."""
_LEFT = 64
"""Entries of work that has gone, which may stay in the lanes."""


class FairQueue(Generic[T]):
    """Work that waits, by caller and order. Not thread-safe alone.

    Attributes:
        lanes: By caller, a heap of what waits; empty if nothing does.

    Args:
        shares: What callers have had.
    """

    def __init__(self, shares: Shares) -> None:
        self.lanes: dict[str, list[_Entry[T]]] = {}
        self._shares = shares
        self._items: dict[T, float] = {}
        self._entries = 0

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __contains__(self, item: T) -> bool:
        return item in self._items

    def push(self, item: T, place: QueuePlace, sequence: int, cost_ms: float = 0.0) -> None:
        """Let work wait at a place; work that waits at several is served at the first of them.

        Args:
            item: The work.
            place: Where.
            sequence: Decides between equal orders of one caller.
            cost_ms: What its caller pays when it is served.
        """
        if place.caller not in self.lanes:
            self._shares.enter(place.caller)
            self.lanes[place.caller] = []
        self._items[item] = cost_ms
        heapq.heappush(self.lanes[place.caller], (place.order, sequence, place, item))
        self._entries += 1

    def first(self) -> tuple[QueuePlace, T] | None:
        """Return the work that comes next and its place; None if nothing waits."""
        if not self.lanes:
            return None
        if len(self.lanes) == 1:
            caller = next(iter(self.lanes))
        else:
            had = self._shares.had
            firsts = {caller: lane[0] for caller, lane in self.lanes.items()}
            caller = min(firsts, key=lambda c: (had(c) + firsts[c][2].slack_s, firsts[c]))
        _, _, place, item = self.lanes[caller][0]
        return place, item

    def pop(self) -> tuple[QueuePlace, T] | None:
        """Take the work that comes next."""
        found = self.first()
        if found is not None:
            self.take(found[1], found[0].caller)
        return found

    def take(self, item: T, caller: str) -> None:
        """Take some work out at a caller's cost."""
        with self._shares.lock:
            self._shares.accounts[caller] += self._items[item] / 1e3
        self.remove((item,))

    def remove(self, items: Iterable[T]) -> None:
        """Take some work out, wherever it waits."""
        for item in items:
            self._items.pop(item, None)
        if self._entries > 2 * len(self._items) + _LEFT:  # or what has gone stays in memory
            for caller, lane in self.lanes.items():
                self.lanes[caller] = [entry for entry in lane if entry[3] in self._items]
                heapq.heapify(self.lanes[caller])
        for caller, lane in list(self.lanes.items()):
            while lane and lane[0][3] not in self._items:
                heapq.heappop(lane)
            if not lane:
                del self.lanes[caller]
                self._shares.leave(caller)
        self._entries = sum(map(len, self.lanes.values()))


PADDING = 0.25
"""At most this share of what a call computes is padding; rows that are longer or shorter wait for
others of their length."""


def may_share(batch: Batch, sizes: Sequence[int]) -> bool:
    """Return whether rows of some lengths may be one call."""
    padded = max(sizes) * len(sizes)
    return padded <= batch.tokens and padded - sum(sizes) <= PADDING * padded


STUCK_S = 2.0
"""A row that has run this long and twenty times its estimate is taken for stuck: the longest row
of the embedded pack takes 0.1 s."""
_STUCK_TIMES = 20.0
_LOOKED_AT = 256
"""Waiting rows, the most urgent ones, among which a call's further rows are looked for. The lock is
held meanwhile, for a fraction of a millisecond."""


class Backlog:
    """Every row that is queued, held back or running. The scheduler locks around each call.

    Attributes:
        running: The calls that run.
        lanes: By caller, what could start now; empty if nothing could.
        under_way: The checks for which work that is well behind them waits, see `UnderWay`.

    Args:
        shares: What callers have had; rows that run count.
        batches: By role, how several rows run in one call; the rows of other roles run alone.
    """

    def __init__(
        self, shares: Shares | None = None, batches: Mapping[Role, Batch] | None = None
    ) -> None:
        self._batches = dict(batches or {})
        self._alike: dict[Hashable, set[RowJob]] = {}
        """The rows that wait, by what they have to have in common to share a call."""
        self.running: set[ModelCall] = set()
        shares = shares or Shares()
        self.under_way = UnderWay(shares)
        self._queue = FairQueue[RowJob](shares)
        self.lanes = self._queue.lanes
        self._held: set[RowJob] = set()
        self._by_row: dict[Row, RowJob] = {}
        self._by_owner: Counter[object] = Counter()

    def __len__(self) -> int:
        return len(self._queue) + len(self._held)

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
            barrier.jobs.append(job)
            self._held.add(job)
        else:
            self._wait(job)

    def hasten(self, job: RowJob, place: QueuePlace) -> None:
        """Let a waiting job be as urgent as a further request needs it."""
        is_first = place.caller == job.place.caller
        known = job.place if is_first else job.shared.get(place.caller)
        if known is not None and known.order <= place.order:
            return
        if is_first:
            job.place = place
        else:
            job.shared[place.caller] = place
        if job in self._queue:
            self._queue.push(job, place, job.sequence, job.cost.ms)

    def pop(self, now: float, workers: int = 1) -> ModelCall | None:
        """Return a call of the most urgent job that somebody still waits for; or None.

        None as well while what comes next stands still or leaves a worker free, see `UnderWay`.

        Args:
            now: Monotonic second.
            workers: How many there are. They share what waits, where one call takes several rows.
        """
        while (found := self._queue.first()) is not None:
            place, job = found
            if self.under_way.places.keys() - {job.owner}:
                if self.under_way.stops(job.owner, place, now):
                    return None
                running = [run.jobs[0].place for run in self.running]
                if self.under_way.keeps_back(job.owner, place, running, workers):
                    return None
            self._take(job, place.caller)
            if self._is_wanted(job, now):
                job.run = ModelCall([job], now)
                job.place = place
                self.running.add(job.run)
                if (batch := self._batches.get(job.row.role)) is not None:
                    self._fill(job.run, batch, max(1, workers - self.stuck(now)))
                return job.run
        return None

    def _kind(self, job: RowJob) -> Hashable | None:
        """Return what rows of one call have in common with this one; None if it runs alone."""
        batch = self._batches.get(job.row.role)
        if batch is None or job.is_single:
            return None
        alike = job.row.role, job.row.outputs, job.row.tenant
        if job.cost.length is None:
            return alike
        # Of one request: another one's may have to stand still while this one's run.
        return *alike, job.cost.length, job.owner

    def _take(self, job: RowJob, caller: str) -> None:
        self._queue.take(job, caller)
        self._unlist(job)

    def _unlist(self, job: RowJob) -> None:
        kind = self._kind(job)
        if (listed := self._alike.get(kind)) is not None:
            listed.discard(job)
            if not listed:
                del self._alike[kind]

    def _fill(self, run: ModelCall, batch: Batch, workers: int) -> None:
        """Add waiting rows that may be in the same call, most urgent first, up to its budget.

        Every worker gets its share of the rows that wait: on a processor two calls side by side
        end sooner than one of twice the size.
        """
        (first,) = run.jobs
        alike = self._alike.get(self._kind(first), ())
        waiting = len(alike if first.cost.length is None else self._queue)
        share = math.ceil((waiting + 1) / workers)
        sizes = [first.cost.length or first.cost.tokens]
        for job in heapq.nsmallest(_LOOKED_AT, alike):
            if len(run.jobs) == share:
                break
            size = job.cost.length or job.cost.tokens
            if may_share(batch, [*sizes, size]):
                self._take(job, job.place.caller)
                if self._is_wanted(job, run.started):
                    sizes.append(size)
                    run.jobs.append(job)
                    job.run = run

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
                self._wait(job)
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

    def waiting(self) -> list[tuple[QueuePlace, float]]:
        """Return the place and the estimated milliseconds of every row that waits."""
        return [(job.place, job.cost.ms) for job in (*self._queue, *self._held)]

    def running_ms(self, now: float) -> float:
        """Return the milliseconds of one thread that what runs still takes."""
        return sum(run.left_ms(now) for run in self.running)

    def may_pass_limit(self, caller: str, rows: int, limit: int) -> bool:
        """Return whether so many more rows are within a caller's share of the rows that wait."""
        held = Counter(place.caller for place, _ in self.waiting())
        return held[caller] + rows <= limit / len(held.keys() | {caller})

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
        self._queue.remove(gone)
        self._held -= gone
        for job in gone:
            self._unlist(job)
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
                self._wait(job)

    def _wait(self, job: RowJob) -> None:
        if (kind := self._kind(job)) is not None:
            self._alike.setdefault(kind, set()).add(job)
        for place in (job.place, *job.shared.values()):
            self._queue.push(job, place, job.sequence, job.cost.ms)


def is_stuck(run: ModelCall | None, now: float) -> bool:
    """Return whether a call, if there is one, has been running for far too long."""
    if run is None:
        return False
    return now - run.started > max(STUCK_S, _STUCK_TIMES * run.cost_ms / 1e3)

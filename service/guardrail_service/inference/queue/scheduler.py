"""Runs model rows on a fixed pool: most urgent first, bounded, each distinct row once."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import NamedTuple, Protocol, runtime_checkable

from guardrail_service.errors import NotReady, Overloaded, RowFailed, raised_at
from guardrail_service.inference.queue.backlog import (
    Backlog,
    ModelCall,
    RowDone,
    Submission,
)
from guardrail_service.inference.queue.batch import Batch
from guardrail_service.inference.queue.cost import (
    PATIENCE_S,
    WELL_S,
    CostModel,
    QueuePlace,
    RowCost,
    Shares,
    Urgency,
    place_of,
)
from guardrail_service.types import CALLER, TENANT, Role, Row, RowOutput, RowResult

_LOG = logging.getLogger(__name__)
Runner = Callable[[Row], RowResult]
Peek = Callable[[Sequence[Row]], list[RowResult | None]]


@runtime_checkable
class Peeks(Protocol):
    """A session that can tell what it knows already."""

    def peek(self, rows: Sequence[Row]) -> list[RowResult | None]:
        """Return the outputs of rows that need no model run, in order; None for the others."""
        ...


@runtime_checkable
class Warms(Protocol):
    """A session that can compute ahead what it needs of a passage's text."""

    def warming(self, text: str) -> Row:
        """Return the row that does so."""
        ...


class Known:
    """The future of a row that was known when it was asked for: done, and cheap to make."""

    __slots__ = ("row",)

    def __init__(self, outputs: RowOutput) -> None:
        self.row = RowDone(outputs, 0.0, 0.0, 0.0)

    def result(self, timeout: float | None = None) -> RowDone:
        """Return the row's outputs."""
        return self.row

    def exception(self, timeout: float | None = None) -> None:
        """Return None: nothing was run that could have failed."""

    def done(self) -> bool:
        """Return True."""
        return True

    def cancelled(self) -> bool:
        """Return False: there was nothing to cancel."""
        return False


RowFuture = Future[RowDone] | Known


KEPT_LOOK_S = 0.05
"""Seconds between two looks of a worker that is kept free: callers' accounts change meanwhile."""


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

    def beside(self, rows: Sequence[Row], known: Mapping[Row, RowOutput]) -> Ticket:
        """Return the ticket of all `rows`, of which these are the ones that were not known."""
        own = iter(self.futures)
        futures = [Known(known[row]) if row in known else next(own) for row in rows]
        return Ticket(futures, self._drop, self.cost_ms)

    def cancel(self) -> None:
        """Leave: rows that nobody else waits for are dropped; one that runs is not waited for.

        A second call drops nothing; a check and the request around it both call this.
        """
        if self._has_left:
            return
        self._has_left = True
        if left := self.left():
            self._drop(left)

    def wait(
        self, futures: Iterable[RowFuture] | None = None, timeout: float | None = None
    ) -> bool:
        """Return whether some rows (None: all) are done within some seconds."""
        return not wait(self.left(futures), timeout).not_done

    def left(self, futures: Iterable[RowFuture] | None = None) -> list[Future[RowDone]]:
        """Return those of some rows (None: of all) that are not done."""
        asked = self.futures if futures is None else futures
        return [f for f in asked if not isinstance(f, Known) and not f.done()]


class _Expected(NamedTuple):
    """A request that was let in and has not submitted its rows yet."""

    place: QueuePlace
    cost_ms: float


class Scheduler:
    """A fixed pool of workers over one queue.

    Equal rows of several requests run once, whoever asks first: the others' futures join the job.
    No worker ever waits for another one.

    Args:
        runners: What runs a row of each role.
        workers: Rows that run at the same time, each on one thread.
        max_queued_rows: Rows that may wait. A request that would pass this is refused only if
            other requests' rows are waiting; alone, it is accepted whatever its size.
        clock: Monotonic seconds; tests pass their own.
        costs: What rows cost; learns from every row that runs.
        peeks: By role, what gives the outputs of rows that need no model run.
        after: By role, the role whose rows of the same request a row reads: it starts when they
            have ended, instead of computing them itself on one thread.
        batches: By role, how several rows run in one call; the rows of other roles run alone.

    Attributes:
        shares: What callers have had; who computes for them counts that as well.
        threads: What runs the models.
        draining: Whether the service ends: no new sample is taken, and those that were taken may
            still submit rows.
    """

    def __init__(
        self,
        runners: Mapping[Role, Runner],
        workers: int,
        max_queued_rows: int,
        clock: Callable[[], float] = time.monotonic,
        costs: CostModel | None = None,
        peeks: Mapping[Role, Peek] | None = None,
        after: Mapping[Role, Role] | None = None,
        batches: Mapping[Role, Batch] | None = None,
    ) -> None:
        self._runners = dict(runners)
        self._batches = dict(batches or {})
        self._peeks = dict(peeks or {})
        self._after = dict(after or {})
        self._max_queued_rows = max_queued_rows
        self._clock = clock
        self._costs = CostModel() if costs is None else costs
        self._seen = deque[tuple[Role, int, float]]()
        self.shares = Shares()
        self._backlog = Backlog(self.shares, batches)
        self._expected: dict[object, _Expected] = {}
        self._sequence = itertools.count()
        self._changed = threading.Condition()
        self.draining = False
        self._closing = False
        self._stopped = False
        self.threads = [
            threading.Thread(target=self._work, name=f"rows-{n}", daemon=True)
            for n in range(workers)
        ]
        self._alive = workers
        for thread in self.threads:
            thread.start()

    def submit(
        self,
        rows: Sequence[Row],
        deadline: float | None = None,
        owner: object | None = None,
        patience_s: float = PATIENCE_S,
        not_before: QueuePlace | None = None,
    ) -> Ticket:
        """Queue rows and return at once. Rows that need no model run are done on return.

        Args:
            rows: Model inputs; a role without a runner is a KeyError.
            deadline: Monotonic second after which a row not yet started is dropped; None: never.
            owner: Whose rows these are; rows of one owner never stand in each other's way.
            patience_s: How long the rows may be overtaken by more urgent ones.
            not_before: The place of the check they are of, if it is well behind: the rows of a huge
                one are no more urgent because they are few.

        Raises:
            Overloaded: If other requests' rows fill the queue or make the deadline impossible.
            NotReady: If the scheduler is closing or its workers have stopped.
        """
        for row in rows:
            self._runners[row.role]
        known = self._known(rows)
        owner = object() if owner is None else owner
        request = Urgency(deadline, owner, patience_s, CALLER.get())
        costs = self.costs.rows(rows, self._batches, known)
        with self._changed:
            self._expected.pop(request.owner, None)
            return self._enter(rows, known, costs, request, not_before)

    def expect(self, cost_ms: float, deadline: float | None, owner: object) -> None:
        """Count work that an owner is about to submit, so that others see it coming.

        Raises:
            Overloaded: If work of others alone makes the deadline impossible. Telling so before
                the sample has been read costs nothing.
        """
        now = self._clock()
        request = Urgency(deadline, owner, caller=CALLER.get())
        with self._changed:
            self._admit_in_time(cost_ms, cost_ms, request, now)
            # No more than its deadline leaves of it: what is huge ends then, done or not.
            spent_ms = cost_ms if deadline is None else min(cost_ms, (deadline - now) * 1e3)
            place = place_of(request, now, cost_ms)
            self._expected[owner] = _Expected(place, max(0.0, spent_ms))
            self._backlog.under_way.places[owner] = place

    def forget(self, owner: object) -> None:
        """Note that an owner's check is done, and submits nothing more."""
        with self._changed:
            self._expected.pop(owner, None)
            self._backlog.under_way.places.pop(owner, None)
            if self._backlog.lanes:
                self._changed.notify_all()

    @property
    def costs(self) -> CostModel:
        """Return the costs of work; what has run since somebody asked is learned now."""
        with suppress(IndexError):  # two may ask at the same time
            while self._seen:
                self._costs.learn(*self._seen.popleft())
        return self._costs

    def depth(self) -> int:
        """Return how many rows are waiting."""
        with self._changed:
            return len(self._backlog)

    def running(self) -> int:
        """Return how many rows are running."""
        with self._changed:
            return sum(len(run.jobs) for run in self._backlog.running)

    def stuck(self) -> int:
        """Return how many workers hold a call that has been running for far too long."""
        with self._changed:
            return self._backlog.stuck(self._clock())

    def backlog_s(self) -> float:
        """Return in about how many seconds everything that waits or runs now will be done."""
        now = self._clock()
        with self._changed:
            return self._left_ms(now) / 1e3 / self._free_workers(now)

    def healthy(self) -> bool:
        """Return whether every worker is alive."""
        return all(thread.is_alive() for thread in self.threads)

    def not_ready(self) -> str | None:
        """Return why no further sample can be judged right now, or None if it can."""
        if self.draining:
            return "the service is shutting down"
        return None if self.healthy() else "a model worker has stopped"

    def close(self, drain_s: float = 0.0) -> None:
        """Refuse new rows, finish what is queued within `drain_s` seconds, cancel the rest.

        Nobody is left waiting: the futures of a row that is still running then are cancelled, too.
        """
        end = time.monotonic() + drain_s + 1.0
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            self._changed.wait_for(self._backlog.is_idle, drain_s)
            self._stopped = True
            self._backlog.drop([w.future for job in self._backlog.clear() for w in job.waiters])
            self._changed.notify_all()
        for thread in self.threads:
            thread.join(timeout=max(0.0, end - time.monotonic()))

    def _known(self, rows: Sequence[Row]) -> list[RowResult | None]:
        """Return the outputs of rows that need no model run; each session is asked once."""
        known: list[RowResult | None] = [None] * len(rows)
        places = defaultdict[Role, list[int]](list)
        for place, row in enumerate(rows):
            places[row.role].append(place)
        for role in places.keys() & self._peeks.keys():
            found = self._peeks[role]([rows[place] for place in places[role]])
            for place, result in zip(places[role], found, strict=True):
                known[place] = result
        return known

    def _enter(
        self,
        rows: Sequence[Row],
        known: Sequence[RowResult | None],
        costs: Sequence[RowCost],
        request: Urgency,
        not_before: QueuePlace | None,
    ) -> Ticket:
        """Queue what is not known yet. The lock is held."""
        if self._closing:
            raise NotReady("the service is shutting down")
        if self.threads and not self._alive:
            raise NotReady("every model worker has stopped")
        now = self._clock()
        new = [
            cost.ms
            for row, result, cost in zip(rows, known, costs, strict=True)
            if result is None and self._backlog.find(row, now) is None
        ]
        if new:
            self._admit_count(len(new), sum(new), request, now)
            self._admit_in_time(sum(new), max(new), request, now)
        futures: list[RowFuture] = [
            Future() if result is None else Known(result.outputs) for result in known
        ]
        place = place_of(request, now, sum(new))
        if not_before is not None and not_before.order - place.order > WELL_S:
            place = not_before
        entry = Submission(self._backlog, request, now, self._after, self._sequence, place)
        for index in sorted(range(len(rows)), key=lambda index: rows[index].role in self._after):
            future = futures[index]
            if not isinstance(future, Known):
                entry.place(rows[index], costs[index], future)
        self._changed.notify(len(new))
        return Ticket(futures, self._drop, sum(new))

    def _admit_count(self, rows: int, cost_ms: float, request: Urgency, now: float) -> None:
        waiting = self._backlog.of_others(request.owner)
        excess = waiting + rows - self._max_queued_rows
        if not waiting or excess <= 0:
            return
        if not self._backlog.may_pass_limit(request.caller, rows, self._max_queued_rows):
            per_row_ms = max(cost_ms / rows, self._left_ms(now) / waiting)
            raise Overloaded(
                f"{waiting} rows are waiting and {rows} more would pass the limit of "
                f"{self._max_queued_rows}; try again later",
                retry_after_s=min(excess, waiting) * per_row_ms / 1e3 / self._free_workers(now),
            )

    def _admit_in_time(
        self, cost_ms: float, longest_ms: float, request: Urgency, now: float
    ) -> None:
        """Refuse what would be done in time on an idle service and will not be behind others."""
        if request.deadline is None:
            return
        left_ms = (request.deadline - now) * 1e3
        if max(longest_ms, cost_ms / max(1, len(self.threads))) > left_ms:
            return  # not in time on an idle service either: it gets what is known by then
        works = self._backlog.waiting()
        works += [(e.place, e.cost_ms) for o, e in self._expected.items() if o is not request.owner]
        ahead_ms = self.shares.ahead_ms(place_of(request, now, cost_ms), cost_ms, works)
        ahead_ms += self._backlog.running_ms(now)
        workers = self._free_workers(now)
        late_ms = ahead_ms / workers + max(longest_ms, cost_ms / workers) - left_ms
        if ahead_ms > 0 and late_ms > 0:
            raise Overloaded(
                f"work of other requests takes about {ahead_ms / workers:.0f} ms, which leaves too "
                f"little of {left_ms:.0f} ms; try again later",
                retry_after_s=late_ms / 1e3,
            )

    def _left_ms(self, now: float) -> float:
        """Return the milliseconds of one thread that everything takes that waits, runs or comes."""
        waiting = sum(cost_ms for _, cost_ms in self._backlog.waiting())
        expected = sum(found.cost_ms for found in self._expected.values())
        return waiting + expected + self._backlog.running_ms(now)

    def _free_workers(self, now: float) -> int:
        """Return how many workers can be counted on."""
        return max(1, self._alive - self._backlog.stuck(now))

    def _drop(self, futures: Sequence[Future[RowDone]]) -> None:
        """Take waiting rows out of the queue, so that they neither hold a place nor a waiter."""
        with self._changed:
            self._backlog.drop(futures)
            self._changed.notify_all()

    def _work(self) -> None:
        try:
            run: ModelCall | None = None
            while run is not None or (run := self._next()) is not None:
                run = self._run(run)
        except BaseException as error:  # noqa: BLE001 - a fault of the scheduler's own: say so
            _LOG.critical("worker stopped: %s at %s", type(error).__name__, raised_at(error))
            self._died()

    def _died(self) -> None:
        """Count a lost worker; with the last one, nobody would ever answer those who wait."""
        with self._changed:
            self._alive -= 1
            if not self._alive:
                for job in self._backlog.clear():
                    job.fail(RowFailed("every model worker has stopped"))
            self._changed.notify_all()

    def _next(self) -> ModelCall | None:
        """Return a call of the most urgent job that somebody still waits for; None when stopped."""
        with self._changed:
            while not self._stopped:
                run = self._backlog.pop(self._clock(), self._alive)
                if run is not None:
                    return run
                self._changed.notify_all()  # what was dropped on the way may have been the last
                if self._backlog.lanes:
                    self._changed.wait(KEPT_LOOK_S)
                else:
                    self._changed.wait_for(lambda: self._stopped or bool(self._backlog.lanes))
            return None

    def _run(self, run: ModelCall) -> ModelCall | None:
        """Run a call and answer everybody who waits for its rows; a row that fails, fails alone.

        Returns:
            The call that comes next, if one waits already.
        """
        outcome = self._outcome([job.row for job in run.jobs])
        now = self._clock()
        with self._changed:
            if not isinstance(outcome, RowFailed):
                self._succeed(run, outcome, now)
            elif len(run.jobs) > 1:
                self._backlog.take_apart(run, now)
            else:
                run.jobs[0].fail(outcome)
                self._backlog.finish(run)
            self._changed.notify_all()
            return None if self._stopped else self._backlog.pop(now, self._alive)

    def _outcome(self, rows: Sequence[Row]) -> list[RowResult] | RowFailed:
        role = rows[0].role
        TENANT.set(rows[0].tenant)
        try:
            if len(rows) == 1:
                return [self._runners[role](rows[0])]
            found = self._batches[role].run(rows)
            if len(found) == len(rows):
                return found
            return RowFailed(f"{role}: {len(rows)} rows gave {len(found)} results")
        except RowFailed as error:
            return error
        except BaseException as error:  # noqa: BLE001 - the worker loop: nothing may end it
            failed = RowFailed(f"{role} row failed: {type(error).__name__}")
            failed.__cause__ = error
            return failed

    def _succeed(self, run: ModelCall, results: Sequence[RowResult], now: float) -> None:
        has_computed = run.succeed(results)
        role, size = run.jobs[0].row.role, run.tokens
        self._backlog.finish(run)
        if has_computed:
            self._seen.append((role, size, (now - run.started) * 1e3))

"""The backlog: order, what is ahead of whom, whose rows wait, what counts as stuck."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from guardrail_service.inference.queue.backlog import STUCK_S, Backlog, Barrier, RowJob, Waiter
from guardrail_service.inference.queue.cost import QueuePlace, RowCost
from guardrail_service.types import Row

NOW = 100.0


def job(text: str, order: float = NOW, owner: object = "me", cost_ms: float = 10.0) -> RowJob:
    """Return a job that one request waits for."""
    waiter = Waiter(Future(), due=float("inf"), submitted=NOW)
    return RowJob(
        Row("embedding", text), QueuePlace(order), 0, RowCost(10, cost_ms), owner, [waiter]
    )


def backlog(*jobs: RowJob) -> Backlog:
    """Return a backlog with jobs in the queue."""
    made = Backlog()
    for one in jobs:
        made.add(one)
    return made


def popped(made: Backlog) -> RowJob:
    """Return the one job of the next call."""
    run = made.pop(NOW)
    assert run is not None
    (only,) = run.jobs
    return only


def test_rows_of_others_are_those_of_another_owner() -> None:
    """Until they start or are dropped."""
    mine, theirs = job("a"), job("b", owner="they", order=NOW - 1)
    made = backlog(mine, theirs)
    assert (made.of_others("me"), made.of_others("they"), made.of_others("new")) == (1, 1, 2)
    assert popped(made) is theirs
    assert made.of_others("me") == 0
    made.drop([mine.waiters[0].future])
    assert made.of_others("new") == 0


def test_what_waits_counts_whole_and_what_runs_with_what_is_left() -> None:
    """Held rows count like queued ones; of a running row, what is left of its estimate."""
    made = backlog(job("runs", NOW - 2), job("sooner", NOW - 1))
    assert made.pop(NOW) is not None
    made.add(job("held", NOW), Barrier(1, []))
    assert made.waiting() == [(QueuePlace(NOW - 1), 10.0), (QueuePlace(NOW), 10.0)]
    assert made.running_ms(NOW + 0.004) == pytest.approx(6.0)
    assert made.running_ms(NOW + 60) == 0.0


def test_a_row_is_stuck_after_seconds_and_many_times_its_estimate() -> None:
    """A row that is expected to be long has longer."""
    short, long = job("short"), job("long", cost_ms=1_000.0)
    made = backlog(short, long)
    assert (popped(made), popped(made)) == (short, long)
    assert made.stuck(NOW + STUCK_S) == 0
    assert made.stuck(NOW + STUCK_S + 0.1) == 1
    assert made.stuck(NOW + 20.1) == 2
    assert made.find(short.row, NOW + 3) is None
    assert made.find(long.row, NOW + 3) is long


def test_nothing_is_left_on_the_books() -> None:
    """Owners and rows of finished work are forgotten, or a long life would fill the memory."""
    made = backlog(*(job(str(n), owner=n) for n in range(5)))
    for _ in range(3):
        done = made.pop(NOW)
        assert done is not None
        made.finish(done)
    assert len(made.clear()) == 2
    assert made.is_idle()
    assert (made._by_owner, made._by_row, made._held) == ({}, {}, set())


def test_work_that_nobody_waits_for_does_not_keep_it_busy() -> None:
    """A service may end although a departed caller's row still runs."""
    one = job("a")
    made = backlog(one)
    assert popped(made) is one
    assert not made.is_idle()
    made.drop([one.waiters[0].future])
    assert made.is_idle()

"""A job and those who wait for it: everybody is told once, whatever comes together."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
import pytest

from guardrail_service.errors import RowFailed
from guardrail_service.inference.queue.backlog import ModelCall, RowDone, RowJob, Waiter, cancel
from guardrail_service.inference.queue.cost import QueuePlace, RowCost
from guardrail_service.inference.queue.scheduler import Known, Ticket
from guardrail_service.types import Row, RowResult


def job(*waiters: Waiter) -> RowJob:
    """Return a job that started at second 2."""
    return RowJob(
        Row("embedding", "text"),
        QueuePlace(0.0),
        0,
        RowCost(3, 1.0),
        None,
        list(waiters),
        run=ModelCall([], 2.0),
    )


def waiter(due: float = 10.0, submitted: float = 1.0) -> Waiter:
    """Return somebody who waits."""
    return Waiter(Future(), due, submitted)


def test_dropping_a_row_twice_is_no_fault() -> None:
    """Its deadline passes while its caller leaves."""
    future: Future[RowDone] = Future()
    cancel(future)
    cancel(future)
    assert future.cancelled()


def test_a_row_that_is_done_is_not_dropped_any_more() -> None:
    """Who asked for it may still read it."""
    one = waiter()
    job(one).succeed(RowResult({}, 1.0, 2.0))
    cancel(one.future)
    assert one.future.result().inference_ms == 2.0


def test_everybody_gets_the_outputs_and_one_the_times() -> None:
    """Each is told how long it waited itself; one who left is passed over."""
    left, first, second = waiter(), waiter(submitted=1.0), waiter(submitted=1.5)
    cancel(left.future)
    outputs = {"states": np.zeros(3)}
    job(left, first, second).succeed(RowResult(outputs, 1.0, 2.0))
    assert first.future.result() == RowDone(outputs, 1_000.0, 1.0, 2.0)
    assert second.future.result() == RowDone(outputs, 500.0, 0.0, 0.0)


def test_everybody_is_told_of_a_failure() -> None:
    """One who left is passed over."""
    left, stays = waiter(), waiter()
    cancel(left.future)
    job(left, stays).fail(RowFailed("too long"))
    with pytest.raises(RowFailed):
        stays.future.result()


def test_late_waiters_are_forgotten_and_the_others_stay() -> None:
    """A job may have both."""
    late, early = waiter(due=1.0), waiter(due=3.0)
    made = job(late, early)
    made.forget_late(2.0)
    assert made.waiters == [early]
    assert late.future.cancelled()


def test_a_ticket_waits_for_what_is_not_known() -> None:
    """And says whether it came in time."""
    future: Future[RowDone] = Future()
    known = Known({})
    ticket = Ticket([known, future])
    assert ticket.wait([known], 0.0)
    assert not ticket.wait(timeout=0.0)
    future.set_result(RowDone({}, 0.0, 0.0, 0.0))
    assert ticket.wait(timeout=0.0)


def test_a_known_row_is_a_future_that_is_done() -> None:
    """Its readers need not tell the two apart."""
    known = Known({"states": np.zeros(3)})
    assert (known.done(), known.cancelled(), known.exception()) == (True, False, None)
    assert known.result().inference_ms == 0.0

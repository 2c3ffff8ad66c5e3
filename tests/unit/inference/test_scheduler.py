"""The scheduler: order, bounds, cancellation, faults. Runners are plain functions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager

import pytest

from guardrail_service.errors import NotReady, Overloaded, RowFailed
from guardrail_service.inference.scheduler import Scheduler
from guardrail_service.types import Row, RowResult


def row(text: str) -> Row:
    """A row of the only role these tests run."""
    return Row("embedding", text)


def echo(row: Row) -> RowResult:
    """Fail on demand, else answer at once."""
    if row.text == "fail":
        raise ValueError("secret text of the caller")
    return RowResult({}, 1.0, 2.0)


class Gate:
    """A runner that blocks until opened and notes the order of what ran."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.ran: list[str] = []

    def __call__(self, row: Row) -> RowResult:
        """Wait for the gate, then answer."""
        self.entered.set()
        assert self.open.wait(20)
        self.ran.append(row.text)
        return RowResult({}, 0.0, 0.0)


@contextmanager
def scheduler(
    runner: Callable[[Row], RowResult], workers: int = 1, max_rows: int = 100
) -> Iterator[Scheduler]:
    """A scheduler that is closed at the end."""
    made = Scheduler({"embedding": runner}, workers, max_rows)
    try:
        yield made
    finally:
        made.close(drain_s=20)


def test_results_come_back_in_the_order_of_the_rows() -> None:
    """A ticket's futures line up with the submitted rows."""
    with scheduler(lambda r: RowResult({"text": r.text}, 0, 0), workers=3) as s:  # type: ignore[dict-item]
        ticket = s.submit([row(str(n)) for n in range(50)])
        assert [f.result(20).outputs["text"] for f in ticket.futures] == [str(n) for n in range(50)]


def test_a_failed_row_fails_alone() -> None:
    """Its neighbours get their results and the next request is served."""
    with scheduler(echo) as s:
        ticket = s.submit([row("a"), row("fail"), row("b")])
        assert ticket.futures[0].result(20).inference_ms == 2.0
        assert ticket.futures[2].result(20).inference_ms == 2.0
        with pytest.raises(RowFailed) as caught:
            ticket.futures[1].result(20)
        assert "ValueError" in str(caught.value)
        assert "secret" not in str(caught.value)
        assert s.submit([row("c")]).futures[0].result(20)
        assert s.healthy()


def test_the_earliest_deadline_runs_first() -> None:
    """Queued rows are ordered by deadline, those without one last, then by arrival."""
    gate = Gate()
    with scheduler(gate) as s:
        s.submit([row("running")])
        assert gate.entered.wait(20)
        later = s.submit([row("none-1"), row("none-2")])
        soon = s.submit([row("soon")], deadline=s._clock() + 500)
        sooner = s.submit([row("sooner")], deadline=s._clock() + 100)
        gate.open.set()
        for ticket in (later, soon, sooner):
            for future in ticket.futures:
                future.result(20)
    assert gate.ran == ["running", "sooner", "soon", "none-1", "none-2"]


def test_a_row_past_its_deadline_is_dropped_not_run() -> None:
    """What is too late to matter costs nothing."""
    gate = Gate()
    with scheduler(gate) as s:
        s.submit([row("running")])
        assert gate.entered.wait(20)
        late = s.submit([row("late")], deadline=s._clock() - 1)
        gate.open.set()
        s.submit([row("next")]).futures[0].result(20)
        assert late.futures[0].cancelled()
    assert gate.ran == ["running", "next"]


def test_cancelled_rows_are_not_run() -> None:
    """A departed caller's queued rows are dropped."""
    gate = Gate()
    with scheduler(gate) as s:
        s.submit([row("running")])
        assert gate.entered.wait(20)
        gone = s.submit([row("gone-1"), row("gone-2")])
        gone.cancel()
        gate.open.set()
        s.submit([row("next")]).futures[0].result(20)
    assert gate.ran == ["running", "next"]


def test_dropped_rows_free_the_queue_and_their_waiters_at_once() -> None:
    """Nobody has to wait for a worker to come by and find that the row is not wanted."""
    gate = Gate()
    with scheduler(gate, max_rows=2) as s:
        s.submit([row("running")])
        assert gate.entered.wait(20)
        gone = s.submit([row("gone-1"), row("gone-2")])
        assert s.depth() == 2
        gone.cancel()
        assert s.depth() == 0
        assert not wait(gone.futures, timeout=20).not_done
        assert s.submit([row("next-1"), row("next-2")])
        gone.cancel()
        gate.open.set()
    assert gate.ran == ["running", "next-1", "next-2"]


def test_closing_wakes_who_waits_for_dropped_rows() -> None:
    """A check without a deadline must not hold up the end of the process."""
    gate = Gate()
    s = Scheduler({"embedding": gate}, 1, 100)
    s.submit([row("running")])
    assert gate.entered.wait(20)
    queued = s.submit([row("queued")])
    closer = threading.Thread(target=s.close, args=(0.0,))
    closer.start()
    assert not wait(queued.futures, timeout=20).not_done
    gate.open.set()
    closer.join(20)
    assert queued.futures[0].cancelled()


def test_a_full_queue_refuses_other_peoples_work_only() -> None:
    """A request larger than the queue is accepted alone and refused behind others."""
    gate = Gate()
    with scheduler(gate, max_rows=3) as s:
        s.submit([row("running")])
        assert gate.entered.wait(20)
        large = s.submit([row(f"large-{n}") for n in range(10)])
        with pytest.raises(Overloaded) as caught:
            s.submit([row("refused")])
        assert caught.value.retry_after_s > 0
        assert s.depth() == 10
        gate.open.set()
        assert all(f.result(20) for f in large.futures)


def test_closing_drains_then_refuses() -> None:
    """Work that was accepted is finished; new work is refused."""
    s = Scheduler({"embedding": echo}, 2, 100)
    ticket = s.submit([row(str(n)) for n in range(20)])
    s.close(drain_s=20)
    assert all(f.result(0) for f in ticket.futures)
    with pytest.raises(NotReady):
        s.submit([row("late")])


def test_closing_without_time_drops_what_is_queued() -> None:
    """Nobody waits for ever: dropped rows are cancelled, not lost."""
    gate = Gate()
    s = Scheduler({"embedding": gate}, 1, 100)
    s.submit([row("running")])
    assert gate.entered.wait(20)
    queued = s.submit([row("queued")])
    closer = threading.Thread(target=s.close, args=(0.0,))
    closer.start()
    gate.open.set()
    closer.join(20)
    assert queued.futures[0].cancelled()


def test_a_role_without_a_model_is_refused_at_submission() -> None:
    """A missing model is a programming error, found before anything is queued."""
    with scheduler(echo) as s, pytest.raises(KeyError):
        s.submit([Row("toxicity", "text")])

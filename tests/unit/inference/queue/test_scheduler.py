"""The scheduler: order, bounds, cancellation, faults. Runners are plain functions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from typing import Any

import pytest

from guardrail_service.errors import NotReady, Overloaded, RowFailed
from guardrail_service.inference.queue.cost import BACKGROUND_S, CostModel, Urgency, place_of
from guardrail_service.inference.queue.scheduler import Scheduler
from guardrail_service.types import CALLER, Row, RowResult
from tests.waiting import until


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


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@contextmanager
def scheduler(
    runner: Callable[[Row], RowResult], workers: int = 1, max_rows: int = 100, **more: Any
) -> Iterator[Scheduler]:
    """A scheduler that is closed at the end."""
    runners = {"embedding": runner, "grounding": runner}
    made = Scheduler(runners, workers, max_rows, **more)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        made.close(drain_s=20)


def ran_in_order(submit: Callable[[Scheduler, Clock], None]) -> list[str]:
    """Return in which order rows run that are submitted while the only worker is held up."""
    gate, clock = Gate(), Clock()
    with scheduler(gate, clock=clock) as s:
        s.submit([row("running")], patience_s=-1)
        assert gate.entered.wait(20)
        submit(s, clock)
        gate.open.set()
    return gate.ran[1:]


def order(*rows: tuple[str, float | None]) -> list[str]:
    """Return in which order rows with deadlines (seconds from now) run."""

    def submit(s: Scheduler, clock: Clock) -> None:
        for text, left in rows:
            s.submit([row(text)], None if left is None else clock.now + left)

    return ran_in_order(submit)


def costs(ms: float) -> CostModel:
    """Return a cost model that says this of every row."""
    return CostModel(ms)


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
    """Queued rows are ordered by deadline, then by arrival."""
    assert order(("none", None), ("soon", 0.5), ("sooner", 0.1)) == ["sooner", "soon", "none"]


def test_a_row_without_a_deadline_is_as_urgent_as_one_due_in_a_second() -> None:
    """So neither kind starves: later deadlines wait for it, earlier ones do not."""
    assert order(("none", None), ("late", 500.0), ("soon", 0.5)) == ["soon", "none", "late"]


def test_the_few_rows_of_a_huge_check_are_no_more_urgent_than_the_check() -> None:
    """Nor is a check more urgent than its rows, and what it costs beside them counts for little."""

    def mixed(s: Scheduler, clock: Clock) -> None:
        soon, far = (place_of(Urgency(), clock.now, ms) for ms in (0.0, 5_000.0))
        s.submit([row("of a huge one")], clock.now + 0.2, not_before=far)
        s.submit([row("late")], clock.now + 0.9, not_before=soon._replace(order=clock.now + 1.7))
        s.submit(
            [row("ordinary")], clock.now + 0.8, not_before=soon._replace(order=clock.now + 1.6)
        )
        s.submit([row("later")], clock.now + 0.95, not_before=soon._replace(order=clock.now))

    assert ran_in_order(mixed) == ["ordinary", "late", "later", "of a huge one"]


def test_nothing_is_overtaken_for_longer_than_its_patience() -> None:
    """What waits for more than a second is ahead of whatever comes then."""

    def later(s: Scheduler, clock: Clock) -> None:
        s.submit([row("old")], deadline=clock.now + 400)
        clock.now += 1.5
        s.submit([row("new")], deadline=clock.now + 0.1)

    assert ran_in_order(later) == ["old", "new"]


def test_background_work_waits_for_requests() -> None:
    """Passages encoded ahead of traffic give way, but not for ever."""

    def later(s: Scheduler, clock: Clock) -> None:
        s.submit([row("ahead")], patience_s=BACKGROUND_S)
        clock.now += 5
        s.submit([row("request")])
        clock.now += BACKGROUND_S
        s.submit([row("late request")])

    assert ran_in_order(later) == ["request", "ahead", "late request"]


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
    assert not wait(queued.futures, timeout=20).not_done
    gate.open.set()
    closer.join(20)
    assert queued.futures[0].cancelled()
    assert gate.ran == ["running"]


def test_a_role_without_a_model_is_refused_at_submission() -> None:
    """A missing model is a programming error, found before anything is queued."""
    with scheduler(echo) as s, pytest.raises(KeyError):
        s.submit([Row("toxicity", "text")])


def test_equal_rows_of_several_requests_run_once() -> None:
    """Everybody gets the same outputs; only the first is told what they cost."""
    gate = Gate()
    with scheduler(gate) as s:
        s.submit([row("running")])
        assert gate.entered.wait(20)
        first, second = s.submit([row("same")]), s.submit([row("same"), row("other")])
        joined = s.submit([row("running")])
        assert s.depth() == 2
        gate.open.set()
        assert joined.futures[0].result(20).outputs is not None
        assert first.futures[0].result(20).outputs is second.futures[0].result(20).outputs
    assert gate.ran == ["running", "same", "other"]


def test_a_shared_row_fails_for_everybody_and_for_nobody_after() -> None:
    """A failure is not kept."""
    gate = Gate()

    def fail(found: Row) -> RowResult:
        gate(found)
        raise ValueError("secret")

    with scheduler(fail) as s:
        tickets = [s.submit([row("same")]) for _ in range(3)]
        gate.open.set()
        assert all(isinstance(t.futures[0].exception(20), RowFailed) for t in tickets)
        assert isinstance(s.submit([row("same")]).futures[0].exception(20), RowFailed)
    assert gate.ran == ["same", "same"]


def test_a_shared_row_runs_as_long_as_one_caller_waits() -> None:
    """One who leaves takes nothing away from the others."""
    gate = Gate()
    with scheduler(gate) as s:
        s.submit([row("running")])
        assert gate.entered.wait(20)
        leaving, staying = s.submit([row("same")]), s.submit([row("same")])
        leaving.cancel()
        assert leaving.futures[0].cancelled()
        assert s.depth() == 1
        gate.open.set()
        assert staying.futures[0].result(20)


def test_a_shared_row_is_as_urgent_as_its_most_urgent_caller() -> None:
    """A late request may need at once what an early one could wait for."""
    wanted = (("calm", None), ("other", None), ("calm", 0.1))
    assert order(*wanted) == ["calm", "other"]
    assert order(("other", None), ("calm", None), ("calm", 0.1)) == ["calm", "other"]


def test_leaving_does_not_wait_for_a_row_that_runs() -> None:
    """A departed caller's thread is free at once, however long the model takes."""
    gate = Gate()
    with scheduler(gate) as s:
        running = s.submit([row("running")])
        assert gate.entered.wait(20)
        running.cancel()
        assert running.futures[0].cancelled()
        gate.open.set()
        assert s.submit([row("next")]).futures[0].result(20)


def test_what_is_known_needs_no_worker() -> None:
    """It is done on return, and a full queue does not refuse it."""
    gate = Gate()

    def peek(found: Sequence[Row]) -> list[RowResult | None]:
        return [RowResult({}, 0.0, 0.0) if row.text == "known" else None for row in found]

    with scheduler(gate, max_rows=1, peeks={"embedding": peek}) as s:
        s.submit([row("running")])
        assert gate.entered.wait(20)
        s.submit([row("queued")])
        assert s.submit([row("known")]).futures[0].done()
        with pytest.raises(Overloaded):
            s.submit([row("known"), row("unknown")])
        gate.open.set()
    assert gate.ran == ["running", "queued"]


def reader(text: str) -> Row:
    """A row that reads what embedding rows computed."""
    return Row("grounding", text)


AFTER = {"grounding": "embedding"}


def test_a_reader_starts_when_what_it_reads_is_done() -> None:
    """Another worker that is free does not start it early, and does not wait for it either."""
    gate = Gate()
    with scheduler(gate, workers=2, after=AFTER) as s:
        ticket = s.submit([reader("reader"), row("text")])
        assert gate.entered.wait(20)
        assert s.depth() == 1
        assert s.running() == 1
        gate.open.set()
        assert all(f.result(20) for f in ticket.futures)
    assert gate.ran == ["text", "reader"]


def test_a_reader_waits_for_a_text_that_another_request_brought() -> None:
    """Joining a running row counts as bringing it."""
    gate = Gate()
    with scheduler(gate, workers=2, after=AFTER) as s:
        s.submit([row("text")])
        assert gate.entered.wait(20)
        ticket = s.submit([row("text"), reader("reader")])
        assert s.running() == 1
        gate.open.set()
        assert all(f.result(20) for f in ticket.futures)
    assert gate.ran == ["text", "reader"]


def test_a_reader_runs_though_what_it_reads_failed() -> None:
    """It says itself what it lacks; held back for ever, it would hang its request."""
    with scheduler(echo, after=AFTER) as s:
        failed, done = s.submit([row("fail"), reader("reader")]).futures
        assert isinstance(failed.exception(20), RowFailed)
        assert done.result(20)


def test_a_reader_alone_runs_at_once() -> None:
    """Nothing was submitted that it could wait for."""
    with scheduler(echo, after=AFTER) as s:
        assert s.submit([reader("reader")]).futures[0].result(20)


def test_a_reader_is_released_when_what_it_reads_is_dropped() -> None:
    """Two requests share a reader; the one that brought the text leaves."""
    gate = Gate()
    with scheduler(gate, after=AFTER) as s:
        s.submit([row("running")])
        assert gate.entered.wait(20)
        leaving = s.submit([row("text"), reader("shared")])
        staying = s.submit([reader("shared")])
        leaving.cancel()
        gate.open.set()
        assert staying.futures[0].result(20)
    assert gate.ran == ["running", "shared"]


def busy(s: Scheduler, gate: Gate, rows: int) -> None:
    """Let rows of others wait in front of the held-up worker."""
    s.submit([row("running")])
    assert gate.entered.wait(20)
    for n in range(rows):
        s.submit([row(f"other-{n}")], patience_s=0.1)


def test_work_of_others_that_makes_a_deadline_impossible_refuses() -> None:
    """Ten rows of 100 ms are in front; the caller is told when there will be room."""
    gate, clock = Gate(), Clock()
    with scheduler(gate, clock=clock, costs=costs(100.0)) as s:
        busy(s, gate, 9)
        with pytest.raises(Overloaded) as caught:
            s.submit([row("mine")], deadline=clock.now + 0.5)
        assert caught.value.retry_after_s == pytest.approx(10 * 0.1 + 0.1 - 0.5)
        assert s.submit([row("mine")], deadline=clock.now + 1.2)
        gate.open.set()


def test_what_would_not_fit_on_an_idle_service_is_accepted() -> None:
    """The caller gets what is known by then; 429 is about other people's work only."""
    gate, clock = Gate(), Clock()
    with scheduler(gate, clock=clock, costs=costs(100.0)) as s:
        busy(s, gate, 9)
        large = [row(f"mine-{n}") for n in range(10)]
        assert s.submit(large, deadline=clock.now + 0.5)
        gate.open.set()


def test_less_urgent_work_of_others_does_not_count() -> None:
    """It will be overtaken."""
    gate, clock = Gate(), Clock()
    with scheduler(gate, clock=clock, costs=costs(100.0)) as s:
        busy(s, gate, 0)
        s.submit([row(f"later-{n}") for n in range(9)], deadline=clock.now + 0.9)
        assert s.submit([row("mine")], deadline=clock.now + 0.5)
        gate.open.set()


def test_rows_in_flight_for_others_cost_nothing_more() -> None:
    """All of this request's rows are being computed anyway."""
    gate, clock = Gate(), Clock()
    with scheduler(gate, clock=clock, costs=costs(100.0)) as s:
        busy(s, gate, 9)
        assert s.submit([row("other-8")], deadline=clock.now + 0.5).cost_ms == 0
        gate.open.set()


def test_expected_work_counts_until_its_rows_are_there() -> None:
    """Requests whose samples are still being read stand in line, too."""
    clock = Clock()
    with scheduler(echo, clock=clock, costs=costs(90.0)) as s:
        due = clock.now + 0.5
        for owner in range(5):
            s.expect(90.0, due, owner)
        with pytest.raises(Overloaded):
            s.expect(100.0, due, "last")
        assert s.submit([row("first")], due, 0).futures[0].result(20)
        s.expect(100.0, due, "last")
        for owner in (1, 2, 3, 4, "last"):
            s.forget(owner)
        assert s.backlog_s() == 0


def test_what_its_deadline_cuts_off_does_not_count_and_lets_small_work_pass() -> None:
    """Ten texts that would take a minute each end after 200 ms, whoever waits behind them."""
    clock = Clock()
    with scheduler(echo, clock=clock, costs=costs(90.0)) as s:
        for owner in range(10):
            s.expect(60_000.0, clock.now + 0.2, owner)
        assert s.backlog_s() == pytest.approx(10 * 0.2)
        s.expect(90.0, clock.now + 0.3, "ordinary")


def test_small_requests_pass_huge_ones() -> None:
    """By five times what the huge one costs, so they do not pass it for ever."""
    gate, clock = Gate(), Clock()
    with scheduler(gate, clock=clock, costs=costs(100.0)) as s:
        busy(s, gate, 0)
        s.submit([row(f"huge-{n}") for n in range(10)])
        s.submit([row("small")])
        clock.now += 4.6
        s.submit([row("too late")])
        gate.open.set()
        until(lambda: len(gate.ran) == 13)
    assert gate.ran == ["running", "small", *(f"huge-{n}" for n in range(10)), "too late"]


@contextmanager
def calling(name: str) -> Iterator[None]:
    """Do what is in the block in the name of a caller."""
    token = CALLER.set(name)
    try:
        yield
    finally:
        CALLER.reset(token)


def test_a_caller_with_many_rows_does_not_hold_up_another_one() -> None:
    """Also with a deadline that the crowd's work would make impossible, and without any."""
    gate, clock = Gate(), Clock()
    with scheduler(gate, clock=clock, costs=costs(50.0)) as s:
        with calling("crowd"):
            s.submit([row("running")])
            assert gate.entered.wait(20)
            for n in range(40):
                s.submit([row(f"crowd {n}")])
            with pytest.raises(Overloaded):
                s.submit([row("refused")], clock.now + 1.2)
        s.shares.charge("crowd", 1_000.0)
        with calling("other"):
            clock.now += 5.0
            s.submit([row("due")], clock.now + 1.2)
            s.submit([row("free")])
        gate.open.set()
    assert gate.ran[:4] == ["running", "due", "free", "crowd 0"]


def test_work_that_is_coming_counts_for_its_caller() -> None:
    """What a crowd is about to submit refuses its own further work and nobody else's."""
    clock = Clock()
    with scheduler(echo, clock=clock) as s:
        with calling("crowd"):
            for n in range(10):
                s.expect(500.0, clock.now + 60.0, n)
            with pytest.raises(Overloaded):
                s.expect(500.0, clock.now + 2.0, "one more")
        s.shares.charge("crowd", 2_000.0)
        with calling("other"):
            s.expect(500.0, clock.now + 2.0, "ordinary")


@pytest.mark.parametrize(("waited_s", "running"), [(0.0, 0), (1.5, 1)])
def test_while_a_small_check_is_under_way_a_huge_one_waits(waited_s: float, running: int) -> None:
    """Its first rows have run and its next ones come; the huge one goes on when it is done.

    When the huge one has stood for long enough, it leaves a worker only.
    """
    gate, small, clock = Gate(), threading.Event(), Clock()

    def run(row: Row) -> RowResult:
        if row.text.startswith("huge"):
            return gate(row)
        small.set()
        return RowResult({}, 0.0, 0.0)

    with scheduler(run, workers=2, costs=costs(100.0), clock=clock) as s:
        s.expect(10.0, None, "small")
        s.submit([row(f"huge {n}") for n in range(5)], owner="huge")
        clock.now += waited_s
        s.submit([row("small")], owner="small").wait()
        assert small.is_set()
        until(lambda: s.running() == running)
        assert s.depth() == 5 - running
        s.forget("small")
        until(lambda: s.running() == 2)
        gate.open.set()


def test_the_rows_that_wait_are_shared_between_callers() -> None:
    """A caller that fills the queue is refused; another one gets its half, and no more."""
    gate = Gate()
    with scheduler(gate, max_rows=10) as s:
        with calling("crowd"):
            s.submit([row("running")])
            assert gate.entered.wait(20)
            s.submit([row(f"crowd {n}") for n in range(10)])
            with pytest.raises(Overloaded):
                s.submit([row("refused")])
        with calling("other"):
            s.submit([row(f"other {n}") for n in range(5)])
            with pytest.raises(Overloaded):
                s.submit([row("refused as well")])
        gate.open.set()


def test_a_row_that_two_callers_want_runs_when_the_first_of_them_has_its_turn() -> None:
    """Whoever asked for it before."""
    gate = Gate()
    with scheduler(gate) as s:
        with calling("crowd"):
            s.submit([row("running")])
            assert gate.entered.wait(20)
            s.submit([row(f"crowd {n}") for n in range(10)])
        with calling("other"):
            s.submit([row("crowd 9")])
        gate.open.set()
    assert gate.ran[:3] == ["running", "crowd 9", "crowd 0"]
    assert gate.ran.count("crowd 9") == 1


def test_rows_of_one_owner_do_not_stand_in_each_others_way() -> None:
    """A batch of large items is one caller's work."""
    gate, batch = Gate(), object()
    with scheduler(gate, max_rows=3) as s:
        s.submit([row("running")], owner=batch)
        assert gate.entered.wait(20)
        s.submit([row(f"item-1-{n}") for n in range(5)], owner=batch)
        assert s.submit([row(f"item-2-{n}") for n in range(5)], owner=batch)
        with pytest.raises(Overloaded) as caught:
            s.submit([row("other")])
        assert caught.value.retry_after_s > 0
        gate.open.set()


def test_a_stuck_row_holds_up_neither_workers_nor_equal_rows() -> None:
    """The next caller of the same row gets a run of its own."""
    gate, clock = Gate(), Clock()
    stuck = threading.Event()

    def run(found: Row) -> RowResult:
        if not stuck.is_set():
            stuck.set()
            gate(found)
        return RowResult({}, 1.0, 1.0)

    with scheduler(run, workers=2, clock=clock) as s:
        first = s.submit([row("same")])
        assert stuck.wait(20)
        assert s.submit([row("other")]).futures[0].result(20)
        assert s.stuck() == 0
        clock.now += 60
        assert s.stuck() == 1
        assert s.submit([row("same")]).futures[0].result(20)
        assert not first.futures[0].done()
        gate.open.set()
        assert first.futures[0].result(20)


def test_costs_are_learned_from_what_runs() -> None:
    """Four rows of half a second each move the estimate there."""
    clock = Clock()

    def slow(_row: Row) -> RowResult:
        clock.now += 0.5
        return RowResult({}, 0.0, 500.0)

    with scheduler(slow, clock=clock) as s:
        for n in range(4):
            assert s.submit([row(str(n))]).futures[0].result(20)
        assert [cost.ms for cost in s.costs.rows([row("x")])] == [pytest.approx(500.0)]


def test_a_runner_that_ends_its_thread_fails_its_row_only() -> None:
    """SystemExit is no Exception; the worker lives on."""

    def leave(found: Row) -> RowResult:
        if found.text == "leave":
            raise SystemExit
        return RowResult({}, 0.0, 0.0)

    with scheduler(leave) as s:
        assert isinstance(s.submit([row("leave")]).futures[0].exception(20), RowFailed)
        assert s.submit([row("next")]).futures[0].result(20)
        assert s.healthy()


def test_with_the_last_worker_gone_nobody_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault of the scheduler's own is logged, seen by `healthy`, and hangs nobody."""
    gate = Gate()
    with scheduler(gate) as s:
        s.submit([row("running")])
        assert gate.entered.wait(20)
        queued = s.submit([row("queued")])

        def broken(*_given: float) -> None:
            raise RuntimeError("secret")

        monkeypatch.setattr(s._backlog, "pop", broken)
        gate.open.set()
        assert isinstance(queued.futures[0].exception(20), RowFailed)
        s.threads[0].join(20)
        assert not s.healthy()
        assert s.not_ready() == "a model worker has stopped"
        with pytest.raises(NotReady):
            s.submit([row("late")])
    assert "worker stopped: RuntimeError" in caplog.text
    assert "secret" not in caplog.text


def test_closing_leaves_nobody_waiting_for_a_stuck_row() -> None:
    """The process can end although a model does not return."""
    gate = Gate()
    s = Scheduler({"embedding": gate}, 1, 100)
    stuck = s.submit([row("stuck")])
    assert gate.entered.wait(20)
    closer = threading.Thread(target=s.close, args=(0.0,))
    closer.start()
    assert not wait(stuck.futures, timeout=20).not_done
    assert stuck.futures[0].cancelled()
    gate.open.set()
    closer.join(20)

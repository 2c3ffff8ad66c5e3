"""Turns: a bounded number of threads compute, the most urgent first, and nobody waits for ever."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from guardrail_service.guard.waiting import Turn, Turns, _Claim, _Held
from guardrail_service.inference.queue.cost import MOST_SLACK_S, QueuePlace
from tests.waiting import until

BUDGET_S = 30.0


class Queue:
    """Threads that want a turn, in the order in which they got it."""

    def __init__(self, turns: Turns, pool: ThreadPoolExecutor) -> None:
        self.got: list[str] = []
        self._turns = turns
        self._pool = pool

    def add(self, name: str, order: float, due: float | None = None) -> tuple[Turn, Future[None]]:
        """Let a thread ask for a turn; return when it waits for it."""
        turn = self._turns.turn(QueuePlace(order), due)

        def work() -> None:
            with turn:
                self.got.append(name)

        before = self._turns.waiting()
        future = self._pool.submit(work)
        until(lambda: future.done() or self._turns.waiting() > before)
        return turn, future


@contextmanager
def huge(turns: Turns, pool: ThreadPoolExecutor) -> Iterator[None]:
    """Let a thread that others may pass compute for as long as the block takes."""
    leave = threading.Event()

    def work() -> None:
        with turns.turn(QueuePlace(5.0), None):
            assert leave.wait(BUDGET_S)

    done = pool.submit(work)
    until(lambda: len(turns._held) == 1)
    try:
        yield
    finally:
        leave.set()
    done.result(BUDGET_S)


def test_no_more_threads_compute_than_there_are_places() -> None:
    """However many want to, and all get their turn."""
    turns, lock = Turns(2, patience_s=BUDGET_S), threading.Lock()
    inside = most = 0

    def work(_: int) -> None:
        nonlocal inside, most
        with turns.turn(QueuePlace(0.0), None) as turn:
            for _ in range(3):
                with lock:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.001)
                with lock:
                    inside -= 1
                with turn.away():
                    time.sleep(0.001)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(48)))
    assert most == 2
    assert not turns._held


def test_of_huge_checks_one_computes_at_a_time() -> None:
    """The other place is for small ones, whoever came first."""
    turns = Turns(2, patience_s=BUDGET_S)
    huge_one, small = QueuePlace(9.0, MOST_SLACK_S), QueuePlace(1.5, 1.5)
    claims = [_Claim() for _ in range(3)]
    for place, claim in zip((huge_one, small), claims, strict=False):
        assert turns.take(claim, place, None)
    turns.give(claims[1])
    assert not turns.take(claims[2], huge_one, time.monotonic())
    turns.give(claims[0])
    assert turns.take(_Claim(), huge_one, None)


def test_the_most_urgent_comes_first_and_equals_in_their_order() -> None:
    """Whoever asked first."""
    turns = Turns(1, patience_s=BUDGET_S)
    with ThreadPoolExecutor(8) as pool:
        queue = Queue(turns, pool)
        with turns.turn(QueuePlace(0.0), None):
            for name, order in (("late", 9.0), ("first", 1.0), ("second", 1.0), ("urgent", 0.5)):
                queue.add(name, order)
            assert queue.got == []
    assert queue.got == ["urgent", "first", "second", "late"]


def test_who_is_away_leaves_the_place_to_others_and_waits_to_come_back() -> None:
    """Model rows run meanwhile; the wait is counted."""
    turns, taken = Turns(1, patience_s=BUDGET_S), threading.Event()

    def other() -> None:
        with turns.turn(QueuePlace(0.0), None):
            taken.set()
            until(lambda: turns.waiting() == 1)  # who was away is back

    with ThreadPoolExecutor(1) as pool, turns.turn(QueuePlace(5.0), None) as turn:
        with turn.away():
            before = turn.waited_ms
            done = pool.submit(other)
            assert taken.wait(BUDGET_S)
        assert turn.waited_ms > before
        done.result(BUDGET_S)
    assert not turns._held


def test_the_wait_to_come_back_ends_with_the_caller_too() -> None:
    """Who left while its rows ran, or while it waits to come back, needs no place to end."""
    turns, taken, leave = Turns(1, patience_s=BUDGET_S), threading.Event(), threading.Event()

    def other() -> None:
        with turns.turn(QueuePlace(0.0), None):
            taken.set()
            until(lambda: turns.waiting() == 1)
            turn.cancel()
            assert leave.wait(BUDGET_S)

    with ThreadPoolExecutor(1) as pool:
        with turns.turn(QueuePlace(5.0), None) as turn:
            with turn.away():
                done = pool.submit(other)
                assert taken.wait(BUDGET_S)
            assert not done.done()
            with turn.away():
                pass
            leave.set()
        done.result(BUDGET_S)
    assert not turns._held


def test_a_place_that_frees_before_the_deadline_is_taken() -> None:
    """Although the deadline is nearer than the patience of one who comes now."""
    turns = Turns(1, patience_s=10.0)
    with ThreadPoolExecutor(1) as pool, huge(turns, pool):
        turns._held = dict.fromkeys(turns._held, _Held(time.monotonic() - 9.7, QueuePlace(5.0)))
        with turns.turn(QueuePlace(0.0), time.monotonic() + 9.0) as turn:
            assert turn._has_place
    assert not turns._held


def test_at_its_deadline_a_check_goes_on_without_a_place() -> None:
    """It must say what it knows then; the place it did not get is not given back."""
    turns = Turns(1, patience_s=BUDGET_S)
    with ThreadPoolExecutor(1) as pool, turns.turn(QueuePlace(0.0), None):
        queue = Queue(turns, pool)
        queue.add("due", 0.0, due=time.monotonic() + 0.01)[1].result(BUDGET_S)
        assert queue.got == ["due"]
        assert len(turns._held) == 1
    assert not turns._held


def test_who_is_cancelled_does_not_wait() -> None:
    """Neither while it waits nor when it asks later, and others keep their places."""
    turns = Turns(1, patience_s=BUDGET_S)
    with ThreadPoolExecutor(4) as pool:
        queue = Queue(turns, pool)
        with turns.turn(QueuePlace(0.0), None):
            turn, future = queue.add("gone", 0.0)
            turn.cancel()
            future.result(BUDGET_S)
            with turn:
                queue.got.append("again")
            assert queue.got == ["gone", "again"]
            queue.add("next", 9.0)
    assert queue.got == ["gone", "again", "next"]
    assert not turns._held


def test_huge_samples_do_not_keep_everybody_waiting() -> None:
    """Who computes for long no longer counts, for those who may pass it soon and later for all."""
    turns, leave = Turns(2, patience_s=0.02), threading.Event()
    entered = threading.Semaphore(0)

    def enter(order: float) -> None:
        with turns.turn(QueuePlace(order), None):
            entered.release()
            assert leave.wait(BUDGET_S)

    with ThreadPoolExecutor(6) as pool:
        for order in (5.0, 5.0, 0.0, 0.0, 9.0, 9.0):
            pool.submit(enter, order)
        for _ in range(6):
            assert entered.acquire(timeout=BUDGET_S)
        leave.set()
    assert not turns._held


def test_who_may_be_passed_gives_way_while_it_computes() -> None:
    """It goes on where it was when nobody more urgent wants a place."""
    turns = Turns(1, patience_s=BUDGET_S)
    with ThreadPoolExecutor(4) as pool:
        queue = Queue(turns, pool)
        with turns.turn(QueuePlace(5.0), None) as turn:
            queue.add("later", 9.0)
            turn.give_way()
            assert queue.got == []
            queue.add("small", 0.0)
            turn.give_way()
            assert queue.got == ["small"]
            assert turn._has_place
    assert queue.got == ["small", "later"]
    assert not turns._held


def test_beside_a_far_more_urgent_one_nobody_computes() -> None:
    """Both would run at half the speed: there is one interpreter."""
    turns = Turns(2, patience_s=BUDGET_S)
    with ThreadPoolExecutor(4) as pool:
        queue = Queue(turns, pool)
        with turns.turn(QueuePlace(0.0), None):
            queue.add("huge", 30.0)
            queue.add("like it", 0.5)[1].result(BUDGET_S)
            assert queue.got == ["like it"]
    assert queue.got == ["like it", "huge"]
    assert not turns._held


def test_while_a_small_one_waits_for_its_rows_a_huge_one_stands_still() -> None:
    """For a second; then it goes on beside the small one."""
    turns, now = Turns(2, patience_s=0.02), time.monotonic()
    small, got = QueuePlace(now + 1.0, 1.0), list[str]()

    def work(name: str, place: QueuePlace) -> None:
        with turns.turn(place, None) as turn:
            got.append(name)
            turn.give_way()
            got.append(f"{name} again")

    with ThreadPoolExecutor(4) as pool:
        with turns.turn(small, None) as turn, turn.away():
            place = QueuePlace(now + 9.0, MOST_SLACK_S, since=now + BUDGET_S)
            huge = pool.submit(work, "huge", place)
            until(lambda: turns.waiting() == 1)
            pool.submit(work, "old", place._replace(order=now + 8.0, since=now)).result(BUDGET_S)
            pool.submit(work, "like it", small).result(BUDGET_S)
            assert got == ["old", "old again", "like it", "like it again"]
            assert turns.waiting() == 1
        huge.result(BUDGET_S)
    assert got[4:] == ["huge", "huge again"]
    assert not turns._held
    assert not turns._under_way.places


def test_behind_huge_samples_small_ones_follow_each_other_at_once() -> None:
    """They do not wait for the patience each, however often somebody more urgent gives up."""
    turns = Turns(1, patience_s=BUDGET_S)
    with ThreadPoolExecutor(4) as pool, huge(turns, pool):
        turns._held = dict.fromkeys(
            turns._held, _Held(0.0, QueuePlace(5.0))
        )  # it has computed for very long
        queue = Queue(turns, pool)
        started = time.monotonic()
        for n in range(20):
            queue.add(str(n), 0.0)[1].result(BUDGET_S)
        assert time.monotonic() - started < turns._patience_s
        assert len(queue.got) == 20
    assert not turns._held


def test_an_urgent_one_that_gives_up_does_not_keep_the_others_waiting() -> None:
    """Whoever looks hands out the place, to whom it belongs."""
    turns = Turns(1, patience_s=0.05)
    with ThreadPoolExecutor(4) as pool, huge(turns, pool):
        queue = Queue(turns, pool)
        _, patient = queue.add("patient", 9.0)
        while not patient.done():
            queue.add("urgent", 0.0, due=time.monotonic() + 0.01)
    assert "patient" in queue.got
    assert not turns._held


def test_when_the_service_ends_nobody_waits() -> None:
    """Neither those who wait nor those who come later; they are told elsewhere that it ends."""
    turns = Turns(1, patience_s=BUDGET_S)
    with ThreadPoolExecutor(1) as pool:
        queue = Queue(turns, pool)
        with turns.turn(QueuePlace(0.0), None):
            _, waiting = queue.add("waiting", 0.0)
            turns.close()
            waiting.result(BUDGET_S)
            with turns.turn(QueuePlace(0.0), None):
                queue.got.append("later")
    assert queue.got == ["waiting", "later"]
    assert not turns._held


def test_a_turn_ends_with_an_error_too() -> None:
    """Or the place would be lost."""
    turns = Turns(1, patience_s=BUDGET_S)
    with (
        pytest.raises(ValueError, match="broken"),
        turns.turn(QueuePlace(0.0), None) as turn,
        turn.away(),
    ):
        raise ValueError("broken")
    assert not turns._held

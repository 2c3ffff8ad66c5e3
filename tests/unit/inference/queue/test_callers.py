"""Turns between callers: what they have had decides, and nobody starves. No clock runs here."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from guardrail_service.inference.queue.backlog import FairQueue
from guardrail_service.inference.queue.cost import (
    CREDIT_S,
    STANDS_S,
    QueuePlace,
    Shares,
    UnderWay,
    Urgency,
    place_of,
)

CHAT_MS, REPORT_MS = 10.0, 1_000.0


class Desk:
    """A queue with one server; callers put their work there."""

    def __init__(self) -> None:
        self.shares = Shares()
        self.queue = FairQueue[tuple[str, int]](self.shares)
        self.now = 0.0
        self.had: Counter[str] = Counter()
        self._numbers = itertools.count()

    def ask(self, caller: str, cost_ms: float, times: int = 1) -> None:
        """Let a caller bring work without a deadline."""
        for _ in range(times):
            number = next(self._numbers)
            place = place_of(Urgency(caller=caller), self.now, cost_ms)
            self.queue.push((caller, number), place, number, cost_ms)

    def serve(self) -> str:
        """Serve whoever comes next; return the caller."""
        found = self.queue.pop()
        assert found is not None
        place, (caller, _) = found
        assert place.caller == caller
        self.had[caller] += 1
        return caller


def test_one_caller_alone_is_served_by_order() -> None:
    """Without a second one there is nothing to share."""
    desk = Desk()
    orders = [3.0, 1.0, 2.0]
    for number, order in enumerate(orders):
        desk.queue.push(("one", number), QueuePlace(order, caller="one"), number, REPORT_MS)
    served = [desk.queue.pop() for _ in orders]
    assert [found[0].order for found in served if found is not None] == [1.0, 2.0, 3.0]


def test_who_comes_late_does_not_stand_behind_a_crowd() -> None:
    """However long the others' work has waited, and who had the service for themselves."""
    desk = Desk()
    desk.ask("crowd", CHAT_MS, 500)
    for _ in range(300):
        desk.serve()
    desk.now = 60.0
    desk.ask("late", CHAT_MS, 3)
    assert [desk.serve() for _ in range(4)] == ["late", "late", "late", "crowd"]


@pytest.mark.parametrize(("one_ms", "other_ms"), [(CHAT_MS, CHAT_MS), (CHAT_MS, 5 * CHAT_MS)])
def test_two_who_always_want_more_get_the_same_cost(one_ms: float, other_ms: float) -> None:
    """Not the same number of requests: one that costs five times as much counts five times."""
    desk = Desk()
    costs = {"one": one_ms, "other": other_ms}
    desk.ask("one", one_ms, 20)
    desk.ask("other", other_ms, 20)
    for _ in range(3_000):
        caller = desk.serve()
        desk.ask(caller, costs[caller])
    spent = {caller: desk.had[caller] * costs[caller] for caller in costs}
    assert spent["one"] == pytest.approx(spent["other"], rel=0.1)


def test_nobody_pays_for_having_used_an_idle_service() -> None:
    """Two then share alike, whatever one of them had before the other came."""
    desk = Desk()
    for _ in range(10_000):
        desk.ask("old", CHAT_MS)
        desk.serve()
    desk.ask("old", CHAT_MS, 1_000)
    desk.ask("new", CHAT_MS, 1_000)
    desk.had.clear()
    for _ in range(1_000):
        desk.serve()
    credit = CREDIT_S * 1e3 / CHAT_MS
    assert desk.had["new"] - desk.had["old"] == pytest.approx(credit, abs=2)


def test_a_small_request_passes_a_huge_one_of_another_caller() -> None:
    """As it passes one of its own."""
    desk = Desk()
    desk.ask("huge", REPORT_MS)
    desk.ask("small", CHAT_MS)
    assert desk.serve() == "small"


def test_a_huge_request_is_served_beside_small_ones_without_end() -> None:
    """Who has had little does not wait for ever, also where many others come again and again."""
    desk = Desk()
    desk.ask("huge", REPORT_MS)
    others = [f"small {number}" for number in range(5)]
    for caller in others:
        desk.ask(caller, CHAT_MS, 3)
    for _ in range(5_000):
        caller = desk.serve()
        if caller == "huge":
            return
        desk.ask(caller, CHAT_MS)
    raise AssertionError("the huge request was never served")


def test_the_first_huge_request_of_a_caller_does_not_hold_up_its_small_ones_for_long() -> None:
    """Beside another caller that always wants more: three seconds of its work, not minutes."""
    desk = Desk()
    desk.ask("mixed", 60 * REPORT_MS)
    desk.now = 400.0  # by now the huge one is the first of its caller
    desk.ask("mixed", CHAT_MS)
    desk.ask("chat", CHAT_MS, 20)
    served = Counter[str]()
    while "mixed" not in served:
        caller = desk.serve()
        served[caller] += 1
        desk.ask(caller, CHAT_MS)
    assert served["chat"] * CHAT_MS <= 3_000


def test_work_that_two_callers_want_is_served_at_the_first_place() -> None:
    """And once."""
    desk = Desk()
    desk.ask("crowd", CHAT_MS, 100)
    for _ in range(50):
        desk.serve()
    shared = ("crowd", 99)
    desk.queue.push(shared, QueuePlace(0.0, 1.0, "late"), 99, CHAT_MS)
    found = desk.queue.pop()
    assert found == (QueuePlace(0.0, 1.0, "late"), shared)
    assert shared not in desk.queue
    left = [desk.queue.pop() for _ in range(len(desk.queue))]
    assert shared not in [one[1] for one in left if one is not None]


def test_work_that_has_gone_leaves_nothing_behind() -> None:
    """Neither in the lanes nor among those who wait, or a long life would fill the memory."""
    desk = Desk()
    for number in range(2_000):
        desk.ask(f"caller {number % 7}", CHAT_MS)
        if number % 3:
            desk.queue.remove([list(desk.queue)[number * 31 % len(desk.queue)]])
        if not number % 50:
            assert sum(map(len, desk.queue.lanes.values())) <= 2 * len(desk.queue) + 64
    desk.queue.remove(list(desk.queue))
    assert (desk.queue.pop(), desk.queue.lanes, desk.shares._waiting) == (None, {}, Counter())


def test_accounts_that_say_nothing_are_dropped() -> None:
    """Addresses are many; who has not come for a while is as one who never came."""
    desk = Desk()
    for number in range(5_000):
        desk.ask(f"address {number}", CHAT_MS)
        desk.ask("always", CHAT_MS)
        desk.serve()
        desk.serve()
    assert len(desk.shares.accounts) < 2_000


def test_what_comes_before_is_the_own_work_and_as_much_of_others_as_is_their_turn() -> None:
    """A crowd's work counts for another caller only as far as the crowd has had less."""
    shares = Shares()
    mine, theirs = QueuePlace(1.0, 1.0, "me"), QueuePlace(0.0, 1.0, "crowd")
    works = [(theirs, 500.0)] * 10
    assert shares.ahead_ms(mine, 100.0, works) == 100.0  # meanwhile the crowd gets as much
    shares.charge("crowd", 50.0)
    assert shares.ahead_ms(mine, 100.0, works) == pytest.approx(50.0)
    shares.charge("crowd", 1_000.0)
    assert shares.ahead_ms(mine, 100.0, works) == 0.0
    assert shares.ahead_ms(theirs, 100.0, works) == 5_000.0
    own = [(QueuePlace(0.5, 1.0, "me"), 30.0), (QueuePlace(2.0, 1.0, "me"), 70.0)]
    assert shares.ahead_ms(mine, 100.0, own) == 30.0


CHAT, REPORT = QueuePlace(1.5, 1.5, "one"), QueuePlace(10.0, 3.0, "one")
LATER, OTHER = QueuePlace(60.0, 1.5, "one"), QueuePlace(1.5, 1.5, "other")
OLD = QueuePlace(1.0, 3.0, "one")
"""A report that has been passed for so long that it comes first now."""


@pytest.mark.parametrize(
    ("first", "place", "running", "workers", "is_kept"),
    [
        (CHAT, REPORT, [REPORT], 2, True),
        (CHAT, REPORT, [], 2, False),
        (CHAT, REPORT, [CHAT], 2, False),
        (CHAT, REPORT, [REPORT], 3, False),
        (CHAT, REPORT, [REPORT, REPORT], 3, True),
        (CHAT, REPORT, [], 1, False),
        (CHAT, CHAT, [REPORT], 2, False),
        (CHAT, LATER, [LATER], 2, False),
        (CHAT, OLD, [OLD], 2, False),
        (REPORT, REPORT, [REPORT], 2, False),
        (REPORT, CHAT, [CHAT], 2, False),
        (CHAT, OTHER, [OTHER], 2, True),
        (OTHER, CHAT, [CHAT], 2, False),
        (OTHER, REPORT, [REPORT], 2, True),
    ],
)
def test_work_well_behind_a_check_leaves_it_a_worker(
    first: QueuePlace, place: QueuePlace, running: list[QueuePlace], workers: int, is_kept: bool
) -> None:
    """What is huge beside it, or of a caller that has had much more; never what only came later."""
    under_way = beside()
    assert not under_way.keeps_back("work", place, running, workers)
    under_way.places["check"] = first
    assert under_way.keeps_back("work", place, running, workers) is is_kept
    assert not under_way.keeps_back("check", place, running, workers)
    assert not under_way.stops("work", place, STANDS_S)


@pytest.mark.parametrize(
    ("first", "place", "is_still"),
    [
        (CHAT, REPORT, True),
        (CHAT, CHAT, False),
        (CHAT, LATER, False),
        (CHAT, OLD, False),
        (REPORT, REPORT, False),
        (REPORT, CHAT, False),
        (CHAT, OTHER, False),
        (OTHER, CHAT, False),
        (OTHER, REPORT, True),
        (CHAT, REPORT._replace(caller="other"), True),
    ],
)
def test_at_first_what_is_huge_beside_a_check_stands_still(
    first: QueuePlace, place: QueuePlace, is_still: bool
) -> None:
    """Whoever sent it: a crowd of small ones shares by what its callers have had."""
    under_way, place = beside(), place._replace(since=0.0)
    assert not under_way.stops("work", place, STANDS_S - 0.1)
    under_way.places["check"] = first
    assert under_way.stops("work", place, STANDS_S - 0.1) is is_still
    assert not under_way.stops("work", place, STANDS_S)
    assert not under_way.stops("check", place, STANDS_S - 0.1)


def beside() -> UnderWay:
    """Return checks under way, none yet, of two callers of which one has had more."""
    shares = Shares()
    shares.accounts |= {"one": 1.0, "other": 1.2}
    return UnderWay(shares)

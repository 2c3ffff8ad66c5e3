"""The scheduler where rows may share a call: which do, and that each still stands for itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from typing import Any

import pytest

from guardrail_service.errors import RowFailed
from guardrail_service.inference.queue.batch import Batch
from guardrail_service.inference.queue.scheduler import Scheduler
from guardrail_service.types import Role, Row, RowResult

LONG = "a text of some forty characters, no more"


def row(text: str, role: Role = "nli", *outputs: str) -> Row:
    """A row of a role whose rows may share a call."""
    return Row(role, text, outputs=outputs)


class Model:
    """Notes what ran together; the first call blocks until opened, a text `fail` fails its call."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()
        self.calls: list[list[str]] = []
        self.now = 1000.0

    def run(self, row: Row) -> RowResult:
        """Run one row."""
        return self.run_many([row])[0]

    def run_many(self, rows: Sequence[Row]) -> list[RowResult]:
        """Run some rows; a row takes a tenth of a second."""
        texts = [row.text for row in rows]
        self.entered.set()
        assert self.open.wait(20)
        self.calls.append(texts)
        self.now += 0.1 * len(rows)
        if "fail" in texts:
            raise ValueError("secret text of the caller")
        return [RowResult({"text": text}, 1.0, 2.0) for text in texts]  # type: ignore[dict-item]

    def clock(self) -> float:
        """Return the time."""
        return self.now


@contextmanager
def held_up(
    tokens: int = 1000, workers: int = 1, run_many: Callable[..., Any] | None = None
) -> Iterator[tuple[Scheduler, Model]]:
    """A scheduler all of whose workers run a row until the model is opened."""
    model = Model()
    batch = Batch(run_many or model.run_many, tokens)
    scheduler = Scheduler(
        {"nli": model.run, "toxicity": model.run, "embedding": model.run},
        workers,
        100,
        clock=model.clock,
        batches={"nli": batch, "toxicity": batch},
    )
    try:
        for n in range(workers):
            scheduler.submit([row(f"first {n}", "embedding")])
        assert model.entered.wait(20)
        while scheduler.depth():
            model.entered.wait(0.01)
        yield scheduler, model
    finally:
        model.open.set()
        scheduler.close(drain_s=20)


def calls(rows: Sequence[Row], tokens: int = 1000) -> list[list[str]]:
    """Return which of some waiting rows run together, in the order they run."""
    with held_up(tokens) as (scheduler, model):
        ticket = scheduler.submit(rows)
        model.open.set()
        assert [f.result(20).outputs["text"] for f in ticket.futures] == [r.text for r in rows]
    return model.calls[1:]


def test_rows_of_one_model_share_a_call() -> None:
    """And those of another one have one of their own."""
    rows = [row("a"), row("b", "toxicity"), row("c"), row("d", "toxicity")]
    assert calls(rows) == [["a", "c"], ["b", "d"]]


def test_rows_that_ask_for_other_outputs_run_apart() -> None:
    """A call has one list of outputs."""
    rows = [row("a", "nli", "x"), row("b", "nli", "y"), row("c", "nli", "x")]
    assert calls(rows) == [["a", "c"], ["b"]]


def test_rows_of_other_models_run_alone() -> None:
    """As their manifest says."""
    assert calls([row("a", "embedding"), row("b", "embedding")]) == [["a"], ["b"]]


def test_a_call_ends_at_its_budget() -> None:
    """A row of two tokens and special ones counts as four; three of them are twelve."""
    texts = ["aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd", "eeeeeeee"]
    assert calls([row(text) for text in texts], 12) == [texts[:3], texts[3:]]
    assert calls([row(text) for text in texts], 1) == [[text] for text in texts]


def test_rows_of_one_length_share_a_call() -> None:
    """A short row does not pay for a long one."""
    rows = [row("a"), row(LONG + "1"), row("b"), row(LONG + "2")]
    assert calls(rows) == [["a", "b"], [LONG + "1", LONG + "2"]]


def test_the_most_urgent_row_leads_and_takes_the_next_ones() -> None:
    """In the order of their deadlines, up to the budget."""
    with held_up(tokens=4) as (scheduler, model):
        for text, left in (("late", 0.9), ("soon", 0.5), ("now", 0.4), ("last", None)):
            scheduler.submit([row(text[:1])], None if left is None else model.now + left)
        model.open.set()
    assert model.calls[1:] == [["n", "s"], ["l"]]


def test_who_left_and_what_is_late_is_left_out() -> None:
    """Nobody pays for them, and nobody waits for them."""
    with held_up() as (scheduler, model):
        stays = scheduler.submit([row("a"), row("b")])
        gone = scheduler.submit([row("gone")])
        late = scheduler.submit([row("late")], deadline=model.now + 0.05)
        gone.cancel()
        model.open.set()
        assert not wait([*stays.futures, *late.futures], 20).not_done
        assert late.futures[0].cancelled()
        assert scheduler.depth() == 0
    assert model.calls[1:] == [["a", "b"]]


def test_a_row_that_fails_fails_alone() -> None:
    """The call is repeated row by row; the model's message reaches nobody."""
    with held_up() as (scheduler, model):
        ticket = scheduler.submit([row("a"), row("fail"), row("b")])
        model.open.set()
        assert ticket.futures[0].result(20).inference_ms == 2.0
        assert ticket.futures[2].result(20).inference_ms == 2.0
        with pytest.raises(RowFailed, match="ValueError") as caught:
            ticket.futures[1].result(20)
        assert "secret" not in str(caught.value)
        assert scheduler.running() == scheduler.depth() == 0
        assert scheduler.submit([row("fail2"), row("c")]).futures[1].result(20)
    assert model.calls[1:5] == [["a", "fail", "b"], ["a"], ["fail"], ["b"]]


def test_a_call_with_a_result_too_few_is_repeated_row_by_row() -> None:
    """No row gets another one's outputs."""
    with held_up(run_many=lambda rows: [RowResult({}, 0.0, 0.0)]) as (scheduler, model):
        ticket = scheduler.submit([row("a"), row("b")])
        model.open.set()
        assert [f.result(20).outputs["text"] for f in ticket.futures] == ["a", "b"]


def test_rows_of_a_failed_call_may_still_be_left() -> None:
    """Whose caller leaves while the call runs is not run again."""
    gate, entered = threading.Event(), threading.Event()

    def fail(_rows: Sequence[Row]) -> list[RowResult]:
        entered.set()
        assert gate.wait(20)
        raise ValueError

    with held_up(run_many=fail) as (scheduler, model):
        stays, leaves = scheduler.submit([row("stays")]), scheduler.submit([row("leaves")])
        model.open.set()
        assert entered.wait(20)
        assert scheduler.running() == 2
        leaves.cancel()
        gate.set()
        assert stays.futures[0].result(20)
    assert model.calls[1:] == [["stays"]]


def test_equal_rows_are_one_row_of_a_call_and_may_join_it() -> None:
    """Everybody gets the same outputs, and one is told the times."""
    gate, entered = threading.Event(), threading.Event()

    def run(rows: Sequence[Row]) -> list[RowResult]:
        entered.set()
        assert gate.wait(20)
        return [RowResult({"text": r.text}, 1.0, 2.0) for r in rows]  # type: ignore[dict-item]

    with held_up(run_many=run) as (scheduler, model):
        first, second = scheduler.submit([row("a"), row("b")]), scheduler.submit([row("b")])
        model.open.set()
        assert entered.wait(20)
        joined = scheduler.submit([row("a")])
        assert scheduler.depth() == 0
        gate.set()
        assert first.futures[0].result(20).outputs is joined.futures[0].result(20).outputs
        assert joined.futures[0].result(20).inference_ms == 0.0
        assert second.futures[0].result(20).outputs["text"] == "b"
    assert len(model.calls) == 1


def test_every_worker_gets_its_share() -> None:
    """Two workers with four waiting rows run two each, not one all four."""
    with held_up(workers=2) as (scheduler, model):
        ticket = scheduler.submit([row(text) for text in "abcd"])
        model.open.set()
        assert not wait(ticket.futures, 20).not_done
    assert max(map(len, model.calls)) == 2


def test_a_call_that_hangs_is_one_stuck_worker() -> None:
    """However many rows it has; later requests for them get a call of their own."""
    gate, entered = threading.Event(), threading.Event()

    def run(rows: Sequence[Row]) -> list[RowResult]:
        if "a" in [r.text for r in rows] and not entered.is_set():
            entered.set()
            assert gate.wait(20)
        return [RowResult({"text": r.text}, 1.0, 2.0) for r in rows]  # type: ignore[dict-item]

    with held_up(workers=1, run_many=run) as (scheduler, model):
        stuck = scheduler.submit([row("a"), row("b"), row("c")])
        model.open.set()
        assert entered.wait(20)
        assert (scheduler.running(), scheduler.stuck()) == (3, 0)
        model.now += 30
        assert (scheduler.running(), scheduler.stuck()) == (3, 1)
        again = scheduler.submit([row("b")])
        assert scheduler.depth() == 1
        gate.set()
        assert again.futures[0].result(20).outputs["text"] == "b"
        assert not wait(stuck.futures, 20).not_done


def test_costs_are_learned_from_the_call() -> None:
    """Ten rows that took a second together: what they cost is a second, not ten."""
    with held_up() as (scheduler, model):
        rows = [row(f"text {n}") for n in range(10)]
        ticket = scheduler.submit(rows)
        model.open.set()
        assert not wait(ticket.futures, 20).not_done
        assert len(model.calls) == 2
        found = scheduler.costs.rows(rows, {"nli": Batch(lambda _: [], 1000)})
    assert sum(cost.ms for cost in found) == pytest.approx(1000.0)


def test_closing_finishes_the_rows_of_a_failed_call() -> None:
    """What was accepted is answered, also if it has to run again."""
    with held_up() as (scheduler, model):
        ticket = scheduler.submit([row("a"), row("fail"), row("b")])
        closer = threading.Thread(target=scheduler.close, args=(20.0,))
        closer.start()
        model.open.set()
        closer.join(20)
        assert [f.exception(0) is None for f in ticket.futures] == [True, False, True]

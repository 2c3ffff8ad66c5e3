"""What rows cost: a line per kind of work, robust against stalls, never zero or infinite."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.inference.queue.batch import Batch
from guardrail_service.inference.queue.cost import CostModel, tokens
from guardrail_service.types import Row, RowResult


def taught(*seen: tuple[float, float], times: int = 200, kind: str = "work") -> CostModel:
    """Return a model that saw some sizes with their milliseconds many times."""
    model = CostModel()
    for _ in range(times):
        for size, spent in seen:
            model.learn(kind, size, spent)
    return model


def test_a_line_is_learned_from_sizes_and_times() -> None:
    """2 ms and 0.25 ms per token, also where nothing was seen."""
    model = taught((8, 4.0), (64, 18.0), (32, 10.0))
    assert [model.estimate("work", n) for n in (8, 64, 128)] == pytest.approx([4, 18, 34], rel=0.05)


def test_before_anything_is_seen_there_is_a_first_guess() -> None:
    """And every kind of work is learned apart."""
    model = taught((10, 3.0))
    assert model.estimate("other", 10) == 10.0
    assert CostModel(2.0).estimate("work", 10) == 2.0


def test_one_size_alone_says_nothing_about_the_slope() -> None:
    """The estimate is then the mean for sizes near it."""
    assert taught((16, 5.0)).estimate("work", 64) == pytest.approx(5.0)


def test_what_is_far_larger_than_all_that_was_seen_counts_in_proportion() -> None:
    """Between works of one size a line's slope is noise; a huge text must not pass for a small."""
    model = taught((100, 9.0), (101, 5.0))
    assert model.estimate("work", 10_000) == pytest.approx(700.0, rel=0.1)


def test_one_stalled_row_moves_the_estimate_by_a_fifth_at_most() -> None:
    """A 30 s stall must not close the door to everybody."""
    model = taught((16, 5.0), (32, 9.0))
    model.learn("work", 16, 30_000.0)
    assert model.estimate("work", 16) < 5.0 * 1.2


def test_a_machine_that_slows_down_is_followed() -> None:
    """Ten times slower for good is believed."""
    model = taught((16, 5.0), (32, 9.0))
    for _ in range(300):
        model.learn("work", 16, 50.0)
        model.learn("work", 32, 90.0)
    assert model.estimate("work", 16) == pytest.approx(50.0, rel=0.1)


@pytest.mark.parametrize("spent", [-1.0, math.nan, math.inf])
def test_nonsense_is_left_out(spent: float) -> None:
    """A clock that jumps teaches nothing."""
    model = taught((16, 5.0))
    model.learn("work", 16, spent)
    assert model.estimate("work", 16) == pytest.approx(5.0)


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 6e4)), max_size=40),
    st.floats(0, 1e7),
    st.floats(0, 1e7),
)
def test_estimates_are_bounded_and_grow_with_the_size(
    seen: list[tuple[float, float]], size: float, more: float
) -> None:
    """Whatever was seen: above zero, at most a minute, never less for a larger piece of work."""
    model = taught(*seen, times=1)
    small, large = model.estimate("work", size), model.estimate("work", size + more)
    assert 0 < small <= large <= 60_000


def test_a_grounding_row_costs_what_it_reads() -> None:
    """Evidence counts up to what a head reads, however many passages there are."""
    few = Row("grounding", "a" * 40, evidence=("b" * 40,))
    many, more = (Row("grounding", "a" * 40, evidence=("b" * 40,) * n) for n in (200, 2000))
    assert tokens(Row("embedding", "a" * 40)) < tokens(few) < tokens(many) == tokens(more)


def test_golden_rows_teach_before_the_first_request() -> None:
    """Their timings at start-up are the first estimates."""
    model = CostModel()
    run = model.learning(lambda row: RowResult({}, 1.0, 3.0))
    run(Row("embedding", "text"))
    assert [cost.ms for cost in model.rows([Row("embedding", "text")])] == [4.0]


CALLS = [(size, 2 + size / 4) for size in (8, 16, 34, 64)]
"""2 ms a call and 0.25 ms a token."""
ROWS = [Row("nli", f"{n}" * 60) for n in range(4)]
"""Of 17 tokens each."""


def test_rows_that_run_together_share_what_a_call_costs_by_itself() -> None:
    """2 ms a call and 0.25 ms a token: four rows of 17 tokens are one call, or two, or four."""
    model, rows = taught(*CALLS, kind="nli"), ROWS
    assert tokens(rows[0]) == 17
    for budget, calls in ((1000, 1), (34, 2), (1, 4)):
        found = model.rows(rows, {"nli": Batch(lambda _: [], max(budget, 17))})
        assert sum(cost.ms for cost in found) == pytest.approx(2 * calls + 68 / 4, rel=0.05)
    alone = [cost.ms for cost in model.rows(rows)]
    assert alone == pytest.approx([2 + 17 / 4] * 4, rel=0.05)


def test_no_more_calls_are_counted_than_there_are_rows_or_lengths() -> None:
    """2 ms a call: rows that each pass the budget are a call each, whatever the budget is."""
    model, rows = taught(*CALLS, kind="nli"), ROWS

    def lengths(asked: Sequence[Row]) -> list[int]:
        return [20 if "0" in row.text else 12 for row in asked]

    found = model.rows(rows, {"nli": Batch(lambda _: [], 1)})
    assert sum(cost.ms for cost in found) == pytest.approx(2 * 4 + 68 / 4, rel=0.05)
    assert [cost.length for cost in found] == [None] * 4
    for budget, calls in ((1000, 2), (40, 2), (24, 3), (1, 4)):
        batch = Batch(lambda _: [], budget, lengths)
        found = model.rows(rows, {"nli": batch})
        assert sum(cost.ms for cost in found) == pytest.approx(2 * calls + 68 / 4, rel=0.07)
        assert [cost.length for cost in found] == [20, 12, 12, 12]
    known = model.rows(rows, {"nli": batch}, [None, "known", "known", None])
    assert [cost.length for cost in known] == [20, None, None, 12]

"""A kept promise is hardly ever called broken, a broken one soon, and no draw misleads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from guardrail_decisions.monitor.promise import (
    LabelledDecision,
    Promise,
    Step,
    Stratum,
    bounds,
    even_steps,
    judge_promise,
    least_labels,
    log_wealth,
    promises,
    stratified_steps,
    weighted_steps,
)

DELTA = 0.05
RATE = Promise("false_flag", 0.1)


def exact_upper(x: int, n: int, confidence: float = 0.99) -> float:
    """Return the Clopper-Pearson upper end of a share."""
    from scipy.stats import beta

    return float(beta.ppf(confidence, x + 1, n - x))


def answers(rng: np.random.Generator, n: int, flagged: float) -> list[LabelledDecision]:
    """Return good answers, each flagged with one chance."""
    return [
        LabelledDecision(bool(f), True, float(i)) for i, f in enumerate(rng.random(n) < flagged)
    ]


def test_a_kept_promise_is_hardly_ever_called_broken_in_ten_thousand_looks() -> None:
    """At the bound itself, at every one of 10,000 looks, within the exact interval of the share."""
    rng, broken, runs = np.random.default_rng(26), 0, 240
    for _ in range(6):
        flags = (rng.random((runs // 6, 10_000)) < RATE.bound).astype(np.float64)
        wealth = log_wealth(flags, np.ones_like(flags), RATE.bound)
        broken += int((wealth.max(axis=-1) >= -math.log(DELTA)).sum())
    assert exact_upper(broken, runs) <= 2 * DELTA
    assert broken / runs <= DELTA


@pytest.mark.parametrize(("rate", "median"), [(0.15, 400), (0.2, 120), (0.3, 40)])
def test_a_broken_promise_is_soon_called_so(rate: float, median: int) -> None:
    """Half the time within so many good answers, where a tenth was promised."""
    flags = (np.random.default_rng(1).random((200, 1000)) < rate).astype(np.float64)
    called = log_wealth(flags, np.ones_like(flags), RATE.bound) >= -math.log(DELTA)
    delays = np.where(called.any(axis=-1), called.argmax(axis=-1) + 1, np.inf)
    assert np.median(delays) <= median


def flagged_more_often(
    rng: np.random.Generator, good_of_flagged: float, good_of_passed: float
) -> list[Step]:
    """Return the steps of a draw of 60 of 100 flagged and 90 of 900 passed decisions."""
    strata = Stratum(100, 60), Stratum(900, 90)
    labelled = [
        LabelledDecision(is_flagged, bool(good), float(i))
        for is_flagged, share, n in ((True, good_of_flagged, 60), (False, good_of_passed, 90))
        for i, good in enumerate(rng.random(n) < share)
    ]
    return stratified_steps("false_flag", labelled, *strata)


def broke(steps: list[Step]) -> bool:
    """Return whether the promise of a tenth is refuted by any look."""
    hits, base = (np.array([getattr(step, name) for step in steps]) for name in ("hits", "base"))
    return bool(log_wealth(hits, base, RATE.bound).max() >= -math.log(DELTA))


def test_a_draw_with_more_flagged_answers_does_not_break_a_kept_promise() -> None:
    """All are good, so 100 of 1000 good ones are flagged, but 60 of the 150 labelled."""
    rng = np.random.default_rng(3)
    assert not broke(flagged_more_often(rng, 1.0, 1.0))
    broken = [broke(flagged_more_often(rng, 0.9, 0.9)) for _ in range(200)]
    assert np.mean(broken) <= DELTA


def test_a_draw_with_more_flagged_answers_breaks_a_broken_promise() -> None:
    """All flagged answers are good and of the passed ones a fifth: 100 of 280 good ones flagged."""
    rng = np.random.default_rng(4)
    found = judge_promise(RATE, flagged_more_often(rng, 1.0, 0.2), DELTA)
    assert found.state == "broken"
    assert found.share == pytest.approx(100 / 280, abs=0.15)


def test_few_flagged_answers_soon_show_that_a_promise_is_kept() -> None:
    """One in twenty is flagged and most of these are bad: no more than that can be false flags."""
    rng = np.random.default_rng(6)
    strata = Stratum(50, 40), Stratum(950, 60)
    labelled = [
        LabelledDecision(True, bool(g), float(i)) for i, g in enumerate(rng.random(40) < 0.3)
    ]
    labelled += [
        LabelledDecision(False, bool(g), float(i)) for i, g in enumerate(rng.random(60) < 0.9)
    ]
    found = judge_promise(RATE, stratified_steps("false_flag", labelled, *strata), DELTA)
    assert found.shown
    assert found.interval[0] <= 0.3 * 50 / (0.3 * 50 + 0.9 * 950) <= found.interval[1]


def test_a_draw_of_which_only_flagged_answers_are_labelled_says_nothing() -> None:
    """People begin where they like; what the labels stand for is known from the design."""
    labelled = [LabelledDecision(flagged=True, good=True, at=float(i)) for i in range(60)]
    steps = stratified_steps("false_flag", labelled, Stratum(100, 60), Stratum(900, 90))
    assert steps == []
    assert judge_promise(RATE, steps).state == "not_enough_labels"


def test_a_step_stands_for_the_whole_population() -> None:
    """Two flagged of 20 and three passed of 80, one good each: 0.1 and 0.8 / 3 of all."""
    labelled = [
        LabelledDecision(flagged=f, good=g, at=float(at))
        for at, (f, g) in enumerate([(True, True), (True, False), (False, True), (False, False),
                                     (False, False)])
    ]  # fmt: skip
    (first, second) = stratified_steps("false_flag", labelled, Stratum(20, 2), Stratum(80, 3))
    assert (first.hits, first.base) == pytest.approx((0.2, 0.2 + 0.8 / 2))
    assert (second.hits, second.base) == pytest.approx((0.0, 0.0))
    assert (first.labels, first.against, first.at) == (2, 1, 3.0)


def test_a_draw_where_nothing_was_flagged_is_even() -> None:
    """A stratum that is empty has no part in any step."""
    labelled = [LabelledDecision(flagged=False, good=True, at=float(i)) for i in range(5)]
    steps = stratified_steps("false_flag", labelled, Stratum(0, 0), Stratum(50, 5))
    assert [(step.hits, step.base) for step in steps] == [(0.0, 1.0)] * 5


def test_weights_undo_unequal_chances() -> None:
    """Independent draws, flagged answers four times as likely as others: 10 % of good flagged."""
    rng, broken = np.random.default_rng(5), 0
    for _ in range(100):
        flags = rng.random(2000) < 0.1
        drawn = rng.random(2000) < np.where(flags, 0.4, 0.1)
        labelled = [LabelledDecision(bool(f), True, float(i)) for i, f in enumerate(flags[drawn])]
        chances = [0.4 if one.flagged else 0.1 for one in labelled]
        steps = weighted_steps("false_flag", labelled, chances, 0.1)
        broken += broke(steps)
    assert broken <= 100 * DELTA


def test_a_chance_below_the_least_is_refused() -> None:
    """The gambler would stake more than he has."""
    with pytest.raises(ValueError, match="chances"):
        weighted_steps("false_flag", [LabelledDecision(flagged=True, good=True)], [0.1], 0.2)


def test_misses_are_promised_and_judged_in_the_same_way() -> None:
    """Bad answers that passed, of all bad answers; good ones do not matter."""
    bad = [LabelledDecision(flagged=i % 2 == 0, good=False, at=float(i)) for i in range(200)]
    good = [LabelledDecision(flagged=True, good=True, at=500.0)] * 50
    found = judge_promise(Promise("miss", 0.2), even_steps("miss", [*bad, *good]))
    assert (found.state, found.labels, found.against) == ("broken", 200, 100)


def test_few_labels_say_that_they_are_few() -> None:
    """The number of clean answers that would be enough is exactly where the state changes."""
    needed = least_labels(RATE.bound, DELTA)
    states = [
        judge_promise(RATE, even_steps("false_flag", answers(np.random.default_rng(0), n, 0)))
        for n in (0, needed - 1, needed)
    ]
    assert [found.state for found in states] == ["not_enough_labels"] * 2 + ["kept_so_far"]
    assert [found.shown for found in states] == [False, False, True]
    assert states[0].share is None
    assert states[0].interval == (0.0, 1.0)


def test_a_broken_promise_stays_broken() -> None:
    """Later labels that speak for it do not mend it, and the time of the breach is kept."""
    first = [LabelledDecision(flagged=True, good=True, at=float(i)) for i in range(10)]
    later = [LabelledDecision(flagged=False, good=True, at=100.0 + i) for i in range(500)]
    found = judge_promise(RATE, even_steps("false_flag", first + later))
    assert found.state == "broken"
    assert not found.shown
    assert found.broken_at is not None
    assert found.broken_at < 10


def test_both_ends_hold_at_all_looks_together() -> None:
    """The interval contains the true share at the end of every run, each end up to delta."""
    rng, missed = np.random.default_rng(7), [0, 0]
    for _ in range(40):
        flags = (rng.random(300) < 0.2).astype(np.float64)
        low, high = bounds(flags, np.ones_like(flags), 0.1)
        missed[0] += low > 0.2
        missed[1] += high < 0.2
    assert max(missed) <= 9  # of 40 at 0.1: more have a chance of less than one in a hundred


def test_the_order_of_steps_is_that_of_their_labels() -> None:
    """So that a store read twice gives one finding."""
    steps = even_steps("false_flag", answers(np.random.default_rng(9), 80, 0.3))
    found = judge_promise(RATE, steps)
    assert found == judge_promise(RATE, steps[::-1])
    last = found.path()[-1]
    assert (last.labels, last.share, last.interval) == (found.labels, found.share, found.interval)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"kind": "false_flag_rate", "scope": "joint", "alpha": 0.1}, (RATE,)),
        ({"kind": "recall", "scope": "per_metric", "alpha": 0.75}, (Promise("miss", 0.25),)),
        (
            {"kind": "false_flag_rate", "scope": "per_metric", "alpha": 0.1},
            (Promise("false_flag", 0.1, "toxicity.toxicity"),),
        ),
        ({"kind": "none", "scope": "joint", "alpha": 0.1}, ()),
        ({}, ()),
    ],
    ids=["joint", "recall", "per metric", "none", "uncalibrated"],
)
def test_a_block_says_what_is_promised(
    target: dict[str, Any], expected: tuple[Promise, ...]
) -> None:
    """The words are those of the provenance block."""
    per_metric = {
        "toxicity": {"toxicity": {"status": "calibrated"}, "threat": {"status": "uncalibrated"}}
    }
    assert promises({"target": target, "per_metric": per_metric}) == expected


@pytest.mark.parametrize("bound", [0.0, 1.0, math.nan])
def test_a_bound_that_nothing_can_break_is_refused(bound: float) -> None:
    """The error names it."""
    with pytest.raises(ValueError, match="bound"):
        Promise("false_flag", bound)

"""Undisturbed scores hardly ever raise an alarm, moved ones soon, whatever was known of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from guardrail_decisions.monitor.drift import (
    WINDOW,
    DriftWatch,
    Reference,
    _gains,
    judge_drift,
    stability_index,
)
from guardrail_offline.calibration.statistics import baseline
from guardrail_offline.calibration.statistics import stability_index as offline_stability_index

DELTA = 0.05


def reference(rng: np.random.Generator, n: int) -> Reference:
    """Return what a calibration keeps of n normal scores."""
    found = Reference.of(baseline(rng.normal(size=n)))
    assert found is not None
    return found


def delays(labelled: int, shift: float, quiet: int, runs: int = 20) -> np.ndarray:
    """Return after how many moved scores each run raised an alarm: five metrics, 1 % together."""
    rng, found = np.random.default_rng(11), []
    for _ in range(runs):
        watch = DriftWatch(reference(rng, labelled))
        watch.add(rng.normal(size=quiet), rng.random(quiet))
        wealth = watch.add(rng.normal(size=400) - shift, rng.random(400))
        (late,) = np.nonzero(wealth >= math.log(5 / 0.01))
        found.append(late[0] + 1 if late.size else math.inf)
    return np.array(found)


def test_undisturbed_scores_raise_an_alarm_as_seldom_as_stated() -> None:
    """Over 500 scores each, with as few labelled ones as a calibration can have."""
    from scipy.stats import beta

    rng, alarms, runs = np.random.default_rng(26), 0, 200
    for _ in range(runs):
        watch = DriftWatch(reference(rng, 40))
        watch.add(rng.normal(size=500), rng.random(500))
        alarms += judge_drift("m.m", watch, 1, DELTA).state == "drifted"
    assert alarms / runs <= DELTA
    assert beta.ppf(0.99, alarms + 1, runs - alarms) <= 2.2 * DELTA


@pytest.mark.parametrize(
    ("labelled", "shift", "quiet", "median"),
    [(75, 1.0, 0, 60), (75, 1.0, 500, 60), (200, 0.5, 500, 200), (75, -1.5, 0, 40)],
)
def test_moved_scores_soon_raise_one(labelled: int, shift: float, quiet: int, median: int) -> None:
    """Shifts in standard deviations; a long quiet time before does not make it slow."""
    assert np.median(delays(labelled, shift, quiet)) <= median


def test_scores_that_go_missing_are_drift() -> None:
    """A fifth of scores missing where none was: a cell of its own."""
    rng = np.random.default_rng(5)
    watch = DriftWatch(reference(rng, 100))
    values = np.where(rng.random(400) < 0.2, np.nan, rng.normal(size=400))
    watch.add(values, rng.random(400))
    found = judge_drift("m.m", watch, 1)
    assert found.state == "drifted"
    assert found.then[-1] == 0
    assert found.now[-1] == pytest.approx(0.2, abs=0.1)


def test_few_distinct_scores_are_no_drift() -> None:
    """Ties are broken by chance: a yes/no score and a constant one stay quiet."""
    rng = np.random.default_rng(6)
    for values in (lambda n: (rng.random(n) < 0.9).astype(np.float64), np.ones):
        found = Reference.of(baseline(values(60)))
        assert found is not None
        watch = DriftWatch(found)
        watch.add(values(500), rng.random(500))
        assert judge_drift("m.m", watch, 1).state == "as_before"


def test_the_same_scores_in_any_pieces_give_the_same_wealth() -> None:
    """A service adds them a minute at a time, a report at once."""
    rng = np.random.default_rng(8)
    known, values, chances = reference(rng, 75), rng.normal(size=330), rng.random(330)
    whole, pieces = DriftWatch(known), DriftWatch(known)
    one = whole.add(values, chances)
    other = [pieces.add(values[i : i + 7], chances[i : i + 7]) for i in range(0, 330, 7)]
    np.testing.assert_allclose(one, np.concatenate(other), rtol=0, atol=1e-9)
    assert whole.seen == pieces.seen == 330
    np.testing.assert_array_equal(whole.recent, pieces.recent)
    assert whole.recent.sum() == WINDOW + 30


def test_every_bet_is_fair() -> None:
    """Mean one over even ranks and never nothing: what makes the wealth a martingale."""
    middles = (np.arange(20_000) + 0.5) / 20_000
    gains = _gains(middles)
    np.testing.assert_allclose(gains.mean(axis=0), 1.0, atol=1e-6)
    assert gains.min() > 0


def test_a_long_watch_forgets_only_the_poorest() -> None:
    """The money of windows past counts until others have more."""
    rng = np.random.default_rng(9)
    watch = DriftWatch(reference(rng, 200))
    watch.add(rng.normal(size=7_500), rng.random(7_500))
    watch.add(rng.normal(size=300) - 1, rng.random(300))
    assert judge_drift("m.m", watch, 5).state == "drifted"


@pytest.mark.parametrize(
    "stored",
    [
        {"edges": [], "counts": [0], "missing": 0},
        {"edges": [0.5], "counts": [1], "missing": 0},
    ],
)
def test_a_reference_of_nothing_is_none(stored: dict[str, object]) -> None:
    """Then the state says so, and nothing is an alarm."""
    assert Reference.of(stored) is None
    found = judge_drift("m.m", None, 1)
    assert (found.state, found.as_json()["limit"]) == ("no_reference", None)


def test_the_stability_index_is_that_of_calibrate_check() -> None:
    """The service has no scipy, so the formula stands twice and must agree."""
    then, now = np.array([10, 0, 5]), np.array([3, 4, 9])
    assert stability_index(then, now) == pytest.approx(offline_stability_index(then, now))

"""How far two distributions are apart: known shifts, scipy's numbers, and no shift at all."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, ks_2samp, wasserstein_distance

from guardrail_offline.workflow.adversarial import distances, shift, shifts
from guardrail_offline.workflow.definition import AdversarialParameters
from tests.unit.offline.workflow.made_up import column, table


@pytest.mark.parametrize("seed", range(4))
def test_distances_are_those_of_scipy(seed: int) -> None:
    """With ties and with samples of other sizes."""
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 6, 31) / 5.0, rng.integers(0, 6, 17) / 5.0
    ks, area = distances(left, right)
    assert ks == pytest.approx(ks_2samp(left, right).statistic)
    assert area == pytest.approx(wasserstein_distance(left, right))


def test_intervals_hold_a_known_shift_about_as_often_as_they_say() -> None:
    """The Wasserstein distance of a shift by 1 is 1, its KS statistic 0.383; 95 % intervals."""
    rng = np.random.default_rng(5)
    held = np.zeros(2)
    for trial in range(40):
        left, right = rng.normal(0, 1, 60), rng.normal(1, 1, 60)
        found = shift(left, right, 100, trial)
        low, high = found.wasserstein_interval
        held += [low <= 1.0 <= high, found.ks_interval[0] <= 0.3829 <= found.ks_interval[1]]
    assert (held >= binom.ppf(0.001, 40, 0.90)).all()


def test_equal_distributions_are_called_shifted_at_most_at_the_stated_rate() -> None:
    """Ties and all: the test is by permutation. At 5 % over 40 trials."""
    rng, false = np.random.default_rng(6), 0
    for trial in range(40):
        left, right = rng.integers(0, 5, 30) / 4.0, rng.integers(0, 5, 20) / 4.0
        false += shift(left, right, 100, trial).p < 0.05
    assert false <= binom.ppf(0.999, 40, 0.05)


def test_a_metric_that_falls_under_attack_is_said_to_be_worse() -> None:
    """Scores of 0.9 fall to 0.3, another metric stays; generators are listed by themselves."""
    rng = np.random.default_rng(7)
    known = [{"topic": "t", "generator": "g"}] * 40
    before = table(known, [column(0.9 - 0.1 * rng.random(40)), column(rng.random(40), "other.one")])
    after = table(
        [{"generator": "misleading"}] * 40,
        [column(0.3 + 0.1 * rng.random(40)), column(rng.random(40), "other.one")],
    )
    cuts = [{"metric": "made.up", "threshold": 0.5}, {"metric": "other.one", "threshold": 0.5}]
    fallen, same = shifts(before, after, cuts, AdversarialParameters(resamples=200))
    assert fallen["shifted"]
    assert fallen["worse"]
    assert fallen["ks"] == 1.0
    assert fallen["failing"]["adversarial"]["rate"] == 1.0
    assert [one["generator"] for one in fallen["by_generator"]] == ["misleading"]
    assert not same["shifted"]

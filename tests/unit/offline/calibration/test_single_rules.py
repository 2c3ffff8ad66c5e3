"""Per-metric rules: three promises, three comparisons, MAPIE and scikit-learn as oracles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, roc_curve

from guardrail_offline.calibration.single_rules import (
    NAIVE,
    average_cut,
    cheapest_cut,
    f1_cut,
    false_flag_cut,
    percentile_cut,
    recall_cut,
    trade,
    youden_cut,
)

GENERATOR = np.random.default_rng(23)

GOOD, BAD = GENERATOR.normal(1.5, 1, 120), GENERATOR.normal(0, 1, 60)

scores = st.lists(st.floats(0, 1), min_size=1, max_size=60).map(np.array)


@given(scores, scores)
def test_counts_agree_with_comparing_one_by_one(good: np.ndarray, bad: np.ndarray) -> None:
    """For every cut, ties included."""
    counts = trade(good, bad)
    for cut, false_flags, caught in zip(
        counts.cuts, counts.false_flags, counts.caught, strict=True
    ):
        assert false_flags == sum(score < cut for score in good)
        assert caught == sum(score < cut for score in bad)


def test_too_few_labels_give_no_cut() -> None:
    """21 good answers cannot promise 10 % at 90 %; 22 can."""
    assert false_flag_cut(GOOD[:21], 0.1, 0.1) is None
    assert false_flag_cut(GOOD[:22], 0.1, 0.1) == GOOD[:22].min()
    assert average_cut(GOOD[:8], 0.1) is None
    assert average_cut(GOOD[:9], 0.1) == GOOD[:9].min()
    assert recall_cut(BAD[:10], 0.8, 0.1) is None
    assert recall_cut(BAD[:11], 0.8, 0.1) == math.nextafter(BAD[:11].max(), math.inf)


def test_bad_answers_flagged_anyway_leave_nothing_to_cut() -> None:
    """The next float above minus infinity is in no metric's range."""
    assert recall_cut(np.array([-math.inf] * 30 + [0.5] * 2), 0.8, 0.1) == -math.inf


@pytest.mark.parametrize("rule", ["false_flag", "recall"])
def test_the_promise_of_one_metric_holds_in_nine_of_ten_samples(rule: str) -> None:
    """Over 600 samples of a skewed metric; the true rate is known in closed form."""
    alpha, delta, generator = 0.2, 0.1, np.random.default_rng(5)
    broken = 0
    for _ in range(600):
        sample = generator.random(40) ** 4  # P(X < t) = t ** 0.25
        if rule == "false_flag":
            cut = false_flag_cut(sample, alpha, delta)
            assert cut is not None
            broken += cut**0.25 > alpha
        else:
            cut = recall_cut(sample, 1 - alpha, delta)
            assert cut is not None
            broken += min(cut, 1.0) ** 0.25 < 1 - alpha
    assert broken / 600 <= delta + 3 * math.sqrt(delta * (1 - delta) / 600)


def test_the_average_promise_holds_on_average_and_not_in_nine_of_ten() -> None:
    """It is the weaker statement."""
    generator = np.random.default_rng(6)
    cuts = [average_cut(generator.random(60), 0.1) for _ in range(2000)]
    rates = np.array([cut for cut in cuts if cut is not None])
    assert len(rates) == 2000
    assert rates.mean() <= 0.1 + 3 * rates.std() / math.sqrt(2000)
    assert (rates > 0.1).mean() > 0.3


@given(scores, st.floats(0.05, 0.4), st.floats(0.05, 0.4))
def test_a_cut_follows_any_increasing_change_of_the_metric(
    good: np.ndarray, alpha: float, delta: float
) -> None:
    """Order statistics know nothing else."""
    cut = false_flag_cut(good, alpha, delta)
    bent = false_flag_cut(np.exp(good), alpha, delta)
    assert (cut is None) == (bent is None)
    assert cut is None or bent == np.exp(cut)


@given(scores, st.floats(0.05, 0.4))
def test_a_larger_alpha_never_lowers_the_cut(good: np.ndarray, alpha: float) -> None:
    """More false flags allowed, more flagged."""
    strict, loose = (false_flag_cut(good, a, 0.1) or -math.inf for a in (alpha, 1.5 * alpha))
    assert loose >= strict


def test_f1_and_youden_are_scikit_learns() -> None:
    """Over all cuts."""
    counts = trade(GOOD, BAD)
    values = np.concatenate([GOOD, BAD])
    is_bad = np.r_[np.zeros(len(GOOD)), np.ones(len(BAD))]
    best = max(f1_score(is_bad, values < cut) for cut in counts.cuts)
    assert f1_score(is_bad, values < f1_cut(counts)) == pytest.approx(best)
    false_flag_rate, recall, _ = roc_curve(is_bad, -values)
    cut = youden_cut(counts)
    found = np.mean(cut > BAD) - np.mean(cut > GOOD)
    assert found == pytest.approx((recall - false_flag_rate).max())


def test_the_price_of_a_miss_moves_the_cheapest_cut() -> None:
    """Dear misses flag more; free misses flag nothing."""
    counts = trade(GOOD, BAD)
    cuts = [cheapest_cut(counts, 1.0, miss) for miss in (0.0, 1.0, 20.0)]
    assert cuts == sorted(cuts)
    assert not (cuts[0] > GOOD).any()
    assert (cuts[2] > BAD).mean() > (cuts[1] > BAD).mean()


def test_the_percentile_flags_its_share_of_the_sample_it_was_read_from() -> None:
    """Which says nothing about new answers."""
    assert (percentile_cut(GOOD, 0.1) > GOOD).mean() == pytest.approx(0.1, abs=0.01)
    assert set(NAIVE) == {"max_f1", "youden", "percentile"}


def test_mapie_agrees_that_the_cut_is_safe_and_is_not_tighter() -> None:
    """Learn-then-test on the same scores: the same promise, a cut that is never above ours.

    MAPIE predicts "positive" (here: flagged) where P(bad) >= threshold and keeps the false
    positive rate at the target with the stated confidence.
    """
    from mapie.risk_control import BinaryClassificationController

    generator = np.random.default_rng(41)
    good, bad = generator.beta(6, 2, 150), generator.beta(2, 4, 60)
    values = np.concatenate([good, bad])
    is_bad = np.r_[np.zeros(len(good), dtype=int), np.ones(len(bad), dtype=int)]
    controller = BinaryClassificationController(
        predict_function=lambda x: np.column_stack([x[:, 0], 1 - x[:, 0]]),
        risk="fpr",
        target_level=0.1,
        confidence_level=0.9,
        fwer_method="fixed_sequence",
    )
    controller.calibrate(values[:, None], is_bad)
    mapie = 1 - controller.best_predict_param
    ours = false_flag_cut(good, 0.1, 0.1)
    assert ours is not None
    assert mapie <= ours + 0.02  # MAPIE tries thresholds on a grid of 0.01
    assert mapie >= ours - 0.1

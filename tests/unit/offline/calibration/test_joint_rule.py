"""Joint rules: one bound over all metrics, on scales that keep the order of scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import beta, kstest

from guardrail_offline.calibration.joint_rule import (
    EDGE,
    LOGIT_FLOOR,
    Axis,
    JointCut,
    JointShape,
    Matrix,
    Scale,
    between,
    by_ranks,
    choose_shape,
    fit_scale,
    fit_scales,
    recall,
    resampled,
    scaled_min,
    schedule,
    shape_from_json,
    worst_scores,
)
from guardrail_service.detectors.registry import MetricSpec
from guardrail_service.types import Direction

HIGH = Axis(MetricSpec("high", Direction.HIGHER))
FREE = Axis(MetricSpec("free", Direction.HIGHER, low=-math.inf, high=math.inf))
PLAIN = Scale(FREE, 0.0, 1.0)
matrices = arrays(
    np.float64,
    st.tuples(st.integers(3, 30), st.integers(1, 4)),
    elements=st.one_of(
        st.floats(0, 1, width=32),  # float32 models; between two of them there is room
        st.sampled_from([0.0, 0.5, 1.0]),
        st.sampled_from([-math.inf, math.inf]),
    ),
)


def both(good: Matrix, rank: int, observed: Matrix | None = None) -> list[JointCut | None]:
    """Return the cuts of both rules, scaled on the same rows."""
    axes = [HIGH] * good.shape[1]
    weights = [1.0] * good.shape[1]
    scales = fit_scales(axes, good)
    return [
        scaled_min(good, rank, scales, weights, observed),
        by_ranks(good, rank, axes, weights, observed),
    ]


@settings(max_examples=200)
@given(matrices, st.data())
def test_fewer_than_rank_units_of_the_sample_lie_strictly_below_a_cut(
    good: Matrix, data: st.DataObject
) -> None:
    """Scaled-min: at most k - 1, ties and saturated scores included. By ranks: at most k."""
    rank = data.draw(st.integers(1, len(good)))
    scaled, ranked = both(good, rank)
    if scaled is not None:
        assert scaled.flags(good).sum() <= rank - 1
    if ranked is not None:
        assert ranked.flags(good).sum() <= rank


@settings(max_examples=200)
@given(matrices, st.data())
def test_thresholds_lie_in_range_and_on_no_observed_score(
    good: Matrix, data: st.DataObject
) -> None:
    """Unless nothing is flagged at all: then the threshold is the end of the range."""
    rank = data.draw(st.integers(1, len(good)))
    for cut in both(good, rank):
        for j, value in enumerate(cut.cuts if cut else ()):
            assert value == -math.inf or 0.0 <= value <= 1.0
            assert value <= 0.0 or value not in good[:, j]


def test_always_flagged_units_use_up_the_budget() -> None:
    """With k of them no threshold can help, and the rules say so."""
    good = np.random.default_rng(3).random((40, 2))
    good[:3, 0] = -math.inf
    assert both(good, 3) == [None, None]
    assert all(cut is not None for cut in both(good, 4))


def test_units_that_nothing_applies_to_leave_nothing_to_cut() -> None:
    """A sample of abstentions."""
    good = np.full((30, 2), math.inf)
    for cut in both(good, 2):
        assert cut is not None
        assert not cut.flags(good).any()


def test_with_one_metric_both_rules_are_the_order_statistic() -> None:
    """The k-th smallest score is the cut, kept on the passing side."""
    good = np.random.default_rng(5).random((50, 1))
    kth = np.sort(good[:, 0])[6]
    for cut in both(good, 7):
        assert cut is not None
        assert cut.flags(good).sum() == 6
        assert np.sort(good[:, 0])[5] < cut.cuts[0] < kth


def test_by_ranks_is_blind_to_increasing_transformations() -> None:
    """The same answers are flagged; scaled-min makes no such promise."""
    generator = np.random.default_rng(11)
    good, new = generator.random((60, 3)), generator.random((500, 3))
    axes, weights = [FREE] * 3, [1.0] * 3
    plain = by_ranks(good, 6, axes, weights)
    bent = by_ranks(np.exp(5 * good), 6, axes, weights)
    assert plain is not None
    assert bent is not None
    assert np.array_equal(plain.flags(new), bent.flags(np.exp(5 * new)))


@pytest.mark.parametrize("rule", ["scaled_min", "by_ranks"])
def test_the_flagged_share_follows_its_beta_law(rule: str) -> None:
    """For three dependent continuous metrics: Beta(k, n - k + 1), not merely below it.

    Both laws are exact for continuous scores, so the rules lose nothing there.
    """
    generator = np.random.default_rng(17)
    n, rank, sigma = 40, 4, np.full((3, 3), 0.4) + 0.6 * np.eye(3)
    root = np.linalg.cholesky(sigma)
    fresh = generator.standard_normal((40_000, 3)) @ root.T
    shares = []
    for _ in range(400):
        good = generator.standard_normal((n, 3)) @ root.T
        if rule == "scaled_min":
            cut = scaled_min(good, rank, [PLAIN] * 3, [1.0] * 3)
        else:
            cut = by_ranks(good, rank, [FREE] * 3, [1.0] * 3)
        assert cut is not None
        shares.append(float(cut.flags(fresh).mean()))
    assert kstest(shares, beta(rank, n - rank + 1).cdf).pvalue > 0.01


def test_a_heavier_metric_is_cut_harder() -> None:
    """At the same bound."""
    good = np.random.default_rng(2).standard_normal((100, 2))
    for rule in (
        lambda w: scaled_min(good, 10, [PLAIN] * 2, w),
        lambda w: by_ranks(good, 10, [FREE] * 2, w),
    ):
        even, tilted = rule([1.0, 1.0]), rule([3.0, 1.0])
        assert even is not None
        assert tilted is not None
        assert tilted.cuts[0] > even.cuts[0]
        assert tilted.cuts[1] < even.cuts[1]


def test_the_worst_metric_decides() -> None:
    """A unit's joint score is its lowest one."""
    values = np.array([[0.0, -2.0], [-1.0, math.inf], [-math.inf, 3.0]])
    worst = worst_scores(values, [PLAIN] * 2, [1.0, 1.0])
    assert list(worst) == [-2.0, -1.0, -math.inf]


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=6), st.integers(0, 60))
def test_removals_stay_in_proportion_to_weights(weights: list[float], steps: int) -> None:
    """Within one removal of each metric's share."""
    order = schedule(weights, steps)
    assert len(order) == steps
    for j, weight in enumerate(weights):
        assert abs(order.count(j) - steps * weight / sum(weights)) < len(weights)


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=20), st.data())
def test_a_threshold_is_between_its_neighbours(scores: list[float], data: st.DataObject) -> None:
    """Below the cut, and not below the next lower score, so that nothing else changes sides."""
    cut = data.draw(st.sampled_from(scores))
    placed = between(cut, np.array(scores), HIGH)
    assert placed <= cut
    assert not [s for s in scores if placed < s < cut]
    assert cut == 0 or (placed < cut and (placed not in scores or placed == 0.0))


def test_a_threshold_has_few_digits_where_there_is_room() -> None:
    """People read it."""
    assert between(0.123456789, np.array([0.1, 0.123456789]), HIGH) == 0.123456
    assert between(0.5, np.array([0.0, 0.5, 1.0]), HIGH) == math.nextafter(0.5, 0)


PROBABILITY = Axis(MetricSpec("p", Direction.HIGHER))
RISK = Axis(MetricSpec("risk", Direction.LOWER))
COSINE = Axis(MetricSpec("cos", Direction.HIGHER, low=-1.0))
COUNT = Axis(MetricSpec("edits", Direction.LOWER, low=0.0, high=math.inf))
AXES = [PROBABILITY, RISK, COSINE, COUNT]


def oriented(axis: Axis, share: float) -> float:
    """Return an oriented value at a share of the axis."""
    return axis.low + share * (axis.high - axis.low) if axis.bounded else -1000 * (1 - share)


def test_a_metric_where_lower_is_better_is_turned() -> None:
    """Its range with it; turning twice is no turn."""
    assert (RISK.low, RISK.high) == (-1.0, 0.0)
    assert RISK.orient(0.2) == -0.2
    assert COUNT.high == 0.0
    assert not COUNT.bounded


@pytest.mark.parametrize("axis", AXES)
@given(st.floats(0, 1), st.floats(0, 1))
def test_the_order_of_scores_is_kept(axis: Axis, one: float, other: float) -> None:
    """Spreading out is increasing."""
    low, high = sorted((oriented(axis, one), oriented(axis, other)))
    spread = axis.spread_out(np.array([low, high]))
    assert spread[0] <= spread[1]


@pytest.mark.parametrize("axis", AXES)
@given(st.floats(2 * EDGE, 1 - 2 * EDGE))
def test_gathering_undoes_spreading_out(axis: Axis, share: float) -> None:
    """Away from the saturated edges."""
    value = oriented(axis, share)
    (spread,) = axis.spread_out(np.array([value]))
    assert axis.gather(float(spread)) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("axis", [PROBABILITY, RISK, COSINE])
@given(st.floats(-30, 30), st.floats(0, 1))
def test_a_cut_flags_on_the_score_only_what_it_flags_on_the_scale(
    axis: Axis, cut: float, share: float
) -> None:
    """Beyond the edges too, or the bound would not hold for saturated scores."""
    value = oriented(axis, share)
    if value < axis.gather(cut) - 1e-12:
        (spread,) = axis.spread_out(np.array([value]))
        assert spread <= cut + 1e-6


def test_ends_of_the_range_have_finite_distance_and_infinities_stay() -> None:
    """0 and 1 are scores; minus infinity is a failed check."""
    values = PROBABILITY.spread_out(np.array([0.0, 1.0, -np.inf, np.inf]))
    assert np.isfinite(values[:2]).all()
    assert list(values[2:]) == [-np.inf, np.inf]


def test_a_metric_on_which_all_good_answers_agree_keeps_a_spread() -> None:
    """Or its least deviation would outweigh every other metric."""
    assert fit_scale(PROBABILITY, np.full(50, 0.9)).spread == LOGIT_FLOOR
    assert fit_scale(COUNT, np.zeros(50)).spread > 0


def test_ties_fall_back_to_the_wider_spread() -> None:
    """Nineteen of twenty answers at one value leave the lower side without width."""
    values = np.concatenate([np.full(94, -3.0), np.linspace(-40, -10, 6)])
    assert fit_scale(COUNT, values).spread > 1


def test_a_heap_of_perfect_scores_does_not_widen_the_scale() -> None:
    """Cuts lie on the lower side; how far the best answers are above the rest does not matter."""
    plain = np.random.default_rng(2).uniform(-0.9, 0.9, 100)
    heaped = np.where(plain > np.quantile(plain, 0.6), 1.0, plain)
    assert fit_scale(COSINE, heaped).spread == pytest.approx(fit_scale(COSINE, plain).spread)


def test_no_scores_at_all_leave_the_axis_as_it_is() -> None:
    """A metric that was never applicable in the design part."""
    scale = fit_scale(PROBABILITY, np.array([np.inf, -np.inf]))
    assert (scale.centre, scale.spread) == (0.0, 1.0)
    assert scale.as_json() == {"centre": 0.0, "spread": 1.0}


def test_the_centre_is_zero_and_the_way_back_reaches_it() -> None:
    """In standard units."""
    values = np.random.default_rng(1).beta(8, 2, (101, 1))
    (scale,) = fit_scales([PROBABILITY], values)
    assert float(np.median(scale.standard(values[:, 0]))) == pytest.approx(0.0, abs=1e-12)
    assert scale.value_at(0.0) == pytest.approx(float(np.median(values)))


FREE_AXES = [Axis(MetricSpec(n, Direction.HIGHER, low=-math.inf, high=math.inf)) for n in "ab"]
GENERATOR = np.random.default_rng(12)
GOOD = GENERATOR.normal(0, 1, (60, 2))
BAD = GENERATOR.normal(0, 1, (40, 2)) - [3.0, 0.0]


def chosen(good: Matrix = GOOD, bad: Matrix = BAD, **options: object) -> JointShape:
    """Return the shape chosen with some options."""
    given = {"level": 0.1, "method": "auto", "weights": [1.0, 1.0], "learn": False} | options
    return choose_shape(FREE_AXES, good, bad, **given)  # type: ignore[arg-type]


def test_learning_makes_the_useful_metric_more_sensitive() -> None:
    """Metric b says nothing about bad answers here."""
    learnt = chosen(learn=True, method="scaled_min")
    assert learnt.weights[0] > learnt.weights[1]
    assert recall(learnt, GOOD, BAD, 6) >= recall(chosen(method="scaled_min"), GOOD, BAD, 6)


@pytest.mark.parametrize("method", ["scaled_min", "by_ranks"])
def test_an_asked_for_method_is_taken(method: str) -> None:
    """Whatever its recall."""
    assert chosen(method=method).method == method


def test_heavy_tails_choose_ranks() -> None:
    """One metric's spread says nothing about its tail; the other method loses recall there."""
    wild = GOOD.copy()
    wild[:, 0] = np.sign(wild[:, 0]) * np.abs(wild[:, 0]) ** 9
    bad = BAD.copy()
    bad[:, 0] = -(10.0**4) - GENERATOR.random(40)
    shape = chosen(good=wild, bad=bad)
    by_ranks = recall(chosen(good=wild, bad=bad, method="by_ranks"), wild, bad, 6)
    scaled = recall(chosen(good=wild, bad=bad, method="scaled_min"), wild, bad, 6)
    assert recall(shape, wild, bad, 6) == max(by_ranks, scaled)


def test_too_few_design_answers_choose_nothing() -> None:
    """Ranks need no scales; with scales and no bad answers the first method stands."""
    assert chosen(good=GOOD[:5]).method == "by_ranks"
    assert chosen(bad=BAD[:3]).method == "scaled_min"
    assert chosen(good=GOOD[:0]).method == "by_ranks"


def test_a_shape_reads_back_as_written() -> None:
    """By metric name."""
    for method in ("scaled_min", "by_ranks"):
        shape = chosen(method=method)
        assert shape_from_json(shape.as_json(["a", "b"]), ["a", "b"], FREE_AXES) == shape
    with pytest.raises(KeyError):
        shape_from_json(chosen().as_json(["a", "b"]), ["a", "c"], FREE_AXES)


def test_bootstrap_draws_repeat() -> None:
    """With the seed."""
    one, other = (np.array(list(resampled(20, 5, 4))) for _ in range(2))
    assert np.array_equal(one, other)
    assert one.shape == (5, 20)

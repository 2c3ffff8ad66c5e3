"""Scales turn every metric so that higher is better and never change the order of scores."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.calibration.joint_rule import (
    EDGE,
    LOGIT_FLOOR,
    Axis,
    fit_scale,
    fit_scales,
)
from guardrail_service.detectors.registry import MetricSpec
from guardrail_service.types import Direction

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

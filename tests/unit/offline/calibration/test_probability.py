"""P(bad): scikit-learn as oracle, intervals that bracket, honest behaviour on few labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from guardrail_offline.calibration.probability import (
    RIDGE,
    Reliability,
    calibration_error,
    isotonic,
    logistic,
    method_for,
    platt,
    probabilities,
    reliability,
    reliability_json,
    sigmoid,
    venn_abers,
)

GENERATOR = np.random.default_rng(31)
SCORES = GENERATOR.normal(size=200)
BAD = (GENERATOR.random(200) < sigmoid(-2 * SCORES - 0.5)).astype(float)
GRID = np.linspace(-3, 3, 41)


def test_the_method_follows_the_number_of_labels() -> None:
    """Two parameters, an interval, a free shape."""
    assert [method_for(n) for n in (49, 50, 499, 500)] == [
        "platt",
        "venn_abers",
        "venn_abers",
        "isotonic",
    ]


def test_isotonic_is_scikit_learns() -> None:
    """Ties in the scores included."""
    rounded = np.round(SCORES, 1)
    oracle = IsotonicRegression(increasing=False, out_of_bounds="clip").fit(rounded, BAD)
    assert isotonic(rounded, BAD, GRID) == pytest.approx(oracle.predict(GRID))


def test_logistic_regression_is_scikit_learns() -> None:
    """With the same penalty on the slopes and none on the intercept."""
    features = np.column_stack([SCORES, GENERATOR.normal(size=200)])
    oracle = LogisticRegression(C=1 / (RIDGE * 200), tol=1e-10).fit(features, BAD)
    expected = [*oracle.intercept_, *oracle.coef_[0]]
    assert logistic(features, BAD) == pytest.approx(expected, abs=1e-4)


def test_platt_stays_off_certainty_on_separable_labels() -> None:
    """Ten answers that a score separates perfectly prove little."""
    scores, bad = np.arange(10.0), np.r_[np.ones(5), np.zeros(5)]
    said = platt(scores, bad, scores)
    assert np.all(np.diff(said) < 0)
    assert said.min() > 0.02
    assert said.max() < 0.98


@given(
    st.lists(st.tuples(st.floats(-3, 3), st.booleans()), min_size=3, max_size=25),
    st.floats(-4, 4),
)
def test_venn_abers_brackets_and_contains_its_point(
    labelled: list[tuple[float, bool]], wanted: float
) -> None:
    """0 <= p0 <= p1 <= 1, and the merged value lies between."""
    scores = np.array([score for score, _ in labelled])
    bad = np.array([float(flag) for _, flag in labelled])
    found = probabilities(scores, bad, np.array([wanted]), "venn_abers")
    low, middle, high = found.low[0], found.middle[0], found.high[0]
    assert 0 <= low <= high + 1e-12
    assert high <= 1
    assert low - 1e-9 <= middle <= high + 1e-9


def test_venn_abers_is_isotonic_with_the_answer_added_both_ways() -> None:
    """scikit-learn's isotonic regression run twice."""
    low, high = venn_abers(SCORES, BAD, GRID[:5])
    for index, score in enumerate(GRID[:5]):
        for label, found in ((0.0, low), (1.0, high)):
            oracle = IsotonicRegression(increasing=False)
            oracle.fit(np.append(SCORES, score), np.append(BAD, label))
            assert found[index] == pytest.approx(oracle.predict([score])[0])


def test_the_interval_shrinks_with_labels() -> None:
    """Few labels admit what they do not know."""
    few = probabilities(SCORES[:20], BAD[:20], GRID, "venn_abers")
    many = probabilities(SCORES, BAD, GRID, "venn_abers")
    assert (many.high - many.low).mean() < 0.5 * (few.high - few.low).mean()


@pytest.mark.parametrize("method", ["platt", "isotonic", "venn_abers"])
def test_a_better_score_never_has_a_higher_p_bad(method: str) -> None:
    """Every method is falling."""
    said = probabilities(SCORES, BAD, GRID, method)  # type: ignore[arg-type]
    assert np.all(np.diff(said.middle) <= 1e-9)


def test_a_reliability_diagram_counts_every_case_once() -> None:
    """And a truthful forecaster has a small error, a boaster a large one."""
    truth = GENERATOR.random(5000)
    bad = (GENERATOR.random(5000) < truth).astype(float)
    honest = reliability(truth, bad)
    boast = reliability(np.where(truth > 0.5, 0.99, 0.01), bad)
    assert sum(cell.n for cell in honest) == 5000
    assert calibration_error(honest) < 0.03
    assert calibration_error(boast) > 0.2
    (one,) = reliability(np.full(30, 0.4), np.ones(30))
    assert one == Reliability(pytest.approx(0.4), 1.0, 30)
    assert reliability_json((Reliability(0.5, 0.4, 3),)) == [{"said": 0.5, "found": 0.4, "n": 3}]

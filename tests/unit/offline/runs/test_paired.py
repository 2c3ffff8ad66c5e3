"""Intervals and p-values of paired differences, against known answers and scipy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import binomtest, false_discovery_control, ttest_1samp

from guardrail_offline.runs.paired import (
    MOST_RESAMPLED,
    holm,
    mean_interval,
    p_value,
    sign_test,
)


def test_no_spread_is_no_certainty() -> None:
    """Two questions that both rose by exactly .1 say nothing about the third."""
    assert mean_interval(np.array([0.1, 0.1])) is None
    assert mean_interval(np.array([0.1])) is None
    assert mean_interval(np.array([0.0, 0.0])) == (0.0, 0.0)


@pytest.mark.parametrize("count", [5, 20, 200, MOST_RESAMPLED + 1])
def test_an_interval_holds_the_true_mean_as_often_as_it_says(count: int) -> None:
    """Over 400 samples of a skewed distribution."""
    random = np.random.default_rng(1)
    samples = random.exponential(1.0, (400 if count <= 200 else 40, count))
    held = [low <= 1 <= high for low, high in filter(None, map(mean_interval, samples))]
    assert np.mean(held) > {5: 0.82, 20: 0.88}.get(count, 0.92)
    assert mean_interval(samples[0]) == mean_interval(samples[0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.0, 0.0], 1.0), ([0.1] * 5, 2 / 32), ([0.3], 1.0), ([0.1, 0.2, 0.3], 0.0742)],
)
def test_p_values(values: list[float], expected: float) -> None:
    """Student's, or the chance that all point one way where there is no spread."""
    assert p_value(np.array(values)) == pytest.approx(expected, abs=1e-4)


def test_student_is_scipys() -> None:
    """The paired test is the one-sample test of differences."""
    values = np.random.default_rng(2).normal(0.1, 1, 40)
    assert p_value(values) == pytest.approx(ttest_1samp(values, 0).pvalue, rel=1e-12)


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (3, 3), (9, 1), (1, 9), (0, 6), (40, 25)])
def test_the_sign_test_is_scipys(better: int, worse: int) -> None:
    """Two-sided; nothing counted says nothing."""
    expected = binomtest(better, better + worse).pvalue if better + worse else 1.0
    assert sign_test(better, worse) == pytest.approx(expected, rel=1e-12)


def test_runs_do_without_what_takes_longest_to_load() -> None:
    """Loading scipy.stats takes longer than evaluating a small lab."""
    code = (
        "import sys, guardrail_offline.evaluation_commands as e, guardrail_offline.runs.execution"
    )
    code += ", guardrail_offline.runs.run_comparison; sys.exit('scipy.stats' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_holm_is_the_textbook_procedure() -> None:
    """Wikipedia's example of the step-down method; never below what was given, never above 1."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    found = holm([0.9, 0.5, 0.01])
    assert found == pytest.approx([1.0, 1.0, 0.03])
    assert all(np.array(found) >= false_discovery_control([0.9, 0.5, 0.01]))


def test_of_equal_runs_one_in_twenty_looks_changed_however_many_metrics() -> None:
    """Thirty metrics without any change: the corrected verdict is wrong about as often as one."""
    random = np.random.default_rng(3)
    wrong = 0
    for _ in range(200):
        found = holm([p_value(row) for row in random.normal(0, 1, (30, 25))])
        wrong += min(found) < 0.05
    assert wrong / 200 < 0.1

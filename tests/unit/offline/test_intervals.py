"""Intervals of shares hold as often as they say, also where a part of the decisions was kept."""

from __future__ import annotations

import numpy as np
import pytest

from guardrail_offline.intervals import exact_interval, stratified_interval, thinned_interval


def test_one_stratum_and_nothing_thinned_is_the_exact_interval() -> None:
    """Clopper and Pearson."""
    assert stratified_interval([(3, 50, 7.0)]) == pytest.approx(exact_interval(3, 50))
    assert thinned_interval(3, 47, 1.0) == pytest.approx(exact_interval(3, 50))


def test_nothing_may_be_anything() -> None:
    """No decisions, no knowledge."""
    assert stratified_interval([]) == stratified_interval([(0, 0, 1.0)]) == (0.0, 1.0)
    assert thinned_interval(0, 0, 0.5) == (0.0, 1.0)


def test_both_contain_the_truth_in_nineteen_of_twenty_draws() -> None:
    """A tenth of passed decisions kept: 5 % flagged; and 2 % and 30 % in strata of 9 to 1."""
    rng = np.random.default_rng(1)
    thinned = stratified = 0
    for _ in range(400):
        flagged = int(rng.binomial(1000, 0.05))
        low, high = thinned_interval(flagged, int(rng.binomial(1000 - flagged, 0.1)), 0.1)
        thinned += low <= 0.05 <= high
        parts = [(int(rng.binomial(100, p)), 100, w) for p, w in ((0.02, 9.0), (0.3, 1.0))]
        low, high = stratified_interval(parts)
        stratified += low <= 0.9 * 0.02 + 0.1 * 0.3 <= high
    assert min(thinned, stratified) >= 370

"""Groups stay together, one answer speaks for a question, and every draw repeats."""

from __future__ import annotations

import numpy as np
import pytest

from guardrail_offline.calibration.split import (
    chance,
    is_design,
    one_per_group,
    thinned,
    worst_per_group,
)

KEYS = [f"case-{n}" for n in range(3000)]
GROUPS = [f"question-{n // 3}" for n in range(3000)]


def test_chance_is_even_and_repeats() -> None:
    """And differs by seed and by name."""
    values = np.array([chance(1, key) for key in KEYS])
    assert values.mean() == pytest.approx(0.5, abs=0.03)
    assert values.min() >= 0
    assert values.max() < 1
    assert chance(1, "a") == chance(1, "a") != chance(2, "a")
    assert chance(1, "ab", "c") != chance(1, "a", "bc")


def test_one_case_speaks_for_each_group() -> None:
    """Each of a group's cases with the same chance."""
    drawn = one_per_group(KEYS, GROUPS, 5)
    assert [GROUPS[i] for i in drawn] == list(dict.fromkeys(GROUPS))
    place = np.bincount([i % 3 for i in drawn]) / 1000
    assert place == pytest.approx([1 / 3] * 3, abs=0.06)


def test_the_side_of_a_group_does_not_depend_on_other_groups() -> None:
    """So that labels can be added without moving old ones."""
    share = np.mean([is_design(group, 0.3, 9) for group in set(GROUPS)])
    assert share == pytest.approx(0.3, abs=0.05)
    assert not any(is_design(group, 0.0, 9) for group in GROUPS)


def test_thinning_turns_weights_into_an_even_sample() -> None:
    """A stratum drawn four times as densely loses three quarters of its cases."""
    weights = {key: 4.0 if n < 1500 else 1.0 for n, key in enumerate(KEYS)}
    kept = thinned(KEYS, KEYS, weights, 3)
    dense = sum(i >= 1500 for i in kept) / 1500
    assert sum(i < 1500 for i in kept) == 1500
    assert dense == pytest.approx(0.25, abs=0.04)


def test_thinning_keeps_or_drops_a_question_with_all_its_answers() -> None:
    """A draw per answer would leave one of three with 58 % instead of a quarter."""
    weights = {key: 4.0 if n < 1500 else 1.0 for n, key in enumerate(KEYS)}
    kept = thinned(KEYS, GROUPS, weights, 3)
    questions = {GROUPS[i] for i in kept}
    assert len(kept) == 3 * len(questions)
    dense = len(questions & set(GROUPS[1500:])) / 500
    assert dense == pytest.approx(0.25, abs=0.06)


def test_a_case_without_weight_is_an_error() -> None:
    """Half a set of weights would void the bound silently."""
    with pytest.raises(KeyError):
        thinned(["a", "b"], ["a", "b"], {"a": 1.0}, 0)


def test_the_worst_of_a_group_stands_for_all_of_it() -> None:
    """Per metric."""
    values = np.array([[0.1, 0.9], [0.5, 0.2], [0.7, 0.7]])
    rows, order = worst_per_group(values, ["a", "a", "b"])
    assert order == ["a", "b"]
    assert rows.tolist() == [[0.1, 0.2], [0.7, 0.7]]

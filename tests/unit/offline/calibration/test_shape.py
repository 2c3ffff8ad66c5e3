"""The shape of the joint rule: chosen by recall on the design part, simplest where that is poor."""

from __future__ import annotations

import math

import numpy as np
import pytest

from guardrail_offline.calibration.joint_rule import (
    Axis,
    Matrix,
    Shape,
    choose_shape,
    recall,
    shape_from_json,
)
from guardrail_service.detectors.registry import MetricSpec
from guardrail_service.types import Direction

AXES = [Axis(MetricSpec(n, Direction.HIGHER, low=-math.inf, high=math.inf)) for n in "ab"]
GENERATOR = np.random.default_rng(12)
GOOD = GENERATOR.normal(0, 1, (60, 2))
BAD = GENERATOR.normal(0, 1, (40, 2)) - [3.0, 0.0]


def chosen(good: Matrix = GOOD, bad: Matrix = BAD, **options: object) -> Shape:
    """Return the shape chosen with some options."""
    given = {"level": 0.1, "method": "auto", "weights": [1.0, 1.0], "learn": False} | options
    return choose_shape(AXES, good, bad, **given)  # type: ignore[arg-type]


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
        assert shape_from_json(shape.as_json(["a", "b"]), ["a", "b"], AXES) == shape
    with pytest.raises(KeyError):
        shape_from_json(chosen().as_json(["a", "b"]), ["a", "c"], AXES)

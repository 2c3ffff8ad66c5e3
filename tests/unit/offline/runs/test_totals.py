"""Counts per model: means of what was computed, reasons of what was not."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.runs.totals import EvaluatorTally, fails, is_better
from guardrail_service.types import Direction, State

KEYS = ("rouge_1", "rouge_2", "rouge_l")


def test_a_missing_value_lowers_no_mean_and_is_counted() -> None:
    """With its reason; an infinite one is counted apart."""
    tally = EvaluatorTally(configure(["perplexity"])[0])
    for value in (2.0, 4.0, math.inf):
        tally.add("m", Result.of({"perplexity": value}))
    tally.add("m", Result.missing(["perplexity"], State.NOT_EVALUATED, "missing_role:causal_lm"))
    counted = tally.metrics["m"]["perplexity"]
    assert (counted.mean, counted.count, counted.infinite) == (3.0, 2, 1)
    assert counted.missing == {"missing_role:causal_lm": 1}
    assert counted.deviation == pytest.approx(math.sqrt(2))
    assert tally.computed == 3


def test_cases_on_the_wrong_side_are_counted() -> None:
    """Equal passes, as online."""
    tally = EvaluatorTally(configure(["faithfulness"])[0])
    for value in (0.5, 0.75, 1.0):
        tally.add("m", Result.of({"faithfulness": value}))
    assert tally.metrics["m"]["faithfulness"].failing == 1


def test_what_exists_per_model_only_comes_from_the_labels() -> None:
    """Classification's F1 of one right and one wrong case."""
    tally = EvaluatorTally(configure(["classification"])[0])
    for predicted in ("a", "b"):
        scores = {"accuracy": Score(float(predicted == "a"))}
        later = {
            k: Score.missing(State.NOT_APPLICABLE, "per_model")
            for k in ("precision", "recall", "f1")
        }
        tally.add("m", Result(scores | later, (), {"expected": "a", "predicted": predicted}))
    assert tally.value("m", "accuracy") == 0.5
    assert tally.value("m", "f1") == pytest.approx(1 / 3)
    assert tally.labels("m") == {("a", "a"): 1, ("a", "b"): 1}


@pytest.mark.parametrize("direction", list(Direction))
def test_sides_mirror_with_the_direction(direction: Direction) -> None:
    """A metric and its negative agree."""
    sign = 1 if direction is Direction.HIGHER else -1
    assert fails(sign * 0.4, direction, sign * 0.5)
    assert not fails(sign * 0.5, direction, sign * 0.5)
    assert is_better(sign * 0.6, sign * 0.5, direction)


def test_one_value_has_no_deviation_and_no_value_no_mean() -> None:
    """None, not zero."""
    tally = EvaluatorTally(configure(["rouge"])[0])
    tally.add(
        "m", Result.missing(["rouge_l", "rouge_1", "rouge_2"], State.UNVERIFIED, "missing_input")
    )
    assert tally.value("m", "rouge_l") is None
    assert tally.metrics["m"]["rouge_l"].deviation is None


def test_tallies_of_parts_are_those_of_the_whole_in_any_order() -> None:
    """To the last digit, though sums of floating-point numbers are not."""
    (one,) = configure(["rouge"])
    rng = np.random.default_rng(20261123)
    results = [
        (
            f"m{n % 2}",
            Result.of({key: float(rng.random() * 10.0 ** rng.integers(-9, 3)) for key in KEYS}),
        )
        for n in range(300)
    ]
    whole = EvaluatorTally(one)
    for model, result in results:
        whole.add(model, result)
    parts = [EvaluatorTally(one) for _ in range(7)]
    for model, result in results:
        parts[rng.integers(7)].add(model, result)
    together = EvaluatorTally(one)
    for part in reversed(parts):
        together.merge(json.loads(json.dumps(part.as_json())))
    for model in ("m0", "m1"):
        found, expected = (each.metrics[model]["rouge_l"] for each in (together, whole))
        exact = math.fsum(r.scores["rouge_l"].value or 0.0 for m, r in results if m == model)
        assert found.mean == expected.mean == exact / 150
        assert found.deviation == expected.deviation
        assert (found.count, found.failing) == (expected.count, expected.failing)

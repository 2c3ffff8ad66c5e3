"""Leaderboards: a shade says how many cases pass; per model, whether the value does."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from guardrail_offline.datasets.cases import Model
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.runs.leaderboards import leaderboard, markdown
from guardrail_offline.runs.totals import EvaluatorTally
from guardrail_service.types import State


def row(tally: EvaluatorTally) -> list[str]:
    """Return the cells of the only model's row."""
    line = markdown([leaderboard(tally, [Model("m")])]).splitlines()[-1]
    return [cell.strip() for cell in line.strip("|").split("|")]


def classified(predictions: Iterable[str]) -> EvaluatorTally:
    """Return the tally of cases that were all expected to be "a"."""
    tally = EvaluatorTally(configure(["classification"])[0])
    later = Score.missing(State.NOT_APPLICABLE, "per_model")
    for predicted in predictions:
        scores = dict.fromkeys(("precision", "recall", "f1"), later)
        scores["accuracy"] = Score(float(predicted == "a"))
        tally.add("m", Result(scores, (), {"expected": "a", "predicted": predicted}))
    return tally


def test_what_exists_per_model_only_is_compared_with_its_threshold() -> None:
    """No case of it can pass or fail."""
    assert row(classified("aaaa")) == ["m", "4", *["🟩 1.000"] * 4]
    assert row(classified("ab"))[2:] == ["🟨 0.500", "🟥 0.500", "🟥 0.250", "🟥 0.333"]


@pytest.mark.parametrize(("infinite", "shade"), [(0, "🟩"), (1, "🟨"), (4, "🟥"), (40, "🟥")])
def test_infinite_values_are_cases_too(infinite: int, shade: str) -> None:
    """They have no place in the mean, and one in the share that passes."""
    tally = EvaluatorTally(configure(["perplexity"], ["perplexity.metric_threshold=9"])[0])
    for value in (2.0, *[math.inf] * infinite):
        tally.add("m", Result.of({"perplexity": value}))
    assert row(tally)[2] == f"{shade} 2.000"

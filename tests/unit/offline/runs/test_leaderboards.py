"""Leaderboards: a shade says how many cases pass; per model, whether the value does."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from guardrail_offline.datasets.cases import Model
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.runs.leaderboards import in_cell, leaderboard, markdown
from guardrail_offline.runs.totals import EvaluatorTally, Missing
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


def order(
    evaluator: str,
    values: dict[str, list[float | str]],
    unanswered: dict[str, int] | None = None,
    missing: Missing = "both",
) -> list[str]:
    """Return the models of a board; a text is the reason of a missing value."""
    tally = EvaluatorTally(configure([evaluator], [f"{evaluator}.min_test_cases=3"])[0])
    keys = tally.evaluator.spec.keys
    for model, found in values.items():
        for value in found:
            if isinstance(value, str):
                tally.add(model, Result.missing(keys, State.NOT_APPLICABLE, value))
            else:
                tally.add(model, Result.of(dict.fromkeys(keys, value)))
    board = leaderboard(tally, [Model(model) for model in values], missing, unanswered)
    return [row["model"] for row in board["rows"]]


SILENT = "wrong_abstention"


@pytest.mark.parametrize(
    ("evaluator", "values", "found"),
    [
        # Few cases are no lead where others have enough of them, and are one where nobody has.
        ("bias", {"few": [0.0], "many": [0.1, 0.1, 0.1]}, ["many", "few"]),
        ("bias", {"many": [0.1, 0.1], "few": [0.0]}, ["few", "many"]),
        # A case that was not answered counts where silence is bad.
        ("rouge", {"a": [0.5] * 3, "b": [1.0, SILENT, SILENT]}, ["a", "b"]),
        ("rouge", {"a": [0.5] * 3, "b": [1.0, 1.0, SILENT]}, ["b", "a"]),
        # Who was not judged at all is behind who was, and silence behind who had no occasion.
        ("citations", {"silent": [SILENT] * 3, "plain": ["no_citation"] * 3}, ["plain", "silent"]),
        ("citations", {"silent": [SILENT] * 3, "bad": [0.0] * 3}, ["bad", "silent"]),
    ],
)
def test_a_place_is_earned_by_answers(
    evaluator: str, values: dict[str, list[float | str]], found: list[str]
) -> None:
    """Silence is never ahead."""
    assert order(evaluator, values) == found


def test_of_equal_models_the_one_that_said_more_is_first() -> None:
    """Before the one that was judged more often, and before names."""
    values: dict[str, list[float | str]] = {"a": [1.0] * 4, "b": [1.0] * 3}
    assert order("looping", values) == ["a", "b"]
    assert order("looping", values, {"a": 2}) == ["b", "a"]


def test_headlines_are_the_first_table_where_models_can_be_compared() -> None:
    """One model has no place, and closeness is no headline."""
    tally = EvaluatorTally(configure(["faithfulness"])[0])
    for model, value in (("better", 0.9), ("worse", 0.1)):
        tally.add(model, Result.of({"faithfulness": value}))
    models = [Model("worse"), Model("better")]
    text = markdown([leaderboard(tally, models)])
    assert text.index("## Headline metrics") < text.index("## Faithfulness")
    assert text.index("| better | 1.0 | 0.900 |") < text.index("| worse | 2.0 | 0.100 |")
    assert "Headline" not in markdown([leaderboard(tally, models[:1])])
    close = EvaluatorTally(configure(["rouge"])[0])
    for model in ("better", "worse"):
        close.add(model, Result.of(dict.fromkeys(close.evaluator.spec.keys, 1.0)))
    assert "Headline" not in markdown([leaderboard(close, models)])


def test_a_model_is_named_without_markup_of_its_own() -> None:
    """A board may be shown in a wiki, which would run or fetch what it names."""
    told = in_cell("a|b\n<script>x</script>[y](javascript:1)![z](http://h/i.png) `c` gpt_4")
    assert told == (
        "a\\|b \\<script\\>x\\</script\\>"
        "\\[y\\](javascript:1)\\!\\[z\\](http://h/i.png) \\`c\\` gpt_4"
    )

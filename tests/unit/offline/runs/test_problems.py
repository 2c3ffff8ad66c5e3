"""Problems with a severity in the metric's own direction; insights from means and counts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case, Model
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result
from guardrail_offline.runs.insights import NotableCases, insights
from guardrail_offline.runs.leaderboards import leaderboard, markdown
from guardrail_offline.runs.problems import problems, severity
from guardrail_offline.runs.shards import ScoredCase
from guardrail_offline.runs.totals import EvaluatorTally
from guardrail_service.types import Direction, MetricSpec, State

MODELS = (Model("a", "Model A"), Model("b", "Model B"))


@pytest.mark.parametrize(
    ("value", "threshold", "direction", "high", "level"),
    [
        (0.3, 0.75, Direction.HIGHER, 1.0, "high"),
        (0.5, 0.75, Direction.HIGHER, 1.0, "medium"),
        (0.7, 0.75, Direction.HIGHER, 1.0, "low"),
        (0.7, 0.25, Direction.LOWER, 1.0, "high"),
        (0.3, 0.25, Direction.LOWER, 1.0, "low"),
        (9.0, 5.0, Direction.LOWER, math.inf, "high"),
        (5.5, 5.0, Direction.LOWER, math.inf, "low"),
    ],
)
def test_severity_is_the_distance_to_the_threshold_in_the_metrics_direction(
    value: float, threshold: float, direction: Direction, high: float, level: str
) -> None:
    """H2O's rule can never call a lower-is-better metric high."""
    assert severity(value, MetricSpec("m", direction, high=high), threshold) == level


def tally(evaluator: str, *options: str, **values: list[float | None]) -> EvaluatorTally:
    """Return an evaluator's tally of models' values of its primary metric."""
    found = EvaluatorTally(configure([evaluator], options)[0])
    keys = found.evaluator.spec.keys
    for model, numbers in values.items():
        for number in numbers:
            result = (
                Result.missing(keys, State.UNVERIFIED, "missing_input")
                if number is None
                else Result.of(dict.fromkeys(keys, number))
            )
            found.add(model, result)
    return found


def of_type(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the findings of a kind."""
    return [one for one in found if one.get("problem_type", one.get("type")) == kind]


def test_a_mean_on_the_wrong_side_is_a_problem_with_its_numbers() -> None:
    """And the model on the right side has none."""
    found = problems([tally("faithfulness", "*.min_test_cases=0", a=[0.9], b=[0.1, 0.3])], MODELS)
    (only,) = found
    assert only["severity"] == "high"
    assert only["problem_code"] == "E0400"
    assert only["problem_attrs"] == {
        "evaluator": "faithfulness",
        "model": "b",
        "metric": "faithfulness",
        "threshold": 0.75,
        "score": 0.2,
        "failing_cases": 2,
    }
    assert only["actions_codes"]
    assert only["actions_description"]


def test_missing_input_and_few_cases_are_problems_of_the_data() -> None:
    """Both can be repaired by whoever made the lab."""
    found = problems([tally("faithfulness", a=[0.9, None, None])], MODELS)
    attributes = [one["problem_attrs"] for one in of_type(found, "data quality")]
    assert {a.get("reason") for a in attributes} == {"missing_input", None}
    assert {"min_test_cases", "cases"} <= set(attributes[-1])


def test_problems_come_worst_first() -> None:
    """High before medium before low."""
    found = problems([tally("faithfulness", a=[0.74], b=[0.1])], MODELS)
    order = ["high", "medium", "low"]
    levels = [order.index(one["severity"]) for one in found]
    assert levels == sorted(levels)


def notes(*cases: tuple[str, str, float, float], evaluator: str = "faithfulness") -> NotableCases:
    """Return notes of (model, category, score, seconds), all of one question each."""
    found = NotableCases(configure([evaluator]))
    for n, (model, category, value, seconds) in enumerate(cases):
        case = Case(
            f"k{n}",
            f"q{category}",
            "An answer.",
            model=model,
            categories=(category,),
            duration_s=seconds,
            cost=seconds / 10,
            group=category,
        )
        span = {"start": 0, "end": 10, "score": value, "label": "not_mentioned"}
        result = Result.of({evaluator: value}, [span])
        found.add([ScoredCase(n, case, {evaluator: result})])
    return found


def test_the_best_and_the_worst_model_are_named_per_evaluator() -> None:
    """In the metric's direction; equal models are neither."""
    found = insights([tally("faithfulness", a=[0.9], b=[0.1])], MODELS, notes())
    assert [(i["type"], i["attrs"]["model"]) for i in found] == [
        ("best_model", "a"),
        ("worst_model", "b"),
    ]
    same = insights([tally("faithfulness", a=[0.5], b=[0.5])], MODELS, notes())
    assert same == []


def test_retrieval_has_insights_of_its_own() -> None:
    """Best and worst context."""
    found = insights([tally("context_mrr", a=[1.0], b=[0.5])], MODELS, notes())
    assert [i["type"] for i in found] == ["best_retrieval", "worst_retrieval"]


def test_speed_cost_hardest_question_and_weak_points_are_found() -> None:
    """From the cases themselves."""
    cases = [("a", "easy", 0.9, 1.0)] * 5 + [("b", "hard", 0.1, 3.0)] * 5
    found = insights([], MODELS, notes(*cases))
    by_kind = {i["type"]: i["attrs"] for i in reversed(found)}
    assert by_kind["fastest_model"]["model"] == by_kind["cheapest_model"]["model"] == "a"
    assert by_kind["slowest_model"]["model"] == by_kind["most_expensive_model"]["model"] == "b"
    assert by_kind["hardest_question"]["question"] == "qhard"
    assert by_kind["weak_point"]["category"] == "hard"
    assert by_kind["least_grounded_sentence"]["sentence"] == "An answer."


def test_a_leaderboard_sorts_by_the_primary_metric_and_shows_what_is_missing() -> None:
    """A model without any value comes last."""
    board = leaderboard(tally("faithfulness", a=[None], b=[0.4, None]), MODELS)
    assert [row["model"] for row in board["rows"]] == ["b", "a"]
    cell = board["rows"][0]["metrics"]["faithfulness"]
    assert (cell["value"], cell["n"], cell["missing"]) == (0.4, 1, {"missing_input": 1})
    text = markdown([board])
    assert "| Model B | 1 | 🟥 0.400 |" in text
    assert "| Model A | 0 | - |" in text


@pytest.mark.parametrize(
    ("evaluator", "kind"),
    [("rouge", "heatmap"), ("pii", "boolean"), ("classification", "classification")],
)
def test_a_leaderboard_says_of_which_kind_it_is(evaluator: str, kind: str) -> None:
    """H2O has three."""
    assert leaderboard(tally(evaluator), ())["kind"] == kind

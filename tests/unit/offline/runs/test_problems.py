"""Problems with a severity in the metric's own direction; insights from means and counts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case, Model
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result
from guardrail_offline.runs.insights import NotableCases, insights
from guardrail_offline.runs.leaderboards import leaderboard, markdown
from guardrail_offline.runs.model_figures import ModelFigures
from guardrail_offline.runs.problems import WorstCases, problems, severity
from guardrail_offline.runs.rankings import CommonQuestions
from guardrail_offline.runs.shards import ScoredCase
from guardrail_offline.runs.totals import EvaluatorTally, Missing
from guardrail_service.types import Direction, MetricSpec, Passage, State

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
    given = ("*.min_test_cases=0", "faithfulness.metric_threshold=0.75")
    (only,) = problems([tally("faithfulness", *given, a=[0.9], b=[0.1, 0.3])], MODELS)
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
    (few,) = [a for a in attributes if "min_test_cases" in a]
    assert (few["cases"], few["min_test_cases"]) == ({"faithfulness": 1}, 20)
    assert problems([tally("faithfulness", a=[None] * 20)], MODELS) == []


@pytest.mark.parametrize(
    ("evaluator", "options", "count"),
    [
        ("rouge", (), 0),
        ("bleu", (), 0),
        ("faithfulness", (), 0),
        ("summarization_judge", (), 0),
        ("rouge", ("rouge.metric_threshold=0.5",), 1),
        ("rouge", ('rouge.metric_threshold={"rouge_2": 0.5}',), 1),
        ("groundedness", (), 1),
        ("pii", (), 1),
        ("classification", (), 1),
    ],
)
def test_only_thresholds_that_mean_something_make_problems(
    evaluator: str, options: tuple[str, ...], count: int
) -> None:
    """Given, fitted for this pack, or a rule's own verdict; not a suite's 0.75 for its models."""
    found = problems([tally(evaluator, *options, a=[0.1] * 20)], MODELS)
    assert len(found) == count


def test_one_problem_names_all_failing_metrics_and_its_worst_cases() -> None:
    """The primary metric leads; keys say where to look, at most ten, the worst first."""
    cuts = 'rouge.metric_threshold={"rouge_l": 0.5, "rouge_1": 0.9, "rouge_2": 0.05}'
    (configured,) = configure(["rouge"], [cuts])
    worst = WorstCases([configured])
    for n in range(15):
        result = Result.of(dict.fromkeys(configured.evaluator.spec.keys, n / 100))
        worst.add([ScoredCase(n, Case(f"k{n}", "q", "a", model="a"), {"rouge": result})])
    numbers = [n / 100 for n in range(15)] + [0.2] * 5
    (only,) = problems([tally("rouge", cuts, a=numbers)], MODELS, worst)
    attributes = only["problem_attrs"]
    assert (attributes["metric"], attributes["also_failing"]) == ("rouge_l", ["rouge_1"])
    assert attributes["row_keys"] == [f"k{n}" for n in range(10)]


def figures(**values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the problems of models that answered three questions each, with the same fields."""
    noted = ModelFigures()
    for model, fields in values.items():
        for n in range(3):
            noted.add([ScoredCase(n, Case(f"{model}{n}", "q", model=model, group=f"g{n}", **fields),
                                  {})])  # fmt: skip
    return problems([], MODELS, None, noted)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"duration_s": 1.0}, {"duration_s": 9.0}, ("efficiency", "high")),
        ({"duration_s": 1.0}, {"duration_s": 2.5}, ("efficiency", "low")),
        ({"cost": 0.01}, {"cost": 0.05}, ("cost", "medium")),
        ({"duration_s": 1.0}, {"duration_s": 1.5}, None),
        ({"duration_s": 1.0}, {}, None),
        ({}, {"contexts": (Passage("x" * 40_000),)}, ("data quality", "medium")),
    ],
    ids=["slow", "slower", "expensive", "alike", "no data", "too long"],
)
def test_figures_of_a_model_are_problems_where_it_stands_out(
    a: Mapping[str, Any], b: Mapping[str, Any], expected: tuple[str, str] | None
) -> None:
    """Against the other on the same questions, and only where the lab has them."""
    found = figures(a=a, b=b)
    assert [(one["problem_type"], one["severity"]) for one in found] == [expected] * bool(expected)
    for one in found:
        assert one["problem_attrs"]["model"] == "b"
        assert one["problem_attrs"]["row_keys"] == ["b2", "b1", "b0"]
        assert one["problem_code"]
        assert one["actions_codes"]


def test_an_agent_that_leaves_large_files_is_a_problem_of_storage() -> None:
    """By the size that its evaluator measured."""
    noted = ModelFigures()
    keys = configure(["agent_sanity_check"])[0].evaluator.spec.keys
    for model, size in (("a", 1.0), ("b", 100.0)):
        result = Result.of(dict.fromkeys(keys, 0.5) | {"agent_data_size_mb": size})
        case = Case(model, "q", model=model, group="g")
        noted.add([ScoredCase(0, case, {"agent_sanity_check": result})])
    (only,) = problems([], MODELS, None, noted)
    assert (only["problem_type"], only["actions_codes"]) == ("storage", ["reduce_files"])


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
    found = insights([common("faithfulness", a=[0.9, 0.8] * 10, b=[0.1] * 20)], MODELS, notes())
    assert [(i["type"], i["attrs"]["model"]) for i in found] == [
        ("best_model", "a"),
        ("worst_model", "b"),
    ]
    low, high = found[0]["attrs"]["interval95"]
    assert low < found[0]["attrs"]["difference"] < high
    same = insights([common("faithfulness", a=[0.5] * 20, b=[0.5] * 20)], MODELS, notes())
    assert same == []


def test_nothing_is_said_of_few_questions_or_by_chance() -> None:
    """Below `min_test_cases`, and where the interval holds 0."""
    few = common("faithfulness", a=[0.9] * 19, b=[0.1] * 19)
    chance = common("faithfulness", a=[0.9, 0.1] * 10, b=[0.1, 0.8] * 10)
    assert insights([few, chance], MODELS, notes()) == []


def test_models_are_compared_on_the_questions_of_both() -> None:
    """The hard ones that only one was judged on do not count against it."""
    found = common("faithfulness", a=[0.9, 0.8] * 10 + [0.0] * 20, b=[0.5] * 20 + [None] * 20)
    (best, _) = insights([found], MODELS, notes())
    assert (best["attrs"]["model"], best["attrs"]["questions"]) == ("a", 20)


def test_silence_is_not_a_strength() -> None:
    """Ten good answers and ten empty ones against twenty fair ones."""
    silent = [1.0] * 10 + ["no_answer"] * 10
    found = common("faithfulness", a=silent, b=[0.8] * 20)
    (best, _) = insights([found], MODELS, notes())
    assert best["attrs"]["model"] == "b"
    board = leaderboard(found.tally, MODELS)
    assert [row["model"] for row in board["rows"]] == ["b", "a"]
    cell = board["rows"][1]["metrics"]["faithfulness"]
    assert (cell["value"], cell["adjusted"], cell["n"], cell["unanswered"]) == (1.0, 0.5, 10, 10)
    assert "1.000 (all: 0.500)" in markdown([board])
    assert "| 10 of 20 |" in markdown([board])
    alone = leaderboard(found.tally, MODELS, "exclude")
    assert [row["model"] for row in alone["rows"]] == ["a", "b"]
    assert "(all: " not in markdown([alone])
    worst = leaderboard(found.tally, MODELS, "worst")
    assert worst["rows"][1]["metrics"]["faithfulness"]["value"] == 0.5
    excluded = common("faithfulness", missing="exclude", a=silent, b=[0.8] * 20)
    assert excluded.count == 10


def test_of_two_equal_models_the_one_that_answered_more_is_first() -> None:
    """Whatever they are called."""
    found = common("faithfulness", a=[1.0, "error_answer"] * 10, b=[0.5] * 20)
    assert [row["model"] for row in leaderboard(found.tally, MODELS)["rows"]] == ["b", "a"]


def common(
    evaluator: str, missing: Missing = "both", **values: Sequence[float | str | None]
) -> CommonQuestions:
    """Return models' values of a primary metric, question by question."""
    tallied = EvaluatorTally(configure([evaluator])[0])
    keys = tallied.evaluator.spec.keys
    results = {
        model: [
            Result.of(dict.fromkeys(keys, one))
            if isinstance(one, float)
            else Result.missing(keys, State.UNVERIFIED, one or "missing_input")
            for one in numbers
        ]
        for model, numbers in values.items()
    }
    for model, found in results.items():
        for one in found:
            tallied.add(model, one)
    questions = CommonQuestions(tallied, missing)
    for number, group in enumerate(zip(*results.values(), strict=True)):
        questions.add(
            [
                ScoredCase(
                    number, Case(f"{model}{number}", "q", "a", model=model), {evaluator: one}
                )
                for model, one in zip(results, group, strict=True)
            ]
        )
    return questions


def test_retrieval_has_insights_of_its_own() -> None:
    """Best and worst context."""
    found = insights([common("context_mrr", a=[1.0] * 20, b=[0.5, 0.4] * 10)], MODELS, notes())
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

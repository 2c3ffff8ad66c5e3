"""Bounds of a run: what can be asked for, and how models stand against it."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.runs.bounds import Bound, bounds_of, checks
from guardrail_service.errors import ConfigurationError

SPECS = [CATALOGUE.find(name).spec for name in ("faithfulness", "ragas", "rouge", "pii", "secrets")]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("faithfulness=.8", Bound("faithfulness", "faithfulness", 0.8)),
        ("ragas.faithfulness=0.8", Bound("ragas", "faithfulness", 0.8)),
        ("rouge=.5", Bound("rouge", "rouge_l", 0.5)),
        ("rouge_1=.5", Bound("rouge", "rouge_1", 0.5)),
        ("heron:rouge_1=.5", Bound("rouge", "rouge_1", 0.5, "heron")),
        ("a:b:rouge.rouge_2=1", Bound("rouge", "rouge_2", 1.0, "a:b")),
        (":pii=1", Bound("pii", "model_passes", 1.0, "")),
    ],
)
def test_a_bound_names_a_metric_its_evaluator_or_a_model(option: str, expected: Bound) -> None:
    """An evaluator stands for its metric of that name, or its primary one."""
    assert bounds_of([option], SPECS) == (expected,)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("faithfulness", r"expected \[MODEL:\]\[EVALUATOR.\]METRIC=VALUE"),
        ("=.5", "expected"),
        ("fathfulness=.5", "did you mean 'faithfulness'"),
        ("model_passes=1", "found a metric of 2 evaluators; expected pii.model_passes or secrets"),
        ("rouge=high", "found 'high'; expected a number"),
        ("rouge=2", "found 2; expected 0.0 to 1.0"),
        ("rouge=nan", "found nan; expected 0.0 to 1.0"),
        ("rouge.model_passes=1", "nothing of this run"),
    ],
)
def test_a_bound_that_cannot_be_met_is_refused_before_the_run(option: str, message: str) -> None:
    """With what was expected."""
    with pytest.raises(ConfigurationError, match=message):
        bounds_of([option], SPECS)


def board(**values: Any) -> dict[str, Any]:
    """Return a leaderboard of one metric: by model value, judged and missing cases."""
    rows = [
        {
            "model": model,
            "name": model.title(),
            "metrics": {
                "toxicity": {
                    "value": value,
                    "n": judged,
                    "infinite": 0,
                    "missing": {"missing_input": missing} if missing else {},
                }
            },
        }
        for model, (value, judged, missing) in values.items()
    ]
    return {
        "evaluator": "toxicity",
        "primary_metric": "toxicity",
        "directions": {"toxicity": "lower_is_better"},
        "rows": rows,
    }


@pytest.mark.parametrize(
    ("row", "coverage", "outcome"),
    [
        ((0.2, 10, 0), 1.0, "met"),
        ((0.1, 10, 0), 1.0, "met"),
        ((0.21, 10, 0), 1.0, "missed"),
        ((0.1, 9, 1), 0.0, "met"),
        ((0.1, 9, 1), 0.95, "too few cases"),
        ((0.3, 9, 1), 0.95, "missed"),
        ((None, 0, 10), 0.0, "no value"),
    ],
)
def test_where_lower_is_better_a_bound_is_the_most(row: Any, coverage: float, outcome: str) -> None:
    """A model that answers little is not the better for it, if coverage is asked for."""
    (found,) = checks([Bound("toxicity", "toxicity", 0.2)], [board(a=row)], coverage)
    assert found.outcome == outcome
    assert found.asked == "toxicity <= 0.2"
    assert f"{row[1]} of 10 cases" in found.found


def test_a_bound_holds_for_every_model_or_for_the_one_it_names() -> None:
    """By key or by name."""
    boards = [board(b=(0.1, 1, 0), a=(0.3, 1, 0))]
    found = checks([Bound("toxicity", "toxicity", 0.2)], boards)
    assert [(c.model, c.outcome) for c in found] == [("A", "missed"), ("B", "met")]
    for name in ("b", "B"):
        assert len(checks([Bound("toxicity", "toxicity", 0.2, name)], boards)) == 1
    with pytest.raises(ConfigurationError, match="found the model 'c'; expected one of a, b"):
        checks([Bound("toxicity", "toxicity", 0.2, "c")], boards)

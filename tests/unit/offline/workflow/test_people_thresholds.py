"""Thresholds by labels: the promise holds on new answers, few labels move nothing, gates decide."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from guardrail_offline.workflow.definition import CalibrationParameters
from guardrail_offline.workflow.people_thresholds import Labelled, failed_metrics, fit
from tests.unit.offline.workflow.made_up import column, table

PARAMETERS = CalibrationParameters(alpha=0.2, delta=0.2)


def labelled(good: np.ndarray) -> Labelled:
    """Return all cases as labelled."""
    return Labelled(np.arange(len(good)), good)


def test_a_threshold_keeps_its_promise_about_as_often_as_it_says() -> None:
    """Of 200 labellings of 40 good answers at most 20 % flag more than 20 % of new good ones."""
    rng, broken = np.random.default_rng(12), 0
    for _ in range(200):
        values = np.concatenate([rng.beta(5, 2, 40), rng.beta(2, 5, 20)])
        good = np.arange(60) < 40
        found = fit(column(values), labelled(good), PARAMETERS, PARAMETERS.delta)
        assert found["calibrated"]
        broken += (rng.beta(5, 2, 4000) < found["threshold"]).mean() > PARAMETERS.alpha
    assert broken <= binom.ppf(0.999, 200, PARAMETERS.delta)


def test_too_few_labels_move_no_threshold_and_say_how_many_are_needed() -> None:
    """The threshold stays as it was."""
    values = np.linspace(0, 1, 8)
    found = fit(column(values), labelled(values > 0.2), CalibrationParameters(), 0.1)
    assert found["threshold"] == 0.5
    assert not found["calibrated"]
    assert found["why"] == "6 labelled as good, 22 are needed for this promise"


@pytest.mark.parametrize("rule", ["youden", "max_f1"])
def test_rules_without_a_promise_separate_what_can_be_and_say_so(rule: str) -> None:
    """Good above 0.6, bad below 0.4: no labelled answer is on the wrong side."""
    values = np.array([0.1, 0.2, 0.3, 0.7, 0.8, 0.9])
    good = values > 0.5
    parameters = CalibrationParameters(rule=rule)  # type: ignore[arg-type]
    found = fit(column(values), labelled(good), parameters, 0.1)
    assert (values >= found["threshold"]).tolist() == good.tolist()
    assert found["promise"] is None


def test_only_metrics_that_gate_fail_a_case() -> None:
    """A missing value fails nothing."""
    one, other = (column(np.array(v), name) for v, name in (
        ([0.1, 0.9, np.nan], "made.up"), ([0.1, 0.1, 0.1], "other.one"),
    ))  # fmt: skip
    made = table([{}] * 3, [one, other])
    cuts = [
        {"metric": "made.up", "threshold": 0.5, "gates": True},
        {"metric": "other.one", "threshold": 0.5, "gates": False},
    ]
    assert failed_metrics(made, cuts) == [("made.up",), (), ()]

"""What a fit may be asked for, and how many labels that takes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from guardrail_offline.calibration.fit_options import Options, parse_weights
from guardrail_offline.calibration.sampling import best_promise, plan, table
from guardrail_service.errors import ConfigurationError


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"alpha": 0.0}, "--alpha: found 0.0"),
        ({"delta": 1.0}, "--delta: found 1.0"),
        ({"alpha": 1e-50}, "--alpha: found 1e-50; expected at least 1e-09"),
        ({"delta": 1e-10}, "--delta: found 1e-10; expected at least 1e-09"),
        ({"recall": 2}, "--recall"),
        ({"split": 1.0}, "--split"),
        ({"miss_cost": -1}, "--miss-cost"),
        ({"rule": "guess"}, "--rule: found guess; expected joint"),
        ({"method": "guess"}, "--method"),
        ({"unit": "case"}, "--unit"),
        ({"looks": "often"}, "--looks"),
        ({"weights": {"a.b": 0.0}}, "--weight"),
        ({"learn": True, "split": 0}, "weights learnt on the data they are proved with"),
        ({"method": "scaled_min", "split": 0}, "by_ranks, which needs none"),
        ({"looks": "anytime", "rule": "average"}, "anytime with average"),
        ({"looks": "anytime", "method": "by_ranks"}, "scaled_min"),
    ],
)
def test_what_cannot_be_promised_is_refused_before_labels_are_read(
    options: dict[str, Any], says: str
) -> None:
    """By option, with what is expected."""
    with pytest.raises(ConfigurationError, match=says):
        Options(**options)


def test_weights_are_read_from_the_command_line() -> None:
    """A number per metric, or learn."""
    assert parse_weights(["a.b=2", "learn", "c.d=0.5"]) == ({"a.b": 2.0, "c.d": 0.5}, True)
    for wrong in ("a.b", "a.b=x", "a.b="):
        with pytest.raises(ConfigurationError, match=r"detector\.metric=NUMBER"):
            parse_weights([wrong])


def test_the_table_shown_before_labelling() -> None:
    """Good questions per promise."""
    rows = {need.alpha: (*need.surely, need.on_average) for need in table()}
    assert rows[0.05] == (45, 59, 19)
    assert rows[0.10] == (22, 29, 9)


def test_a_plan_counts_bad_answers_and_the_design_part() -> None:
    """105 good questions carry three odd answers at 5 %; half are bad, a fifth is for design."""
    found = plan(Options(alpha=0.05, delta=0.10, split=0.2), 0.5)
    assert (found.least, found.comfortable) == (45, 105)
    assert found.labels == 263
    assert found.least_labels == 90
    assert found.anytime > found.least
    assert found.as_json()["questions_to_label"] == 263


def test_the_strictest_plan_is_quick() -> None:
    """It takes thousands of millions of labels, and saying so takes no time."""
    found = plan(Options(alpha=1e-9, delta=0.10), 0.7)
    assert found.least == pytest.approx(-math.log(0.10) * 1e9, rel=1e-6)
    assert 1.5 < found.anytime / found.least < 1.6


def test_what_some_labels_can_promise_at_best() -> None:
    """The other way round."""
    assert best_promise(22, 0.10) == pytest.approx(1 - 0.1 ** (1 / 22), abs=1e-6)

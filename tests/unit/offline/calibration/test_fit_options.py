"""What a fit may be asked for, and how many labels that takes."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail_offline.calibration.fit_options import FitOptions, parse_weights
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
        FitOptions(**options)


def test_weights_are_read_from_the_command_line() -> None:
    """A number per metric, or learn."""
    assert parse_weights(["a.b=2", "learn", "c.d=0.5"]) == ({"a.b": 2.0, "c.d": 0.5}, True)
    for wrong in ("a.b", "a.b=x", "a.b="):
        with pytest.raises(ConfigurationError, match=r"detector\.metric=NUMBER"):
            parse_weights([wrong])

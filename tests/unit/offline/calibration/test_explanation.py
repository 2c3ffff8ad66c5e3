"""A promise in plain words: what it says, what it rests on, what it does not say."""

from __future__ import annotations

import pytest

from guardrail_offline.calibration.explanation import explain
from guardrail_offline.calibration.fit_options import FitOptions
from tests.unit.offline.calibration.conftest import TEN, Files, run


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (TEN, "by any of these checks with probability at most 10.0%"),
        (FitOptions(rule="false_flag", alpha=0.1), "Several metrics together flag more"),
        (FitOptions(rule="average", alpha=0.1), "only on average over draws of labels"),
        (FitOptions(rule="recall", recall=0.5), "at least 50% of bad answers are flagged"),
        (
            FitOptions(rule="recall", recall=0.5, unit="worst_of_group"),
            "at least 50% of new questions with bad answers, one or more of these are flagged",
        ),
        (FitOptions(alpha=0.2, unit="worst_of_group"), "any of the good answers to a new question"),
    ],
)
def test_every_promise_is_said_in_plain_words(files: Files, options: FitOptions, says: str) -> None:
    """With what is not promised."""
    text = " ".join(explain(run(files, options).content))
    assert says in text
    assert "Not promised" in text


def test_a_comparison_rests_on_no_bound(files: Files) -> None:
    """It has none."""
    text = " ".join(explain(run(files, FitOptions(rule="youden")).content))
    assert "The bound rests" not in text
    assert "how many good answers are flagged; that bad ones are caught" in text


def test_a_file_without_provenance_promises_nothing() -> None:
    """Hand-written, or another tool's."""
    assert "promises nothing" in explain({"evaluator_ids": ["looping"]})[0]

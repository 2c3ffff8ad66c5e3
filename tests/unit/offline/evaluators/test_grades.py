"""The grades that ship: every surrogate has one or a reason, and people can read it."""

from __future__ import annotations

import pytest

from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.grades import UNKNOWN, grade_line, grade_of, measured, word

SPECS = CATALOGUE.specs()


@pytest.mark.parametrize("spec", [pytest.param(one, id=one.id) for one in SPECS if one.surrogate])
def test_a_surrogate_has_a_grade_or_a_reason(spec: object) -> None:
    """Never a guess: a number stands on rows, sets and a date."""
    found = grade_of(spec)  # type: ignore[arg-type]
    if found["grade"] == UNKNOWN:
        assert found["reason"]
        return
    assert found["measured"] <= "2100"
    for one in found["metrics"].values():
        low, high = one["area_95"]
        assert 0 <= low <= one["area"] <= high <= 1
        assert one["n"] > 0
        assert all(found["sets"][name]["seen_before"] for name in one["sets"])


def test_a_grade_is_a_word_for_the_lower_end() -> None:
    """So that few rows do not make a good one."""
    words = [word(area) for area in (0.85, 0.8, 0.75, 0.6, 0.55)]
    assert words == ["good", "good", "fair", "weak", "poor"]


def test_a_grade_is_one_line_for_people() -> None:
    """Area and kappa with intervals, how many rows of what; or why there is none."""
    line = grade_line(CATALOGUE["faithfulness"].spec)
    assert all(part in line for part in ("area 0.", "kappa", "at 0.75", "hagrid", "people"))
    assert grade_line(CATALOGUE["rouge"].spec).split(":")[0] in ("good", "fair", "weak", "poor")
    assert "declines" in grade_line(CATALOGUE["byop"].spec)
    assert "no labelled steps" in grade_line(CATALOGUE["step_alignment"].spec)
    assert "has no model" in grade_line(CATALOGUE["perplexity"].spec)
    assert "follows a rule" in grade_line(CATALOGUE["json_schema"].spec)


def test_what_has_no_grade_is_not_graded() -> None:
    """And every set says for what it was read before."""
    found = measured()
    assert not set(found["not_measured"]) & set(found["grades"])
    assert {one["labels"] for one in found["sets"].values()} <= {
        "people",
        "constructed",
        "generated",
    }

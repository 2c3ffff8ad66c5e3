"""Steps are found by their markers and aligned with the fewest edits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.steps import align, steps
from guardrail_service.types import Passage
from tests.unit.offline.stand_ins import models

EVALUATOR = CATALOGUE["step_alignment"]
PROCEDURE = "1. Unplug the machine.\n2. Remove the filter.\n3. Rinse it with warm water."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PROCEDURE, ["Unplug the machine.", "Remove the filter.", "Rinse it with warm water."]),
        ("- Open the lid\n- Close it", ["Open the lid", "Close it"]),
        ("Step 1: Open the lid.\nStep 2: Close it.", ["Open the lid.", "Close it."]),
        (
            "First, open the lid. Then press start. Finally, close it.",
            ["open the lid.", "press start.", "close it."],
        ),
        ("a) Open it\nb) Close it", ["Open it", "Close it"]),
        ("Open the lid and close it.", []),
        ("1. A single point.", []),
    ],
)
def test_steps_are_what_stands_behind_markers(text: str, found: list[str]) -> None:
    """Numbers, bullets, letters, "Step n" and words of order; one alone is no list."""
    assert steps(text) == found


@given(st.integers(1, 6))
def test_the_same_steps_need_no_edit(size: int) -> None:
    """Identity."""
    assert align(np.eye(size), 0.5) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("wanted", "given", "found"),
    [
        ("abc", "ac", (1, 1, 0, 0)),
        ("ac", "abc", (1, 0, 1, 0)),
        ("abc", "axc", (1, 0, 0, 1)),
        ("abc", "", (3, 3, 0, 0)),
        ("", "ab", (2, 0, 2, 0)),
        ("abc", "bca", (2, 1, 1, 0)),
        ("kitten", "sitting", (3, 0, 1, 2)),
    ],
)
def test_edits_are_those_of_the_textbook(
    wanted: str, given: str, found: tuple[int, int, int, int]
) -> None:
    """Edits, insertions, deletions, mismatches of strings, a letter a step."""
    table = np.array([[float(a == b) for b in given] for a in wanted]).reshape(
        len(wanted), len(given)
    )
    assert align(table, 0.5) == found


@given(st.text("ab", max_size=6), st.text("ab", max_size=6))
def test_edits_are_the_sum_of_their_kinds(wanted: str, given: str) -> None:
    """Nothing is counted twice or lost."""
    table = np.array([[float(a == b) for b in given] for a in wanted]).reshape(
        len(wanted), len(given)
    )
    found = align(table, 0.5)
    assert found.edits == found.insertions + found.deletions + found.mismatches
    assert found.insertions - found.deletions == len(wanted) - len(given)


def judge(answer: str, context: str) -> dict[str, float | str | None]:
    """Return the values or reasons of one case."""
    view = CaseView(Case("1", "How?", answer, contexts=(Passage(context),)), models())
    (result,) = EVALUATOR.evaluate([view], EVALUATOR.parameters())
    return {key: s.reason if s.value is None else s.value for key, s in result.scores.items()}


def test_a_left_out_step_is_an_insertion() -> None:
    """What the answer lacks has to be inserted."""
    found = judge("1. Unplug the machine.\n2. Rinse it with warm water.", PROCEDURE)
    assert (found["edits"], found["insertions"]) == (1.0, 1.0)
    assert (found["original_detected_steps"], found["generated_detected_steps"]) == (3.0, 2.0)


def test_passages_without_steps_are_not_applicable() -> None:
    """There is no procedure to follow."""
    assert judge(PROCEDURE, "No list here.")["edits"] == "no_steps"


def test_an_answer_without_steps_lacks_all_of_them() -> None:
    """It is judged, not skipped."""
    assert judge("Just clean it.", PROCEDURE)["edits"] == 3.0

"""Grades of evaluators: agreement, the rows of a set, and a run that is stopped and goes on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from guardrail_bench import constructed, evaluator_grades, grade_sets
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.grades import measured
from guardrail_service.errors import InputError

BAD = "Please contact Nora Becker at nora@example.org."
GOOD = "The pool opens at seven."


def folder(tmp_path: Path, rows: int = 8) -> Path:
    """Write the set of contacts: every second row has an address."""
    written = tmp_path / "pii"
    written.mkdir()
    lines = []
    for number in range(rows):
        spans = [{"type": "EMAIL_ADDRESS"}] if number % 2 else []
        lines.append({"text": f"{BAD if number % 2 else GOOD} {number}", "spans": spans})
    content = "\n".join(map(json.dumps, lines))
    (written / "synthetic_sentences.jsonl").write_text(content)
    return tmp_path


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # Cohen 1960: both yes, first alone, second alone, neither.
        ((20, 5, 10, 15), 0.4),
        ((5, 0, 0, 5), 1.0),
        ((0, 5, 5, 0), -1.0),
        ((5, 5, 5, 5), 0.0),
    ],
)
def test_kappa_is_agreement_beyond_chance(table: tuple[int, ...], expected: float) -> None:
    """Of decisions and labels."""
    both, first, second, neither = table
    one = np.array([True] * (both + first) + [False] * (second + neither))
    other = np.array([True] * both + [False] * first + [True] * second + [False] * neither)
    assert evaluator_grades.kappa(one, other) == pytest.approx(expected)


def test_kappa_of_one_class_is_no_number() -> None:
    """Chance alone agrees."""
    same = np.ones(3, dtype=np.bool_)
    assert math.isnan(evaluator_grades.kappa(same, same))


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """With the same numbers, from the scores it has kept."""
    data, kept = folder(tmp_path), tmp_path / "scores.jsonl"
    (contacts,) = (one for one in grade_sets.grade_sets() if one.name == "contacts")
    assert len(contacts.rows(data, 4, 1)) == 4
    assert contacts.rows(data, 4, 1) == contacts.rows(data, 4, 1)
    whole = evaluator_grades.run(data, 6, kept)
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join(lines[: len(lines) // 2]) + "\n")
    assert evaluator_grades.run(data, 6, kept) == whole
    found = whole["grades"]["contact_information"]["model_passes"]
    assert (found["area"], found["kappa"], found["n"], found["threshold"]) == (1.0, 1.0, 6, 0.5)
    assert whole["sets"]["contacts"]["good_rows"] == 3


def test_a_folder_without_sets_is_refused(tmp_path: Path) -> None:
    """It says what is expected."""
    with pytest.raises(InputError, match="expected grounding"):
        evaluator_grades.run(tmp_path, 6)


def test_every_metric_that_a_set_is_about_exists() -> None:
    """And so does every evaluator without a grade, none of which has one."""
    graded = {evaluator for evaluator, _, _ in grade_sets.graded_by(grade_sets.grade_sets())}
    for evaluator, metric, _ in grade_sets.graded_by(grade_sets.grade_sets()):
        assert metric in CATALOGUE[evaluator].spec.keys
    assert not graded & set(grade_sets.NOT_MEASURED)
    assert all(name in {one.spec.id for one in CATALOGUE} for name in grade_sets.NOT_MEASURED)


def test_rows_are_read_as_their_set_says() -> None:
    """A claim is also the expected one; a dialogue's question is the message before."""
    row = {"premise": "P.", "hypothesis": "H.", "supported": 1, "meta": {"message": "M?"}}
    claim, reply = grade_sets.claim_of(row), grade_sets.dialogue_of(row)
    cited = grade_sets.cited_of(row)
    assert claim is not None
    assert reply is not None
    assert cited is not None
    assert (claim.case.answer, claim.case.expected, claim.good) == ("H.", "H.", True)
    assert reply.case.question == "M?"
    assert (cited.case.answer, cited.case.expected) == ("H. [1]", None)
    assert grade_sets.claim_of({**row, "split": "train"}) is None
    assert grade_sets.relevance_of({"src": "other"}) is None


def test_what_says_whether_answers_are_right_is_graded_by_construction() -> None:
    """Counts are those of precision and recall. Short answers have no citations, steps, topics."""
    built = measured()["by_construction"]
    wanted = {spec.id for spec in CATALOGUE.specs() if constructed.graded(spec)}
    assert wanted - set(built["evaluators"]) == {"citations", "step_alignment", "summarization"}
    assert "faithfulness" in wanted
    assert {"grammar", "secrets", "rouge"}.isdisjoint(wanted)
    for metrics in built["evaluators"].values():
        (one,) = metrics.values()
        right, called = one["right_called_right"], one["wrong_called_right"]
        if one["precision"] is not None:
            assert one["precision"] == pytest.approx(right / (right + called), abs=0.001)
            assert one["precision_95"][0] <= one["precision"] <= one["precision_95"][1]

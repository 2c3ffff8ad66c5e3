"""Files an agent left: parsed, non-empty, expected, with the expected values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.agent_sanity import (
    AgentSanityParameters,
    check_folder,
)
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.result import Result
from guardrail_service.types import State
from tests.unit.offline.stand_ins import models

EVALUATOR = CATALOGUE["agent_sanity_check"]


def judge(folder: Path | str | None, **parameters: Any) -> Result:
    """Return the result for a case with this folder."""
    case = Case("1", "?", "Done.", artifacts=str(folder) if folder else None, cost=0.25)
    return EVALUATOR.evaluate([CaseView(case, models())], AgentSanityParameters(**parameters))[0]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", b'{"a": 1}', ""),
        ("a.json", b'{"a": 1', "invalid_json"),
        ("a.json", b"\xff\xfe", "invalid_json"),
        ("a.jsonl", b'{"a": 1}\n\n{"b": 2}\n', ""),
        ("a.jsonl", b'{"a": 1}\n{"b"\n', "invalid_json"),
        ("a.txt", b"page one\x0cpage two", ""),
        ("a.txt", b"page one\x0c \x0cpage three", "empty_page"),
        ("a.md", b"   \n", "empty"),
        ("a.png", b"", "empty"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    """One check per file, the first that fails."""
    (tmp_path / name).write_bytes(content)
    assert [a.problem for a in check_folder(tmp_path, AgentSanityParameters())] == [problem]


def test_sanity_is_the_share_of_sound_files(tmp_path: Path) -> None:
    """A missing file counts; the session record does not."""
    (tmp_path / "report.json").write_text('{"total": {"rows": 3}}')
    (tmp_path / "notes.txt").write_text("fine")
    (tmp_path / "session.json").write_text(json.dumps({"steps": []}))
    found = judge(tmp_path, agent_expected_files=["report.json", "plot.png"])
    assert found.scores["agent_sanity"].value == pytest.approx(2 / 3)
    assert found.details == {"problems": {"plot.png": "missing"}}
    assert found.scores["agent_file_count"].value == 2.0


@pytest.mark.parametrize(("wanted", "sanity"), [(3, 1.0), (4, 0.0)])
def test_values_inside_json_are_compared(tmp_path: Path, wanted: int, sanity: float) -> None:
    """By their path."""
    (tmp_path / "report.json").write_text('{"total": {"rows": 3}}')
    found = judge(tmp_path, agent_expected_values={"report.json": {"total.rows": wanted}})
    assert found.scores["agent_sanity"].value == sanity


def test_the_session_is_counted(tmp_path: Path) -> None:
    """Steps, tools, failures and changes of plan; cost and duration come from the case."""
    (tmp_path / "out.txt").write_text("x")
    steps = [{"tool": "search", "ok": True}, {"tool": "run", "ok": False}, {"thought": "hm"}]
    (tmp_path / "session.json").write_text(json.dumps({"steps": steps, "plan_changes": 1}))
    scores = judge(tmp_path).scores
    names = ("agent_steps", "agent_tools_used", "agent_tools_failures", "agent_plan_changes")
    assert [scores[name].value for name in names] == [3, 2, 1, 1]
    assert scores["agent_cost"].value == 0.25
    assert scores["agent_duration_s"].reason == "not_recorded"


def test_a_folder_without_session_has_no_session_numbers(tmp_path: Path) -> None:
    """Missing, not zero."""
    (tmp_path / "out.txt").write_text("x")
    assert judge(tmp_path).scores["agent_steps"].reason == "no_session"


def test_a_session_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """The files are still judged."""
    (tmp_path / "out.txt").write_text("x")
    (tmp_path / "session.json").write_text('{"steps": 3}')
    scores = judge(tmp_path).scores
    assert scores["agent_steps"].state is State.ERROR
    assert scores["agent_sanity"].value == 1.0


def test_without_a_folder_there_is_nothing_to_judge(tmp_path: Path) -> None:
    """A folder that is named and not there is an error; an empty one cannot be scored."""
    assert judge(None).scores["agent_sanity"].reason == "no_artifacts"
    assert judge("/no/such/folder").scores["agent_sanity"].state is State.ERROR
    assert judge(tmp_path).scores["agent_sanity"].reason == "not_scorable"

"""The commands: what is made, changed, shown, shared and removed, and what is refused."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from guardrail_offline.workflow.definition import read_definition
from guardrail_offline.workflow.folder import WorkflowFolder
from guardrail_service.commands.main import app

Guardrail = Callable[..., Result]


@pytest.fixture
def guardrail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Guardrail:
    """Run `guardrail workflow` with a folder `w` that has one document."""
    (tmp_path / "guide.md").write_text("The ferry leaves at nine.\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *sys.path])
    for module in ("made_system", "other_system"):
        (tmp_path / f"{module}.py").write_text("def answer(question):\n    return ''\n", "utf-8")

    def run(*words: str, told: str | None = None) -> Result:
        command = [one.replace("DIR", str(tmp_path)) for one in ("workflow", *words)]
        return CliRunner().invoke(app, command, input=told)

    made = run("init", "DIR/w", "DIR/guide.md", "--target", "python:made_system:answer")
    assert made.exit_code == 0, made.output
    return run


def test_what_init_is_told_stands_in_the_folder(guardrail: Guardrail, tmp_path: Path) -> None:
    """Documents are copied, parameters have their values, the target its address."""
    folder = WorkflowFolder(tmp_path / "w")
    definition = read_definition(folder)
    assert [one.path for one in definition.documents] == ["documents/guide.md"]
    assert definition.target is not None
    assert definition.target.target == "python:made_system:answer"
    assert definition.judge is None
    assert folder.content("workflow.json")["steps"]["topics"]["top_n_words"] == 6
    assert str(tmp_path) not in folder.definition.read_text("utf-8")


def test_init_imports_the_target(guardrail: Guardrail, tmp_path: Path) -> None:
    """A module that is not there is named, and no folder is made."""
    found = guardrail("init", "DIR/v", "DIR/guide.md", "--target", "python:my_system:answer")
    assert found.exit_code == 2
    assert "found no module 'my_system'" in " ".join(found.output.split())
    assert not (tmp_path / "v").exists()


def test_status_tells_programs_and_people(guardrail: Guardrail) -> None:
    """Nothing has run: nine steps are missing."""
    found = json.loads(guardrail("status", "DIR/w", "--json").output)
    assert [one["state"] for one in found] == ["missing"] * 9
    assert "adversarial" in guardrail("status", "DIR/w").output


@pytest.mark.parametrize(
    ("words", "check"),
    [
        (("--set", "generation.count=9"), lambda d: d.steps["generation"]["count"] == 9),
        (
            ("--target", "python:other_system:answer"),
            lambda d: d.target.target == "python:other_system:answer",
        ),
        (("--contexts",), lambda d: d.target.contexts),
        (("--answers", "DIR/given.jsonl"), lambda d: d.target.answers == "answers.jsonl"),
        (("--target", "DIR/service.json"), lambda d: d.target.template == "target.json"),
        (("--judge", "http://j/v1", "--judge-model", "m"), lambda d: d.judge.model == "m"),
        (("--labels", "DIR/labels.csv"), lambda d: d.labels == "labels.csv"),
        (("--add", "DIR/given.jsonl"), lambda d: len(d.documents) == 2),
        (("--remove", "guide.md"), lambda d: d.documents == ()),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_edit_changes_one_thing(
    guardrail: Guardrail, tmp_path: Path, words: tuple[str, ...], check: Callable[..., bool]
) -> None:
    """The rest of the definition stays."""
    for name in ("given.jsonl", "labels.csv", "service.json"):
        (tmp_path / name).write_text("{}\n", "utf-8")
    done = guardrail("edit", "DIR/w", *words)
    assert done.exit_code == 0, done.output
    assert check(read_definition(WorkflowFolder(tmp_path / "w")))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("edit", "DIR/w", "--set", "topics.words=3"), "topics.words"),
        (("edit", "DIR/w", "--remove", "other.md"), "--remove"),
        (("edit", "DIR/w", "--judge-model", "m"), "--judge"),
        (("edit", "DIR/w", "--target", "a", "--answers", "b"), "one or the other"),
        (("edit", "DIR/w", "--labels", "DIR/none.csv"), "no such file"),
        (("init", "DIR/w"), "a folder with content"),
        (("init", "DIR/v", "DIR/none"), "a document"),
        (("run", "DIR/w", "--step", "tests"), "--step"),
        (("run", "DIR/w", "--step", "weaknesses"), "4-evaluation.json, which is missing"),
        (("share", "DIR/w"), "--out ZIP, or --import ZIP"),
        (("compare", "DIR/w", "DIR/w"), "4-evaluation.json"),
        (("status", "DIR"), "workflow.json"),
    ],
    ids=lambda value: "-".join(value).replace("DIR/", "") if isinstance(value, tuple) else "",
)
def test_a_mistake_ends_with_one_line_and_status_2(
    guardrail: Guardrail, words: tuple[str, ...], message: str
) -> None:
    """It names what was found and what was expected."""
    done = guardrail(*words)
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_delete_asks_first(guardrail: Guardrail, tmp_path: Path) -> None:
    """No leaves everything; `--yes` asks nobody."""
    assert guardrail("delete", "DIR/w", told="n\n").exit_code == 0
    assert (tmp_path / "w").exists()
    assert guardrail("delete", "DIR/w", "--yes").exit_code == 0
    assert not (tmp_path / "w").exists()


def test_documents_of_a_folder_that_would_leak_are_refused(
    guardrail: Guardrail, tmp_path: Path
) -> None:
    """A link that leads out would have its file shared; dot files stay where they are."""
    docs = tmp_path / "docs"
    (docs / ".git").mkdir(parents=True)
    (docs / ".git" / "config").write_text("token")
    (docs / "rules.md").write_text("The pool opened in 1974.")
    assert guardrail("init", "DIR/x", "DIR/docs").exit_code == 0
    assert [one.name for one in (tmp_path / "x/documents").iterdir()] == ["rules.md"]
    (docs / "guide.md").symlink_to(tmp_path / "guide.md")
    refused = guardrail("init", "DIR/y", "DIR/docs")
    assert (refused.exit_code, "leads out" in " ".join(refused.output.split())) == (2, True)
    (docs / "guide.md").unlink()
    (docs / os.fsdecode(b"\xff.md")).write_text("x")
    refused = guardrail("edit", "DIR/w", "--add", "DIR/docs")
    assert refused.exit_code == 2
    assert "printable" in refused.output


def test_share_and_report_before_anything_has_run(guardrail: Guardrail, tmp_path: Path) -> None:
    """A page of nine missing steps, and a zip that comes back."""
    reported = guardrail("report", "DIR/w")
    assert reported.exit_code == 0
    assert f"wrote {tmp_path / 'w/report.html'}" in reported.output
    page = (tmp_path / "w/report.html").read_text("utf-8")
    assert page.count("Missing") == 9
    assert guardrail("share", "DIR/w", "--out", "DIR/w.zip").exit_code == 0
    assert guardrail("share", "DIR/v", "--import", "DIR/w.zip").exit_code == 0
    assert (tmp_path / "v/documents/guide.md").exists()

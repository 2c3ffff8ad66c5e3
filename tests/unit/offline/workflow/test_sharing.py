"""A shared workflow comes back as it was, and a zip that means harm leaves nothing behind."""

from __future__ import annotations

import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from guardrail_offline.workflow import sharing
from guardrail_offline.workflow.definition import (
    JudgeChoice,
    TargetChoice,
    create,
    read_definition,
    refuse_received,
    write_definition,
)
from guardrail_offline.workflow.folder import StepRecord, WorkflowFolder, locked
from guardrail_offline.workflow.sharing import (
    absolute_paths,
    delete,
    receive,
    share,
)
from guardrail_offline.workflow.step_engine import Effort, StepContext
from guardrail_offline.workflow.workflow_page import write_page
from guardrail_offline.workflow_commands import workflow_app
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.model_risk.made_workflow import make_workflow


@pytest.fixture
def folder(tmp_path: Path) -> WorkflowFolder:
    """Make a workflow with documents and labels."""
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/a.md").write_text("The ferry leaves at nine.\n", "utf-8")
    (tmp_path / "labels.csv").write_text("case,label\na,pass\n", "utf-8")
    return create(tmp_path / "w", [tmp_path / "papers"], labels=tmp_path / "labels.csv")


def contents(root: Path) -> dict[str, bytes]:
    """Return every file that is shared."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.mark.parametrize(
    ("target", "received"),
    [
        (TargetChoice(target="http://evil.example/v1", model="m", key_env="BANK"), True),
        (TargetChoice(target="python:os:getcwd"), True),
        (TargetChoice(answers="answers.jsonl"), False),
        (None, False),
    ],
    ids=["host", "callable", "answers", "none"],
)
def test_whom_somebody_else_chose_is_not_asked(
    folder: WorkflowFolder, tmp_path: Path, target: TargetChoice | None, received: bool
) -> None:
    """A host with the name of a variable would be sent that variable."""
    (folder.root / "answers.jsonl").write_text("", "utf-8")
    write_definition(folder, read_definition(folder).model_copy(update={"target": target}))
    share(folder, tmp_path / "w.zip")
    there = receive(tmp_path / "w.zip", tmp_path / "there")
    found = read_definition(there)
    assert (found.target, found.received) == (target, received)
    if received:
        with pytest.raises(ConfigurationError, match="edit FOLDER --trust"):
            refuse_received(found, "target")
        edited = CliRunner().invoke(workflow_app, ["edit", str(there.root), "--trust"])
        assert edited.exit_code == 0, edited.output
        assert not read_definition(there).received


def test_a_judge_that_somebody_else_chose_is_not_asked(
    folder: WorkflowFolder, tmp_path: Path
) -> None:
    """Its kept answers are read: that asks nobody."""
    for mode in ("read-write", "replay"):
        judge = JudgeChoice(url="http://evil.example/v1", model="m", mode=mode)
        write_definition(folder, read_definition(folder).model_copy(update={"judge": judge}))
        share(folder, tmp_path / f"{mode}.zip")
        there = receive(tmp_path / f"{mode}.zip", tmp_path / mode)
        context = StepContext(
            there, read_definition(there), "generation", None, pytest.fail, Effort()
        )
        if mode == "replay":
            assert context.judge() is not None
        else:
            with pytest.raises(ConfigurationError, match=r"judge: found chosen by whoever"):
                context.judge()


@pytest.mark.parametrize(
    "url", ["python:evil:judge", "settings.json", "bedrock:eu-west-1"], ids=["code", "file", "aws"]
)
def test_no_code_of_a_judge_that_somebody_else_chose_runs(
    folder: WorkflowFolder, tmp_path: Path, url: str
) -> None:
    """Opening one imports a module or reads a file even where only kept answers are used."""
    judge = JudgeChoice(url=url, model="m", mode="replay")
    write_definition(folder, read_definition(folder).model_copy(update={"judge": judge}))
    share(folder, tmp_path / "w.zip")
    there = receive(tmp_path / "w.zip", tmp_path / "there")
    context = StepContext(there, read_definition(there), "generation", None, pytest.fail, Effort())
    with pytest.raises(ConfigurationError, match=r"judge: found chosen by whoever"):
        context.judge()


def test_a_shared_workflow_is_the_same_elsewhere(folder: WorkflowFolder, tmp_path: Path) -> None:
    """Every file, and no path of this machine; the same workflow gives the same zip."""
    archive = tmp_path / "w.zip"
    assert share(folder, archive) == len(contents(folder.root))
    with zipfile.ZipFile(archive) as packed:
        assert all(not name.startswith("/") for name in packed.namelist())
    other = receive(archive, tmp_path / "elsewhere" / "w")
    assert contents(other.root) == contents(folder.root)
    assert absolute_paths(folder) == []
    again = tmp_path / "again.zip"
    share(other, again)
    assert again.read_bytes() == archive.read_bytes()


def test_documents_can_stay_at_home(folder: WorkflowFolder, tmp_path: Path) -> None:
    """Then the zip has none of them."""
    share(folder, tmp_path / "w.zip", texts=False)
    with zipfile.ZipFile(tmp_path / "w.zip") as packed:
        assert not [name for name in packed.namelist() if name.startswith("documents/")]


def test_a_zip_inside_of_its_own_workflow_is_refused(folder: WorkflowFolder) -> None:
    """It would contain itself next time."""
    with pytest.raises(ConfigurationError, match="a place outside of it"):
        share(folder, folder.root / "w.zip")


_FEW = 20


def _linked(archive: zipfile.ZipFile) -> None:
    about = zipfile.ZipInfo("link")
    about.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive.writestr(about, "/etc/passwd")


def _bomb(archive: zipfile.ZipFile) -> None:
    archive.writestr("big.json", b"\0" * (8 * 2**20), zipfile.ZIP_DEFLATED)


def _crowd(archive: zipfile.ZipFile) -> None:
    for number in range(_FEW + 1):
        archive.writestr(zipfile.ZipInfo(f"f{number}"), b"")


def _outward(archive: zipfile.ZipFile) -> None:
    target = TargetChoice(answers="../../answers.jsonl").model_dump()
    archive.writestr("workflow.json", json.dumps({"target": target}))


def _endless(archive: zipfile.ZipFile) -> None:
    record = StepRecord("topics", {}, (), {}, files={"/dev/zero": "0" * 64})
    archive.writestr("workflow.json", "{}")
    archive.writestr("1-topics.json", json.dumps(record.as_json()))


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (lambda z: z.writestr("../out.txt", "x"), "leads elsewhere"),
        (lambda z: z.writestr("/out.txt", "x"), "leads elsewhere"),
        (lambda z: z.writestr("a\\..\\out.txt", "x"), "leads elsewhere"),
        (lambda z: z.writestr(".lock", "x"), "leads elsewhere"),
        (lambda z: (z.writestr("a", "1"), z.writestr("A", "2")), "a name twice"),
        (_linked, "a link or device"),
        (_bomb, "times its packed size"),
        (_crowd, "at most 20"),
        (lambda z: z.writestr("readme.txt", "x"), r"no workflow.json"),
        (_outward, "a path that leads elsewhere"),
        (_endless, "files: found a path that leads elsewhere"),
        (lambda z: z.writestr("workflow.json", '{"pack": "/home/x/pack"}'), "pack: found a folder"),
        (lambda z: z.writestr("workflow.json", '{"pack": "w"}'), "pack: found a folder"),
    ],
    ids=[
        "up",
        "root",
        "backslash",
        "hidden",
        "twice",
        "link",
        "bomb",
        "crowd",
        "other",
        "outward",
        "endless",
        "pack",
        "pack-here",
    ],
)
def test_a_zip_that_means_harm_is_refused_whole(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fill: Callable[[zipfile.ZipFile], object],
    message: str,
) -> None:
    """Nothing is left, inside or outside of the folder."""
    monkeypatch.setattr(sharing, "MOST_FILES", _FEW)
    archive, home = tmp_path / "in.zip", tmp_path / "home"
    home.mkdir()
    with zipfile.ZipFile(archive, "w") as packed:
        fill(packed)
    with pytest.raises(ConfigurationError, match=message):
        receive(archive, home / "w")
    assert list(home.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "in.zip"]


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    """A text, and a folder with content as its goal."""
    (tmp_path / "in.zip").write_text("no zip", "utf-8")
    with pytest.raises(ConfigurationError, match="a zip of guardrail workflow share"):
        receive(tmp_path / "in.zip", tmp_path / "w")
    with pytest.raises(ConfigurationError, match="a folder with content"):
        receive(tmp_path / "in.zip", tmp_path)


@pytest.mark.parametrize(
    "packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA], ids=["z", "bz2", "xz"]
)
def test_a_corrupt_stream_is_refused_whole(tmp_path: Path, packing: int) -> None:
    """Each packer has an error of its own; all of them are one message."""
    archive, head = tmp_path / "in.zip", 30 + len("workflow.json")
    with zipfile.ZipFile(archive, "w", packing) as packed:
        packed.writestr("workflow.json", "{}" * 500)
    content = bytearray(archive.read_bytes())
    content[head : head + 8] = bytes(one ^ 0xFF for one in content[head : head + 8])
    archive.write_bytes(content)
    with pytest.raises(ConfigurationError, match="a zip of guardrail workflow share"):
        receive(archive, tmp_path / "w")
    assert [path.name for path in tmp_path.iterdir()] == ["in.zip"]


def test_a_workflow_in_use_is_not_deleted(folder: WorkflowFolder) -> None:
    """Afterwards it is, with everything."""
    with locked(folder), pytest.raises(ConfigurationError, match="one writer at a time"):
        delete(folder)
    delete(folder)
    assert not folder.root.exists()


def test_a_step_of_another_shape_ends_with_a_line(tmp_path: Path) -> None:
    """A received file may say anything; the page names the folder, and is not written."""
    root = make_workflow(tmp_path / "w")
    with pytest.raises(ConfigurationError, match="as workflow run writes them"):
        write_page(WorkflowFolder(root), root / "report.html")
    assert not (root / "report.html").exists()

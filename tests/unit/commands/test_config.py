"""The commands under `guardrail config`, on files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from guardrail_service.commands.main import app


def run(*words: str) -> Result:
    """Run `guardrail config` as a user does."""
    return CliRunner().invoke(app, ["config", *words], env={"COLUMNS": "250"})


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A file in the form of version 1: words instead of rules."""
    path = tmp_path / "older.json"
    content = {
        "evaluator_ids": ["groundedness", "pii", "looping"],
        "policy": {
            "on_unverified": {"groundedness": "pass"},
            "actions": {"pii": "redact", "looping": "block"},
        },
    }
    path.write_text(json.dumps(content))
    return path


def test_init_writes_a_file_that_can_be_served_and_touched(tmp_path: Path) -> None:
    """It is one of the shipped policies under another name; an existing file is never replaced."""
    path = tmp_path / "support-bot.json"
    made = run("init", str(path), "--base", "strict", "--preset", "precise")
    assert made.exit_code == 0, made.output
    assert run("check", str(path)).exit_code == 0
    shown = json.loads(run("show", str(path)).stdout)
    assert (shown["name"], shown["version"]) == ("support-bot", "1")
    assert {rule["preset"] for rule in shown["detectors"].values()} == {"precise"}
    assert str(tmp_path.anchor) not in path.read_text(), "no path of this machine"
    assert Path(" ".join(made.output.split()).rpartition(": ")[2]).is_file()
    again = run("init", str(path))
    assert again.exit_code == 2
    assert "a new file" in again.output


@pytest.mark.parametrize(
    ("words", "found", "expected"),
    [
        (["--base", "defalt"], "--base: found 'defalt'", "did you mean 'default'"),
        (["--preset", "precice"], "--preset: found 'precice'", "did you mean 'precise'"),
    ],
)
def test_init_refuses_a_name_it_does_not_know(
    tmp_path: Path, words: list[str], found: str, expected: str
) -> None:
    """With the nearest one it knows; nothing is written."""
    path = tmp_path / "x.json"
    refused = run("init", str(path), *words)
    assert refused.exit_code == 2
    assert found in refused.output
    assert expected in refused.output
    assert not path.exists()


def test_diff_compares_meanings_and_not_forms(tmp_path: Path, older: Path) -> None:
    """An upgraded file means the same; another action does not."""
    upgraded = tmp_path / "upgraded.json"
    assert run("upgrade", str(older), "--out", str(upgraded)).exit_code == 0
    rules = json.loads(upgraded.read_text())["policy"]["on_unverified"]
    assert rules["groundedness"] == {"*": {"decision": "pass"}}
    assert rules["pii"] == {"*": {"decision": "flag"}}
    same = run("diff", str(older), str(upgraded))
    assert (same.exit_code, same.stdout) == (0, "both mean the same\n")
    content = json.loads(upgraded.read_text())
    content["policy"]["actions"]["looping"] = "flag"
    upgraded.write_text(json.dumps(content))
    differ = run("diff", str(older), str(upgraded), "--json")
    assert differ.exit_code == 1
    assert json.loads(differ.stdout) == {
        "detectors.looping.action": {"old": "block", "new": "flag"}
    }


def test_shipped_policies_go_by_name() -> None:
    """Strict is not default, and the table says in what."""
    shown = run("diff", "default", "strict")
    assert shown.exit_code == 1
    assert "detectors.hallucination.preset" in shown.stdout
    assert run("diff", "default", "default").exit_code == 0


def test_a_calibrated_file_is_not_rewritten(tmp_path: Path, older: Path) -> None:
    """Its promise covers the form, too."""
    content = json.loads(older.read_text())
    content["calibration"] = {"method": "np_joint_scaled_min"}
    older.write_text(json.dumps(content))
    refused = run("upgrade", str(older))
    assert refused.exit_code == 2
    assert "calibrate again" in refused.output


@pytest.mark.parametrize("command", ["show", "upgrade", "check"])
def test_a_file_that_is_not_there_is_named(command: str, tmp_path: Path) -> None:
    """And ends with status 2."""
    gone = run(command, str(tmp_path / "gone.json"))
    assert gone.exit_code == 2
    assert "gone.json" in gone.output

"""`guardrail ask` on the command line: the example's function, a server, and a run that goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from guardrail_service.commands.main import app
from tests.unit.offline.hosts.server import Reply, serving

LAB = Path(__file__).parents[2] / "examples" / "lab"


def run(*words: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Three questions with a passage, one of them answered."""
    rows = [
        {"key": f"k{n}", "question": f"What is tool {n}?", "contexts": [f"No. Tool {n} is a saw."]}
        for n in range(3)
    ]
    rows[0]["answer"] = "A saw."
    path = tmp_path / "lab.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def answers(path: Path) -> list[Any]:
    """Return the answers of a lab."""
    return [one["actual_output"] for one in json.loads(path.read_text())["dataset"]["inputs"]]


def test_the_example_answers_a_lab(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its function is found from its folder."""
    monkeypatch.chdir(LAB)
    out = lab.with_name("asked.json")
    shown = run("ask", str(lab), "--target", "python:answer:first_sentence", "-o", str(out))
    assert shown.exit_code == 0, shown.output
    assert "2 questions answered, 0 were before, 0 are left" in shown.output
    assert answers(out) == ["A saw.", "Tool 1 is a saw.", "Tool 2 is a saw."]


def test_variants_are_perturbed_asked_and_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page shows, in the order it shows it."""
    monkeypatch.chdir(LAB)
    rows = [json.loads(line) for line in (LAB / "board.jsonl").read_text("utf-8").splitlines()]
    source, made = tmp_path / "source.jsonl", tmp_path / "perturbed.json"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows[:4]), "utf-8")
    kinds = "comma+qwerty,contextual_misinformation"
    assert run("perturb", str(source), "--by", kinds, "-o", str(made)).exit_code == 0
    out = tmp_path / "asked.json"
    shown = run("ask", str(made), "--target", "python:answer:first_sentence", "-o", str(out))
    assert shown.exit_code == 0, shown.output
    assert None not in answers(out)
    done = run("evaluate", str(out), "-e", "rouge", "-o", str(tmp_path / "run"))
    assert done.exit_code == 0, done.output
    rates = json.loads((tmp_path / "run" / "flips.json").read_text())["rates"]
    assert {rate["perturbation"] for rate in rates} == set(kinds.split(","))


def test_a_server_that_fails_is_asked_again_by_the_same_command(lab: Path) -> None:
    """What it answered the first time is not asked again."""

    def once(body: dict[str, Any]) -> Reply:
        asked = body["messages"][-1]["content"]
        if "tool 2" in asked and len(server.bodies) < 3:
            return Reply({}, 422)
        return Reply({"choices": [{"message": {"content": "A saw."}}]})

    out = lab.with_name("asked.json")
    with serving(answer=once) as server:
        words = ["ask", str(lab), "-o", str(out), "--target", server.url, "--target-model", "m"]
        first = run(*words, "--concurrency", "1")
        assert first.exit_code == 3, first.output
        assert answers(out) == ["A saw.", "A saw.", None]
        second = run(*words, "--json")
    assert second.exit_code == 0, second.output
    assert json.loads(second.output)["remembered"] == 1
    assert answers(out) == ["A saw."] * 3
    assert len(server.bodies) == 3


def test_a_wrong_target_ends_with_two(lab: Path) -> None:
    """Before anything is written."""
    out = lab.with_name("asked.json")
    shown = run("ask", str(lab), "-o", str(out), "--target", "ftp://example.test")
    assert shown.exit_code == 2
    assert "address" in shown.output
    assert not out.exists()

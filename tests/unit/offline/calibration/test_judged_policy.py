"""A judge's metric is bounded as a detector's is, and the file says which judge it needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from guardrail_service.commands.main import app
from tests.unit.offline.judge.scripted import judging

QUESTIONS = 60


def says(task: str, inputs: Mapping[str, Any]) -> Any:
    """State each sentence; the ones that end with "maybe" are not supported."""
    if task == "statements":
        return {"statements": [one for one in inputs["text"].split(".") if one.strip()]}
    return {
        "verdicts": [
            {
                "i": one["i"],
                "reason": "r",
                "verdict": "contradicted" if "maybe" in one["text"] else "supported",
            }
            for one in inputs["statements"]
        ]
    }


def evaluated(folder: Path, name: str, first: int, url: str, model: str = "judge-a") -> Path:
    """Return a run over questions from `first` on: one bad answer in four, scored by a judge."""
    lines = []
    for i in range(first, first + QUESTIONS):
        said = f"The pool of house {i} opens at {i % 12} maybe." if i % 4 == 0 else f"It is {i}."
        case = {"key": f"k{i}", "question": f"When does pool {i} open?", "answer": said}
        lines.append(json.dumps({**case, "contexts": [f"The pool of house {i} opens."]}))
    lab = folder / f"{name}.jsonl"
    lab.write_text("\n".join(lines) + "\n")
    given = ["evaluate", str(lab), "-o", str(folder / name), "-e", "faithfulness", "--judge", url]
    more = ["--judge-model", model, "--judge-for", "faithfulness", "--workers", "1", "--no-report"]
    done = CliRunner().invoke(app, [*given, *more])
    assert done.exit_code == 0, done.output
    return folder / name


def labels(folder: Path, name: str, first: int) -> Path:
    """Return words on the same questions: bad ones fail."""
    path = folder / f"{name}.labels.jsonl"
    rows = range(first, first + QUESTIONS)
    records = [{"case": f"k{i}", "label": "fail" if i % 4 == 0 else "pass"} for i in rows]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two runs of one judge, one of another, labels, and a file fitted to the first."""
    folder = tmp_path_factory.mktemp("judged")
    with judging(says) as (_, url):
        evaluated(folder, "fitted", 0, url)
        evaluated(folder, "later", 1000, url)
        evaluated(folder, "other", 1000, url, model="judge-b")
    labels(folder, "later", 1000)
    words = ["--labels", str(labels(folder, "fitted", 0)), "--alpha", ".2"]
    out = ["--metric", "faithfulness.faithfulness", "--out", str(folder / "judge.json")]
    done = CliRunner().invoke(app, ["calibrate", "fit", str(folder / "fitted"), *words, *out])
    assert done.exit_code == 0, done.output
    assert "the judge judge-a with the prompts of this file" in " ".join(done.output.split())
    return folder


def checked(folder: Path, run: str) -> Any:
    """Return how `calibrate check` ends."""
    words = ["--lab", str(folder / run), "--labels", str(folder / "later.labels.jsonl")]
    return CliRunner().invoke(app, ["calibrate", "check", str(folder / "judge.json"), *words])


def test_the_file_has_a_bound_and_names_its_judge(folder: Path) -> None:
    """Model and prompts, no address; every bad answer is caught by a threshold that says so."""
    content = json.loads((folder / "judge.json").read_text())
    block = content["calibration"]
    told = {"model": "judge-a", "prompts": ["statements/1", "support/1"]}
    assert block["judge"] == {"faithfulness": told}
    assert block["target"]["kind"] == "false_flag_rate"
    assert block["joint"]["recall"]["x"] == block["joint"]["recall"]["n"] > 0
    ((_, cuts),) = content["calibrated_thresholds"].items()
    assert 0.0 < cuts["faithfulness"] <= 1.0
    assert "http" not in json.dumps(content)


def test_later_labels_are_held_against_it(folder: Path) -> None:
    """With scores of the same judge; those of another one, or of none, are refused."""
    kept = checked(folder, "later")
    assert kept.exit_code == 0, kept.output
    assert "nothing speaks against" in kept.output or "confirmed" in kept.output
    other = checked(folder, "other")
    assert other.exit_code == 2
    assert "found the judge 'judge-b'" in other.output


def test_no_service_can_serve_it(folder: Path) -> None:
    """And says what it is, instead of an unknown detector."""
    shown = CliRunner().invoke(app, ["config", "check", str(folder / "judge.json")])
    assert shown.exit_code == 2
    assert "thresholds of scores that a judge gives" in " ".join(shown.output.split())


def test_detectors_and_a_judge_are_not_in_one_file(folder: Path) -> None:
    """The service has the ones and not the other."""
    words = ["--labels", str(folder / "fitted.labels.jsonl"), "--out", str(folder / "x.json")]
    both = ["--metric", "faithfulness", "--metric", "toxicity"]
    shown = CliRunner().invoke(app, ["calibrate", "fit", str(folder / "fitted"), *words, *both])
    assert shown.exit_code == 2
    assert "toxicity beside faithfulness" in " ".join(shown.output.split())

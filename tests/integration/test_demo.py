"""`make demo` itself: real service, real model, real client; and the same on reworded copies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REWORDED = ROOT / "tests" / "golden" / "demo_reworded.jsonl"


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the demo as `make demo` does."""
    command = [sys.executable, "examples/demo/run.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_demo_answer_is_decided_as_expected() -> None:
    """Nothing else than this says that the demo is right; its table is printed, never pasted."""
    run = demo()
    assert run.returncode == 0, run.stdout + run.stderr
    assert "44 answers, 44 as expected" in run.stdout


def test_reworded_answers_are_decided_the_same() -> None:
    """The decisions are not tied to the demo's words."""
    run = demo("--answers", str(REWORDED))
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_decision_that_differs_fails_the_demo(tmp_path: Path) -> None:
    """The demo is a check that can fail."""
    case = json.loads(REWORDED.read_text("utf-8").splitlines()[0])
    flipped = {"pass": "flag", "flag": "pass"}[case["expected"]["decision"]]
    case["expected"]["decision"] = flipped
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(json.dumps(case) + "\n", "utf-8")
    run = demo("--answers", str(wrong))
    assert run.returncode == 1, run.stdout + run.stderr
    assert f"different: {case['name']}" in run.stdout

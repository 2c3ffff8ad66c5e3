"""The example's nine steps: without a judge, with a replayed one, and killed in every step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.workflow.folder import STEPS, TITLES, StepName, WorkflowFolder
from guardrail_offline.workflow.nine_steps import run, status

pytestmark = pytest.mark.timeout(1800)  # on a busy machine a run takes minutes
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/workflow"
JUDGED = (
    "--judge", "python:rule_judge:chat", "--judge-model", "by-rule",
    "--set", 'evaluation.judge_for=["faithfulness"]',
    "--set", 'evaluation.evaluators=["faithfulness","answer_correctness"]',
)  # fmt: skip
FEW = (
    "--set", "generation.count=24", "--set", "variations.cases=6", "--set", "adversarial.count=10",
    "--set", "adversarial.resamples=200", "--set", "failures.trees=50",
    "--set", "topics.most_topics=4", "--set", "failures.least=4",
)  # fmt: skip
SMALL = (
    *FEW,
    "--set", 'evaluation.evaluators=["answer_strings","groundedness"]',
    "--set", 'calibration.thresholds={"answer_strings.token_f1":0.5}',
)  # fmt: skip


def environment(**more: str) -> dict[str, str]:
    """Return where the example's system and the commands are found."""
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": tools, "PYTHONPATH": str(EXAMPLE), **more}


def example(out: Path, *options: str, **more: str) -> WorkflowFolder:
    """Run the example's script and return its workflow."""
    command = ["bash", str(EXAMPLE / "run.sh"), str(out), *options]
    done = subprocess.run(command, env=environment(**more), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return WorkflowFolder(out / "harbour")


def contents(folder: WorkflowFolder) -> dict[str, Any]:
    """Return the steps' files but how long they took and how a judge was asked."""
    found = {}
    for step in STEPS:
        content = folder.content(folder.step_file(step).name)
        found[step] = {k: v for k, v in content.items() if k not in ("timings", "judge", "notes")}
    return found


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> WorkflowFolder:
    """Run the example without a judge, once."""
    return example(tmp_path_factory.mktemp("harbour"))


def results(folder: WorkflowFolder, step: StepName) -> Any:
    """Return what a step found."""
    record = folder.record(step)
    assert record is not None
    assert record.state == "done", record.reason
    return record.results


def test_all_nine_steps_are_done_without_a_judge(harbour: WorkflowFolder) -> None:
    """Each has its results, nothing is stale, and no judge was asked."""
    assert [one.state for one in status(harbour.root)] == ["current"] * 9
    for step in STEPS:
        assert results(harbour, step)
        found = harbour.record(step)
        assert found is not None
        assert found.judge is None


def test_the_planted_faults_are_found(harbour: WorkflowFolder) -> None:
    """The page that was never read is a weakness and a group of failures; typos flip verdicts."""
    weak = {one.get("value") for one in results(harbour, "weaknesses")["weak"]}
    assert "campsite.md" in weak
    assert all(one["spread"] for one in results(harbour, "failures")["failures"])
    groups = results(harbour, "failures")["clusters"]
    assert any("campsite.md" in one["words"] for one in groups)
    flips = {one["perturbation"]: 0 for one in results(harbour, "variations")["rates"]}
    for one in results(harbour, "variations")["flips"]:
        flips[one["perturbation"]] += 1
    assert flips["random_keyboard_typos"] == max(flips.values()) > 0


def test_labels_move_thresholds_and_say_what_they_promise(harbour: WorkflowFolder) -> None:
    """At least one metric is calibrated; people's and metrics' verdicts are compared."""
    found = results(harbour, "calibration")
    assert any(one["calibrated"] and one["promise"] for one in found["thresholds"])
    assert found["labels"]["fail"] > 0
    assert all(one["after"]["agree"]["n"] > 20 for one in found["agreement"] if one["after"])


def test_every_file_of_a_step_has_the_hash_that_it_names(harbour: WorkflowFolder) -> None:
    """So every number can be traced to a file; none of them says where it lies."""
    for step in STEPS:
        record = harbour.record(step)
        assert record is not None
        for name, sha256 in record.files.items():
            assert harbour.sha256(name) == sha256
            assert not Path(name).is_absolute()
        assert str(harbour.root) not in harbour.step_file(step).read_text("utf-8")


def test_the_page_shows_every_step_and_fetches_nothing(harbour: WorkflowFolder) -> None:
    """Nine sections with pictures, no address and no script."""
    page = (harbour.root / "report.html").read_text("utf-8")
    for step, title in TITLES.items():
        assert f'<section id="{step}">' in page
        assert title in page
    assert page.count("<svg") > 5
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in page


def test_the_artefacts_and_the_report_for_model_risk_come_of_it(harbour: WorkflowFolder) -> None:
    """The guardrail configuration has the calibrated thresholds; the report is a PDF, too."""
    artefacts = harbour.root / "artefacts"
    cuts = json.loads((artefacts / "guardrail.json").read_text("utf-8"))["calibrated_thresholds"]
    assert any(one["calibrated"] for one in results(harbour, "calibration")["thresholds"])
    assert cuts
    command = ["guardrail", "workflow", "report", str(harbour.root), "--format", "pdf"]
    subprocess.run(command, env=environment(), check=True, capture_output=True)
    (report,) = artefacts.glob("*.pdf")
    assert report.read_bytes().startswith(b"%PDF")


def test_a_workflow_travels_and_is_current_elsewhere(
    harbour: WorkflowFolder, tmp_path: Path
) -> None:
    """The zip that the example wrote comes back, and nothing has to run again."""
    command = ["guardrail", "workflow", "share", str(tmp_path / "copy"), "--import",
               str(harbour.root.parent / "harbour.zip")]  # fmt: skip
    subprocess.run(command, env=environment(), check=True, capture_output=True)
    assert [one.state for one in status(tmp_path / "copy")] == ["current"] * 9
    compared = ["guardrail", "workflow", "compare", str(harbour.root), str(tmp_path / "copy"),
                "--json"]  # fmt: skip
    said = subprocess.run(compared, env=environment(), check=True, capture_output=True).stdout
    (found,) = json.loads(said)
    assert all(row["difference"] == 0 for row in found["scores"]["differences"])
    assert found["verdicts"]["mended"] == found["verdicts"]["broken"] == 0


def test_a_judge_is_used_and_said_and_replayed_without_asking(tmp_path: Path) -> None:
    """The second run has the first one's transcripts and a judge that may not be asked."""
    recorded = example(tmp_path / "recorded", *FEW, *JUDGED)
    for step in ("generation", "evaluation", "variations", "adversarial"):
        record = recorded.record(step)
        assert record is not None
        assert record.judge == "by-rule (read-write)"
    cases = results(recorded, "generation")["cases"]
    assert {one["form"] for one in cases} == {"judge", "rule"}
    store = ("--judge-mode", "replay", "--judge-store", str(recorded.root / "judge.sqlite"))
    replayed = example(tmp_path / "replayed", *FEW, *JUDGED, *store, SILENT="1")
    assert contents(replayed) == contents(recorded)


def killed(folder: Path, step: StepName, after_s: float) -> bool:
    """Start a run, kill it some time after a step began, and return whether it was in that step."""
    command = ["guardrail", "workflow", "run", str(folder), "--workers", "1"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=environment(PYTHONUNBUFFERED="1"), text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if f"{TITLES[step]} runs" in line:
                break
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
    return WorkflowFolder(folder).record(step) is None


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WorkflowFolder, Path]]:
    """Run a small workflow without interruption, and make an equal one that has not run."""
    place = tmp_path_factory.mktemp("small")
    for name in ("whole", "stopped"):
        command = ["guardrail", "workflow", "init", str(place / name), str(EXAMPLE / "handbook"),
                   "--name", "small", "--target", "python:harbour_rag:answer", *SMALL]  # fmt: skip
        subprocess.run(command, env=environment(), check=True, capture_output=True)
    sys.path.insert(0, str(EXAMPLE))
    run(place / "whole")
    yield WorkflowFolder(place / "whole"), place / "stopped"
    sys.path.remove(str(EXAMPLE))


def test_a_run_killed_in_every_step_ends_with_the_same_results(
    small: tuple[WorkflowFolder, Path],
) -> None:
    """Kill -9 inside each step in turn; what was finished is not done again."""
    whole, stopped = small
    inside = []
    for step in STEPS:
        if killed(stopped, step, 0.5 if step in ("topics", "evaluation") else 0.0):
            inside.append(step)
        before = {p: p.stat().st_mtime_ns for p in stopped.glob("[1-9]-*.json")}
        run(stopped, step)
        after = {p: p.stat().st_mtime_ns for p in stopped.glob("[1-9]-*.json")}
        assert before == {path: after[path] for path in before}
    assert len(inside) > 6  # of a step that takes a moment the end may come first
    assert contents(WorkflowFolder(stopped)) == contents(whole)
    assert not list(stopped.glob(".*.tmp"))

"""The engine over steps of a few lines: what is stale and why, what runs again, locks, resuming."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.workflow.definition import (
    assigned,
    create,
    read_definition,
    write_definition,
)
from guardrail_offline.workflow.folder import (
    STEPS,
    StepName,
    WorkflowFolder,
    locked,
    opened,
    step_named,
)
from guardrail_offline.workflow.step_engine import Step, StepContext, StepEngine, StepOutcome
from guardrail_service.errors import ConfigurationError

Rests = tuple[tuple[StepName, str], ...]
RESTS: dict[StepName, Rests] = {
    "generation": (("topics", "found"),),
    "validation": (("generation", "found"),),
    "evaluation": (("validation", "found"),),
    "calibration": (("evaluation", "found"),),
    "failures": (("calibration", "found"),),
    "weaknesses": (("evaluation", "found"), ("calibration", "found")),
    "variations": (("evaluation", "found"),),
    "adversarial": (("evaluation", "found"),),
}


def working(ran: list[str], broken: Callable[[str], bool] = lambda _name: False) -> StepEngine:
    """Return an engine whose steps note that they ran; each finds its own parameters.

    Calibration finds only alpha: other parameters of it move nothing that anybody rests on.
    """

    def run(context: StepContext) -> StepOutcome:
        ran.append(context.step)
        (context.own / "part.txt").write_text(context.step, "utf-8")
        if broken(context.step):
            raise KeyboardInterrupt
        found: Any = context.parameters.model_dump(mode="json")
        if context.step == "calibration":
            found = found["alpha"]
        name = context.relative([context.own / "part.txt"])
        return StepOutcome({"found": found}, files=name)

    stored = {"topics": ("documents",), "calibration": ("labels",)}
    return StepEngine({
        step: Step(step, run, RESTS.get(step, ()), stored=stored.get(step, ())) for step in STEPS
    })  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> WorkflowFolder:
    """Make a workflow of one document."""
    document = tmp_path / "guide.md"
    document.write_text("The ferry leaves at nine.\n", "utf-8")
    return create(tmp_path / "workflow", [document])


def change(folder: WorkflowFolder, *assignments: str) -> None:
    """Set parameters."""
    write_definition(folder, assigned(read_definition(folder), assignments))


def states(engine: StepEngine, folder: WorkflowFolder) -> dict[str, str]:
    """Return the steps that are not current, with the first reason."""
    found = {one.step: one for one in engine.status(folder) if one.state != "current"}
    return {name: str(one.why[0]) if one.why else one.state for name, one in found.items()}


def test_a_finished_workflow_runs_nothing_again(folder: WorkflowFolder) -> None:
    """The second run does nothing, and every file is as it was."""
    ran: list[str] = []
    engine = working(ran)
    assert states(engine, folder) == dict.fromkeys(STEPS, "missing")
    assert engine.run(folder) == list(STEPS)
    before = {path: path.read_bytes() for path in folder.root.glob("*.json")}
    assert engine.run(folder) == []
    assert ran == list(STEPS)
    assert before == {path: path.read_bytes() for path in folder.root.glob("*.json")}


def test_a_changed_document_makes_everything_stale_and_says_from_where(
    folder: WorkflowFolder,
) -> None:
    """What reads the document names it; what rests on that names the step's file."""
    engine = working([])
    engine.run(folder)
    (folder.root / "documents/guide.md").write_text("The ferry leaves at ten.\n", "utf-8")
    found = states(engine, folder)
    assert found["topics"] == "documents/guide.md was changed"
    assert found["generation"] == "1-topics.json is stale"
    assert set(found) == set(STEPS)


def test_a_changed_threshold_propagates_and_nothing_before_it_runs(folder: WorkflowFolder) -> None:
    """Steps that rest on it run again; what does not, stays."""
    ran: list[str] = []
    engine = working(ran)
    engine.run(folder)
    ran.clear()
    change(folder, "calibration.alpha=0.2")
    found = states(engine, folder)
    assert found == {
        "calibration": "workflow.json: steps.calibration was changed",
        "failures": "5-calibration.json is stale",
        "weaknesses": "5-calibration.json is stale",
    }
    engine.run(folder)
    assert ran == ["calibration", "failures", "weaknesses"]


def test_a_result_that_came_out_the_same_makes_nothing_run_behind_it(
    folder: WorkflowFolder,
) -> None:
    """Another sample to label moves no threshold: only its own step runs."""
    ran: list[str] = []
    engine = working(ran)
    engine.run(folder)
    ran.clear()
    change(folder, "calibration.sample=11")
    assert engine.run(folder) == ["calibration"]
    assert ran == ["calibration"]
    assert states(engine, folder) == {}


@pytest.mark.parametrize(
    ("name", "first", "why"),
    [
        ("4-evaluation/part.txt", "evaluation", "4-evaluation/part.txt was changed"),
        ("2-generation.json", "validation", "2-generation.json: found was changed"),
    ],
)
def test_a_file_changed_by_hand_is_noticed(
    folder: WorkflowFolder, name: str, first: str, why: str
) -> None:
    """A step's further file makes the step stale; its results make stale what rests on them."""
    engine = working([])
    engine.run(folder)
    path = folder.root / name
    text = path.read_text("utf-8")
    changed = text.replace('"seed": 7', '"seed": 8') if path.suffix == ".json" else "other"
    path.write_text(changed, "utf-8")
    found = states(engine, folder)
    assert next(iter(found.items())) == (first, why)


def test_new_labels_make_the_calibration_stale(folder: WorkflowFolder) -> None:
    """They were none before: the file is new."""
    engine = working([])
    engine.run(folder)
    (folder.root / "labels.csv").write_text("case,label\na,pass\n", "utf-8")
    definition = read_definition(folder).model_copy(update={"labels": "labels.csv"})
    write_definition(folder, definition)
    assert states(engine, folder)["calibration"] == "labels.csv is new"


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_was_stopped_in_a_step_goes_on_with_that_step(
    folder: WorkflowFolder, step: StepName, tmp_path: Path
) -> None:
    """What was done before stays; the files are those of a run that was not stopped."""
    ran: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        working([], lambda name: name == step).run(folder)
    working(ran).run(folder)
    assert ran == list(STEPS[STEPS.index(step) :])
    other = create(tmp_path / "other", [tmp_path / "guide.md"], name="workflow")
    working([]).run(other)
    assert results(folder) == results(other)


def results(folder: WorkflowFolder) -> dict[str, Any]:
    """Return the content of the steps' files without how long they took."""
    found = {path.name: json.loads(path.read_text("utf-8")) for path in folder.root.glob("*.json")}
    return {
        name: {k: v for k, v in content.items() if k != "timings"}
        for name, content in found.items()
    }


def test_a_step_alone_wants_what_it_rests_on(folder: WorkflowFolder) -> None:
    """It is refused, and the message says what to run first; then it runs by itself."""
    ran: list[str] = []
    engine = working(ran)
    with pytest.raises(ConfigurationError, match=r"2-generation.json, which is missing"):
        engine.run(folder, "validation")
    engine.run(folder, "topics")
    engine.run(folder, "generation")
    engine.run(folder, "validation")
    assert ran == ["topics", "generation", "validation"]


def test_a_step_can_be_done_again(folder: WorkflowFolder) -> None:
    """Its folder is emptied first; what rests on it runs only if it came out otherwise."""
    ran: list[str] = []
    engine = working(ran)
    engine.run(folder)
    ran.clear()
    left = folder.step_folder("evaluation") / "answers.jsonl"
    left.write_text("old", "utf-8")
    assert engine.run(folder, again=["evaluation"]) == ["evaluation"]
    assert not left.exists()


def test_two_runs_do_not_write_at_once(folder: WorkflowFolder) -> None:
    """The second is refused while the first holds the folder, and runs afterwards."""
    with locked(folder), pytest.raises(ConfigurationError, match="one writer at a time"):
        working([]).run(folder)
    assert working([]).run(folder) == list(STEPS)


def test_a_document_that_changes_while_a_step_reads_it_gives_no_result(
    folder: WorkflowFolder,
) -> None:
    """The step is not written; the same command does it with the document as it is then."""

    def edited(name: str) -> bool:
        if name == "topics":
            (folder.root / "documents/guide.md").write_text("Other text.\n", "utf-8")
        return False

    with pytest.raises(ConfigurationError, match="topics changed while it ran"):
        working([], edited).run(folder)
    assert folder.record("topics") is None
    assert working([]).run(folder) == list(STEPS)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("topics.top_n_word=3", "did you mean 'top_n_words'"),
        ("topic.seed=3", "did you mean 'topics'"),
        ("topics.top_n_words=0", "topics.top_n_words"),
        ("calibration.alpha=1.5", "calibration.alpha"),
        ("calibration.rule=best", "calibration.rule"),
        ("topics", "STEP.parameter=value"),
    ],
)
def test_a_wrong_parameter_is_refused_and_nothing_is_changed(
    folder: WorkflowFolder, assignment: str, message: str
) -> None:
    """The message names parameter, value and what would do."""
    before = folder.definition.read_bytes()
    with pytest.raises(ConfigurationError) as caught:
        change(folder, assignment)
    assert message in str(caught.value)
    assert folder.definition.read_bytes() == before


def test_a_folder_that_is_no_workflow_is_refused(tmp_path: Path) -> None:
    """So is a step that does not exist, and making one where something lies."""
    with pytest.raises(ConfigurationError, match=r"no workflow.json"):
        opened(tmp_path)
    with pytest.raises(ConfigurationError, match="--step"):
        step_named("labels")
    (tmp_path / "file").write_text("here", "utf-8")
    with pytest.raises(ConfigurationError, match="a folder with content"):
        create(tmp_path)

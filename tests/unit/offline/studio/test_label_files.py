"""Labels are on disk before anybody is told, and `calibrate` reads them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.calibration.labels import ADJUDICATOR, read_labels, verdicts
from guardrail_offline.calibration.sampling import Drawn, task_text
from guardrail_offline.calibration.scored_lab import LabCase
from guardrail_offline.studio import label_files
from guardrail_offline.studio.label_files import EditConflict, Labelling, Unwritable
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.studio.conftest import tasks


def put(
    labelling: Labelling, case: str, label: Any, annotator: str = "Ada", note: str = ""
) -> None:
    """Write a label under the version that is there."""
    settles = annotator == ADJUDICATOR
    word = labelling.word(case, annotator)
    version = labelling.version_of(case) if settles else word.version
    labelling.put(case, annotator, label, note, version, "Ada")


def test_calibrate_reads_what_was_labelled(tmp_path: Path) -> None:
    """New, changed, withdrawn and settled labels; everything again after a restart."""
    labelling = Labelling(tasks(tmp_path))
    put(labelling, "one", "pass")
    put(labelling, "one", "fail", note="wrong date")
    put(labelling, "two", "pass")
    put(labelling, "two", None)
    put(labelling, "three", "pass")
    put(labelling, "three", "fail", "Grace")
    assert labelling.progress().disputed == ("three",)
    with pytest.raises(ConfigurationError, match="disagree"):
        verdicts(read_labels(labelling.labels_file), "labels")
    put(labelling, "three", "pass", ADJUDICATOR)
    put(labelling, "two", "abstain", "Grace")
    labelling.close()

    again = Labelling(tmp_path)
    found = verdicts(read_labels(again.labels_file), "labels")
    assert (found.passes, found.abstained) == ({"one": False, "three": True}, ("two",))
    assert found.agreement is not None
    assert again.word("one", "Ada").note == "wrong date"
    progress = again.progress()
    assert progress.complete
    assert progress.by_annotator == {"Ada": 2, "Grace": 2}
    history = [json.loads(line) for line in again.history_file.read_text().splitlines()]
    assert [entry["label"] for entry in history if entry["case"] == "two"] == [
        "pass", None, "abstain"
    ]  # fmt: skip
    assert history[-2]["annotator"] == ADJUDICATOR
    assert history[-2]["by"] == "Ada"
    again.close()


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".json"])
def test_every_file_of_calibrate_sample_can_be_labelled(tmp_path: Path, suffix: str) -> None:
    """JSON lines, a spreadsheet and Label Studio's tasks give the same cases."""
    case = LabCase("=k\u2028ey", "g", {}, question="Q?", answer="=1+1", contexts=("A.", "B."))
    (tmp_path / f"to_label{suffix}").write_text(task_text([Drawn(case, 1.0)], suffix))
    labelling = Labelling(tmp_path)
    (task,) = labelling.tasks
    assert (task.case, task.question, task.answer) == (case.key, "Q?", "=1+1")
    assert task.contexts == case.contexts
    put(labelling, case.key, "pass")
    labelling.close()
    assert [label.case for label in read_labels(labelling.labels_file)] == [case.key]


def test_of_two_tabs_the_second_is_told(tmp_path: Path) -> None:
    """A word is written only over the one that its writer has seen; so is a settlement."""
    labelling = Labelling(tasks(tmp_path))
    seen = labelling.word("one", "Ada").version
    all_seen = labelling.version_of("one")
    labelling.put("one", "Ada", "pass", "", seen, "Ada")
    before = labelling.labels_file.read_bytes()
    with pytest.raises(EditConflict):
        labelling.put("one", "Ada", "fail", "", seen, "Ada")
    with pytest.raises(EditConflict):
        labelling.put("one", ADJUDICATOR, "fail", "", all_seen, "Grace")
    assert labelling.labels_file.read_bytes() == before
    assert labelling.word("one", "Grace").label is None
    labelling.close()


def test_a_second_studio_is_kept_out(tmp_path: Path) -> None:
    """Two processes would write over each other."""
    labelling = Labelling(tasks(tmp_path))
    with pytest.raises(ConfigurationError, match="another studio"):
        Labelling(tmp_path)
    labelling.close()
    Labelling(tmp_path).close()


def test_a_torn_line_was_never_acknowledged(tmp_path: Path) -> None:
    """It is cut off; a whole line without its end, from an editor, stays."""
    labelling = Labelling(tasks(tmp_path))
    put(labelling, "one", "pass")
    labelling.close()
    whole = labelling.labels_file.read_bytes()
    for path in (labelling.labels_file, labelling.history_file):
        with path.open("ab") as stream:
            stream.write(b'{"case": "two", "lab')
    labelling = Labelling(tmp_path)
    assert labelling.labels_file.read_bytes() == whole
    assert labelling.labels_by("Ada") == {"one": "pass"}
    labelling.close()
    labelling.labels_file.write_bytes(whole.rstrip(b"\n"))
    labelling = Labelling(tmp_path)
    put(labelling, "two", "fail")
    assert len(read_labels(labelling.labels_file)) == 2
    labelling.close()


@pytest.mark.parametrize("failing", ["append", "rewrite"])
def test_a_full_disk_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Files and memory stay as they were, and the writer is told."""
    labelling = Labelling(tasks(tmp_path))
    put(labelling, "one", "pass")
    files = (labelling.labels_file, labelling.history_file)
    before = [path.read_bytes() for path in files]
    with monkeypatch.context() as patched:
        calls = iter([None] if failing == "rewrite" else [])
        full = OSError(28, "No space left on device")

        def fsync(handle: int) -> None:
            if next(calls, full) is full:
                raise full

        patched.setattr(os, "fsync", fsync)
        with pytest.raises(Unwritable, match="No space"):
            put(labelling, "one" if failing == "rewrite" else "two", "fail")
    assert [path.read_bytes() for path in files] == before
    assert labelling.labels_by("Ada") == {"one": "pass"}
    put(labelling, "two", "fail")
    assert label_files.LABELS in {path.name for path in tmp_path.iterdir()}
    labelling.close()


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("to_label.jsonl", "", "no case"),
        ("to_label.jsonl", '{"case": "a"}\n{"case": "a"}\n', "twice"),
        ("to_label.jsonl", '{"question": "a"}\n', "KeyError"),
        ("to_label.json", '{"a": 1}', "calibrate sample"),
        ("other.jsonl", "{}", "no tasks"),
        ("labels.jsonl", "{}", "no tasks"),
    ],
)
def test_a_folder_of_something_else_is_refused(
    tmp_path: Path, name: str, text: str, found: str
) -> None:
    """One line that says what was found."""
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigurationError, match=found):
        Labelling(tmp_path)

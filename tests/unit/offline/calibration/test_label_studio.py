"""Label Studio: tasks out, annotations in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.calibration.labels import FORM, Label, read_labels, tasks
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.calibration import labs

CASE = labs.case("c1", "g", question="Q?", answer="A.", contexts=("one", "two"))


def export(folder: Path, *annotations: Any, **data: Any) -> Path:
    """Write an export with one task."""
    (task,) = tasks([CASE])
    task["data"] |= data
    path = folder / "export.json"
    path.write_text(json.dumps([{**task, "annotations": list(annotations)}]))
    return path


def annotation(choice: str, **more: Any) -> dict[str, Any]:
    """Return an annotation as Label Studio exports it."""
    result = {"from_name": "label", "to_name": "answer", "type": "choices"}
    return {
        "completed_by": 7,
        "created_at": "2026-11-20T10:00:00Z",
        "result": [{**result, "value": {"choices": [choice]}}],
        **more,
    }


def test_tasks_hold_texts_and_the_key_and_no_score() -> None:
    """A label given in sight of a score is not independent of it."""
    (task,) = tasks([CASE])
    assert task == {
        "data": {"case": "c1", "question": "Q?", "answer": "A.", "contexts": "one\n\ntwo"}
    }
    for name in ("$question", "$answer", "$contexts", 'name="label"'):
        assert name in FORM


def test_annotations_come_back_as_labels(tmp_path: Path) -> None:
    """Who, when and what; skipped tasks say nothing."""
    path = export(
        tmp_path,
        annotation("pass"),
        annotation("fail", completed_by={"id": 9, "email": "x@example.org"}),
        annotation("fail", was_cancelled=True),
    )
    assert read_labels(path) == [
        Label("c1", "pass", None, "7", "2026-11-20T10:00:00Z"),
        Label("c1", "fail", None, "9", "2026-11-20T10:00:00Z"),
    ]


@pytest.mark.parametrize("text", ["{}", "[1]", "[{}]", "nope"])
def test_what_is_no_export_is_refused(tmp_path: Path, text: str) -> None:
    """With the shape that was expected."""
    path = tmp_path / "export.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"export\.json"):
        read_labels(path)

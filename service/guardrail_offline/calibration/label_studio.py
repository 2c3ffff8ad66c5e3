"""Label Studio's files: tasks to label, the labelling form, and exports read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from guardrail_offline.calibration.lab import LabCase
from guardrail_service.errors import ConfigurationError

FORM = """<View>
  <Header value="Question"/>
  <Text name="question" value="$question"/>
  <Header value="Answer"/>
  <Text name="answer" value="$answer"/>
  <Header value="Passages"/>
  <Text name="contexts" value="$contexts"/>
  <Choices name="label" toName="answer" choice="single" required="true">
    <Choice value="pass" hint="The answer may be shown."/>
    <Choice value="fail" hint="The answer may not be shown."/>
    <Choice value="abstain" hint="I cannot tell."/>
  </Choices>
</View>
"""
"""The labelling form; `label` and its three values are what `read_export` looks for."""


def tasks(cases: Iterable[LabCase]) -> list[dict[str, Any]]:
    """Return tasks for Label Studio's import: texts to read, the case's key to find it again.

    Scores are left out on purpose: a label given in sight of a score is not independent of it.
    """
    return [
        {
            "data": {
                "case": case.key,
                "question": case.question or "",
                "answer": case.answer or "",
                "contexts": "\n\n".join(case.contexts),
            }
        }
        for case in cases
    ]


def read_export(path: Path) -> list[dict[str, Any]]:
    """Return one label record per annotation of a JSON export; skipped tasks have none.

    Raises:
        ConfigurationError: If the file is no export, or a task does not name its case.
    """
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(str(path), type(error).__name__, "a JSON export") from error
    if not isinstance(content, list):
        raise ConfigurationError(str(path), type(content).__name__, "a list of tasks")
    records: list[dict[str, Any]] = []
    for index, task in enumerate(content):
        where = f"{path}: task {index}"
        try:
            records.extend(_records(task))
        except (KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(
                where, "another shape", "data.case and annotations with a choice"
            ) from error
    return records


def _records(task: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        for result in annotation["result"]:
            choices = result["value"].get("choices")
            if choices and result.get("from_name", "label") == "label":
                yield {
                    "case": task["data"]["case"],
                    "label": choices[0],
                    "metric": task["data"].get("metric"),
                    "annotator": _person(annotation.get("completed_by")),
                    "at": annotation.get("created_at"),
                }


def _person(completed_by: Any) -> str | None:
    """Return who annotated: an id, or an object with an e-mail address and an id."""
    if isinstance(completed_by, Mapping):
        completed_by = completed_by.get("id") or completed_by.get("email")
    return None if completed_by is None else str(completed_by)

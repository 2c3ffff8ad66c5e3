"""The example lab is what its page says: own answers, faults named, questions kept together."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from guardrail_service.policy.file_schema import GuardrailFile

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "calibration"


@pytest.fixture(scope="module")
def make_lab() -> ModuleType:
    """The script that writes the lab."""
    spec = importlib.util.spec_from_file_location("make_lab", EXAMPLE / "make_lab.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def inputs(make_lab: ModuleType) -> list[dict[str, Any]]:
    """The lab's cases."""
    return list(make_lab.test_lab(make_lab.cases())["dataset"]["inputs"])


def test_there_are_enough_cases_of_enough_questions(inputs: list[dict[str, Any]]) -> None:
    """At least 240 on 60."""
    assert len(inputs) >= 240
    assert len({case["group"] for case in inputs}) >= 60
    assert len({case["key"] for case in inputs}) == len(inputs)


def test_every_bad_answer_names_its_fault(
    make_lab: ModuleType, inputs: list[dict[str, Any]]
) -> None:
    """And no good one has any."""
    for case, made in zip(make_lab.cases(), inputs, strict=True):
        faults = [name for name in made["categories"] if name.startswith("fault:")]
        assert len(faults) == (case["label"] == "fail")


def test_one_question_is_one_group(inputs: list[dict[str, Any]]) -> None:
    """Or the split would leak."""
    groups: dict[str, set[str]] = {}
    for case in inputs:
        groups.setdefault(" ".join(case["input"].split()).casefold(), set()).add(case["group"])
    assert all(len(found) == 1 for found in groups.values())


def test_labels_are_split_by_question_and_say_whose_they_are(
    make_lab: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those for the fit and those for the check share none."""
    answers = make_lab.cases()
    sample = tmp_path / "sample.jsonl"
    sample.write_text("".join(json.dumps({"case": c["id"]}) + "\n" for c in answers[:100]))
    monkeypatch.setattr("sys.argv", ["make_lab.py", str(tmp_path), "--label", str(sample)])
    assert make_lab.main() == 0
    read = [
        [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        for name in ("labels.jsonl", "check_labels.jsonl")
    ]
    groups = {case["id"]: case["group"] for case in answers}
    fitted, checked = ({groups[label["case"]] for label in labels} for labels in read)
    assert not fitted & checked
    assert {label["annotator"] for labels in read for label in labels} == {"the authors"}
    assert "the same authors" in (EXAMPLE / "README.md").read_text()


def test_the_base_policy_is_a_guardrail_file() -> None:
    """With two H2O metrics and ours."""
    content = json.loads((EXAMPLE / "base.json").read_text())
    assert len(GuardrailFile.model_validate(content).evaluator_ids) == 5

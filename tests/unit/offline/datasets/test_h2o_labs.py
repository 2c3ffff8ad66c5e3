"""H2O's suites and labs, old and new, lead to cases and back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case, Lab, Model
from guardrail_offline.datasets.h2o_labs import lab_json, read_json
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Passage


def written(folder: Path, content: Any) -> Path:
    """Write JSON and return its path."""
    path = folder / "lab.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


def lab(*inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a test lab's content."""
    models = [{"key": "m1", "name": "One", "llm_model_name": "llm", "model_type": "rag"}]
    return {"name": "L", "description": "D", "dataset": {"inputs": list(inputs)}} | {
        "models": models,
        **more,
    }


def test_a_suite_gives_unanswered_cases_with_their_documents(tmp_path: Path) -> None:
    """The layout of the manual."""
    case = {"prompt": "P?", "categories": ["privacy"], "constraints": [], "expected_output": "E."}
    content = {
        "name": "S",
        "description": "D",
        "tests": [{"documents": ["a.pdf"], "test_cases": [case]}],
    }
    found = read_json(written(tmp_path, content))
    assert (found.name, found.description) == ("S", "D")
    (only,) = found.cases
    assert (only.question, only.answer, only.expected) == ("P?", None, "E.")
    assert (only.corpus, only.categories) == (("a.pdf",), ("privacy",))


def test_the_answer_of_a_suite_is_the_expected_one(tmp_path: Path) -> None:
    """As H2O's client calls it; nobody has answered the questions of a suite."""
    content = {"name": "S", "tests": [{"test_cases": [{"prompt": "P?", "answer": "E."}]}]}
    (only,) = read_json(written(tmp_path, content)).cases
    assert (only.answer, only.expected) == (None, "E.")


def test_a_lab_gives_answers_and_models(tmp_path: Path) -> None:
    """With a condition; a model the lab does not describe is known by its key."""
    row = {"key": "k1", "input": "Q?", "context": ["c"], "actual_output": "A.", "model_key": "m1"}
    other = row | {"key": "k2", "model_key": "m2", "output_condition": '"A"', "cost": 0.5}
    found = read_json(written(tmp_path, lab(row, other)))
    assert [model.title for model in found.models] == ["One", "m2"]
    assert found.cases[1].condition == '"A"'
    assert found.cases[1].cost == 0.5


def test_an_older_lab_without_keys_gets_them(tmp_path: Path) -> None:
    """After their rows."""
    found = read_json(written(tmp_path, lab({"input": "Q?"}, {"input": "R?"})))
    assert [case.key for case in found.cases] == ["row-1", "row-2"]


def test_a_key_that_several_models_share_is_made_their_own(tmp_path: Path) -> None:
    """Links stay within a model."""
    rows = [
        {"key": key, "input": key, "model_key": model, "relationships": links}
        for model in ("m1", "m2")
        for key, links in (
            ("a", []),
            ("b", [{"type": "perturbation_source", "target": "a", "target_type": "test_case"}]),
        )
    ]
    found = read_json(written(tmp_path, lab(*rows)))
    assert [case.key for case in found.cases] == ["a@m1", "b@m1", "a@m2", "b@m2"]
    assert [case.source for case in found.cases] == [None, "a@m1", None, "a@m2"]
    assert found.cases[0].test_case_key == "a"


def test_a_lab_survives_being_written_and_read(tmp_path: Path) -> None:
    """Every field of a case and a model."""
    more: Any = {"references": ("F.", "G."), "reference_ids": ("id",), "answerable": True}
    case = Case("k", "Q?", "A.", "E.", (Passage("c", "id"),), '"A"', model="m", group="g", **more)
    one = Lab((case,), (Model("m", "M", "llm", "rag", {"collection_id": "c"}),), "N", "D")
    content = lab_json(one)
    assert read_json(written(tmp_path, content)) == one
    assert content["raw_dataset"]["inputs"][0]["actual_output"] == ""
    assert content["llm_model_names"] == ["llm"]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (3, "int"),
        ({"a": 1, "b": 2}, "an object with a, b"),
        ({"tests": [{"cases": []}]}, r"tests\[0\]\.test_cases"),
        ({"tests": 3}, "tests: found int"),
        ({"dataset": {"inputs": []}}, "dataset.inputs"),
        ({"dataset": {"inputs": [3]}}, "row 1: found int"),
        ({"dataset": [{"input": "Q?"}]}, "dataset: found list; expected an object with inputs"),
        (lab({"input": "Q?"}, models=["m"]), r"models\[0\]: found str; expected an object"),
        (lab({"input": "Q?"}, models={"m": 1}), "models: found dict; expected a list"),
        (lab({"input": "Q?"}, models=[{}, {"size": math.nan}]), r"models\[1\]: found NaN or Inf"),
    ],
)
def test_another_json_is_refused_with_what_was_found(
    tmp_path: Path, content: Any, found: str
) -> None:
    """And what was expected."""
    with pytest.raises(ConfigurationError, match=found):
        read_json(written(tmp_path, content))


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    """Windows' editors write one."""
    path = tmp_path / "lab.json"
    path.write_text(json.dumps([{"input": "Q?"}]), "utf-8-sig")
    assert [case.question for case in read_json(path).cases] == ["Q?"]


@pytest.mark.parametrize(
    ("text", "error"),
    [("[" * 100_000, "RecursionError"), ('{"dataset": ', "JSONDecodeError")],
    ids=["nested without end", "cut off"],
)
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, text: str, error: str) -> None:
    """And a nested one before it fills the stack."""
    (tmp_path / "lab.json").write_text(text)
    with pytest.raises(ConfigurationError, match=error):
        read_json(tmp_path / "lab.json")

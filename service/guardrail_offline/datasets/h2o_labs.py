"""H2O Eval Studio's JSON: test suites and test labs, in and out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from guardrail_offline.datasets.cases import (
    Case,
    Lab,
    Model,
    Relationship,
    case_json,
    model_from_json,
    model_json,
    models_of,
)
from guardrail_offline.datasets.columns import RowPlace
from guardrail_offline.datasets.literals import is_json
from guardrail_offline.datasets.suites import RecordReader
from guardrail_service.errors import ConfigurationError

RECORDS = ("results", "input_data", "examples", "goldens", "test_cases")
"""Keys under which RAGChecker, LlamaIndex, LangSmith and DeepEval keep their records."""


def read_json(path: Path, reader: RecordReader | None = None) -> Lab:
    """Return a test lab, a test suite, a list of records, or an object that holds one.

    Raises:
        ConfigurationError: If it is none of them; messages name the place.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise ConfigurationError(str(path), type(error).__name__, _EXPECTED) from error
    return lab_of_json(path, text, reader)


_EXPECTED = "a test suite or test lab in JSON"


def lab_of_json(path: Path, text: str, reader: RecordReader | None = None) -> Lab:
    """Return what `read_json` does of a text; `path` is what messages call it.

    Raises:
        ConfigurationError: If it is no lab, suite or list of records.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(str(path), type(error).__name__, _EXPECTED) from error
    reader = reader or RecordReader()
    if isinstance(content, list):
        return _lab(path, {}, content, reader)
    if isinstance(content, Mapping) and "tests" in content:
        return _lab(path, content, _suite_records(path, content["tests"]), reader)
    if isinstance(content, Mapping) and ("dataset" in content or "raw_dataset" in content):
        return _lab(path, content, _lab_records(path, content), reader)
    if isinstance(content, Mapping):
        for name in RECORDS:
            if isinstance(content.get(name), list):
                return _lab(path, {}, content[name], reader)
    found = (
        "an object with " + ", ".join(list(content)[:6])
        if isinstance(content, Mapping)
        else (type(content).__name__)
    )
    raise ConfigurationError(str(path), found, "a suite with tests, or a lab with dataset.inputs")


def lab_json(lab: Lab) -> dict[str, Any]:
    """Return a lab as H2O's test lab; a case without answer is in `raw_dataset` only."""
    records = [case_json(case) for case in lab.cases]
    unanswered = {"actual_output": "", "actual_duration": 0.0, "cost": 0.0}
    return {
        "name": lab.name,
        "description": lab.description,
        "raw_dataset": {"inputs": [record | unanswered for record in records]},
        "dataset": {"inputs": records},
        "models": [model_json(model) for model in lab.models],
        "llm_model_names": sorted({model.llm for model in lab.models if model.llm}),
        "docs_cache": {},
    }


def _lab(
    path: Path, content: Mapping[str, Any], records: Iterable[Any], reader: RecordReader
) -> Lab:
    cases = tuple(_cases(path, records, reader))
    reader.finish(str(path))
    return Lab(
        cases=_with_own_keys(cases),
        models=models_of(cases, _models(path, content.get("models") or [])),
        name=str(content.get("name") or ""),
        description=str(content.get("description") or ""),
    )


def _models(path: Path, models: Any) -> Iterator[Model]:
    if not isinstance(models, list):
        raise ConfigurationError(f"{path}: models", type(models).__name__, "a list")
    for number, model in enumerate(models):
        where, expected = f"{path}: models[{number}]", "an object with key and name"
        if not isinstance(model, Mapping):
            raise ConfigurationError(where, type(model).__name__, expected)
        if not is_json(model):
            raise ConfigurationError(where, "NaN or Infinity", "values of strict JSON")
        yield model_from_json(model)


def _cases(path: Path, records: Iterable[Any], reader: RecordReader) -> Iterator[Case]:
    for number, record in enumerate(records, start=1):
        if not isinstance(record, Mapping):
            raise ConfigurationError(
                f"{path}: row {number}", type(record).__name__, "a JSON object"
            )
        yield from reader.cases(record, RowPlace(str(path), number))


def _suite_records(path: Path, tests: Any) -> Iterator[Any]:
    if not isinstance(tests, list):
        raise ConfigurationError(f"{path}: tests", type(tests).__name__, "a list")
    for number, test in enumerate(tests):
        if not isinstance(test, Mapping) or not isinstance(test.get("test_cases"), list):
            where = f"{path}: tests[{number}].test_cases"
            raise ConfigurationError(where, "nothing usable", "a list of test cases")
        shared = {"documents": test.get("documents") or [], "test_key": test.get("key")}
        for record in test["test_cases"]:
            yield shared | _unanswered(record) if isinstance(record, Mapping) else record


def _unanswered(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a test case whose `answer` is the expected one: H2O's client calls it so."""
    found = dict(record)
    if "expected_output" not in found and "answer" in found:
        found["expected_output"] = found.pop("answer")
    return found


def _lab_records(path: Path, content: Mapping[str, Any]) -> list[Any]:
    for name in ("dataset", "raw_dataset"):
        part = content.get(name) or {}
        if not isinstance(part, Mapping):
            found = type(part).__name__
            raise ConfigurationError(f"{path}: {name}", found, "an object with inputs")
        inputs = part.get("inputs")
        if isinstance(inputs, list) and inputs:
            return inputs
    raise ConfigurationError(f"{path}: dataset.inputs", "nothing", "a list of cases")


def _with_own_keys(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """Give every case a key of its own where a lab uses one key for all models of a test case.

    Links stay within a model. The key it had is its `test_case_key`.
    """
    counts = Counter(case.key for case in cases)
    repeated = {key for key, count in counts.items() if count > 1}
    if not repeated:
        return cases
    return tuple(_own(case, repeated) for case in cases)


def _own(case: Case, repeated: set[str]) -> Case:
    def own(key: str) -> str:
        return f"{key}@{case.model}" if key in repeated else key

    links = tuple(
        Relationship(link.type, own(link.target), link.target_type) for link in case.relationships
    )
    return replace(
        case,
        key=own(case.key),
        relationships=links,
        test_case_key=case.test_case_key or (case.key if case.key in repeated else None),
    )

"""The file that keeps the results of one evaluator: written row by row, and read back.

It has H2O Eval Studio's root keys `results`, `models` and `evaluator`. `docs/results.md` describes
its two layouts: rows with the key of their case, or with the whole case.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Literal

from guardrail_offline.datasets.cases import OPTIONAL, Case, Model, case_json, model_from_json
from guardrail_offline.evaluators.result import (
    Result,
    Score,
    dumps,
    json_number,
    score_from_json,
)
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Direction, MetricSpec

_FIELDS = frozenset(
    {*case_json(Case("", "")), *OPTIONAL, "missing", "actual_output_meta", "details"}
)
"""The fields of a row of the file, other than metrics."""


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One row of a result file."""

    key: str
    model: str
    group: str
    scores: Mapping[str, Score]
    record: Mapping[str, Any]
    """The whole row: texts, categories and relationships under the names of the file."""


@dataclass(frozen=True, slots=True)
class EvaluatorResults:
    """One result file.

    Attributes:
        evaluator: Our id.
        h2o_id: H2O's id, if it has one.
        metrics: By key, the primary one first.
        fingerprints: What the scores depend on, by role, and `segmenter` and `evidence`.
        rows: In the order of the lab.
        models: The systems under test.
        about: The file's whole `evaluator` object.
    """

    evaluator: str
    h2o_id: str | None
    metrics: Mapping[str, MetricSpec]
    fingerprints: Mapping[str, str]
    rows: tuple[ResultRow, ...]
    models: tuple[Model, ...]
    about: Mapping[str, Any]


ResultLayout = Literal["keys", "h2o"]
LAYOUTS: tuple[ResultLayout, ...] = ("keys", "h2o")
CASES = "cases.jsonl"
"""The file with the cases of a run whose rows have their keys only."""
_REPEATED: Mapping[str, tuple[str, ...]] = {
    "context_of": ("context",),
    "question_of": ("input", "expected_output"),
}
"""What a line of `CASES` has in place of fields: the key of the case before with the same ones."""
_RECENT = 20_000
_EVERY = "*"
USUAL = "missing"
"""In `evaluator`: why a row that gives no reason lacks metrics."""
_TEXTS = frozenset({
    "input", "corpus", "context", "expected_output", "output_condition", "output_schema",
    "actual_output", "actual_output_artifacts", "test_key", "test_case_key", *OPTIONAL,
})  # fmt: skip


def case_row(case: Case, *, texts: bool = True) -> dict[str, Any]:
    """Return a case as a run keeps it, or what identifies and groups it."""
    row = case_json(case)
    return row if texts else {key: value for key, value in row.items() if key not in _TEXTS}


def row_json(
    case: Case, result: Result, *, texts: bool = True, layout: ResultLayout = "h2o"
) -> dict[str, Any]:
    """Return one row of a result file: the case, a number or null per metric, and why null.

    Args:
        case: What was judged.
        result: What was found.
        texts: Whether a whole case has question, answer and passages.
        layout: `h2o` for the whole case, `keys` for its key and its model's.
    """
    numbers = {column(key): json_number(score.value) for key, score in result.scores.items()}
    missing = {
        key: {"state": score.state.value, "reason": score.reason}
        for key, score in result.scores.items()
        if score.value is None
    }
    spans = [dict(span) for span in result.spans]
    details = {"details": dict(result.details)} if result.details else {}
    if layout == "h2o":
        kept = {"missing": missing, "actual_output_meta": spans}
        return {**case_row(case, texts=texts), **numbers, **kept, **details}
    known = {key: value for key, value in numbers.items() if value is not None}
    row = {"key": case.key, "model_key": case.model, **known, **details}
    if missing:
        reasons = list(missing.values())
        alike = all(one == reasons[0] for one in reasons)
        row["missing"] = {_EVERY: reasons[0]} if alike else missing
    return row | ({"actual_output_meta": _by_part(spans)} if spans else {})


def _by_part(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return scored parts with one object for all metrics of a part, where that loses nothing.

    Classifiers score each sentence by several metrics, each its own label.
    """
    parts: dict[tuple[Any, Any], dict[str, Any]] = {}
    for span in spans:
        if set(span) != _LABELLED or span["label"] != span["metric"]:
            return spans
        place = (span["start"], span["end"])
        part = parts.setdefault(place, {"start": place[0], "end": place[1], "scores": {}})
        part["scores"][span["metric"]] = span["score"]
    found = list(parts.values())
    return found if _by_metric(found) == spans else spans


def _by_metric(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return scored parts with one object per metric, as evaluators give them."""
    if not parts or "scores" not in parts[0]:
        return parts
    return [
        {"label": metric, "metric": metric, "start": part["start"], "end": part["end"],
         "score": part["scores"][metric]}
        for metric in parts[0]["scores"]
        for part in parts
        if metric in part["scores"]
    ]  # fmt: skip


_LABELLED = {"label", "metric", "start", "end", "score"}


_OFTEN_EMPTY = frozenset({
    "corpus", "relationships", "output_condition", "output_schema", "actual_output_artifacts",
    "actual_duration", "cost", "test_key", "test_case_key",
})  # fmt: skip
_EMPTY = {key: value for key, value in case_json(Case("", "")).items() if key in _OFTEN_EMPTY}


class CaseWriter:
    """Writes the cases of a run, a line each, without what is empty.

    Passages stand where they come first.
    """

    def __init__(self, stream: IO[str], *, texts: bool) -> None:
        self._stream = stream
        self._texts = texts
        self._known: OrderedDict[str, str] = OrderedDict()

    def add(self, case: Case) -> None:
        """Write one case."""
        row = case_row(case, texts=self._texts)
        row = {
            key: value
            for key, value in row.items()
            if key not in _OFTEN_EMPTY or value not in (None, [])
        }
        for pointer, fields in _REPEATED.items():
            values = {name: row[name] for name in fields if name in row}
            if not any(values.values()):
                continue
            digest = sha256(json.dumps(values).encode()).hexdigest()
            if (first := self._known.setdefault(digest, case.key)) != case.key:
                row = {key: value for key, value in row.items() if key not in fields}
                row[pointer] = first
            elif len(self._known) > _RECENT:
                self._known.popitem(last=False)
        self._stream.write(dumps(row, compact=True) + "\n")


def read_run(folder: Path) -> dict[str, EvaluatorResults]:
    """Return every result file of a finished run, by evaluator id.

    Raises:
        ConfigurationError: If the folder holds no result file, or one is not readable.
    """
    paths = sorted((folder / "results").glob("*.json"))
    if not paths:
        raise ConfigurationError(str(folder), "no results/*.json", "a folder of guardrail evaluate")
    cases = read_cases(folder)
    files = [read_results(path, cases) for path in paths]
    return {results.evaluator: results for results in files}


def read_cases(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Return the cases of a run by key; none where its rows have them.

    Raises:
        ConfigurationError: If the file is no such one.
    """
    path = folder / CASES
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8") as lines:
            found: dict[str, Mapping[str, Any]] = {}
            for record in map(json.loads, lines):
                for pointer, fields in _REPEATED.items():
                    if pointer in record:
                        same = found[record.pop(pointer)]
                        record |= {name: same[name] for name in fields}
                found[record["key"]] = {**_EMPTY, **record}
            return found
    except (OSError, ValueError, KeyError, TypeError) as error:
        expected = "a case with a key per line"
        raise ConfigurationError(str(path), type(error).__name__, expected) from error


def read_results(
    path: Path, cases: Mapping[str, Mapping[str, Any]] | None = None
) -> EvaluatorResults:
    """Return one result file; its rows have their whole cases, wherever the run keeps them.

    Args:
        path: In the folder `results` of a run.
        cases: Of the run by key, if they were read already.

    Raises:
        ConfigurationError: If it is no JSON or lacks a key; the message names the key.
    """
    if cases is None:
        cases = read_cases(path.absolute().parent.parent)
    where = str(path)
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(where, type(error).__name__, "a JSON result file") from error
    if not isinstance(content, dict):
        raise ConfigurationError(where, type(content).__name__, "an object")
    for key in ("results", "models", "evaluator"):
        if key not in content:
            raise ConfigurationError(where, f"no key {key!r}", "results, models and evaluator")
    try:
        return _results(content, cases)
    except (KeyError, TypeError, ValueError) as error:
        found = (
            f"{type(error).__name__} {error}" if isinstance(error, KeyError) else "another shape"
        )
        raise ConfigurationError(where, found, "the layout of docs/results.md") from error


def _results(
    content: Mapping[str, Any], cases: Mapping[str, Mapping[str, Any]]
) -> EvaluatorResults:
    about = content["evaluator"]
    metrics = {meta["key"]: _metric(meta) for meta in about["metrics_meta"]}
    usual = about.get(USUAL)
    return EvaluatorResults(
        evaluator=about["name"],
        h2o_id=about["h2o_id"],
        metrics=metrics,
        fingerprints=about["fingerprints"],
        rows=tuple(_scored(row, cases, metrics, usual) for row in content["results"]),
        models=tuple(model_from_json(model) for model in content["models"]),
        about=about,
    )


def metric_json(metric: MetricSpec, *, primary: bool) -> dict[str, Any]:
    """Return a metric's description for a result file, under H2O's names."""
    return {
        "key": metric.key,
        "higher_is_better": metric.direction is Direction.HIGHER,
        "value_range": [json_number(metric.low), json_number(metric.high)],
        "threshold": metric.threshold,
        "is_primary_metric": primary,
        "data_type": "boolean" if metric.boolean else "float",
    }


def _metric(meta: Mapping[str, Any]) -> MetricSpec:
    low, high = map(_bound, meta["value_range"])
    return MetricSpec(
        key=meta["key"],
        direction=Direction.HIGHER if meta["higher_is_better"] else Direction.LOWER,
        low=low,
        high=high,
        threshold=meta["threshold"],
        boolean=meta["data_type"] == "boolean",
    )


def _scored(
    row: Mapping[str, Any],
    cases: Mapping[str, Mapping[str, Any]],
    metrics: Iterable[str],
    usual: Mapping[str, Any] | None = None,
) -> ResultRow:
    if "group" not in row:  # a row with keys only
        if row["key"] not in cases:
            raise KeyError(f"{row['key']} in {CASES}")
        lacks = usual is not None and not all(column(key) in row for key in metrics)
        why = {_EVERY: usual} if lacks else {}
        row = {"missing": why, **cases[row["key"]], **row}
        row["actual_output_meta"] = _by_metric(row.get("actual_output_meta", []))
    missing = row["missing"]
    every = missing.get(_EVERY, {})
    scores = {key: _score(row, column(key), missing.get(key, every)) for key in metrics}
    return ResultRow(row["key"], row["model_key"], row["group"], scores, row)


def _score(row: Mapping[str, Any], name: str, why: Mapping[str, Any]) -> Score:
    """Return a metric of a row; where it has none, `why` says so, or KeyError names it."""
    value = row.get(name) if why else row[name]
    return score_from_json(value, why)


class ResultWriter:
    """Writes a result file row by row, so that no more than one row is in memory."""

    def __init__(self, stream: IO[str], layout: ResultLayout = "h2o") -> None:
        self._write = stream.write
        self._compact = layout == "keys"
        self._usual: Mapping[str, Any] | None = None
        self._write('{\n"results": [')
        self._between = "\n"

    def add(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        if self._compact and set(missing := row.get("missing", {})) == {_EVERY}:
            self._usual = self._usual or missing[_EVERY]
            if missing[_EVERY] == self._usual:
                row = {key: value for key, value in row.items() if key != "missing"}
        self._write(self._between + dumps(row, compact=self._compact))
        self._between = ",\n"

    def close(self, models: Sequence[Mapping[str, Any]], evaluator: Mapping[str, Any]) -> None:
        """Write what follows the rows; the stream stays open."""
        if self._usual is not None:
            evaluator = {**evaluator, USUAL: self._usual}
        known, about = (dumps(one, compact=self._compact) for one in (models, evaluator))
        self._write(f'\n],\n"models": {known},\n"evaluator": {about}\n}}\n')


def column(key: str) -> str:
    """Return the name of a metric in a row: its key, marked where a field has that name."""
    return f"{key}_score" if key in _FIELDS else key


def _bound(value: float | str) -> float:
    return float(value)

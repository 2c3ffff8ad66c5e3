"""What an evaluator found out about one case, and the file that keeps it for one evaluator.

A metric has a number or a state with a reason, never both and never a number that stands for
"unknown". The file has H2O Eval Studio's root keys `results`, `models` and `evaluator`; its layout
is described in `docs/evaluation.md`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from guardrail_offline.datasets.cases import Case, Model, case_json, model_from_json
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Direction, MetricSpec, NoValue, State

Details = Mapping[str, Any]
_FIELDS = frozenset({*case_json(Case("", "")), "missing", "actual_output_meta", "details"})
"""What a row of the file holds beside metrics."""


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of one case: a finite or infinite number, or why there is none.

    Raises:
        ValueError: If there is both a number and a reason for its absence, or neither, or NaN.
    """

    value: float | None = None
    why_missing: NoValue | None = None

    def __post_init__(self) -> None:
        """Refuse a score that is both a number and missing, or neither."""
        if (self.value is None) is (self.why_missing is None):
            raise ValueError("a score is a number or says why there is none")
        if self.value != self.value:
            raise ValueError("a score is not NaN")

    @property
    def state(self) -> State:
        """Return `evaluated`, or the state that says why there is no number."""
        return State.EVALUATED if self.why_missing is None else self.why_missing.state

    @property
    def reason(self) -> str | None:
        """Return why there is no number; None if there is one."""
        return None if self.why_missing is None else self.why_missing.reason

    @classmethod
    def missing(cls, state: State, reason: str) -> Score:
        """Return "no number", with its state and reason."""
        return cls(None, NoValue(state, reason))


@dataclass(frozen=True, slots=True)
class Result:
    """One evaluator on one case.

    Attributes:
        scores: Every metric of the evaluator.
        spans: Parts of the answer with a score each, as plain JSON values: start, end, score,
            label, metric and context (index of the passage compared with).
        details: What aggregation over cases needs, such as the two labels of a classified case.
    """

    scores: Mapping[str, Score]
    spans: Sequence[Details] = ()
    details: Details = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        values: Mapping[str, float],
        spans: Sequence[Details] = (),
        details: Details | None = None,
    ) -> Result:
        """Return a result in which every metric has a number."""
        scores = {key: Score(value) for key, value in values.items()}
        return cls(scores, spans, details or {})

    @classmethod
    def missing(cls, keys: Iterable[str], state: State, reason: str) -> Result:
        """Return a result in which no metric has a number, for one reason."""
        return cls.without(keys, NoValue(state, reason))

    @classmethod
    def without(cls, keys: Iterable[str], why: NoValue) -> Result:
        """Return a result in which no metric has a number, for one reason."""
        return cls({key: Score(None, why) for key in keys})


@dataclass(frozen=True, slots=True)
class ScoredCase:
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
    rows: tuple[ScoredCase, ...]
    models: tuple[Model, ...]
    about: Mapping[str, Any]


def row_json(case: Case, result: Result, *, texts: bool = True) -> dict[str, Any]:
    """Return one row of a result file: the case, a number or null per metric, and why null.

    Args:
        case: What was judged.
        result: What was found.
        texts: Whether to keep question, answer and passages; without them a large run stays small.
    """
    row = case_json(case)
    if not texts:
        row = {key: row[key] for key in ("key", "model_key", "group", "categories", "cost")}
        row |= {
            "actual_duration": case.duration_s,
            "relationships": case_json(case)["relationships"],
        }
    row |= {column(key): _number(score.value) for key, score in result.scores.items()}
    row["missing"] = {
        key: {"state": score.state.value, "reason": score.reason}
        for key, score in result.scores.items()
        if score.value is None
    }
    row["actual_output_meta"] = [dict(span) for span in result.spans]
    if result.details:
        row["details"] = dict(result.details)
    return row


def result_json(result: Result) -> dict[str, Any]:
    """Return a result as plain JSON values; `result_from_json` reads it back."""
    scores = {
        key: {"value": _number(s.value), "state": s.state.value, "reason": s.reason}
        for key, s in result.scores.items()
    }
    return {"scores": scores, "spans": list(result.spans), "details": dict(result.details)}


def result_from_json(record: Mapping[str, Any]) -> Result:
    """Return the result that `result_json` wrote."""
    scores = {key: _score(s["value"], s) for key, s in record["scores"].items()}
    return Result(scores, record["spans"], record["details"])


def read_run(folder: Path) -> dict[str, EvaluatorResults]:
    """Return every result file of a finished run, by evaluator id.

    Raises:
        ConfigurationError: If the folder holds no result file, or one is not readable.
    """
    paths = sorted((folder / "results").glob("*.json"))
    if not paths:
        raise ConfigurationError(str(folder), "no results/*.json", "what guardrail evaluate wrote")
    files = [read_results(path) for path in paths]
    return {results.evaluator: results for results in files}


def read_results(path: Path) -> EvaluatorResults:
    """Return one result file.

    Raises:
        ConfigurationError: If it is no JSON or lacks a key; the message names the key.
    """
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
        return _results(content)
    except (KeyError, TypeError, ValueError) as error:
        found = (
            f"{type(error).__name__} {error}" if isinstance(error, KeyError) else "another shape"
        )
        raise ConfigurationError(where, found, "the layout of docs/evaluation.md") from error


def _results(content: Mapping[str, Any]) -> EvaluatorResults:
    about = content["evaluator"]
    metrics = {meta["key"]: _metric(meta) for meta in about["metrics_meta"]}
    return EvaluatorResults(
        evaluator=about["name"],
        h2o_id=about["h2o_id"],
        metrics=metrics,
        fingerprints=about["fingerprints"],
        rows=tuple(_scored(row, metrics) for row in content["results"]),
        models=tuple(model_from_json(model) for model in content["models"]),
        about=about,
    )


def metric_json(metric: MetricSpec, *, primary: bool) -> dict[str, Any]:
    """Return a metric's description for a result file, under H2O's names."""
    return {
        "key": metric.key,
        "higher_is_better": metric.direction is Direction.HIGHER,
        "value_range": [_number(metric.low), _number(metric.high)],
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


def _scored(row: Mapping[str, Any], metrics: Iterable[str]) -> ScoredCase:
    missing = row["missing"]
    scores = {key: _score(row[column(key)], missing.get(key, {})) for key in metrics}
    return ScoredCase(row["key"], row["model_key"], row["group"], scores, row)


class ResultWriter:
    """Writes a result file row by row, so that no more than one row is in memory."""

    def __init__(self, stream: IO[str]) -> None:
        self._write = stream.write
        self._write('{\n"results": [')
        self._between = "\n"

    def add(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        self._write(self._between + dumps(row))
        self._between = ",\n"

    def close(self, models: Sequence[Mapping[str, Any]], evaluator: Mapping[str, Any]) -> None:
        """Write what follows the rows; the stream stays open."""
        self._write(f'\n],\n"models": {dumps(models)},\n"evaluator": {dumps(evaluator)}\n}}\n')


def column(key: str) -> str:
    """Return the name of a metric in a row: its key, marked where a field has that name."""
    return f"{key}_score" if key in _FIELDS else key


def dumps(value: Any) -> str:
    """Return strict JSON on one line, readable where its text can be written as UTF-8."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, which JSON can only hold escaped
        return json.dumps(value, allow_nan=False)
    return text


def _number(value: float | None) -> float | str | None:
    """Return a number that strict JSON can hold; the infinite ones become text."""
    if value is None or math.isfinite(value):
        return value
    return "Infinity" if value > 0 else "-Infinity"


def _score(value: float | str | None, why: Mapping[str, Any]) -> Score:
    if value is None:
        return Score.missing(State(why["state"]), why["reason"])
    return Score(float(value))


def _bound(value: float | str) -> float:
    return float(value)

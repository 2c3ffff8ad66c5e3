"""Reads a finished run for its report: scores as columns, cases once, findings as they are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_offline.datasets.cases import Model
from guardrail_offline.evaluators.case_view import UNANSWERED
from guardrail_offline.evaluators.configured import COUNTS_RIGHT
from guardrail_offline.runs.result_files import EvaluatorResults, read_cases, read_results
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.file import shipped_thresholds
from guardrail_service.types import Direction, MetricSpec, State

Column = np.ndarray[Any, np.dtype[np.float64]]
_CASE_KEYS = (
    "key", "model_key", "group", "categories", "input", "context", "expected_output",
    "actual_output", "actual_duration", "cost", "relationships",
)  # fmt: skip
DOMAINS: Mapping[str, str] = {
    "accuracy": "Generation",
    "retrieval": "Retrieval",
    "privacy": "Privacy",
    "security": "Security",
    "fairness": "Fairness and safety",
    "stability": "Stability",
    "data quality": "Format and data",
}
_OWN_DOMAIN = {"classification": "Classification"}
LONGEST_NAME = 200
"""Characters of a key, model or category in the page; files have them whole."""
_SUMMARIES = "summarization"


@dataclass(frozen=True)
class DecidingCut:
    """A threshold that says something about a model, and where it is from.

    Attributes:
        value: In the metric's unit; a value on it passes.
        origin: `yours` was set for the run, `fitted` is the shipped one of the pack, `rule` is
            that of a rule which counts right and wrong.
    """

    value: float
    origin: str


@dataclass(frozen=True)
class EvaluatorData:
    """One evaluator's results, by metric and in the order of the cases.

    Attributes:
        about: The file's `evaluator` object.
        metrics: The primary one first.
        values: By metric, NaN where there is no value. Shape (cases,).
        reasons: By metric, the reason of each case without a value.
        cuts: The thresholds that decide.
        spans: By place of the case, the scored parts of its answer.
        boards: The evaluator's entries of `leaderboards.json`, one per run.
        errors: By place of the case, the reason for which an evaluator failed on it.
    """

    id: str
    about: Mapping[str, Any]
    metrics: tuple[MetricSpec, ...]
    values: Mapping[str, Column]
    reasons: Mapping[str, Sequence[str | None]]
    cuts: Mapping[str, DecidingCut]
    spans: Mapping[int, Sequence[Mapping[str, Any]]]
    boards: tuple[Mapping[str, Any], ...] = ()
    errors: Mapping[int, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return what people call it."""
        return str(self.about.get("display_name") or self.id)

    @property
    def primary(self) -> MetricSpec:
        """Return the metric that boards sort by."""
        return self.metrics[0]

    @property
    def domain(self) -> str:
        """Return what kind of weakness it looks for."""
        if self.id in _OWN_DOMAIN:
            return _OWN_DOMAIN[self.id]
        if self.id.startswith(_SUMMARIES):
            return "Summarization"
        marks = [str(word) for word in self.about.get("keywords", ())]
        problem = next((m.removeprefix("problem-") for m in marks if m.startswith("problem-")), "")
        return DOMAINS.get(problem, "Other")

    @property
    def has_values(self) -> bool:
        """Return whether any case has any number."""
        return any(bool((~np.isnan(column)).any()) for column in self.values.values())


@dataclass(frozen=True)
class RunData:
    """One run, or several put side by side.

    Attributes:
        name: Name of the lab, or of the folder.
        cases: What was judged, without scores.
        models: The systems under test; of several runs, with the run in front.
        evaluators: By id, those of all runs.
        manifests: `manifest.json` of each run.
        findings: The content of `problems.json`, `insights.json` and `flips.json`, of all runs.
        notes: What a reader has to know about the files.
        folders: Names of the runs' folders.
        timings: `timings.json` of each run: by evaluator, processor seconds and cases.
        judges: `judge.json` of each run: calls, failures, tokens and cost by evaluator.
        samples: `sample.json` of each run: what was drawn and what it tells of the whole lab.
    """

    name: str
    cases: Sequence[Mapping[str, Any]]
    models: tuple[Model, ...]
    evaluators: Mapping[str, EvaluatorData]
    manifests: Sequence[Mapping[str, Any]]
    problems: Sequence[Mapping[str, Any]]
    insights: Sequence[Mapping[str, Any]]
    flips: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    timings: tuple[Mapping[str, Mapping[str, float]], ...] = ()
    judges: tuple[Mapping[str, Any], ...] = ()
    samples: tuple[Mapping[str, Any], ...] = ()

    def title(self, model: str) -> str:
        """Return what a model is called."""
        return next((one.title or one.key for one in self.models if one.key == model), model)

    def is_unanswered(self, reason: str | None) -> bool:
        """Return whether a reason says that the model did not answer what it could have."""
        return reason in UNANSWERED


def short(name: str) -> str:
    """Return a name that a page can carry many times; a long one is told apart by its digest."""
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "backslashreplace")).hexdigest()[:12]
    return f"{name[: LONGEST_NAME - 20]}… {digest}"


def read_run_data(folder: Path) -> RunData:
    """Return a finished run.

    Raises:
        ConfigurationError: If the folder holds no finished run, or a file cannot be read.
    """
    paths = sorted((folder / "results").glob("*.json"))
    if not paths:
        raise ConfigurationError(str(folder), _found_instead(folder), "a finished run")
    boards = {board["evaluator"]: board for board in _json(folder / "leaderboards.json", [])}
    if "grammar" in boards:
        boards["grammar"]["groups"] = _json(folder / "grammar.json", {"models": []})["models"]
    evaluators: dict[str, EvaluatorData] = {}
    cases: list[Mapping[str, Any]] = []
    models: tuple[Model, ...] = ()
    stored = read_cases(folder)
    for path in paths:
        results = read_results(path, stored)
        if not cases:
            cases = [_case(row.record) for row in results.rows]
            models = results.models
        board = boards.get(results.evaluator)
        evaluators[results.evaluator] = _columns(results, cases, str(path), board)
    manifest = _json(folder / "manifest.json", {})
    notes = () if manifest else ("The run has no manifest.json: what was run is not known.",)
    known = {model.key for model in models}
    extra = dict.fromkeys(case["model_key"] for case in cases if case["model_key"] not in known)
    return RunData(
        name=str(manifest.get("lab", {}).get("name") or folder.name),
        cases=cases,
        models=(*models, *(Model(key, key) for key in extra)),
        evaluators=dict(sorted(evaluators.items())),
        manifests=[manifest],
        problems=_json(folder / "problems.json", []),
        insights=_json(folder / "insights.json", []),
        flips=_json(folder / "flips.json", {"rates": [], "flips": []}),
        notes=notes,
        folders=(folder.absolute().name,),
        timings=(_json(folder / "timings.json", {}),),
        judges=(_json(folder / "judge.json", {}),),
        samples=(_json(folder / "sample.json", {}),),
    )


def _found_instead(folder: Path) -> str:
    """Return what lies where the results should be."""
    plan = _json(folder / "manifest.json", {}).get("plan", {})
    if not plan:
        return "no results/*.json"
    done = len(list((folder / "work").glob("scores-*.jsonl")))
    return f"an unfinished run, {done} of {plan.get('shards')} shards; give its command again"


def _json(path: Path, default: Any) -> Any:
    """Return a file of a run, or what stands for one that an earlier version did not write."""
    if not path.exists():
        return default
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(str(path), type(error).__name__, "a file of a run") from error
    if not isinstance(content, type(default)):
        raise ConfigurationError(str(path), type(content).__name__, "a file of a run")
    return content


def _case(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: record[key] for key in _CASE_KEYS if record.get(key) is not None}


def _columns(
    results: EvaluatorResults,
    cases: Sequence[Mapping[str, Any]],
    where: str,
    board: Mapping[str, Any] | None,
) -> EvaluatorData:
    if [row.key for row in results.rows] != [case["key"] for case in cases]:
        raise ConfigurationError(where, "other cases", "the cases of the run's other files")
    values, reasons = {}, {}
    for key in results.metrics:
        scores = [row.scores[key] for row in results.rows]
        column = [np.nan if score.value is None else score.value for score in scores]
        values[key] = np.array(column, dtype=np.float64)
        reasons[key] = [None if s.value is not None else s.reason or "unknown" for s in scores]
    spans = {
        place: meta
        for place, row in enumerate(results.rows)
        if (meta := row.record.get("actual_output_meta"))
    }
    metrics = tuple(results.metrics.values())
    return EvaluatorData(
        results.evaluator,
        results.about,
        metrics,
        values,
        reasons,
        deciding_cuts(results.evaluator, results.about, metrics),
        spans,
        (board,) if board else (),
        _errors(results),
    )


def _errors(results: EvaluatorResults) -> dict[int, str]:
    return {
        place: score.reason or "unknown"
        for place, row in enumerate(results.rows)
        for score in row.scores.values()
        if score.state is State.ERROR
    }


def deciding_cuts(
    evaluator: str, about: Mapping[str, Any], metrics: Sequence[MetricSpec]
) -> dict[str, DecidingCut]:
    """Return the thresholds of a result file that say something about the models at hand.

    A suite's 0.75 belongs to the suite's own models and is left out, as it is in `problems.json`.
    """
    wanted = about.get("settings", {}).get("metric_threshold")
    own = wanted if isinstance(wanted, Mapping) else {metrics[0].key: wanted} if metrics else {}
    is_judged = about.get("backend") == "judge"
    is_shipped = not is_judged and not about.get("embeddings")
    is_rule = is_judged or "run-class-D" in about.get("keywords", ())
    found = {}
    for metric in metrics:
        cut = metric.threshold
        if cut is None:
            continue
        if own.get(metric.key) is not None:
            found[metric.key] = DecidingCut(cut, "yours")
        elif is_shipped and shipped_thresholds().get(evaluator, {}).get(metric.key) == cut:
            found[metric.key] = DecidingCut(cut, "fitted")
        elif is_rule and (metric.boolean or evaluator in COUNTS_RIGHT):
            found[metric.key] = DecidingCut(cut, "rule")
    return found


def beyond(values: Column, cut: float, direction: Direction) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which values are on the wrong side of a threshold; NaN is on none."""
    return values < cut if direction is Direction.HIGHER else values > cut

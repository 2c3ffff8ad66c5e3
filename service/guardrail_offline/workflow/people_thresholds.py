"""Step 5: thresholds of the evaluation's metrics by people's labels, with what they promise.

Without labels the thresholds are those the evaluation had, and the step writes the cases that
people should label. Every step that says pass or fail reads its thresholds from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_offline.agreement import kappa
from guardrail_offline.calibration.labels import (
    HumanVerdicts,
    Look,
    ledger_of,
    read_labels,
    read_looks,
    record,
    spend,
    verdicts,
)
from guardrail_offline.calibration.sampling import draw, sample_text, task_text
from guardrail_offline.calibration.scored_lab import read_lab
from guardrail_offline.calibration.single_rules import (
    f1_cut,
    false_flag_cut,
    trade,
    youden_cut,
)
from guardrail_offline.calibration.split import chance
from guardrail_offline.calibration.statistics import labels_needed
from guardrail_offline.report.run_data import Column
from guardrail_offline.runs.shards import whole_file
from guardrail_offline.workflow.definition import CalibrationParameters
from guardrail_offline.workflow.evaluation import RUN
from guardrail_offline.workflow.score_table import (
    MetricColumn,
    ScoreTable,
    metric_json,
    rate,
    read_table,
)
from guardrail_offline.workflow.step_engine import StepContext, StepOutcome
from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.policy.provenance import sha256_of
from guardrail_service.types import Direction

TASKS = "to_label.csv"
CALIBRATED = "calibrated"


@dataclass(frozen=True)
class Labelled:
    """The labelled cases of one metric, one per question, of those with a value.

    Attributes:
        places: In the table.
        good: Whether people passed them. Shape as `places`.
    """

    places: np.ndarray[Any, np.dtype[np.intp]]
    good: np.ndarray[Any, np.dtype[np.bool_]]


def calibrate(context: StepContext) -> StepOutcome:
    """Return the thresholds that decide, and how far verdicts agree with people."""
    parameters: CalibrationParameters = context.parameters
    run = context.folder.step_folder("evaluation") / RUN
    table = read_table(run, parameters.seed)
    gating, own = _gating(table, parameters.gates), _own(table, parameters)
    tasks = _write_tasks(context, run, table)
    name = context.definition.labels
    if name is None:
        found = [
            _kept(column, gates=column.name in gating, own=own.get(column.name))
            for column in table.columns.values()
        ]
        note = (
            f"no labels: thresholds are as in the evaluation; {tasks[0]} has cases to label, "
            "guardrail workflow edit --labels takes them"
        )
        results: dict[str, Any] = {
            "thresholds": _with_failing(table, found),
            "agreement": [],
            "labels": None,
            "overruled": [],
            "verdicts": {},
        }
        return StepOutcome(results, {"cases": len(table.cases)}, tasks, [note])
    return _with_labels(context, table, gating, context.folder.root / name, tasks)


def _with_labels(
    context: StepContext, table: ScoreTable, gating: set[str], path: Path, tasks: Sequence[str]
) -> StepOutcome:
    parameters: CalibrationParameters = context.parameters
    words = _Words(path, parameters.adjudicator)
    own = _own(table, parameters)
    fitted = [
        name
        for name, one in table.columns.items()
        if not one.metric.boolean and name in gating and name not in own
    ]
    delta = parameters.delta / max(1, len(fitted))
    thresholds, agreement = [], []
    for name, column in table.columns.items():
        labelled = labelled_cases(table, column, words.about(column), parameters.seed)
        if name in fitted:
            thresholds.append(fit(column, labelled, parameters, delta))
        else:
            thresholds.append(_kept(column, gates=name in gating, own=own.get(name)))
        agreement.append(_agreement(column, labelled, thresholds[-1]["threshold"]))
    notes = [*_spent(parameters, path, table, words), *_strangers(words.whole, table)]
    calibrated = sum(one["calibrated"] for one in thresholds)
    told = f"{calibrated} of {len(thresholds)} thresholds fitted to labels"
    if parameters.rule == "false_flag" and len(fitted) > 1:
        told += f"; delta {parameters.delta:g} is shared by {len(fitted)} metrics"
    results = {
        "thresholds": _with_failing(table, thresholds),
        "agreement": agreement,
        "labels": words.as_json(),
        "overruled": list(_overruled(table, thresholds, words.whole)),
        "verdicts": dict(sorted(words.whole.passes.items())),
    }
    inputs = {"cases": len(table.cases), "labelled": len(words.whole.passes)}
    return StepOutcome(results, inputs, tasks, [told, *notes])


def fit(
    column: MetricColumn, labelled: Labelled, parameters: CalibrationParameters, delta: float
) -> dict[str, Any]:
    """Return the threshold of one metric; the earlier one where the labels carry none, and why.

    Args:
        column: The metric.
        labelled: Cases with labels.
        parameters: Rule and promise.
        delta: Chance that this metric's promise fails.
    """
    values = _oriented(column, column.values[labelled.places])
    good, bad = values[labelled.good], values[~labelled.good]
    if parameters.rule == "false_flag":
        cut = false_flag_cut(good, parameters.alpha, delta) if len(good) else None
        needed = labels_needed(parameters.alpha, delta)
        why = f"{len(good)} labelled as good, {needed} are needed for this promise"
    else:
        rule: Callable[..., float] = youden_cut if parameters.rule == "youden" else f1_cut
        cut = rule(trade(good, bad)) if len(good) and len(bad) else None
        why = f"{len(good)} labelled as good and {len(bad)} as bad, both are needed"
    if cut is None or not math.isfinite(cut):
        return _kept(column, gates=True) | {
            "why": why if cut is None else "no finite cut separates them"
        }
    promised = parameters.rule == "false_flag"
    return _kept(column, gates=True) | {
        "gates": True,
        "threshold": float(_oriented(column, np.array([cut]))[0]),
        "origin": CALIBRATED,
        "calibrated": True,
        "promise": {"alpha": parameters.alpha, "delta": delta} if promised else None,
        "why": None if promised else f"{parameters.rule} promises nothing about new answers",
    }


def labelled_cases(
    table: ScoreTable, column: MetricColumn, words: HumanVerdicts, seed: int
) -> Labelled:
    """Return the cases that people judged and the metric scored, one per question by hash."""
    chosen: dict[str, int] = {}
    order = sorted(range(len(table.cases)), key=lambda n: chance(seed, "unit", table.keys[n]))
    for place in order:
        known = table.keys[place] in words.passes and not np.isnan(column.values[place])
        if known:
            chosen.setdefault(str(table.cases[place]["group"]), place)
    places = np.array(sorted(chosen.values()), dtype=np.intp)
    good = np.array([words.passes[table.keys[place]] for place in places], dtype=np.bool_)
    return Labelled(places, good)


class _Words:
    """The labels of a file: about whole answers, and about single metrics where there are some."""

    def __init__(self, path: Path, adjudicator: str) -> None:
        self._labels = read_labels(path)
        self._where, self._adjudicator = str(path), adjudicator
        self.whole = verdicts(self._labels, self._where, None, adjudicator)

    def about(self, column: MetricColumn) -> HumanVerdicts:
        """Return people's words on one metric, else on the answers."""
        named = {label.metric for label in self._labels}
        for name in (column.name, column.metric.key):
            if name in named:
                return verdicts(self._labels, self._where, name, self._adjudicator)
        return self.whole

    def as_json(self) -> dict[str, Any]:
        """Return counts."""
        passes = list(self.whole.passes.values())
        agreed = self.whole.agreement
        return {
            "cases": len(passes),
            "pass": sum(passes),
            "fail": len(passes) - sum(passes),
            "abstain": len(self.whole.abstained),
            "annotators": self.whole.annotators,
            "kappa": None if agreed is None else agreed.as_json(),
        }


def _gating(table: ScoreTable, wanted: Sequence[str]) -> set[str]:
    """Return the metrics that decide.

    Raises:
        ConfigurationError: If one is not of the evaluation.
    """
    names: set[str] = set()
    for one in wanted:
        found = {name for name in table.columns if one in (name, table.columns[name].evaluator)}
        if not found:
            hint = choices(one, table.columns, "metric")
            raise ConfigurationError("calibration.gates", repr(one)[:60], hint)
        names |= found
    return names or set(table.columns)


def _own(table: ScoreTable, parameters: CalibrationParameters) -> dict[str, float]:
    """Return the thresholds that a person set.

    Raises:
        ConfigurationError: If one is of no metric of the evaluation, or outside of its range.
    """
    for name, value in parameters.thresholds.items():
        where = f"calibration.thresholds.{name}"
        if name not in table.columns:
            hint = choices(name, table.columns, "metric")
            raise ConfigurationError(where, "no such metric", hint)
        metric = table.columns[name].metric
        if not metric.holds(value):
            raise ConfigurationError(where, f"{value:g}", f"{metric.low:g} to {metric.high:g}")
    return dict(parameters.thresholds)


def _kept(column: MetricColumn, *, gates: bool, own: float | None = None) -> dict[str, Any]:
    """Return the threshold that a metric had, or that a person set."""
    cut = column.metric.threshold if own is None else own
    return {
        **metric_json(column),
        "before": column.metric.threshold,
        "threshold": cut,
        "origin": column.origin if own is None else "yours",
        "calibrated": False,
        "gates": gates and cut is not None,
        "promise": None,
        "why": None,
    }


def _with_failing(
    table: ScoreTable, thresholds: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return thresholds with the share of questions on the wrong side of each."""
    found = []
    for one in thresholds:
        column, failing = table.columns[one["metric"]], None
        if one["threshold"] is not None:
            known = int((~np.isnan(column.values[table.units])).sum())
            failing = rate(int(column.failing(one["threshold"])[table.units].sum()), known)
        found.append({**one, "failing": failing})
    return found


def _oriented(column: MetricColumn, values: Column) -> Column:
    return values if column.metric.direction is Direction.HIGHER else -values


def _agreement(column: MetricColumn, labelled: Labelled, threshold: float | None) -> dict[str, Any]:
    """Return how often verdicts before and after are people's; measured on the fitted labels."""
    good = labelled.good

    def of(cut: float | None) -> dict[str, Any] | None:
        if cut is None or not len(good):
            return None
        passes = ~column.failing(cut)[labelled.places]
        value = kappa(passes, good)
        agreed = rate(int((passes == good).sum()), len(good))
        return {"agree": agreed, "kappa": value if math.isfinite(value) else None}

    return {
        "metric": column.name,
        "before": of(column.metric.threshold),
        "after": of(threshold),
        "good": int(good.sum()),
        "bad": int((~good).sum()),
    }


def failed_metrics(
    table: ScoreTable, thresholds: Sequence[Mapping[str, Any]]
) -> list[tuple[str, ...]]:
    """Return of each case the gating metrics on the wrong side of their threshold."""
    failing = {
        one["metric"]: table.columns[one["metric"]].failing(one["threshold"])
        for one in thresholds
        if one["gates"] and one["metric"] in table.columns
    }
    return [
        tuple(name for name, mask in failing.items() if mask[place])
        for place in range(len(table.cases))
    ]


def _overruled(
    table: ScoreTable, thresholds: Sequence[Mapping[str, Any]], words: HumanVerdicts
) -> Iterator[dict[str, Any]]:
    """Yield the answers that people passed although a metric fails them."""
    for place, failed in enumerate(failed_metrics(table, thresholds)):
        key = table.keys[place]
        if failed and words.passes.get(key):
            case = table.cases[place]
            yield {
                "key": key,
                "question": case.get("input"),
                "answer": case.get("actual_output"),
                "label": "pass",
                "failed": list(failed),
            }


def _spent(
    parameters: CalibrationParameters, path: Path, table: ScoreTable, words: _Words
) -> list[str]:
    """Write a look at the labels into their ledger and return what all looks cost.

    Raises:
        ConfigurationError: If the labels can prove nothing any more.
    """
    if parameters.rule != "false_flag":
        return []
    rule = sha256_of([parameters.model_dump(mode="json"), sorted(table.columns)])
    data = sha256_of([table.digest(), sorted(words.whole.passes.items())])
    look, ledger = Look(rule, data, parameters.delta, "fixed"), ledger_of(path)
    spent = spend(read_looks(ledger), look)
    record(ledger, look)
    if spent.count == 1:
        return []
    return [
        f"look {spent.count} at these labels: all promises made of them fail with chance "
        f"{spent.delta:g} at most"
    ]


def _strangers(words: HumanVerdicts, table: ScoreTable) -> list[str]:
    known = set(table.keys)
    lost = [key for key in words.passes if key not in known]
    return [f"{len(lost)} labelled cases are not in the evaluation"] if lost else []


def _write_tasks(context: StepContext, run: Path, table: ScoreTable) -> list[str]:
    """Write the cases that people should label, scores left out."""
    parameters: CalibrationParameters = context.parameters
    cases = read_lab(run).cases
    count = min(parameters.sample, len(table.units))
    drawn = draw(cases, count, parameters.seed)
    tasks = context.own / TASKS
    sample = tasks.with_name(f"{TASKS}.sample.jsonl")
    for path, text in ((tasks, task_text(drawn, ".csv")), (sample, sample_text(drawn))):
        with whole_file(path) as stream:
            stream.write(text)
    return context.relative([tasks, sample])

"""A run as a table, and as JSON for programs and language models."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import asdict
from typing import IO, Any

import numpy as np

from guardrail_offline.evaluators.result import json_number
from guardrail_offline.report.content import page_content
from guardrail_offline.report.differences import Ahead
from guardrail_offline.report.eye import eye
from guardrail_offline.report.figures import Figure, RunFigures
from guardrail_offline.report.run_data import EvaluatorData, RunData
from guardrail_offline.report.verdicts import TOLERATED, MetricCheck, ModelVerdict, headline
from guardrail_service.errors import ConfigurationError, choices

MEANING = {
    "answer": "whether a model may go live, as a light and a sentence",
    "light": "fails: beyond doubt; unclear: chance, silence or too few cases may be behind it; "
    "passes; unknown: no threshold means anything for the metric",
    "threshold": "origin fitted: on labelled answers; yours: set for the run; rule: counts right "
    "and wrong. Metrics without one decide nothing",
    "mean": "over judged cases only; see judged and cases for what it leaves out",
    "interval95": "cluster bootstrap by question; null where there is no spread or one question",
    "failing": "judged cases on the wrong side of the threshold",
    "judged": "cases with a value, of `cases`; `missing` says why others have none, and "
    "`unanswered` how many of those the model left without an answer",
    "headline": "the metric that an evaluator is judged by; its others are beside it",
    "not_run": "evaluators without any number, and why",
    "differences": "pairs of models of which one is ahead beyond chance: `size` is the mean "
    "difference by question, `p` is corrected (Holm) for all comparisons",
    "fail_together": "combinations of checks that fail on the same answers, with some keys",
    "problems": "as in problems.json; `row_keys` of their attributes are keys of cases",
    "eye": "the eval eye as a tree of name, light, told and parts: domain, evaluator, metric, "
    "model; `dots` of a model has a histogram of its values from low to high",
}
"""Written into `report.json`, so that a reader needs no manual."""


def results_csv(run: RunData, data: EvaluatorData, stream: IO[str]) -> None:
    """Write one evaluator's cases with their texts, as H2O's archives have them."""
    texts = ("input", "expected_output", "actual_output")
    keys = [metric.key for metric in data.metrics]
    writer = csv.writer(stream)
    writer.writerow(["key", "model_key", *texts, *keys])
    for place, case in enumerate(run.cases):
        cells = [_value(data.values[key][place]) for key in keys]
        named = [_plain(case.get(name) or "") for name in ("key", "model_key", *texts)]
        writer.writerow(named + cells)


def scores_csv(run: RunData, stream: IO[str]) -> None:
    """Write a row per case with a column per evaluator and metric; a cell is empty without value.

    A text that a spreadsheet would take for a formula is written with an apostrophe in front.
    """
    having = [(name, data) for name, data in run.evaluators.items() if data.has_values]
    names = [f"{name}.{metric.key}" for name, data in having for metric in data.metrics]
    writer = csv.writer(stream)
    writer.writerow(["key", "model_key", "group", *names])
    for place, case in enumerate(run.cases):
        values = [data.values[metric.key][place] for _, data in having for metric in data.metrics]
        cells = [_value(value) for value in values]
        writer.writerow([_plain(case[key]) for key in ("key", "model_key", "group")] + cells)


def _value(value: float) -> str:
    return "" if np.isnan(value) else repr(float(value))


def _plain(text: Any) -> str:
    return f"'{text}" if str(text).startswith(("=", "+", "-", "@", "\t", "\r")) else str(text)


def report_json(run: RunData, tolerated: float = TOLERATED) -> dict[str, Any]:
    """Return the report's content as plain values, each name explained under `meaning`."""
    figures = RunFigures(run)
    content = page_content(figures, tolerated)
    return {
        "schema_version": "1",
        "meaning": MEANING,
        "name": run.name,
        "cases": len(run.cases),
        "questions": content["data"]["questions"],
        "tolerated_share": tolerated,
        "answer": {"light": content["answer"][0], "sentence": content["answer"][1]},
        "models": [_verdict(verdict, run) for verdict in content["verdicts"]],
        "metrics": [
            _figure(figures.of(data, metric, model.key), is_headline=metric is headline(data))
            for data in run.evaluators.values()
            for metric in data.metrics
            for model in run.models
            if data.has_values
        ],
        "not_run": [{"evaluator": one["data"].id, "why": one["why"]} for one in content["not_run"]],
        "differences": [
            _ahead(one, run) for one in (content["differences"] or {"rows": ()})["rows"]
        ],
        "fail_together": content["clusters"],
        "problems": list(run.problems),
        "eye": eye(figures, tolerated),
    }


JSON_PARTS: Mapping[str, tuple[str, ...]] = {
    "summary": ("answer", "models"),
    "metrics": ("metrics",),
    "not-judged": ("not_run",),
    "findings": ("differences", "fail_together", "problems"),
}
"""Parts of the page, by what `report.json` has of them; the eye is its tree alone."""


def json_part(content: Mapping[str, Any], part: str) -> Any:
    """Return one part of `report.json`, or the metrics of one evaluator.

    Raises:
        ConfigurationError: If there is no such part.
    """
    if part == "eye":
        return content["eye"]
    if part in JSON_PARTS:
        return {name: content[name] for name in ("meaning", *JSON_PARTS[part])}
    metrics = [one for one in content["metrics"] if one["evaluator"] == part]
    if not metrics:
        names = ["eye", *JSON_PARTS, *dict.fromkeys(m["evaluator"] for m in content["metrics"])]
        raise ConfigurationError("--part", repr(part), choices(part, names, "part"))
    return {"meaning": content["meaning"], "metrics": metrics}


def _verdict(verdict: ModelVerdict, run: RunData) -> dict[str, Any]:
    return {
        "model": verdict.model,
        "name": run.title(verdict.model),
        "light": verdict.light,
        "checks": [_check(check) for check in verdict.checks],
    }


def _check(check: MetricCheck) -> dict[str, Any]:
    return {
        "evaluator": check.data.id,
        "metric": check.figure.metric.key,
        "light": check.light,
        "why": check.why,
    }


def _figure(figure: Figure, *, is_headline: bool) -> dict[str, Any]:
    cut = figure.cut
    return {
        "evaluator": figure.evaluator,
        "metric": figure.metric.key,
        "headline": is_headline,
        "model": figure.model,
        "direction": figure.metric.direction.value,
        "mean": json_number(figure.value),
        "interval95": figure.interval,
        "judged": figure.judged,
        "cases": figure.cases,
        "unanswered": figure.unanswered,
        "failing": figure.failing,
        "threshold": None if cut is None else {"value": cut.value, "origin": cut.origin},
        "missing": dict(figure.missing),
    }


def _ahead(one: Ahead, run: RunData) -> dict[str, Any]:
    return asdict(one) | {"better": run.title(one.better), "worse": run.title(one.worse)}

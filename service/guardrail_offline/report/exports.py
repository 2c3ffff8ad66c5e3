"""A run as a table, as JSON for programs and language models, and as Markdown."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import IO, Any

import numpy as np

from guardrail_offline.evaluators.result import json_number
from guardrail_offline.report.content import page_content
from guardrail_offline.report.differences import Ahead
from guardrail_offline.report.eye import eye
from guardrail_offline.report.figures import Figure, RunFigures
from guardrail_offline.report.run_data import RunData
from guardrail_offline.report.verdicts import TOLERATED, MetricCheck, ModelVerdict, headline

MEANING = {
    "answer": "whether a model may go live, as a light and a sentence",
    "light": "fails: beyond doubt; unclear: chance, silence or too few cases may be behind it; "
    "passes; unknown: no threshold means anything for the metric",
    "threshold": "origin fitted: on labelled answers; yours: set for the run; rule: counts right "
    "and wrong. Metrics without one decide nothing",
    "mean": "over judged cases only; see judged and cases for what it leaves out",
    "interval95": "cluster bootstrap by question; null where there is no spread or one question",
    "failing": "judged cases on the wrong side of the threshold",
}
"""Written into `report.json`, so that a reader needs no manual."""


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
        cells = ["" if np.isnan(value) else repr(float(value)) for value in values]
        writer.writerow([_plain(case[key]) for key in ("key", "model_key", "group")] + cells)


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


def report_markdown(run: RunData, tolerated: float = TOLERATED) -> str:
    """Return the first screen and the headline metrics, for a wiki or a pull request."""
    content = page_content(RunFigures(run), tolerated)
    lines = [f"# Report: {_cell(run.name)}", "", f"**{_cell(content['answer'][1])}**", ""]
    for verdict in content["verdicts"]:
        lines += _of_model(verdict, run)
    lines += _headlines(content["headlines"], run)
    return "\n".join(lines) + "\n"


def _of_model(verdict: ModelVerdict, run: RunData) -> list[str]:
    lines = [f"## {_cell(run.title(verdict.model))}: {verdict.light}", ""]
    for light in ("fails", "unclear"):
        lines += [
            f"- {light}: {check.data.name} ({check.figure.metric.key}): {check.why}"
            for check in verdict.checks
            if check.light == light
        ]
    return [*lines, ""]


def _headlines(headlines: Sequence[Mapping[str, Any]], run: RunData) -> list[str]:
    models = " | ".join(_cell(model.title) for model in run.models)
    lines = ["## Headline metrics", "", f"| evaluator | metric | {models} |"]
    lines.append("|---|---|" + "---|" * len(run.models))
    for row in headlines:
        cells = " | ".join(_short(cell["figure"]) for cell in row["cells"])
        lines.append(f"| {row['data'].name} | {row['metric'].key} | {cells} |")
    return lines


def _short(figure: Figure) -> str:
    if figure.value is None:
        return "no value"
    ends = "" if figure.interval is None else " ({:.3f} to {:.3f})".format(*figure.interval)
    return f"{figure.value:.3f}{ends}, {figure.judged} of {figure.cases}"


_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]<>#|!"} | {"\n": " ", "\r": " "})


def _cell(text: str) -> str:
    """Return a text of the lab that Markdown shows as it is."""
    return text.translate(_MARKS)

"""One evaluator for the page: its metrics by model, leaderboards, weak points and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.grades import grade_line
from guardrail_offline.report.charts import ChartAxis, box, radar, shade, strip
from guardrail_offline.report.figures import Mask, RunFigures
from guardrail_offline.report.run_data import EvaluatorData
from guardrail_offline.report.shown_cases import axis
from guardrail_offline.report.weaknesses import by_category, grid, hardest
from guardrail_service.types import MetricSpec


@dataclass(frozen=True)
class Section:
    """One evaluator for the page.

    Attributes:
        kind: `boolean`, `classification`, `bars` up to three metrics, or `radar` above.
        metrics: Per metric its axis, and per model figure, box and strip.
        radar: Lines and spokes, if it is of that kind.
        confusion: By model, rows of a confusion matrix.
        hardest: Questions with the worst values, the worst first.
        categories: By category, per model mean, judged and failing cases.
        grid: By way in which a question was made, the same per category; over all models.
        heat: By model, each metric with its shade.
        parameters: What was set.
        grade: How far its numbers agree with labels of people; None for one that is not ours.
    """

    data: EvaluatorData
    kind: str
    metrics: Sequence[Mapping[str, Any]]
    radar: tuple[Any, Any] | None
    confusion: Mapping[str, Any]
    hardest: Sequence[Mapping[str, Any]]
    categories: Sequence[Mapping[str, Any]]
    grid: Sequence[Mapping[str, Any]]
    heat: Sequence[Mapping[str, Any]]
    failing: int
    parameters: Mapping[str, Any]
    grade: str | None


def section(
    figures: RunFigures,
    data: EvaluatorData,
    inside: Mapping[str, Mask],
    ways: Mapping[str, Mask],
) -> Section:
    """Return one evaluator for the page.

    Args:
        figures: Of the run.
        data: The evaluator.
        inside: The cases of each category, from `categories`.
        ways: The cases of each way in which a question was made, from `ways_of`.
    """
    metrics, by_model = [], []
    scales = [chart_axis(figures, data, metric.key) for metric in data.metrics]
    for metric, scale in zip(data.metrics, scales, strict=True):
        rows = [figures.of(data, metric, model.key) for model in figures.run.models]
        by_model.append(rows)
        metrics.append({
            "metric": metric,
            "axis": scale,
            "cut": data.cuts.get(metric.key),
            "rows": [
                {"figure": row, "strip": strip(row, scale), "box": box(row, scale)}
                for row in rows
                if row.value is not None or row.judged
            ],
        })  # fmt: skip
    kind = _kind(data)
    lines = radar(list(zip(*by_model, strict=True)), scales) if kind == "radar" else None
    settings = dict(data.about.get("settings") or {})
    return Section(
        data,
        kind,
        metrics,
        lines,
        _confusion(data),
        hardest(figures, data),
        by_category(figures, data, inside),
        grid(figures, data, inside, ways),
        heat(figures, data.metrics, data, scales),
        int(figures.failing(data).sum()),
        {**(data.about.get("parameters") or {}), **settings},
        _grade(data),
    )


def _grade(data: EvaluatorData) -> str | None:
    if data.about.get("backend") == "judge" or data.about.get("embeddings"):
        return str(data.about.get("grade"))
    spec = next((spec for spec in CATALOGUE.specs() if spec.id == data.id), None)
    return None if spec is None else grade_line(spec)


def _kind(data: EvaluatorData) -> str:
    if any(board.get("kind") == "classification" for board in data.boards):
        return "classification"
    if all(metric.boolean for metric in data.metrics):
        return "boolean"
    return "bars" if len(data.metrics) <= 3 else "radar"


def _confusion(data: EvaluatorData) -> dict[str, Any]:
    found = {}
    for board in data.boards:
        for model, cells in (board.get("confusion") or {}).items():
            labels = sorted({c[side] for c in cells for side in ("expected", "predicted")})
            counts = {(cell["expected"], cell["predicted"]): cell["cases"] for cell in cells}
            rows = [(a, [counts.get((a, b), 0) for b in labels]) for a in labels]
            if rows:
                found[model] = {"labels": labels, "rows": rows, "most": max(counts.values())}
    return found


def chart_axis(figures: RunFigures, data: EvaluatorData, metric: str) -> ChartAxis:
    """Return the axis that all models share."""
    return ChartAxis(*axis(figures.run, data.id, metric))


def heat(
    figures: RunFigures,
    metrics: Sequence[MetricSpec],
    data: EvaluatorData,
    scales: Sequence[ChartAxis],
) -> list[dict[str, Any]]:
    """Return the heatmap leaderboard: a row per model, a shaded value per metric."""
    rows = []
    for model in figures.run.models:
        cells = []
        for metric, scale in zip(metrics, scales, strict=True):
            figure = figures.of(data, metric, model.key)
            cells.append({"name": metric.key, "value": figure.value, "shade": shade(figure, scale)})
        rows.append({"model": model.key, "cells": cells})
    return rows

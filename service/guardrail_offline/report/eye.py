"""The eval eye as a tree: domain, evaluator, metric, model; a model's cases hang below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from guardrail_offline.report.content import DOMAIN_ORDER
from guardrail_offline.report.figures import RunFigures
from guardrail_offline.report.run_data import EvaluatorData, short
from guardrail_offline.report.shown_cases import axis, histogram
from guardrail_offline.report.verdicts import LIGHTS, TOLERATED, Light, check
from guardrail_service.types import MetricSpec


def eye(figures: RunFigures, tolerated: float = TOLERATED) -> dict[str, Any]:
    """Return the tree; each node has `name`, `light`, `told` and `parts`, a model has `dots`.

    The light of a node is the worst of its parts; `dots` says where its values lie.
    """
    having = [data for data in figures.run.evaluators.values() if data.has_values]
    domains = []
    for domain in DOMAIN_ORDER:
        inside = [
            _evaluator(figures, data, place, tolerated)
            for place, data in enumerate(having)
            if data.domain == domain
        ]
        if inside:
            domains.append(_node(domain, inside))
    return _node("All checks", domains)


def _node(name: str, parts: Sequence[dict[str, Any]], told: str = "") -> dict[str, Any]:
    failing = sum(part["light"] == "fails" for part in parts)
    told = told or (f"{failing} of {len(parts)} fail" if failing else "")
    return {"name": name, "light": _worst(part["light"] for part in parts), "told": told,
            "parts": list(parts)}  # fmt: skip


def _worst(lights: Iterable[Light]) -> Light:
    found = set(lights)
    return next((light for light in LIGHTS if light in found), "unknown")


def _evaluator(
    figures: RunFigures, data: EvaluatorData, place: int, tolerated: float
) -> dict[str, Any]:
    metrics = [
        _metric(figures, data, (place, number), metric, tolerated)
        for number, metric in enumerate(data.metrics)
    ]
    return _node(data.name, [metric for metric in metrics if metric["parts"]])


def _metric(
    figures: RunFigures,
    data: EvaluatorData,
    place: tuple[int, int],
    metric: MetricSpec,
    share: float,
) -> dict[str, Any]:
    low, high = axis(figures.run, data.id, metric.key)
    models = []
    for model in figures.run.models:
        figure = figures.of(data, metric, model.key)
        if figure.value is None:
            continue
        models.append({
            "name": short(model.title),
            "light": check(data, figure, share).light,
            "told": f"{figure.value:.3f} over {figure.judged} answers",
            "dots": {
                "evaluator": place[0], "metric": place[1], "model": short(model.key), "low": low,
                "high": high, "histogram": histogram(figures.run, data.id, metric.key, model.key),
            },
        })  # fmt: skip
    return _node(metric.key, models)

"""Puts together what the report's templates show. No markup here, and no scores are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.grades import grade_line
from guardrail_offline.report.charts import ChartAxis, box, radar, strip
from guardrail_offline.report.figures import Mask, RunFigures, in_words
from guardrail_offline.report.run_data import EvaluatorData, beyond
from guardrail_offline.report.shown_cases import axis
from guardrail_offline.report.verdicts import TOLERATED, ModelVerdict, headline, verdicts

DOMAIN_ORDER = (
    "Generation", "Retrieval", "Summarization", "Classification", "Privacy", "Security",
    "Fairness and safety", "Stability", "Format and data", "Other",
)  # fmt: skip
MOST_ROWS = 10
"""Rows of tables of single questions and flips; the files have the rest."""
LEAST_CASES = 5
"""A category with fewer judged cases says nothing about a weakness."""


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
    failing: int
    parameters: Mapping[str, Any]
    grade: str | None


def page_content(figures: RunFigures, tolerated: float = TOLERATED) -> dict[str, Any]:
    """Return everything but the cases."""
    run = figures.run
    having = sorted(
        (data for data in run.evaluators.values() if data.has_values),
        key=lambda data: (DOMAIN_ORDER.index(data.domain), data.name),
    )
    judged = verdicts(figures, tolerated)
    inside = categories(run.cases)
    lights = {
        (check.data.id, verdict.model): check for verdict in judged for check in verdict.checks
    }
    return {
        "run": run,
        "tolerated": tolerated,
        "verdicts": judged,
        "answer": answer_of(judged, run.title),
        "headlines": [_headline(figures, data, lights) for data in having],
        "origins": Counter(
            cut.origin if (cut := data.cuts.get(headline(data).key)) else "none" for data in having
        ),
        "not_run": [_not_run(data) for data in run.evaluators.values() if not data.has_values],
        "not_judged": [_not_judged(figures, data) for data in having],
        "sections": [_section(figures, data, inside) for data in having],
        "flips": _flips(figures),
        "clusters": clusters(figures),
        "data": overview(figures),
    }


def answer_of(judged: Sequence[ModelVerdict], title: Any) -> tuple[str, str]:
    """Return a light and the one sentence that answers whether a model may go live."""
    by_light = {light: [v for v in judged if v.light == light] for light in
                ("passes", "unclear", "fails", "unknown")}  # fmt: skip
    passing, unclear, failing = (by_light[key] for key in ("passes", "unclear", "fails"))
    if not judged or len(by_light["unknown"]) == len(judged):
        return "unknown", "This report cannot say: no metric has a fitted threshold and values."
    if passing and len(judged) == 1:
        return "passes", "Nothing that was checked speaks against it."
    if passing:
        names = _names([title(one.model) for one in passing])
        return "passes", f"Nothing that was checked speaks against {names}."
    if unclear:
        if len(judged) == 1:
            return "unclear", "Not clear yet. It fails no check beyond doubt, but some are open."
        nearest = _names([title(one.model) for one in unclear])
        rest = f" {_names([title(one.model) for one in failing])} should not." if failing else ""
        return "unclear", f"Not clear yet. {nearest}: no clear failure, but open questions.{rest}"
    count = len(failing[0].with_light("fails")) if failing else 0
    if len(judged) == 1:
        return "fails", f"No. It fails {count} of {len(failing[0].checks)} checks."
    return "fails", f"No. Each of the {len(judged)} models fails at least one check."


def _names(titles: Sequence[str]) -> str:
    more = f" and {len(titles) - 3} more" if len(titles) > 3 else ""
    return ", ".join(titles[:3]) + more


def _axis(figures: RunFigures, data: EvaluatorData, metric: str) -> ChartAxis:
    return ChartAxis(*axis(figures.run, data.id, metric))


def _headline(
    figures: RunFigures, data: EvaluatorData, lights: Mapping[Any, Any]
) -> dict[str, Any]:
    metric = headline(data)
    scale = _axis(figures, data, metric.key)
    cells = []
    for model in figures.run.models:
        figure = figures.of(data, metric, model.key)
        cells.append({
            "figure": figure,
            "strip": strip(figure, scale),
            "check": lights.get((data.id, model.key)),
        })  # fmt: skip
    cut = data.cuts.get(metric.key)
    return {"data": data, "metric": metric, "cells": cells, "cut": cut, "axis": scale}


def _not_run(data: EvaluatorData) -> dict[str, Any]:
    reasons = Counter(reason for reason in data.reasons[data.primary.key] if reason)
    return {"data": data, "why": [in_words(reason) for reason, _ in reasons.most_common(3)]}


def _not_judged(figures: RunFigures, data: EvaluatorData) -> dict[str, Any]:
    reasons = Counter(reason for reason in data.reasons[headline(data).key] if reason)
    return {
        "data": data,
        "missing": sum(reasons.values()),
        "cases": len(figures.run.cases),
        "why": [(in_words(reason), count) for reason, count in reasons.most_common()],
    }


def categories(cases: Sequence[Mapping[str, Any]]) -> dict[str, Mask]:
    """Return which cases have each of the most frequent categories."""
    names = Counter(str(name) for case in cases for name in case.get("categories") or ())
    having = {name: np.zeros(len(cases), dtype=bool) for name, _ in names.most_common(30)}
    for place, case in enumerate(cases):
        for name in case.get("categories") or ():
            if name in having:
                having[name][place] = True
    return having


def _section(figures: RunFigures, data: EvaluatorData, inside: Mapping[str, Mask]) -> Section:
    metrics, by_model = [], []
    scales = [_axis(figures, data, metric.key) for metric in data.metrics]
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
        _hardest(figures, data),
        _categories(figures, data, inside),
        int(figures.failing(data).sum()),
        {**(data.about.get("parameters") or {}), **settings},
        _grade(data.id),
    )


def _grade(evaluator: str) -> str | None:
    spec = next((spec for spec in CATALOGUE.specs() if spec.id == evaluator), None)
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


def _badness(data: EvaluatorData, metric_key: str, values: Any) -> Any:
    metric = next(metric for metric in data.metrics if metric.key == metric_key)
    return -values if metric.direction.value == "higher_is_better" else values


def _hardest(figures: RunFigures, data: EvaluatorData) -> list[dict[str, Any]]:
    """Return the questions with the worst mean over models, the worst first."""
    key = headline(data).key
    values = data.values[key]
    known = np.isfinite(values)
    if not known.any():
        return []
    groups = figures.groups[known]
    counts = np.bincount(groups)
    sums = np.bincount(groups, weights=_badness(data, key, values[known]))
    present = np.flatnonzero(counts)
    worst = present[np.argsort(-(sums[present] / counts[present]), kind="stable")][:MOST_ROWS]
    cut, found = data.cuts.get(key), []
    bad = beyond(values, cut.value, headline(data).direction) if cut else None
    for group in worst:
        places = np.flatnonzero((figures.groups == group) & known)
        first = figures.run.cases[int(places[0])]
        found.append({
            "question": first.get("input") or first["key"],
            "key": first["key"],
            "mean": float(values[places].mean()),
            "judged": len(places),
            "failing": None if bad is None else int(bad[places].sum()),
        })  # fmt: skip
    return found


def _categories(
    figures: RunFigures, data: EvaluatorData, inside: Mapping[str, Mask]
) -> list[dict[str, Any]]:
    """Return a row per category with a cell per model: mean, judged and failing cases."""
    metric = headline(data)
    cut, values = data.cuts.get(metric.key), data.values[metric.key]
    rows: list[dict[str, Any]] = []
    for name, mask in inside.items():
        cells: list[dict[str, Any]] = []
        for model in figures.run.models:
            places = figures.places(model.key)
            known = values[places][mask[places] & np.isfinite(values[places])]
            bad = int(beyond(known, cut.value, metric.direction).sum()) if cut else None
            mean = float(known.mean()) if len(known) else None
            cells.append({"model": model.key, "n": len(known), "mean": mean, "failing": bad})
        judged = sum(cell["n"] for cell in cells)
        if judged >= LEAST_CASES:
            failing = sum(cell["failing"] or 0 for cell in cells) if cut else None
            rows.append({"name": name, "cells": cells, "n": judged, "failing": failing})
    return sorted(rows, key=lambda row: -(row["failing"] or 0) / row["n"])


def _flips(figures: RunFigures) -> dict[str, Any]:
    """Return the flips of metrics whose threshold decides, and how many others there are."""
    run = figures.run
    decides = {(name, key) for name, data in run.evaluators.items() for key in data.cuts}
    shown = [f for f in run.flips["flips"] if (f["evaluator"], f["metric"]) in decides]
    rates = [
        rate for rate in run.flips["rates"]
        if (rate["evaluator"], rate["metric"]) in decides and rate["flips"]
    ]  # fmt: skip
    return {
        "rates": sorted(rates, key=lambda rate: (-rate["rate"], -rate["pairs"])),
        "flips": shown[: 5 * MOST_ROWS],
        "count": len(shown),
        "others": len(run.flips["flips"]) - len(shown),
        "pairs": sum(rate["pairs"] for rate in run.flips["rates"]),
    }


def clusters(figures: RunFigures) -> list[dict[str, Any]]:
    """Return which checks fail together, the most frequent combination first."""
    failing = {data.name: figures.failing(data) for data in figures.run.evaluators.values()}
    found: dict[tuple[str, ...], list[str]] = {}
    for place, case in enumerate(figures.run.cases):
        names = tuple(name for name, mask in failing.items() if mask[place])
        if names:
            found.setdefault(names, []).append(case["key"])
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"names": n, "count": len(keys), "keys": keys[:3]} for n, keys in ordered[:MOST_ROWS]]


def overview(figures: RunFigures) -> dict[str, Any]:
    """Return what the lab holds: columns with lengths, categories, duplicates, ignored columns."""
    cases = figures.run.cases
    columns = [
        _lengths("Question", (case.get("input") for case in cases)),
        _lengths("Answer", (case.get("actual_output") for case in cases)),
        _lengths("Expected answer", (case.get("expected_output") for case in cases)),
        _lengths("Passages", (_joined_passages(case) for case in cases)),
    ]
    pairs: Counter[Any] = Counter(
        (case["model_key"], case.get("input"), case.get("actual_output"))
        for case in cases
        if case.get("actual_output")
    )
    plans = [manifest.get("plan") or {} for manifest in figures.run.manifests]
    return {
        "columns": columns,
        "questions": int(figures.groups.max(initial=-1)) + 1,
        "categories": Counter(n for c in cases for n in c.get("categories") or ()).most_common(30),
        "models": [(m.title, len(figures.places(m.key))) for m in figures.run.models],
        "duplicates": sum(count - 1 for count in pairs.values()),
        "ignored": list(dict.fromkeys(n for p in plans for n in p.get("ignored_columns") or ())),
    }


def _joined_passages(case: Mapping[str, Any]) -> str | None:
    passages = case.get("context")
    if not passages:
        return None
    return "".join(str(p.get("text") if isinstance(p, Mapping) else p) for p in passages)


def _lengths(name: str, texts: Iterable[Any]) -> dict[str, Any]:
    all_ = list(texts)
    sizes = [len(text) for text in all_ if isinstance(text, str) and text]
    quantiles = np.quantile(sizes, [0, 0.5, 1]).round().astype(int).tolist() if sizes else None
    distinct = len({text for text in all_ if isinstance(text, str) and text})
    return {"name": name, "there": len(sizes), "of": len(all_), "sizes": quantiles,
            "distinct": distinct}  # fmt: skip

"""The weak points of a metric: questions, categories, and ways in which questions were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from guardrail_offline.datasets.cases import PERTURBED_BY
from guardrail_offline.report.figures import Mask, RunFigures
from guardrail_offline.report.run_data import EvaluatorData, beyond
from guardrail_offline.report.verdicts import headline

MOST_ROWS = 10
"""Rows of tables of single questions and flips; the files have the rest."""
LEAST_CASES = 5
"""A category with fewer judged cases says nothing about a weakness."""
MOST_CATEGORIES = 30
_MOST_COLUMNS = 8
_MOST_WAYS = 12
MADE_BY = ("generator:", PERTURBED_BY, "style:", "shape:", "type:")
"""A category that begins so says how its question was made, and not what it is about."""
AS_ASKED = "as it was asked"


def categories(cases: Sequence[Mapping[str, Any]]) -> dict[str, Mask]:
    """Return which cases have each of the most frequent categories."""
    names = Counter(str(name) for case in cases for name in case.get("categories") or ())
    most = names.most_common(MOST_CATEGORIES)
    having = {name: np.zeros(len(cases), dtype=bool) for name, _ in most}
    for place, case in enumerate(cases):
        for name in case.get("categories") or ():
            if name in having:
                having[name][place] = True
    return having


def _badness(data: EvaluatorData, metric_key: str, values: Any) -> Any:
    metric = next(metric for metric in data.metrics if metric.key == metric_key)
    return -values if metric.direction.value == "higher_is_better" else values


def hardest(figures: RunFigures, data: EvaluatorData) -> list[dict[str, Any]]:
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


def by_category(
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
            cells.append({"name": model.title, "n": len(known), "mean": mean, "failing": bad})
        judged = sum(cell["n"] for cell in cells)
        if judged >= LEAST_CASES:
            failing = sum(cell["failing"] or 0 for cell in cells) if cut else None
            rows.append({"name": name, "cells": cells, "n": judged, "failing": failing})
    return sorted(rows, key=lambda row: -(row["failing"] or 0) / row["n"])


def ways_of(cases: Sequence[Mapping[str, Any]]) -> dict[str, Mask]:
    """Return which cases were made in which way; empty where no case says so."""
    own = [_way(case) for case in cases]
    counts = Counter(own)
    if set(counts) <= {AS_ASKED}:
        return {}
    found = {}
    for name, _ in counts.most_common(_MOST_WAYS):
        found[name] = np.array([way == name for way in own], dtype=bool)
    return found


def _way(case: Mapping[str, Any]) -> str:
    names = map(str, case.get("categories") or ())
    return next((name for name in names if name.startswith(MADE_BY)), AS_ASKED)


def grid(
    figures: RunFigures,
    data: EvaluatorData,
    inside: Mapping[str, Mask],
    ways: Mapping[str, Mask],
) -> list[dict[str, Any]]:
    """Return a row per way in which questions were made, with a cell per category.

    Empty where the lab has only one of the two.
    """
    metric = headline(data)
    cut, values = data.cuts.get(metric.key), data.values[metric.key]
    topics = [name for name in inside if ":" not in name and name != "perturbed"][:_MOST_COLUMNS]
    rows = []
    for way, of_way in ways.items():
        cells = []
        for topic in topics:
            known = values[of_way & inside[topic] & np.isfinite(values)]
            if len(known):
                bad = int(beyond(known, cut.value, metric.direction).sum()) if cut else None
                cells.append({
                    "name": topic, "n": len(known), "mean": float(known.mean()), "failing": bad,
                })  # fmt: skip
        if cells:
            rows.append({"name": way, "cells": cells})
    return rows if len(rows) > 1 else []

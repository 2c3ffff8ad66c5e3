"""Puts together what the report's templates show. No markup here, and no scores are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from guardrail_offline.report.charts import strip
from guardrail_offline.report.differences import Ahead, differences
from guardrail_offline.report.figures import RunFigures, in_words
from guardrail_offline.report.overview import overview
from guardrail_offline.report.run_data import EvaluatorData, short
from guardrail_offline.report.run_log import run_log
from guardrail_offline.report.sections import chart_axis, heat, section
from guardrail_offline.report.verdicts import (
    LIGHTS,
    TOLERATED,
    ModelVerdict,
    headline,
    verdicts,
)
from guardrail_offline.report.weaknesses import MOST_ROWS, categories, ways_of

DOMAIN_ORDER = (
    "Generation", "Retrieval", "Summarization", "Classification", "Privacy", "Security",
    "Fairness and safety", "Stability", "Format and data", "Other",
)  # fmt: skip


def page_content(figures: RunFigures, tolerated: float = TOLERATED) -> dict[str, Any]:
    """Return everything but the cases."""
    run = figures.run
    having = sorted(
        (data for data in run.evaluators.values() if data.has_values),
        key=lambda data: (DOMAIN_ORDER.index(data.domain), data.name),
    )
    judged = verdicts(figures, tolerated)
    inside, ways = categories(run.cases), ways_of(run.cases)
    found = differences(figures)
    lights = {
        (check.data.id, verdict.model): check for verdict in judged for check in verdict.checks
    }
    behind = behind_whom(found["rows"] if found else (), judged)
    best_first = ordered(judged, behind)
    return {
        "run": run,
        "tolerated": tolerated,
        "verdicts": judged,
        "ordered_verdicts": best_first,
        "answer": answer_of(best_first, lambda model: short(run.title(model)), behind),
        "behind": behind,
        "silent": {
            model.key: (figures.unanswered(model.key), len(figures.places(model.key)))
            for model in run.models
        },
        "headlines": [_headline(figures, data, lights) for data in having],
        "heat": _board(figures, having),
        "deciding": [data for data in having if headline(data).key in data.cuts],
        "origins": Counter(
            cut.origin if (cut := data.cuts.get(headline(data).key)) else "none" for data in having
        ),
        "not_run": [_not_run(data) for data in run.evaluators.values() if not data.has_values],
        "not_judged": [_not_judged(figures, data) for data in having],
        "sections": [section(figures, data, inside, ways) for data in having],
        "differences": found,
        "insights": insights_to_show(figures),
        "flips": _flips(figures),
        "clusters": clusters(figures),
        "data": overview(figures),
        "log": run_log(run),
    }


def ordered(
    judged: Iterable[ModelVerdict], behind: Mapping[str, Sequence[Ahead]]
) -> list[ModelVerdict]:
    """Return verdicts with the best model first; of equal ones that which fewer are ahead of."""
    lights = tuple(reversed(LIGHTS[:3])) + LIGHTS[3:]
    return sorted(
        judged,
        key=lambda verdict: (
            lights.index(verdict.light),
            len(verdict.with_light("fails")),
            len(verdict.with_light("unclear")),
            len(behind.get(verdict.model, ())),
        ),
    )


def behind_whom(rows: Iterable[Ahead], judged: Iterable[ModelVerdict]) -> dict[str, list[Ahead]]:
    """Return for each model on what another is clearly ahead of it: the one with most of these.

    A check that a model passes is no reason to prefer another, and neither is a model with a
    worse light.
    """
    lights = {verdict.model: LIGHTS.index(verdict.light) for verdict in judged}
    passed = {
        (verdict.model, check.data.name)
        for verdict in judged
        for check in verdict.with_light("passes")
    }
    found: dict[str, dict[str, list[Ahead]]] = {}
    for one in rows:
        is_rival = lights[one.better] >= lights[one.worse]
        if is_rival and (one.worse, one.evaluator) not in passed:
            found.setdefault(one.worse, {}).setdefault(one.better, []).append(one)
    return {worse: max(better.values(), key=len) for worse, better in found.items()}


def answer_of(
    judged: Sequence[ModelVerdict],
    title: Callable[[str], str],
    behind: Mapping[str, Sequence[Ahead]] | None = None,
) -> tuple[str, str]:
    """Return a light and the words that answer whether a model may go live.

    Args:
        judged: The best model first.
        title: What a model is called.
        behind: For a model, on what another is clearly ahead of it.
    """
    by_light = {light: [v for v in judged if v.light == light] for light in LIGHTS}
    passing, unclear, failing = (by_light[key] for key in ("passes", "unclear", "fails"))
    if not judged or len(by_light["unknown"]) == len(judged):
        return "unknown", "This report cannot say: no check has both a threshold and answers."
    if passing and len(judged) == 1:
        return "passes", "Yes, as far as it was checked: no check speaks against it."
    if passing:
        first, *others = passing
        ahead = [(behind or {}).get(verdict.model) for verdict in others]
        is_best = others and all(rows and rows[0].better == first.model for rows in ahead)
        best = f" {title(first.model)} is clearly ahead." if is_best else ""
        return "passes", f"Yes, as far as it was checked: {_names(passing, title)}.{best}"
    if unclear:
        return "unclear", _not_yet(unclear, failing, title, alone=len(judged) == 1)
    if len(judged) == 1:
        failed = [check.data.name for check in failing[0].with_light("fails")]
        more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
        of = f"{len(failed)} of {len(failing[0].checks)} checks"
        return "fails", f"No. It fails {of}: {', '.join(failed[:3])}{more}."
    return "fails", f"No. Each of the {len(judged)} models fails at least one check."


def _not_yet(
    unclear: Sequence[ModelVerdict],
    failing: Sequence[ModelVerdict],
    title: Callable[[str], str],
    *,
    alone: bool,
) -> str:
    if alone:
        return "Not yet. It fails no check beyond doubt, but some are open."
    verb = "fails no check beyond doubt, but has" if len(unclear) == 1 else "fail none, but have"
    rest = f" {_names(failing, title)} should not go live." if failing else ""
    return f"Not yet. {_names(unclear, title)} {verb} open checks.{rest}"


def _names(found: Sequence[ModelVerdict], title: Callable[[str], str]) -> str:
    titles = [title(verdict.model) for verdict in found]
    if len(titles) > 3:
        return ", ".join(titles[:3]) + f" and {len(titles) - 3} more"
    return " and ".join(filter(None, (", ".join(titles[:-1]), titles[-1])))


def _board(figures: RunFigures, having: Sequence[EvaluatorData]) -> list[dict[str, Any]]:
    """Return the heatmap of all headline metrics: a row per model."""
    rows = [
        heat(figures, [headline(data)], data, [chart_axis(figures, data, headline(data).key)])
        for data in having
    ]
    board = []
    for place, model in enumerate(figures.run.models):
        cells = [
            cell | {"name": data.name, "id": data.id}
            for data, of_data in zip(having, rows, strict=True)
            for cell in of_data[place]["cells"]
        ]
        board.append({"model": model.key, "cells": cells})
    return board


def _headline(
    figures: RunFigures, data: EvaluatorData, lights: Mapping[Any, Any]
) -> dict[str, Any]:
    metric = headline(data)
    scale = chart_axis(figures, data, metric.key)
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


def insights_to_show(figures: RunFigures) -> list[Mapping[str, Any]]:
    """Return insights without those of thresholds that decide nothing."""
    evaluators = figures.run.evaluators
    found: list[Mapping[str, Any]] = []
    for one in figures.run.insights:
        attributes = one.get("attrs") or {}
        data = evaluators.get(str(attributes.get("evaluator")))
        if one.get("type") == "weak_point" and (
            data is None or headline(data).key not in data.cuts
        ):
            continue
        found.append({
            "text": str(one.get("description") or ""),
            "kind": str(one.get("type") or "").replace("_", " "),
            "question": str(attributes.get("question") or ""),
        })  # fmt: skip
    return found


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

"""Models side by side, per evaluator, as Markdown and JSON: heatmap, boolean, classification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from guardrail_offline.datasets.cases import Model
from guardrail_offline.runs.totals import EvaluatorTally, Missing, fails
from guardrail_service.types import Direction

_SHADES = ("🟥", "🟧", "🟨", "🟩")
"""By the share of cases on the right side of the threshold, in quarters; where a metric exists per
model only, by the side its value is on."""


def leaderboard(
    tally: EvaluatorTally, models: Sequence[Model], missing: Missing = "both"
) -> dict[str, Any]:
    """Return one evaluator's table: a row per model that has cases, the best first.

    Models are ordered by their value with the worst one for every missing answer, unless the run
    excludes missing answers.
    """
    spec = tally.evaluator.spec
    rows = [_row(tally, model, missing) for model in models if model.key in tally.metrics]
    board: dict[str, Any] = {
        "evaluator": spec.id,
        "name": spec.name,
        "kind": _kind(tally),
        "surrogate": spec.surrogate or None,
        "primary_metric": spec.primary.key,
        "direction": spec.primary.direction.value,
        "directions": {metric.key: metric.direction.value for metric in spec.metrics},
        "thresholds": tally.thresholds,
        "missing": missing,
        "rows": sorted(rows, key=lambda row: _order(row, spec.primary.direction, spec.primary.key)),
    }
    if board["kind"] == "classification":
        board["confusion"] = {model.key: _confusion(tally, model.key) for model in models}
    return board


def markdown(boards: Iterable[Mapping[str, Any]]) -> str:
    """Return tables for people; a dash stands for a value that could not be computed.

    Behind "all" stands the mean with the worst value for every missing answer, where some are.
    """
    tables = [_table(board) for board in boards]
    note = _NOTE if any("(all: " in table for table in tables) else ""
    return "# Leaderboards\n\n" + note + "\n".join(tables)


_NOTE = (
    'A value is the mean over judged cases. Behind "all" every case counts that the model did not '
    "answer, answered with an error, or abstained from though it has an answer, with the worst "
    "value; models are in this order.\n\n"
)


def _kind(tally: EvaluatorTally) -> str:
    spec = tally.evaluator.spec
    if spec.per_model:
        return "classification"
    return "boolean" if all(metric.boolean for metric in spec.metrics) else "heatmap"


def _row(tally: EvaluatorTally, model: Model, missing: Missing) -> dict[str, Any]:
    cells = {}
    for metric in tally.evaluator.spec.metrics:
        counted = tally.metrics[model.key][metric.key]
        value, adjusted = (f(model.key, metric.key) for f in (tally.value, tally.adjusted))
        cells[metric.key] = {
            "value": adjusted if missing == "worst" else value,
            "adjusted": value if missing == "exclude" else adjusted,
            "n": counted.count,
            "unanswered": counted.unanswered,
            "deviation": counted.deviation,
            "failing": counted.failing,
            "infinite": counted.infinite,
            "missing": dict(sorted(counted.missing.items())),
        }
    return {"model": model.key, "name": model.title, "metrics": cells}


def _order(row: Mapping[str, Any], direction: Direction, key: str) -> tuple[bool, float, int, str]:
    """Return what rows are sorted by; of two equal models the one judged on more cases is first."""
    cell = row["metrics"][key]
    value = cell["adjusted"]
    if value is None:
        return True, 0.0, 0, row["name"]
    return False, -value if direction is Direction.HIGHER else value, -cell["n"], row["name"]


def _confusion(tally: EvaluatorTally, model: str) -> list[dict[str, Any]]:
    return [
        {"expected": pair[0], "predicted": pair[1], "cases": count}
        for pair, count in sorted(tally.labels(model).items())
    ]


def _table(board: Mapping[str, Any]) -> str:
    keys = list(board["rows"][0]["metrics"]) if board["rows"] else []
    lines = [f"## {board['name']}", ""]
    if board["surrogate"]:
        lines += [f"Surrogate: {board['surrogate']}.", ""]
    lines += ["| model | n | " + " | ".join(keys) + " |", "|---|---|" + "---|" * len(keys)]
    for row in board["rows"]:
        cells = [
            _cell(
                row["metrics"][key], Direction(board["directions"][key]), board["thresholds"][key]
            )
            for key in keys
        ]
        lines.append(f"| {_escaped(row['name'])} | {_count(row)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _count(row: Mapping[str, Any]) -> str:
    """Return how many cases were judged, and of how many where answers are missing."""
    cells = row["metrics"].values()
    count = max((cell["n"] for cell in cells), default=0)
    unanswered = max((cell["unanswered"] for cell in cells), default=0)
    return f"{count} of {count + unanswered}" if unanswered else str(count)


def _cell(cell: Mapping[str, Any], direction: Direction, threshold: float | None) -> str:
    value = cell["value"]
    if value is None:
        return "-" if cell["adjusted"] is None else f"- (all: {cell['adjusted']:.3f})"
    text = f"{value:.3f}"
    if cell["adjusted"] != value:
        text += f" (all: {cell['adjusted']:.3f})"
    if threshold is None:
        return text
    cases = cell["n"] + cell["infinite"]
    failing = cell["failing"] / cases if cases else fails(value, direction, threshold)
    share = 1 - failing
    return f"{_SHADES[min(3, int(4 * share))]} {text}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

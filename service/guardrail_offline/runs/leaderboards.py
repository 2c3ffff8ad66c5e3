"""Models side by side, per evaluator, as Markdown and JSON: heatmap, boolean, classification."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from guardrail_offline.datasets.cases import Model
from guardrail_offline.evaluators.tasks import HEADLINES
from guardrail_offline.runs.totals import EvaluatorTally, Missing, fails
from guardrail_service.types import Direction

_SHADES = ("🟥", "🟧", "🟨", "🟩")
"""By the share of cases on the right side of the threshold, in quarters; where a metric exists per
model only, by the side its value is on."""


def leaderboard(
    tally: EvaluatorTally,
    models: Sequence[Model],
    missing: Missing = "both",
    unanswered: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return one evaluator's table: a row per model that has cases, the best first.

    Models are ordered by their value with the worst one for every missing answer, and behind them
    come those with fewer counted cases than `min_test_cases` where others have as many, unless the
    run excludes missing answers. Last are those of which no case was judged.

    Args:
        tally: The evaluator, added up.
        models: In the order of the lab.
        missing: What a missing answer counts.
        unanswered: How many cases each model left unanswered; of equal models the one that said
            more is first.
    """
    spec = tally.evaluator.spec
    rows = [_row(tally, model, missing) for model in models if model.key in tally.metrics]
    counts_silence = spec.worst(spec.primary.key) is not None
    counted = {row["model"]: _counted(row, spec.primary.key, counts_silence) for row in rows}
    wanted = tally.configured.common.min_test_cases
    compares = missing != "exclude" and max(counted.values(), default=0) >= wanted
    least = wanted if compares else 0
    board: dict[str, Any] = {
        "evaluator": spec.id,
        "name": spec.name,
        "kind": _kind(tally),
        "surrogate": spec.surrogate or None,
        "grade": tally.configured.grade(),
        "primary_metric": spec.primary.key,
        "direction": spec.primary.direction.value,
        "directions": {metric.key: metric.direction.value for metric in spec.metrics},
        "thresholds": tally.thresholds,
        "missing": missing,
        "rows": sorted(
            rows,
            key=lambda row: (
                counted[row["model"]] < least,
                *_order(row, spec.primary.direction, spec.primary.key),
                (unanswered or {}).get(row["model"], 0),
                -row["metrics"][spec.primary.key]["n"],
                row["name"],
            ),
        ),
    }
    if spec.backend:
        board["backend"] = spec.backend
    if tally.configured.embeddings is not None:
        board["embeddings"] = tally.configured.as_json()["embeddings"]
    if board["kind"] == "classification":
        board["confusion"] = {model.key: _confusion(tally, model.key) for model in models}
    return board


def markdown(boards: Iterable[Mapping[str, Any]]) -> str:
    """Return tables for people; a dash stands for a value that could not be computed.

    Behind "all" stands the mean with the worst value for every missing answer, where some are.
    """
    boards = list(boards)
    tables = [_table(board) for board in boards]
    note = _NOTE if any("(all: " in table for table in tables) else ""
    return "# Leaderboards\n\n" + note + "\n".join([*_headlines(boards), *tables])


def _headlines(boards: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the table that says which model is right most often, where there are several.

    Models are ordered by their mean place over the headline metrics.
    """
    chosen = [board for board in boards if board["evaluator"] in HEADLINES]
    judged = [board for board in chosen if any(_judged(board, row) for row in board["rows"])]
    names = {row["model"]: row["name"] for board in judged for row in board["rows"]}
    if len(names) < 2:
        return
    places = {model: sum(_place(board, model) for board in judged) / len(judged) for model in names}
    lines = ["## Headline metrics", "", _ABOUT_HEADLINES, ""]
    heads = [f"{board['evaluator']}.{board['primary_metric']}" for board in judged]
    lines += [
        "| model | mean place | " + " | ".join(heads) + " |",
        "|---|---|" + "---|" * len(heads),
    ]
    for model in sorted(names, key=lambda key: (places[key], names[key])):
        cells = [_headline(board, model) for board in judged]
        lines.append(
            f"| {in_cell(names[model])} | {places[model]:.1f} | " + " | ".join(cells) + " |"
        )
    yield "\n".join(lines) + "\n"


_ABOUT_HEADLINES = (
    "These say whether answers are right, by the expected answer or the passages, with the worst "
    "value for an answer that is missing. Closeness of words or meaning is no headline: a wrong "
    '"not" hardly changes it.'
)


def _judged(board: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return bool(row["metrics"][board["primary_metric"]]["n"])


def _place(board: Mapping[str, Any], model: str) -> int:
    """Return a model's place, from 1; models of one value share the better one."""
    rows, key = board["rows"], board["primary_metric"]
    places = {row["model"]: place for place, row in enumerate(rows, start=1)}
    own = next((row for row in rows if row["model"] == model), None)
    if own is None:
        return len(rows) + 1
    value = own["metrics"][key]["adjusted"]
    equal = [row["model"] for row in rows if row["metrics"][key]["adjusted"] == value]
    return min(places[name] for name in equal)


def _headline(board: Mapping[str, Any], model: str) -> str:
    cells = [row["metrics"] for row in board["rows"] if row["model"] == model]
    cell = cells[0][board["primary_metric"]] if cells else None
    if cell is None or cell["adjusted"] is None:
        return "-"
    silent = f" ({cell['unanswered']} missing)" if cell["unanswered"] else ""
    return f"{cell['adjusted']:.3f}{silent}"


_NOTE = (
    'A value is the mean over judged cases. Behind "all" every case counts that the model did not '
    "answer, answered with an error, or abstained from though it has an answer, with the worst "
    "value; models are in this order.\n\n"
)


def _kind(tally: EvaluatorTally) -> str:
    spec = tally.evaluator.spec
    if spec.per_model and tally.evaluator.has_classes:
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


def _counted(row: Mapping[str, Any], key: str, counts_silence: bool) -> int:
    """Return how many cases stand behind the value that a model's place is given for."""
    cell = row["metrics"][key]
    judged = int(cell["n"] + cell["infinite"])
    return judged + int(cell["unanswered"]) if judged and counts_silence else judged


def _order(row: Mapping[str, Any], direction: Direction, key: str) -> tuple[int, float]:
    """Return what rows are sorted by: judged ones by value, then others, then silent ones."""
    cell = row["metrics"][key]
    value = cell["adjusted"]
    if value is None or (not cell["n"] and cell["unanswered"]):
        return 1 + bool(cell["unanswered"]), 0.0
    return 0, -value if direction is Direction.HIGHER else value


def _confusion(tally: EvaluatorTally, model: str) -> list[dict[str, Any]]:
    return [
        {"expected": pair[0], "predicted": pair[1], "cases": count}
        for pair, count in sorted(tally.labels(model).items())
    ]


def _table(board: Mapping[str, Any]) -> str:
    keys = list(board["rows"][0]["metrics"]) if board["rows"] else []
    lines = [f"## {board['name']}", ""]
    if board.get("backend"):
        lines += [f"Backend: {board['backend']}.", ""]
    if board.get("embeddings"):
        lines += [f"Embeddings: {board['embeddings']['model']}.", ""]
    if board["surrogate"]:
        lines += [f"Surrogate: {board['surrogate']}. Agreement with labels: {board['grade']}.", ""]
    lines += ["| model | n | " + " | ".join(keys) + " |", "|---|---|" + "---|" * len(keys)]
    for row in board["rows"]:
        cells = [
            _cell(
                row["metrics"][key], Direction(board["directions"][key]), board["thresholds"][key]
            )
            for key in keys
        ]
        lines.append(f"| {in_cell(row['name'])} | {_count(row)} | " + " | ".join(cells) + " |")
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


_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*[]<>|!"} | dict.fromkeys("\n\r", " "))


def in_cell(text: str) -> str:
    """Return a text for a cell of a Markdown table: without markup or links of its own."""
    return text.translate(_MARKS)

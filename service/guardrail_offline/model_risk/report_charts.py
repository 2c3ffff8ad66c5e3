"""The charts of the model-risk report: what its tables say, to be seen at a glance.

A chart shows no number that its table has not; each mark says where its value stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from guardrail_offline.model_risk.drawings import (
    CUT,
    FIRST,
    INK,
    QUIET,
    SECOND,
    ChartShape,
    Drawing,
    shown,
)
from guardrail_offline.model_risk.report_blocks import ReportChart, metric_name
from guardrail_offline.model_risk.step_data import JsonPlace

MOST_ROWS = 25
LEFT, RIGHT, WIDE, ROW = 270.0, 640.0, 660, 30
LONGEST = 38
_CELL_WIDE, _CELL_HIGH, _GRID_LEFT, _GRID_TOP = 46, 24, 230, 112
_GRID_ROWS, _GRID_COLUMNS = 20, 9
SHADES = ("#f3f8f3", "#fdf3d8", "#fbe0bb", "#f6c0a4", "#ee9a86")


class Mark(NamedTuple):
    """A value with its interval on the axis of its row."""

    value: JsonPlace
    interval: JsonPlace
    colour: str = FIRST
    is_hollow: bool = False


class ChartRow(NamedTuple):
    """One row of a chart: a name, its marks, a threshold, and the ends of its axis."""

    name: str
    marks: tuple[Mark, ...]
    cut: JsonPlace | None = None
    ends: tuple[float, float] = (0.0, 1.0)


def means_chart(metrics: Iterable[JsonPlace]) -> Iterator[ReportChart]:
    """Yield the mean of each metric with its interval and threshold, each on its own range."""
    rows = []
    for one in metrics:
        low, high = _number(one["low"]), _number(one["high"])
        if _number(one["mean"]) is None or low is None or high is None or high <= low:
            continue
        mark = Mark(one["mean"], one["interval95"])
        rows.append(ChartRow(metric_name(one), (mark,), one["threshold"], (low, high)))
    yield from _chart(
        "Means of the metrics, each from its lowest to its highest possible value",
        "A row for each metric: a dot for its mean, a bar for the 95 % interval, and a red line "
        "for its threshold, from the lowest to the highest possible value. The table that follows "
        "has the numbers.",
        rows,
        ("lowest", "highest"),
        ("mean", ""),
        "/results/metrics/ROW: mean, interval95, threshold, low, high",
    )


def failing_chart(thresholds: Iterable[JsonPlace], tolerated: float) -> Iterator[ReportChart]:
    """Yield the share of questions that fail each deciding metric, with the tolerated share."""
    rows = [
        ChartRow(metric_name(one), (Mark(one["failing"]["rate"], one["failing"]["interval95"]),))
        for one in thresholds
        if one["gates"].value and _number(one["failing"]["rate"]) is not None
    ]
    yield from _chart(
        f"Questions that fail the deciding metrics; the red line is the tolerated share of "
        f"{100 * tolerated:g} %",
        "A row for each deciding metric: a dot for the share of questions that fail it and a bar "
        "for the exact 95 % interval, from none to all, with a red line at the tolerated share. "
        "The table of the deciding metrics in section 1 has the numbers.",
        rows,
        ("none", "all"),
        ("share that fails", ""),
        "/results/thresholds/ROW/failing: rate, interval95",
        fixed_cut=tolerated,
    )


def agreement_chart(judged: Iterable[JsonPlace]) -> Iterator[ReportChart]:
    """Yield how often checks and people agree, before and after calibration."""
    rows = [
        ChartRow(metric_name(one), _pair(one["before"]["agree"], one["after"]["agree"]))
        for one in judged
    ]
    yield from _chart(
        "Agreement of checks and people before and after calibration",
        "A row for each metric: a ring for the share of answers that check and people judge alike "
        "before calibration and a dot for the share after it, with bars for the 95 % intervals, "
        "from none to all. The table that follows has the numbers.",
        rows,
        ("none", "all"),
        ("after", "before"),
        "/results/agreement/ROW: before/agree, after/agree, each rate, interval95",
    )


def adversarial_chart(metrics: Iterable[JsonPlace]) -> Iterator[ReportChart]:
    """Yield the shares that fail on usual and on adversarial questions."""
    rows = []
    for one in metrics:
        failing = one["failing"]
        if _number(failing["adversarial"]["rate"]) is not None:
            rows.append(
                ChartRow(metric_name(one), _pair(failing["baseline"], failing["adversarial"]))
            )
    yield from _chart(
        "Questions that fail: usual and adversarial ones",
        "A row for each metric: a ring for the share of usual questions that fail and a dot for "
        "that of adversarial ones, with bars for the 95 % intervals, from none to all. The table "
        "that follows has the numbers.",
        rows,
        ("none", "all"),
        ("adversarial", "usual"),
        "/results/metrics/ROW/failing: baseline, adversarial, each rate, interval95",
    )


def grid_chart(grid: JsonPlace) -> Iterator[ReportChart]:
    """Yield the cells of topics and kinds of questions, darker where more questions fail."""
    rows = list(zip(grid["rows"], grid["cells"], strict=False))[:_GRID_ROWS]
    columns = list(grid["columns"])[:_GRID_COLUMNS]
    known = [cell for _, line in rows for cell in line if _number(cell["failing"]) is not None]
    if not any(cell["failing"].value for cell in known):
        return
    shapes = [
        ChartShape("upward", _GRID_LEFT + _CELL_WIDE * place + 16, _GRID_TOP - 8, colour=INK,
              text=shown(one.text.replace("_", " "), 22))
        for place, one in enumerate(columns)
    ]  # fmt: skip
    for place, (name, line) in enumerate(rows):
        y = _GRID_TOP + _CELL_HIGH * place
        shapes.append(ChartShape("text", 2, y + 16, text=shown(name.text, 34)))
        for column, cell in zip(range(len(columns)), line, strict=False):
            shapes += _cell(cell, _GRID_LEFT + _CELL_WIDE * column, y)
    wide = max(WIDE, _GRID_LEFT + _CELL_WIDE * len(columns) + 80)
    high = _GRID_TOP + _CELL_HIGH * len(rows) + 6
    cut = len(rows) < len(grid["rows"].value) or len(columns) < len(grid["columns"].value)
    yield ReportChart(
        f"{metric_name(grid)}: failing of all questions, by topic and kind of question"
        + ("; the first rows and columns" if cut else ""),
        "A grid with a row for each topic and a column for each kind of question. Each cell has "
        "how many of its questions fail, and is darker where a larger share does.",
        Drawing(wide, high, tuple(shapes)),
        f"{grid.file} {grid.pointer}/cells/ROW/COLUMN: failing, n",
    )


def _cell(cell: JsonPlace, x: float, y: float) -> list[ChartShape]:
    failing, n = _number(cell["failing"]), _number(cell["n"])
    if failing is None or not n:
        return []
    places = (_place(cell["failing"]), _place(cell["n"]))
    level = sum(failing / n > bound for bound in (0.0, 0.05, 0.2, 0.5))
    return [
        ChartShape("box", x + 1, y + 1, x + _CELL_WIDE - 1, y + _CELL_HIGH - 1, SHADES[level]),
        ChartShape("text", x + 5, y + 16, text=f"{failing:g}/{n:g}", places=places),
    ]


def _pair(before: JsonPlace, after: JsonPlace) -> tuple[Mark, ...]:
    """Return two rates as marks, the earlier one hollow and in another colour."""
    first = Mark(before["rate"], before["interval95"], SECOND, is_hollow=True)
    return (first, Mark(after["rate"], after["interval95"]))


def _chart(
    caption: str,
    alt: str,
    rows: Sequence[ChartRow],
    ends: tuple[str, str],
    legend: tuple[str, str],
    fields: str,
    *,
    fixed_cut: float | None = None,
) -> Iterator[ReportChart]:
    """Yield a chart of rows with marks; none where there is no row."""
    kept = rows[:MOST_ROWS]
    if not kept:
        return
    high = 34 + ROW * len(kept)
    shapes = [
        ChartShape("text", LEFT, 14, colour=INK, text=ends[0]),
        ChartShape("text", RIGHT - 44, 14, colour=INK, text=ends[1]),
        ChartShape("dot", LEFT + 120, 10, 4.5, colour=FIRST),
        ChartShape("text", LEFT + 130, 14, text=legend[0]),
    ]
    if legend[1]:
        shapes += [
            ChartShape("ring", LEFT + 220, 10, 4.5, colour=SECOND),
            ChartShape("text", LEFT + 230, 14, text=legend[1]),
        ]
    for place, one in enumerate(kept):
        shapes += _row(one, 40.0 + ROW * place)
    if fixed_cut is not None:
        x = _at(fixed_cut, (0.0, 1.0))
        shapes.append(ChartShape("line", x, 22, x, high - 4, CUT, width=2))
    left_out = "; the first of them" if len(kept) < len(rows) else ""
    source = f"{kept[0].marks[0].value.file} {fields}"
    yield ReportChart(caption + left_out, alt, Drawing(WIDE, high, tuple(shapes)), source)


def _row(row: ChartRow, y: float) -> Iterator[ChartShape]:
    yield ChartShape("text", 2, y + 4, text=shown(row.name, LONGEST))
    yield ChartShape("line", LEFT, y, RIGHT, y, QUIET)
    apart = 5 * (len(row.marks) - 1)
    for number, mark in enumerate(row.marks):
        value, at = _number(mark.value), y - apart + 10 * number
        if value is None:
            continue
        low, high = _number(mark.interval[0]), _number(mark.interval[1])
        if low is not None and high is not None:
            ends = _at(low, row.ends), _at(high, row.ends)
            places = (_place(mark.interval),)
            yield ChartShape("line", ends[0], at, ends[1], at, mark.colour, places=places, width=3)
        kind: Literal["ring", "dot"] = "ring" if mark.is_hollow else "dot"
        places = (_place(mark.value),)
        yield ChartShape(kind, _at(value, row.ends), at, 4.5, colour=mark.colour, places=places)
    cut = None if row.cut is None else _number(row.cut)
    if cut is not None and row.cut is not None:
        x = _at(cut, row.ends)
        yield ChartShape("line", x, y - 10, x, y + 10, CUT, places=(_place(row.cut),), width=2)


def _at(value: float, ends: tuple[float, float]) -> float:
    share = (value - ends[0]) / (ends[1] - ends[0])
    return round(LEFT + (RIGHT - LEFT) * min(1.0, max(0.0, share)), 2)


def _number(place: JsonPlace) -> float | None:
    """Return a finite number; None for anything else."""
    value = place.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None


def _place(place: JsonPlace) -> str:
    return f"{place.file} {place.pointer}"

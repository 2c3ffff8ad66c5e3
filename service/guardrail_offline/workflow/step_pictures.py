"""The pictures of a workflow's steps as SVG text: for the page, and for whoever reads the files.

Every function takes the results of a step as its file has them. Texts are escaped; nothing is
fetched, and there is no script and no style.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

Results = Mapping[str, Any]
COLOURS = (
    "#2f7fd6", "#c8102e", "#2a8c46", "#e0a100", "#7b4fb5", "#00838f", "#c2571a", "#5b6b7a",
    "#9c2780", "#6b8e23", "#8d6e63", "#37474f",
)  # fmt: skip
_GOOD, _BAD, _LINE, _QUIET = "#2a8c46", "#c8102e", "#2f7fd6", "#9aa5b1"
_MOST_ROWS = 40
_LONGEST = 34
_MOST_DOTS = 40


def topic_map(results: Results) -> Markup:
    """Return the passages in the first two dimensions, a colour per topic, with their names."""
    places = results["map"]
    if not places:
        return Markup("")
    topic = {one["id"]: one["topic"] for one in results["chunks"]}
    across, up = _scale([p[1] for p in places], 20, 400), _scale([p[2] for p in places], 300, 20)
    parts = [
        _circle(across(x), up(y), 4, COLOURS[topic[name] % len(COLOURS)], f"{name}")
        for name, x, y in places
    ]
    for row, one in enumerate(results["topics"][:12]):
        colour = COLOURS[one["id"] % len(COLOURS)]
        parts.append(_circle(430, 26 + 22 * row, 5, colour))
        parts.append(_text(442, 30 + 22 * row, f"{one['title']} ({one['size']})"))
    return _svg(700, 320, "Passages by topic", parts)


def metric_strips(metrics: Sequence[Results]) -> Markup:
    """Return the mean of each metric with its interval on its own range, and its threshold."""
    rows = [one for one in metrics if one["mean"] is not None][:_MOST_ROWS]
    parts: list[Markup] = []
    for row, one in enumerate(rows):
        y = 24 + 30 * row
        low, high = one.get("low", 0), one.get("high", 1)
        ends = (low, high) if _numbers(low, high) else _around(one)
        at = _scale(ends, 300, 660)
        parts += [_text(4, y + 4, one["metric"]), _line(300, y, 660, y, _QUIET, 1)]
        if one["interval95"]:
            left, right = map(at, one["interval95"])
            parts.append(_line(left, y, right, y, _LINE, 6))
        parts.append(_circle(at(one["mean"]), y, 5, _LINE, f"mean {one['mean']:.3g}"))
        if one.get("threshold") is not None:
            cut = at(one["threshold"])
            parts.append(_line(cut, y - 9, cut, y + 9, _BAD, 2))
    return _svg(700, 30 * len(rows) + 20, "Means with 95 % intervals and thresholds", parts)


def weak_grid(grid: Results) -> Markup:
    """Return topics by generators: the darker a cell the more fail; a dot is a case."""
    rows, columns = grid["rows"][:20], grid["columns"][:14]
    if not rows or not columns:
        return Markup("")
    wide, high, left, top = 62, 40, 230, 92
    parts: list[Markup] = []
    for y, name in enumerate(rows):
        parts.append(_text(4, top + high * y + 24, name))
    for x, name in enumerate(columns):
        parts.append(_turned(left + wide * x + 24, top - 8, name))
    for y, cells in enumerate(grid["cells"][: len(rows)]):
        for x, cell in enumerate(cells[: len(columns)]):
            if cell is not None:
                parts += _cell(cell, grid["threshold"], left + wide * x, top + high * y, wide, high)
    label = f"{grid['metric']} by {' and '.join(grid['dimensions'])}"
    return _svg(left + wide * len(columns) + 10, top + high * len(rows) + 10, label, parts)


def rate_bars(rows: Iterable[tuple[str, Results]], label: str) -> Markup:
    """Return shares with their 95 % intervals.

    Args:
        rows: Name and rate.
        label: Of the picture.
    """
    shown = [one for one in rows if one[1]["rate"] is not None][:_MOST_ROWS]
    parts: list[Markup] = []
    at = _scale([0.0, 1.0], 330, 640)
    for row, (name, rate) in enumerate(shown):
        y = 20 + 26 * row
        low, high = rate["interval95"]
        parts += [
            _text(4, y + 4, name, 52),
            _box(330, y - 7, at(rate["rate"]) - 330, 14, _LINE, 0.55),
            _line(at(low), y, at(high), y, "#333333", 1.5),
            _text(650, y + 4, f"{rate['x']} of {rate['n']}"),
        ]
    return _svg(720, 26 * len(shown) + 16, label, parts) if shown else Markup("")


def distribution_curves(metric: Results) -> Markup:
    """Return the distribution functions of one metric, on usual and on adversarial questions."""
    curves = metric["curves"]
    across, up = _scale(curves["grid"], 40, 420), _scale([0.0, 1.0], 190, 20)
    parts = [
        _line(40, 190, 420, 190, _QUIET, 1),
        _line(40, 20, 40, 190, _QUIET, 1),
        _text(40, 208, f"{curves['grid'][0]:.3g}"),
        _text(390, 208, f"{curves['grid'][-1]:.3g}"),
        _text(440, 40, "usual questions"),
        _text(440, 62, "adversarial questions"),
        _line(424, 36, 436, 36, _LINE, 3),
        _line(424, 58, 436, 58, _BAD, 3),
    ]
    for name, colour in (("baseline", _LINE), ("adversarial", _BAD)):
        points = " ".join(
            f"{across(x):.1f},{up(y):.1f}"
            for x, y in zip(curves["grid"], curves[name], strict=True)
        )
        parts.append(
            Markup('<polyline points="{}" fill="none" stroke="{}" stroke-width="2"/>').format(
                points, colour
            )
        )
    return _svg(620, 216, f"Distribution of {metric['metric']}", parts)


def _cell(
    cell: Results, cut: float | None, x: float, y: float, wide: float, high: float
) -> list[Markup]:
    """Return one cell: a box by its failing share or mean, and a dot per case."""
    share = cell["failing"] / cell["n"] if cell["failing"] is not None else None
    colour = _QUIET if share is None else _BAD if share else _GOOD
    strength = 0.15 if not share else 0.2 + 0.6 * share
    told = f"{cell['n']} cases" if share is None else f"{cell['failing']} of {cell['n']} fail"
    parts = [_box(x + 1, y + 1, wide - 2, high - 2, colour, strength, told)]
    known = [value for value in cell["scores"] if value is not None][:_MOST_DOTS]
    for place, value in enumerate(known):
        bad = cut is not None and cell["failing"] is not None and place < cell["failing"]
        dot = "#333333" if bad else "#ffffff"
        across = x + 7 + 6 * (place % 9)
        parts.append(_circle(across, y + 9 + 6 * (place // 9), 2.2, dot, f"{value:.3g}"))
    return parts


def _scale(values: Sequence[float], start: float, end: float) -> Any:
    low, high = min(values), max(values)

    def at(value: float) -> float:
        share = 0.5 if high == low else (value - low) / (high - low)
        return round(start + (end - start) * min(1.0, max(0.0, share)), 2)

    return at


def _around(one: Results) -> tuple[float, float]:
    known = [one["mean"], *(one["interval95"] or ()), one.get("threshold")]
    numbers = [value for value in known if value is not None]
    return min(numbers) - 1e-9, max(numbers) + 1e-9


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _svg(wide: float, high: float, label: str, parts: Iterable[Markup]) -> Markup:
    head = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" height="{}" '
        'role="img" aria-label="{}" font-family="sans-serif" font-size="12">'
    ).format(wide, high, wide, high, label)
    return head + Markup("").join(parts) + Markup("</svg>")


def _text(x: float, y: float, text: str, longest: int = _LONGEST) -> Markup:
    shown = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return Markup('<text x="{}" y="{}" fill="currentColor">{}</text>').format(x, y, shown)


def _turned(x: float, y: float, text: str) -> Markup:
    shown = text if len(text) <= 18 else f"{text[:17]}…"
    return Markup(
        '<text x="{}" y="{}" fill="currentColor" transform="rotate(-40 {} {})">{}</text>'
    ).format(x, y, x, y, shown)


def _circle(x: float, y: float, radius: float, colour: str, title: str = "") -> Markup:
    told = Markup("<title>{}</title>").format(title) if title else Markup("")
    return Markup('<circle cx="{}" cy="{}" r="{}" fill="{}">{}</circle>').format(
        x, y, radius, colour, told
    )


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, wide: float) -> Markup:
    return Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}" stroke-width="{}"/>').format(
        x, y, to_x, to_y, colour, wide
    )


def _box(
    x: float, y: float, wide: float, high: float, colour: str, strength: float, title: str = ""
) -> Markup:
    told = Markup("<title>{}</title>").format(title) if title else Markup("")
    return Markup(
        '<rect x="{}" y="{}" width="{}" height="{}" fill="{}" fill-opacity="{}">{}</rect>'
    ).format(x, y, round(max(0.5, wide), 2), high, colour, round(strength, 3), told)

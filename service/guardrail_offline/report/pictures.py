"""Each part of the report that is a picture, drawn with matplotlib: for slides, wikis, papers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guardrail_offline.report import evaluator_pictures as of_evaluator
from guardrail_offline.report.content import page_content
from guardrail_offline.report.eye import eye
from guardrail_offline.report.figures import RunFigures
from guardrail_offline.report.plots import ENDINGS, empty_figure, save, shown_name
from guardrail_offline.report.sections import Section
from guardrail_service.errors import ConfigurationError, choices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Content = Mapping[str, Any]
COLOURS = {"fails": "#c8102e", "unclear": "#e0a100", "passes": "#2a8c46", "unknown": "#9aa5b1"}
"""Of lights; signs and names stand beside them wherever they are told."""
_RING = 0.24
_MOST = 30
"""Rows of one picture; the page and the files have the rest."""


def eye_picture(figures: RunFigures, content: Content) -> Figure | None:
    """Return the eval eye whole: domains inside, then evaluators, metrics and models."""
    tree = eye(figures, content["tolerated"])
    if not tree["parts"]:
        return None
    figure = empty_figure(9, 9)
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(-1.28, 1.28)
    axes.set_ylim(-1.28, 1.28)
    _rings(axes, tree["parts"], 0, 90.0, 360.0)
    told = shown_name(tree["told"] or "")
    axes.text(0, 0, f"{tree['name']}\n{told}", ha="center", va="center", fontsize=11)
    return figure


def _rings(
    axes: Axes, parts: Sequence[dict[str, Any]], depth: int, start: float, width: float
) -> None:
    """Draw one ring and those outside of it, clockwise; a part is as wide as its leaves."""
    from matplotlib.patches import Wedge

    total = sum(map(_leaves, parts))
    outer = 0.28 + _RING * (depth + 1)
    for part in parts:
        share = width * _leaves(part) / total
        edges = start - share, start
        colour = COLOURS[part["light"]]
        axes.add_patch(
            Wedge((0, 0), outer, *edges, width=_RING - 0.01, facecolor=colour, edgecolor="white",
                  alpha=1 - 0.17 * depth)
        )  # fmt: skip
        if share > 3.5:
            ink = "white" if depth == 0 and part["light"] in ("fails", "passes") else "black"
            _name(axes, shown_name(part["name"])[:16], outer - _RING / 2, start - share / 2, ink)
        if part.get("parts"):
            _rings(axes, part["parts"], depth + 1, start, share)
        start -= share


def _leaves(part: dict[str, Any]) -> int:
    return sum(map(_leaves, part["parts"])) if part.get("parts") else 1


def _name(axes: Axes, name: str, radius: float, angle: float, ink: str) -> None:
    x, y = radius * math.cos(math.radians(angle)), radius * math.sin(math.radians(angle))
    turn = angle % 360
    turn = turn + 180 if 90 < turn < 270 else turn
    axes.text(
        x, y, name, rotation=turn, ha="center", va="center", fontsize=6.5, parse_math=False,
        rotation_mode="anchor", color=ink,
    )  # fmt: skip


def metrics_picture(figures: RunFigures, content: Content) -> Figure | None:
    """Return every headline metric of every model: mean, 95 % interval and threshold."""
    rows = content["headlines"][:_MOST]
    if not rows:
        return None
    figure = empty_figure(9, 0.8 + sum(0.35 + 0.2 * len(row["cells"][:_MOST]) for row in rows))
    cells = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for row, axes in zip(rows, cells, strict=True):
        of_model = [cell["figure"] for cell in row["cells"]][:_MOST]
        of_evaluator.intervals(axes, figures, of_model, row["axis"], row["cut"])
        name = f"{row['data'].name}: {row['metric'].key}"
        axes.set_title(shown_name(name), fontsize=9, loc="left", parse_math=False)
    return figure


def heatmap_picture(figures: RunFigures, content: Content) -> Figure | None:
    """Return models by headline metrics; a stronger colour is better."""
    board = content["heat"]
    return of_evaluator.heatmap(figures, board) if board and board[0]["cells"] else None


def differences_picture(figures: RunFigures, content: Content) -> Figure | None:
    """Return paired differences beyond chance, each with its interval."""
    found = content["differences"]
    rows = found["rows"][:_MOST] if found else []
    if not rows:
        return None
    figure = empty_figure(9, 0.9 + 0.3 * len(rows))
    axes = figure.add_subplot()
    title = figures.run.title
    for place, one in enumerate(rows):
        low, high = one.interval or (one.size, one.size)
        reach = [[one.size - low], [high - one.size]]
        axes.errorbar([one.size], [place], xerr=reach, fmt="D", capsize=3, color="#2f7fd6")
    names = [f"{o.evaluator}: {title(o.better)} ahead of {title(o.worse)}" for o in rows]
    axes.set_yticks(
        range(len(rows)), [shown_name(n, 90) for n in names], fontsize=8, parse_math=False
    )
    axes.invert_yaxis()
    axes.axvline(0, color="#333333", linewidth=0.8)
    axes.set_xlabel("mean difference by question, 95 % interval")
    return figure


def flips_picture(figures: RunFigures, content: Content) -> Figure | None:
    """Return how often verdicts flip, by perturbation."""
    rates = content["flips"]["rates"][:_MOST]
    title = figures.run.title
    names = [f"{r['evaluator']}, {title(r['model'])}, {r['perturbation']}" for r in rates]
    bars = [(name, r["flips"], r["pairs"]) for name, r in zip(names, rates, strict=True)]
    return of_evaluator.shares(bars, "flips of pairs") if bars else None


def clusters_picture(figures: RunFigures, content: Content) -> Figure | None:
    """Return which checks fail together, and how often."""
    found = content["clusters"]
    bars = [(" + ".join(one["names"]), one["count"], len(figures.run.cases)) for one in found]
    return of_evaluator.shares(bars, "failing answers of all") if bars else None


def data_picture(figures: RunFigures, content: Content) -> Figure | None:
    """Return how long the texts of each column are."""
    columns = [c for c in content["data"]["columns"] if c["sizes"]]
    if not columns:
        return None
    figure = empty_figure(7, 0.8 + 0.4 * len(columns))
    axes = figure.add_subplot()
    for place, column in enumerate(columns):
        low, median, high = column["sizes"]
        axes.plot([low, high], [place, place], color="#9aa5b1", linewidth=4)
        axes.plot([median], [place], "D", color="#2f7fd6")
    axes.set_yticks(range(len(columns)), [f"{c['name']} ({c['there']})" for c in columns])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("characters: shortest, median, longest")
    return figure


PICTURES: dict[str, Callable[[RunFigures, Content], Figure | None]] = {
    "eye": eye_picture,
    "metrics": metrics_picture,
    "heatmap": heatmap_picture,
    "differences": differences_picture,
    "flips": flips_picture,
    "clusters": clusters_picture,
    "data": data_picture,
}
"""The pictures of a whole run."""
EVALUATOR_PICTURES: dict[str, Callable[[RunFigures, Section], Figure | None]] = {
    "leaderboard": of_evaluator.leaderboard,
    "confusion": of_evaluator.confusion,
    "categories": of_evaluator.categories,
    "grid": of_evaluator.grid,
    "hardest": of_evaluator.hardest,
}
"""Those of one evaluator, beside its box plots."""


def picture(figures: RunFigures, part: str, evaluator: str | None) -> Figure:
    """Return one picture.

    Raises:
        ConfigurationError: If there is no such part or evaluator, or the run has nothing to draw.
    """
    content = page_content(figures)
    if part in PICTURES:
        drawn = PICTURES[part](figures, content)
    elif part in EVALUATOR_PICTURES:
        drawn = EVALUATOR_PICTURES[part](figures, _section(content, evaluator))
    else:
        names = (*PICTURES, *EVALUATOR_PICTURES, "boxes")
        raise ConfigurationError("--part", repr(part), choices(part, names, "part"))
    if drawn is None:
        raise ConfigurationError("--part", f"nothing to draw for {part}", "a part with content")
    return drawn


def _section(content: Content, evaluator: str | None) -> Section:
    found: dict[str, Section] = {one.data.id: one for one in content["sections"]}
    if evaluator not in found:
        raise ConfigurationError(
            "--evaluator", repr(evaluator), choices(evaluator or "", found, "evaluator")
        )
    return found[evaluator]


def write_all(figures: RunFigures, folder: Path) -> int:
    """Write every picture that a run has as PNG and SVG; return how many files."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for name, drawn in _all(figures):
        for ending in ENDINGS:
            save(drawn, folder / f"{name}{ending}")
            count += 1
    return count


def _all(figures: RunFigures) -> Iterator[tuple[str, Figure]]:
    content = page_content(figures)
    for part, draw in PICTURES.items():
        if (drawn := draw(figures, content)) is not None:
            yield part, drawn
    for section in content["sections"]:
        for part, draw_one in EVALUATOR_PICTURES.items():
            if (drawn := draw_one(figures, section)) is not None:
                yield f"{section.data.id}-{part}", drawn
        yield f"{section.data.id}-boxes", of_evaluator.boxes(figures, section)

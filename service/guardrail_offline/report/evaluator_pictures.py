"""The pictures of one evaluator: leaderboards by kind, confusion matrix, weak points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from guardrail_offline.report.charts import MOST_RADAR_MODELS, SHADES, ChartAxis
from guardrail_offline.report.figures import Figure as ModelFigure
from guardrail_offline.report.figures import RunFigures
from guardrail_offline.report.plots import box_plots, empty_figure, shown_name
from guardrail_offline.report.plotted_values import of_run
from guardrail_offline.report.run_data import DecidingCut
from guardrail_offline.report.sections import Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 30
_BLUE, _RED, _INK = "#2f7fd6", "#c8102e", "#333333"
_LINES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)))


def leaderboard(figures: RunFigures, section: Section) -> Figure | None:
    """Return bars with intervals up to three metrics or of right and wrong, a radar above."""
    if section.kind == "radar":
        return _radar(figures, section)
    metrics = section.metrics
    rows = max(1, *(len(block["rows"][:_MOST]) for block in metrics))
    figure = empty_figure(8, 0.6 + len(metrics) * (0.5 + 0.24 * rows))
    cells = figure.subplots(len(metrics), 1, squeeze=False)[:, 0]
    for block, axes in zip(metrics, cells, strict=True):
        of_model = [row["figure"] for row in block["rows"]][:_MOST]
        intervals(axes, figures, of_model, block["axis"], block["cut"], bars=True)
        axes.set_title(shown_name(block["metric"].key), fontsize=9, loc="left", parse_math=False)
    return figure


def intervals(
    axes: Axes,
    figures: RunFigures,
    of_model: Sequence[ModelFigure],
    scale: ChartAxis,
    cut: DecidingCut | None,
    *,
    bars: bool = False,
) -> None:
    """Draw the mean and 95 % interval of each model, and the threshold across."""
    for place, one in enumerate(of_model):
        if one.value is None:
            continue
        colour = _RED if one.is_beyond else _BLUE
        if bars:
            axes.barh([place], [one.value - scale.low], left=scale.low, color=colour, alpha=0.5)
        low, high = one.interval or (one.value, one.value)
        reach = [[max(0.0, one.value - low)], [max(0.0, high - one.value)]]
        axes.errorbar([one.value], [place], xerr=reach, fmt="D", color=colour, capsize=3)
    names = [
        f"{shown_name(figures.run.title(one.model))} ({one.judged or one.cases} of {one.cases})"
        for one in of_model
    ]
    axes.set_yticks(range(len(names)), names, fontsize=8, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(scale.low, scale.high)
    if cut is not None:
        axes.axvline(cut.value, color=_INK, linestyle="--", linewidth=0.9)


def _radar(figures: RunFigures, section: Section) -> Figure:
    blocks = section.metrics
    angles = np.linspace(0, 2 * np.pi, len(blocks), endpoint=False)
    figure = empty_figure(7, 6)
    axes = figure.add_subplot(projection="polar")
    for number, model in enumerate(figures.run.models[:MOST_RADAR_MODELS]):
        shares = [_outward(figures, section, block, model.key) for block in blocks]
        axes.plot(
            [*angles, angles[0]], [*shares, shares[0]], linestyle=_LINES[number],
            label=shown_name(model.title),
        )  # fmt: skip
    names = [shown_name(block["metric"].key) for block in blocks]
    axes.set_xticks(angles, names, fontsize=8, parse_math=False)
    axes.set_ylim(0, 100)
    axes.set_yticklabels([])
    axes.tick_params(pad=14)
    legend = figure.legend(
        loc="outside lower center", ncols=2, fontsize=8, title="outside is better"
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


def _outward(figures: RunFigures, section: Section, block: Mapping[str, Any], model: str) -> float:
    one = figures.of(section.data, block["metric"], model)
    if one.value is None:
        return 0.0
    share: float = block["axis"].at(one.value)
    return share if one.higher else 100 - share


def heatmap(figures: RunFigures, board: Sequence[Mapping[str, Any]]) -> Figure:
    """Return a row per model, a column per metric, the value in it; stronger is better."""
    rows = board[:_MOST]
    names = [cell["name"] for cell in rows[0]["cells"]]
    shades = [[np.nan if c["shade"] is None else c["shade"] for c in r["cells"]] for r in rows]
    texts = [["" if c["value"] is None else f"{c['value']:.3g}" for c in r["cells"]] for r in rows]
    models = [figures.run.title(row["model"]) for row in rows]
    return _matrix(shades, texts, models, names, SHADES - 1)


def _matrix(
    shades: Sequence[Sequence[float]],
    texts: Sequence[Sequence[str]],
    rows: Sequence[str],
    columns: Sequence[str],
    most: float,
    colours: str = "Blues",
) -> Figure:
    figure = empty_figure(2.5 + 0.9 * len(columns), 1.6 + 0.4 * len(rows))
    axes = figure.add_subplot()
    # half of the colours only, so that black letters can be read on the darkest
    axes.imshow(np.array(shades), cmap=colours, vmin=0, vmax=2 * most or 1, aspect="auto")
    for place, line in enumerate(texts):
        for column, text in enumerate(line):
            axes.text(column, place, text, ha="center", va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), [shown_name(r) for r in rows], fontsize=8, parse_math=False)
    axes.set_xticks(
        range(len(columns)), [shown_name(c)[:28] for c in columns], fontsize=8, rotation=35,
        ha="right", rotation_mode="anchor", parse_math=False,
    )  # fmt: skip
    return figure


def boxes(figures: RunFigures, section: Section) -> Figure:
    """Return a box per model for each metric: mean, median, 95 % interval, how many values."""
    return box_plots(of_run(figures.run, section.data.id))


def confusion(figures: RunFigures, section: Section) -> Figure | None:
    """Return the confusion matrices of all models, one below the other."""
    if not section.confusion:
        return None
    labels = sorted({label for one in section.confusion.values() for label in one["labels"]})
    rows, shades, texts = [], [], []
    for model, one in list(section.confusion.items())[:6]:
        counts = {
            (a, b): n for a, line in one["rows"] for b, n in zip(one["labels"], line, strict=True)
        }
        for label in labels:
            line = [counts.get((label, given), 0) for given in labels]
            rows.append(f"{figures.run.title(model)[:16]}: {label}")
            shades.append([float(n) for n in line])
            texts.append([str(n) for n in line])
    figure = _matrix(shades, texts, rows, labels, max(map(max, shades)))
    figure.axes[0].set_xlabel("given")
    figure.axes[0].set_ylabel("model: expected")
    return figure


def categories(figures: RunFigures, section: Section) -> Figure | None:
    """Return the weakness by category: a row per category, a column per model."""
    models = [model.title for model in figures.run.models]
    return _weakness(section.categories, models, section)


def grid(figures: RunFigures, section: Section) -> Figure | None:
    """Return the weakness by category and by how the question was made."""
    names = list(dict.fromkeys(cell["name"] for row in section.grid for cell in row["cells"]))
    return _weakness(section.grid, names, section)


def _weakness(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], section: Section
) -> Figure | None:
    """Return shares of failing answers as a matrix; without a threshold, means without colour."""
    if not rows:
        return None
    shades, texts = [], []
    for row in rows[:_MOST]:
        by_name = {cell["name"]: cell for cell in row["cells"] if cell["n"]}
        cells = [by_name.get(name) for name in columns[:12]]
        shades.append([np.nan if c is None else (c["failing"] or 0) / c["n"] for c in cells])
        texts.append([_told(cell) for cell in cells])
    names = [row["name"] for row in rows[:_MOST]]
    figure = _matrix(shades, texts, names, columns[:12], 1.0, "Reds")
    figure.axes[0].set_title(
        shown_name(f"{section.data.name}:\nmean, failing of judged"),
        fontsize=9,
        loc="left",
        parse_math=False,
    )
    return figure


def _told(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return ""
    below = f"{cell['failing']} of {cell['n']}" if cell["failing"] is not None else f"{cell['n']}"
    return f"{cell['mean']:.2f}\n{below}"


def hardest(figures: RunFigures, section: Section) -> Figure | None:
    """Return the questions with the worst values."""
    if not section.hardest:
        return None
    rows = section.hardest
    figure = empty_figure(9, 0.8 + 0.3 * len(rows))
    axes = figure.add_subplot()
    axes.barh(range(len(rows)), [row["mean"] for row in rows], color=_BLUE, alpha=0.6)
    names = [shown_name(row["question"]) for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=8, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlabel(f"mean over {len(figures.run.models)} models")
    return figure


def shares(bars: Sequence[tuple[str, int, int]], told: str) -> Figure:
    """Return counts of totals as bars.

    Args:
        bars: Name, count, of how many.
        told: Below the axis.
    """
    figure = empty_figure(9, 0.9 + 0.3 * len(bars))
    axes = figure.add_subplot()
    axes.barh(range(len(bars)), [count / total for _, count, total in bars], color=_RED, alpha=0.6)
    for place, (_, count, total) in enumerate(bars):
        axes.text(count / total, place, f" {count} of {total}", va="center", fontsize=8)
    names = [shown_name(name) for name, *_ in bars]
    axes.set_yticks(range(len(bars)), names, fontsize=8, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.1)
    axes.set_xlabel(told)
    return figure

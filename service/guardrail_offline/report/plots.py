"""Box plots as PNG or SVG: mean, median, 95 % interval, and how many values there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from guardrail_offline.report.plotted_values import CONSISTENCY, TREC, PlottedValues
from guardrail_offline.runs.paired import mean_interval
from guardrail_service.errors import ConfigurationError, choices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PER_ROW = 3
_NAME_LENGTH = 24
ENDINGS = (".png", ".svg")


def wanted(metrics: Mapping[str, Sequence[PlottedValues]], only: Sequence[str]) -> list[str]:
    """Return the metrics to draw, all if none is named; Open RAG Eval's column names are known.

    Raises:
        ConfigurationError: If a metric is not there.
    """
    columns = {column: name for name, column in TREC.items()}
    named = [columns.get(name, name.removeprefix(CONSISTENCY)) for name in only]
    for name in named:
        if name not in metrics:
            raise ConfigurationError(
                "--metrics-to-plot", repr(name), choices(name, metrics, "metric")
            )
    return [name for name in metrics if not named or name in named]


def box_plots(metrics: Mapping[str, Sequence[PlottedValues]], only: Sequence[str] = ()) -> Figure:
    """Return a picture per metric, a box per sample, with mean, median and interval.

    Args:
        metrics: Samples by metric.
        only: Names of metrics; all if empty.

    Raises:
        ConfigurationError: If a metric is not there.
        ImportError: If matplotlib is not installed.
    """
    shown = wanted(metrics, only)
    across, down = min(_PER_ROW, len(shown)), -(-len(shown) // _PER_ROW)
    boxes = max(len(metrics[name]) for name in shown)
    figure = empty_figure(across * max(3.6, 0.8 * boxes + 1.6), 3.6 * down)
    for place, name in enumerate(shown, start=1):
        _boxes(figure.add_subplot(down, across, place), name, metrics[name])
    return figure


def empty_figure(width: float, height: float) -> Figure:
    """Return a picture of a size in inches, 60 at most: nobody looks at a wider one."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(min(width, 60), min(height, 60)), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, out: Path) -> None:
    """Write a picture, the same bytes each time, whole or not at all.

    Raises:
        ConfigurationError: If the ending is neither .png nor .svg.
    """
    import matplotlib as mpl

    if out.suffix.lower() not in ENDINGS:
        raise ConfigurationError("--output-file", repr(out.suffix), ".png or .svg")
    metadata = {"Date": None} if out.suffix.lower() == ".svg" else {"Software": None}
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        with mpl.rc_context({"svg.hashsalt": "rag-guardrail"}):
            figure.savefig(temporary, format=out.suffix.lower()[1:], dpi=120, metadata=metadata)
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)


def _boxes(axes: Axes, name: str, found: Sequence[PlottedValues]) -> None:
    axes.set_title(shown_name(name), fontsize=10, parse_math=False)
    places = range(1, len(found) + 1)
    having = [(place, one) for place, one in zip(places, found, strict=True) if len(one.values)]
    for place, one in having:
        axes.boxplot([one.values], positions=[place], widths=0.5, showfliers=False)
        mean = float(one.values.mean())
        ends = mean_interval(one.values) or (mean, mean)
        axes.errorbar(
            [place], [mean], yerr=[[mean - ends[0]], [ends[1] - mean]], fmt="D", capsize=4
        )
        median = float(np.median(one.values))
        axes.annotate(
            f"mean {mean:.2f}\nmedian {median:.2f}", (place + 0.28, mean), (3, 0),
            textcoords="offset points", fontsize=7,
        )  # fmt: skip
    names = [f"{shown_name(one.name)}\n{len(one.values)} of {one.asked}" for one in found]
    axes.set_xticks(list(places), names, fontsize=8, parse_math=False)
    axes.set_xlim(0.4, len(found) + 0.9)


def shown_name(name: str, most: int = 2 * _NAME_LENGTH) -> str:
    """Return a name that is short, and has no letters that only steer a terminal or a renderer."""
    letters = "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in name)
    return letters if len(letters) <= most else letters[:most] + "..."

"""The three pictures of a calibration, as PNG bytes. Needs matplotlib, of the extra `offline`."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from guardrail_offline.calibration.fit import Fitted
from guardrail_offline.calibration.joint import JointCut
from guardrail_offline.calibration.ranks import guaranteed_rank
from guardrail_offline.calibration.rules import NAIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GOOD, BAD, INK = "#0072b2", "#d55e00", "#333333"
"""Okabe and Ito's colours: apart for colour-blind readers, too."""

ALPHAS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.10, 0.15, 0.20, 0.30)


def pictures(fitted: Fitted, block: Mapping[str, Any]) -> dict[str, bytes]:
    """Return PNG images by file name: histograms, reliability, trade-off."""
    found = {"scores.png": _png(histograms(fitted))}
    if figure := reliability_diagrams(block):
        found["reliability.png"] = _png(figure)
    if fitted.shape is not None:
        found["trade-off.png"] = _png(trade_off(fitted))
    return found


def histograms(fitted: Fitted) -> Figure:
    """Return the scores of good and bad answers per metric, with the threshold between them."""
    gates = [(j, g) for j, g in enumerate(fitted.gates) if not g.metric.boolean]
    figure, cells = _grid(max(1, len(gates)))
    for (j, gate), cell in zip(gates, cells, strict=False):
        scores = np.array([gate.axis.orient(v) for v in fitted.data.values[:, j].tolist()])
        # One set of edges for both, or equal scores stand in different places.
        edges = np.histogram_bin_edges(scores[np.isfinite(scores)], bins=20).tolist()
        for mask, colour, name in (
            (fitted.data.good, GOOD, "good"),
            (~fitted.data.good, BAD, "bad"),
        ):
            finite = scores[mask & np.isfinite(scores)]
            if len(finite):
                cell.hist(
                    finite, bins=edges, color=colour, alpha=0.55, label=f"{name} ({len(finite)})"
                )
        threshold = fitted.threshold(j)
        if threshold is not None:
            cell.axvline(threshold, color=INK, linestyle="--", label=f"threshold {threshold:.4g}")
        missing = int(np.sum(~np.isfinite(scores)))
        cell.set_title(f"{gate.name}\n{missing} without a score", fontsize=9)
        cell.legend(fontsize=7)
        cell.set_ylabel("answers")
    return figure


def reliability_diagrams(block: Mapping[str, Any]) -> Figure | None:
    """Return P(bad) said against the share of bad found, per metric; None if none was learnt."""
    told = [
        (f"{evaluator.rsplit('.', 1)[-1]}.{key}", entry["p_bad"])
        for evaluator, metrics in sorted(block["per_metric"].items())
        for key, entry in metrics.items()
        if entry["p_bad"]
    ]
    if not told:
        return None
    figure, cells = _grid(len(told))
    for (name, p_bad), cell in zip(told, cells, strict=False):
        bins = p_bad["reliability"]
        cell.plot([0, 1], [0, 1], color=INK, linewidth=0.8)
        cell.plot([b["said"] for b in bins], [b["found"] for b in bins], "o-", color=GOOD)
        error = p_bad["expected_calibration_error"]
        cell.set_title(f"{name}\n{p_bad['method']}, error {error:.3f}", fontsize=8)
        cell.set_xlabel("P(bad) said")
        cell.set_ylabel("share of bad found")
    return figure


def trade_off(fitted: Fitted) -> Figure:
    """Return what each promise costs in recall, with the usual methods beside it.

    The curve's points are false-flag bounds that would have held had they been asked for; choosing
    among them after seeing the curve is another look at the labels. The usual methods lie where
    their thresholds put them on the good answers they were fitted on, which flatters them.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4.2), layout="constrained")
    cell = figure.add_subplot()
    options, bad = fitted.options, fitted.data.values[~fitted.data.good & ~fitted.data.design]
    points = [
        (alpha, float(np.mean(cut.flags(bad))))
        for alpha in ALPHAS
        if (cut := _cut_at(fitted, alpha)) is not None and len(bad)
    ]
    if points:
        cell.plot(*zip(*points, strict=True), "o-", color=GOOD, label="joint bound")
    for name, rate, recall in _usual(fitted, bad):
        cell.plot([rate], [recall], "x", color=BAD, markersize=9)
        cell.annotate(name, (rate, recall), fontsize=8, xytext=(5, -9), textcoords="offset points")
    cell.axvline(options.alpha, color=INK, linestyle="--", linewidth=0.8, label="asked for")
    cell.set_xlabel(f"good answers flagged (bound at {1 - options.delta:.0%} confidence)")
    cell.set_ylabel("bad answers caught")
    cell.set_ylim(0, 1.02)
    cell.legend(fontsize=8, loc="lower right")
    return figure


def _cut_at(fitted: Fitted, alpha: float) -> JointCut | None:
    """Return the whole rule at another alpha, for the curve."""
    rank = guaranteed_rank(len(fitted.units), alpha, fitted.options.delta)
    if not rank or fitted.shape is None:
        return None
    width = len(fitted.shape.axes)
    plain = fitted.units[:, :width].copy()
    plain[np.any(fitted.units == -math.inf, axis=1)] = -math.inf
    cut = fitted.shape.cut(plain, rank)
    return None if cut is None else JointCut((*cut.cuts, *fitted.cuts[width:]), rank)


def _usual(fitted: Fitted, bad: np.ndarray[Any, Any]) -> Sequence[tuple[str, float, float]]:
    """Return name, false-flag rate and recall of the usual methods, each metric by itself."""
    good = fitted.units
    if not len(bad):
        return []
    found = []
    for name, rule in NAIVE.items():
        cuts = []
        for j, gate in enumerate(fitted.gates):
            fits = not gate.metric.boolean
            cuts.append(
                rule(good[:, j], bad[:, j], fitted.options.alpha) if fits else fitted.cuts[j]
            )
        cut = JointCut(tuple(cuts), 0)
        found.append((name, float(cut.flags(good).mean()), float(cut.flags(bad).mean())))
    return found


def _grid(count: int) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    columns = min(3, count)
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(4 * columns, 3 * rows), layout="constrained")
    cells = [figure.add_subplot(rows, columns, index + 1) for index in range(count)]
    return figure, cells


def _png(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=100, metadata={"Software": None})
    return stream.getvalue()

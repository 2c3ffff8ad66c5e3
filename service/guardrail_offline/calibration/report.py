"""The report of a fit: one HTML page, its pictures and the labels worth a second look.

The page is one file, fetches nothing and escapes every text. The pictures need matplotlib, of the
extra `plots`.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from guardrail_offline.calibration.explanation import explain
from guardrail_offline.calibration.joint_rule import (
    Axis,
    JointCut,
    Matrix,
    Vector,
    fit_scales,
    fittable_columns,
)
from guardrail_offline.calibration.probability import logistic, sigmoid
from guardrail_offline.calibration.single_rules import NAIVE
from guardrail_offline.calibration.split import LabelledCases, chance
from guardrail_offline.calibration.statistics import FlagRate, guaranteed_rank
from guardrail_offline.calibration.thresholds import Fitted
from guardrail_offline.report.page import environment, frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def page(
    content: Mapping[str, Any],
    images: Mapping[str, bytes],
    suspects: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the page.

    Args:
        content: The guardrail file.
        images: PNG bytes by file name.
        suspects: Labels worth a second look.
    """
    block = content["calibration"]
    shown = [
        (TITLES.get(name, name), base64.b64encode(data).decode("ascii"))
        for name, data in images.items()
    ]
    return environment().get_template("calibration.html.j2").render(
        **frame(more="; img-src data:"),
        name=f"{content['policy']['name']} {content['policy']['version']}",
        sentences=explain(content),
        slices=[_slice(entry) for entry in block["slices"]],
        images=shown,
        suspects=suspects,
    )  # fmt: skip


TITLES = {
    "scores.png": "Scores and thresholds",
    "reliability.png": "Reliability of P(bad) read from one metric",
    "trade-off.png": "What each promise costs",
}


def _slice(entry: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return a slice with its false flags and its recall, each with an interval."""
    good, bad = entry["false_flag"], entry["recall"]
    return (
        entry["fact"],
        entry["value"],
        str(FlagRate(good["x"], good["n"])),
        str(FlagRate(bad["x"], bad["n"])),
    )


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
        scores = gate.axis.orient(fitted.data.values[:, j])
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
    options, bad, points = fitted.options, _proving_bad(fitted), trade_off_points(fitted)
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


def trade_off_points(fitted: Fitted) -> list[tuple[float, float]]:
    """Return bounds on false flags, each with the share of bad answers that it would catch."""
    bad = _proving_bad(fitted)
    return [
        (alpha, float(np.mean(cut.flags(bad))))
        for alpha in ALPHAS
        if (cut := _cut_at(fitted, alpha)) is not None and len(bad)
    ]


def _proving_bad(fitted: Fitted) -> Matrix:
    """Return the rows of the bad answers that chose nothing."""
    return fitted.data.values[~fitted.data.good & ~fitted.data.design]


def _cut_at(fitted: Fitted, alpha: float) -> JointCut | None:
    """Return the whole rule at another alpha, for the curve."""
    rank = guaranteed_rank(len(fitted.units), alpha, fitted.options.delta)
    if not rank or fitted.shape is None:
        return None
    width = len(fitted.shape.axes)
    cut = fitted.shape.cut(fittable_columns(fitted.units, width), rank)
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


FOLDS = 5
LIMIT = 3.0
"""Standardised scores are cut here: one absurd score must not decide a regression."""

DOUBTFUL = 0.2
"""Largest probability of its own label at which a case is listed."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A case whose label its scores make improbable; `probability` is that of the label."""

    case: str
    label: str
    probability: float

    def as_json(self) -> dict[str, Any]:
        """Return the suspect for a report."""
        return {"case": self.case, "label": self.label, "probability": round(self.probability, 4)}


def suspects(data: LabelledCases, axes: list[Axis]) -> list[Suspect]:
    """Return doubtful labels, the least probable first.

    A logistic regression of the label on all metrics, fitted without the case's own question, says
    how probable its label is. A detector's blind spots look like wrong labels here and are not.

    Args:
        data: Labelled cases; the first columns of their values belong to `axes`.
        axes: The metrics that have a threshold to fit.
    """
    if not axes or min(data.good.sum(), (~data.good).sum()) < FOLDS:
        return []
    values = data.values[:, : len(axes)]
    bad = (~data.good).astype(np.float64)
    fold = np.array([int(FOLDS * chance(0, "fold", group)) for group in data.groups])
    said = np.empty(len(values))
    for number in range(FOLDS):
        held = fold == number
        if held.any() and 0 < bad[~held].sum() < (~held).sum():
            features = _features(values, data.good & ~held, axes)
            weights = logistic(features[~held], bad[~held])
            said[held] = sigmoid(weights[0] + features[held] @ weights[1:])
        else:
            said[held] = bad.mean()
    own = np.where(data.good, 1 - said, said)
    order = [i for i in np.argsort(own, kind="stable") if own[i] < DOUBTFUL]
    labels = ("fail", "pass")
    return [Suspect(data.cases[i].key, labels[int(data.good[i])], float(own[i])) for i in order]


def _features(values: Matrix, good: Vector, axes: list[Axis]) -> Matrix:
    """Return standardised scores; a missing one is as far out as any."""
    scales = fit_scales(axes, values[good])
    columns = [scale.standard(values[:, j]) for j, scale in enumerate(scales)]
    return np.clip(np.column_stack(columns), -LIMIT, LIMIT)

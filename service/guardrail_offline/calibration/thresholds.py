"""Labels and scores in, thresholds with a promise out; or a refusal that says what is missing."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from guardrail_offline.calibration.deciding_metrics import MIDDLE, DecidingMetric
from guardrail_offline.calibration.fit_options import PROMISING, FitOptions
from guardrail_offline.calibration.joint_rule import (
    LEAST_GOOD,
    JointCut,
    JointShape,
    Matrix,
    Vector,
    between,
    choose_shape,
    fittable_columns,
    shape_from_json,
)
from guardrail_offline.calibration.sampling import COMFORT
from guardrail_offline.calibration.scored_lab import ScoredLab
from guardrail_offline.calibration.single_rules import (
    average_cut,
    cheapest_cut,
    f1_cut,
    false_flag_cut,
    recall_cut,
    trade,
    youden_cut,
)
from guardrail_offline.calibration.split import LabelledCases, labelled
from guardrail_offline.calibration.statistics import (
    anytime_rank,
    average_rank,
    guaranteed_rank,
    labels_needed,
    labels_needed_anytime,
    labels_needed_on_average,
)
from guardrail_service.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Fitted:
    """Thresholds and what they rest on.

    Attributes:
        gates: Every metric that decides, those with a fitted threshold first.
        cuts: Oriented threshold per gate; minus infinity never flags.
        data: The labelled cases, divided.
        units: Rows the bound was computed from. Shape (n, gates).
        rank: k of the joint rule; 0 for rules per metric.
        tau: The joint cut on the standardised scale, where there is one.
        shape: How the joint rule orders answers.
        options: What was asked for.
    """

    gates: tuple[DecidingMetric, ...]
    cuts: tuple[float, ...]
    data: LabelledCases
    units: Matrix
    rank: int
    tau: float | None
    shape: JointShape | None
    options: FitOptions

    @property
    def promising(self) -> bool:
        """Return whether the thresholds carry a promise."""
        return self.options.rule in PROMISING

    @property
    def joint(self) -> JointCut:
        """Return the thresholds as one rule over all gates."""
        return JointCut(self.cuts, self.rank, self.tau)

    def threshold(self, index: int) -> float | None:
        """Return a gate's threshold on its own scale; None where it can never flag."""
        if self.gates[index].metric.boolean:
            return MIDDLE
        cut = self.cuts[index]
        return self.gates[index].axis.orient(cut) if math.isfinite(cut) else None


def fit_thresholds(
    lab: ScoredLab,
    passes: Mapping[str, bool],
    gates: Sequence[DecidingMetric],
    options: FitOptions,
    weights: Mapping[str, float] | None = None,
    previous: Mapping[str, Any] | None = None,
    abstained: Collection[str] = (),
) -> Fitted:
    """Return thresholds fitted to labels.

    Args:
        lab: Scored cases.
        passes: One word per labelled case.
        gates: The metrics that decide.
        options: What is promised and how.
        weights: How many questions each sampled case's stands for, if the sample was uneven.
        previous: The shape of an earlier fit, kept as it is; needed to look again at any time.
        abstained: Cases that people read and could not tell.

    Raises:
        ConfigurationError: If the labels cannot carry what is asked; the message says how many
            more are needed.
    """
    if options.rule != "joint":
        data = labelled(lab, passes, gates, options, weights, 0.0, abstained)
        cuts, units = cuts_alone(data, gates, options)
        return Fitted(tuple(gates), cuts, data, units, 0, None, None, options)
    data = labelled(lab, passes, gates, options, weights, abstained=abstained)
    units = data.proving(options)
    if previous is None and _may_drop_split(options) and _rank(len(units), options) < COMFORT:
        data = labelled(lab, passes, gates, options, weights, 0.0, abstained)
        units = data.proving(options)
    rank = _rank(len(units), options)
    if rank == 0:
        refuse_too_few(len(units), data, options)
    fittable = [gate for gate in gates if not gate.metric.boolean]
    shape = _shape(data, fittable, options, rank / len(units), previous) if fittable else None
    cut = _cut(shape, units, rank, data.values)
    if cut is None:
        refuse_always_flagged(units, gates, options, rank)
    checks = [MIDDLE] * (len(gates) - len(fittable))
    cuts = (*cut.cuts, *checks)
    return Fitted(tuple(gates), cuts, data, units, rank, cut.tau, shape, options)


def _may_drop_split(options: FitOptions) -> bool:
    """Return whether all labels may go into the bound: the by-ranks rule needs no design part.

    The choice depends on how many labels there are and never on a score, or the bound would not
    cover it.
    """
    return options.method == "auto" and not options.learn and options.looks == "fixed"


def _rank(n: int, options: FitOptions) -> int:
    rule = anytime_rank if options.looks == "anytime" else guaranteed_rank
    return rule(n, options.alpha, options.delta)


def _cut(shape: JointShape | None, units: Matrix, rank: int, observed: Matrix) -> JointCut | None:
    """Return the cut at a rank, or None if failed checks and missing scores use up all of it.

    Without a shape only yes/no checks decide, and there is no threshold to cut at.
    """
    if shape is None:
        flagged = np.any(units == -math.inf, axis=1)
        return JointCut((), rank) if int(flagged.sum()) < rank else None
    width = len(shape.axes)
    return shape.cut(fittable_columns(units, width), rank, observed[:, :width])


def _shape(
    data: LabelledCases,
    gates: Sequence[DecidingMetric],
    options: FitOptions,
    level: float,
    previous: Mapping[str, Any] | None,
) -> JointShape:
    axes = [gate.axis for gate in gates]
    names = [gate.name for gate in gates]
    if previous is not None:
        try:
            return shape_from_json(dict(previous), names, axes)
        except KeyError as error:
            raise ConfigurationError(
                "--previous", f"no shape of {error}", "a fit of the same metrics"
            ) from error
    unknown = sorted(set(options.weights) - set(names))
    if unknown:
        raise ConfigurationError("--weight", repr(unknown[0]), ", ".join(names))
    width = len(gates)
    method = "scaled_min" if options.looks == "anytime" else options.method
    good = fittable_columns(data.units(data.good & data.design, options), width)
    if method == "scaled_min" and len(good) < LEAST_GOOD:
        raise ConfigurationError(
            "labels",
            f"{len(good)} good questions in the design part",
            f"at least {LEAST_GOOD}, from which scales can be fitted: more labels, a larger "
            "--split, or by_ranks",
        )
    return choose_shape(
        axes,
        good,
        fittable_columns(data.values[~data.good & data.design], width),
        level,
        method if data.design.any() else "by_ranks",
        [options.weights.get(name, 1.0) for name in names],
        options.learn,
    )


def cuts_alone(
    data: LabelledCases, gates: Sequence[DecidingMetric], options: FitOptions
) -> tuple[tuple[float, ...], Matrix]:
    """Return one oriented cut per gate, and the good units they were read from."""
    good = data.units(data.good, options)
    bad = data.units(~data.good, options)
    refuse_too_few_alone(good, bad, data, options)
    cuts = []
    for j, gate in enumerate(gates):
        cut = _alone(good[:, j], bad[:, j], options)
        refuse_out_of_reach(cut, gate, options)
        placed = _placed(cut, data.values[:, j], gate, options)
        cuts.append(MIDDLE if gate.metric.boolean else placed)
    return tuple(cuts), good


def _alone(good: Vector, bad: Vector, options: FitOptions) -> float:
    """Return one metric's oriented cut, before it is put into the metric's range."""
    cut: float | None
    match options.rule:
        case "false_flag":
            cut = false_flag_cut(good, options.alpha, options.delta)
        case "average":
            cut = average_cut(good, options.alpha)
        case "recall":
            cut = recall_cut(bad, options.recall, options.delta)
        case "cost":
            cut = cheapest_cut(trade(good, bad), 1.0, options.miss_cost)
        case "max_f1":
            cut = f1_cut(trade(good, bad))
        case _:
            cut = youden_cut(trade(good, bad))
    return -math.inf if cut is None else cut


def _placed(cut: float, observed: Vector, gate: DecidingMetric, options: FitOptions) -> float:
    """Return a cut as a threshold in range; a recall promise must not be rounded down."""
    if cut == math.inf:
        return gate.axis.high
    if options.rule == "recall":
        return max(gate.axis.low, min(cut, gate.axis.high))
    return between(cut, observed, gate.axis)


def refuse_too_few(n: int, data: LabelledCases, options: FitOptions) -> NoReturn:
    """Say how many questions with a good answer are missing, and about how many labels that is."""
    if options.looks == "anytime":
        needed = labels_needed_anytime(options.alpha, options.delta)
    elif options.rule == "average":
        needed = labels_needed_on_average(options.alpha)
    else:
        needed = labels_needed(options.alpha, options.delta)
    share = n / max(1, len(set(data.groups)))
    more = needed - n
    labels = f"about {math.ceil(more / share)} more labelled questions" if share else "more labels"
    design = f"; {options.split:.0%} of questions are kept for the design part"
    kept = design if data.design.any() else ""
    if silent := data.without_speaker():
        kept += f"; {silent} more whose drawn answer has no label (sample under the same --seed)"
    raise ConfigurationError(
        "labels",
        f"{n} questions with a good answer{kept}",
        f"at least {needed} for alpha {options.alpha:g} and delta {options.delta:g}: "
        f"{more} more, {labels}",
    )


def refuse_always_flagged(
    values: Matrix, gates: Sequence[DecidingMetric], options: FitOptions, rank: int
) -> NoReturn:
    """Name the metrics that flag good answers whatever the thresholds are."""
    flagged = np.any(values == -math.inf, axis=1)
    by_gate = {gate.name: int(np.sum(values[:, j] == -math.inf)) for j, gate in enumerate(gates)}
    worst = sorted((name for name in by_gate if by_gate[name]), key=lambda name: -by_gate[name])
    listed = ", ".join(f"{name} {by_gate[name]}" for name in worst[:4])
    raise ConfigurationError(
        f"alpha {options.alpha:g}",
        f"{int(flagged.sum())} of {len(values)} good units flagged by failed checks or missing "
        f"scores alone ({listed})",
        f"at most {rank - 1}: change what those checks or states mean, or allow a larger alpha",
    )


def refuse_too_few_alone(
    good: Matrix, bad: Matrix, data: LabelledCases, options: FitOptions
) -> None:
    """Refuse labels that are too few for a promise about each metric alone."""
    if options.rule == "recall":
        if guaranteed_rank(len(bad), 1 - options.recall, options.delta) == 0:
            needed = labels_needed(1 - options.recall, options.delta)
            raise ConfigurationError(
                "labels",
                f"{len(bad)} questions with a bad answer",
                f"at least {needed} for recall {options.recall:g} and delta {options.delta:g}: "
                f"{needed - len(bad)} more",
            )
    elif options.rule in PROMISING:
        enough = (
            average_rank(len(good), options.alpha)
            if options.rule == "average"
            else guaranteed_rank(len(good), options.alpha, options.delta)
        )
        if not enough:
            refuse_too_few(len(good), data, options)


def refuse_out_of_reach(cut: float, gate: DecidingMetric, options: FitOptions) -> None:
    """Refuse a promise that no threshold of this metric can keep."""
    fitted = not gate.metric.boolean  # a yes/no check is outside the promise of recall
    if options.rule == "recall" and fitted and (cut > gate.axis.high or cut == math.inf):
        raise ConfigurationError(
            f"recall {options.recall:g}",
            f"too many bad answers that {gate.name} gives its best score, or does not judge",
            "a smaller recall, or another metric",
        )
    flagged, instead = (
        (f"without a score of {gate.name}", "under which missing scores pass")
        if fitted
        else (f"that fail {gate.name} or have no score of it", "without that check")
    )
    if options.rule in ("false_flag", "average") and cut == -math.inf:
        raise ConfigurationError(
            f"alpha {options.alpha:g}",
            f"more good answers {flagged} than may be flagged",
            f"a policy {instead}, or a larger alpha",
        )

"""Thresholds of every metric by itself, put into the metric's range."""

from __future__ import annotations

import math
from collections.abc import Sequence

from guardrail_offline.calibration.gates import MIDDLE, Gate
from guardrail_offline.calibration.joint import between
from guardrail_offline.calibration.labelled import Labelled
from guardrail_offline.calibration.options import Options
from guardrail_offline.calibration.refusals import (
    refuse_out_of_reach,
    refuse_too_few_alone,
)
from guardrail_offline.calibration.rules import (
    average_cut,
    cheapest_cut,
    f1_cut,
    false_flag_cut,
    recall_cut,
    trade,
    youden_cut,
)
from guardrail_offline.calibration.scales import Matrix, Vector


def cuts_alone(
    data: Labelled, gates: Sequence[Gate], options: Options
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


def _alone(good: Vector, bad: Vector, options: Options) -> float:
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


def _placed(cut: float, observed: Vector, gate: Gate, options: Options) -> float:
    """Return a cut as a threshold in range; a recall promise must not be rounded down."""
    if cut == math.inf:
        return gate.axis.high
    if options.rule == "recall":
        return max(gate.axis.low, min(cut, gate.axis.high))
    return between(cut, observed, gate.axis)

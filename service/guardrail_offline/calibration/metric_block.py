"""One metric's part of the provenance block: threshold, interval, rates, baseline, P(bad)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from guardrail_offline.calibration.drift import baseline, own_scores
from guardrail_offline.calibration.fit import Fitted
from guardrail_offline.calibration.gates import Gate
from guardrail_offline.calibration.joint import JointCut
from guardrail_offline.calibration.measure import Mask, rate
from guardrail_offline.calibration.probability import (
    calibration_error,
    probabilities,
    reliability,
    reliability_json,
)
from guardrail_offline.calibration.scales import Vector
from guardrail_offline.calibration.units import chance, resampled
from guardrail_service.types import Direction

BOOTSTRAPS = 200
LEAST = 10
"""Scored labels below which nothing is said about P(bad)."""


def per_metric(fitted: Fitted) -> dict[str, dict[str, Any]]:
    """Return what was found about every gate, by evaluator id and metric key."""
    intervals = _intervals(fitted)
    found: dict[str, dict[str, Any]] = {}
    for j, gate in enumerate(fitted.gates):
        found.setdefault(gate.evaluator_id, {})[gate.metric.key] = _metric(
            fitted, j, intervals.get(j)
        )
    return found


def _metric(fitted: Fitted, j: int, interval: tuple[float, float] | None) -> dict[str, Any]:
    gate, data = fitted.gates[j], fitted.data
    values = data.values[:, j]
    below = (values < fitted.cuts[j]) | (values == -math.inf)
    missing = np.array([gate.score(case).value is None for case in data.cases])
    higher = gate.metric.direction is Direction.HIGHER
    alone = (fitted.units[:, j] < fitted.cuts[j]) | (fitted.units[:, j] == -math.inf)
    return {
        "direction": gate.metric.direction.value,
        "operator": "flag_if_lt" if higher else "flag_if_gt",
        "default": gate.rule.cuts[gate.metric.key].threshold
        if gate.metric.key in gate.rule.cuts
        else None,
        "threshold": fitted.threshold(j),
        "ci95": None if interval is None else list(interval),
        "false_flag": rate(alone).as_json(),
        "recall": rate(below[~data.good & ~data.design]).as_json(),
        "n_missing": int(missing.sum()),
        "on_missing": {
            "error": gate.rule.on_error,
            "not_evaluated": gate.rule.on_timeout,
            "unverified": gate.rule.on_unverified,
            "not_applicable": "pass",
        },
        "baseline": baseline(own_scores(gate, data.cases, fitted.options.seed)),
        "p_bad": _p_bad(gate, values, data.good, data.groups),
        "status": "calibrated" if fitted.promising else "fitted_without_promise",
    }


def _p_bad(gate: Gate, values: Vector, good: Mask, groups: list[str]) -> dict[str, Any] | None:
    """Return how well P(bad) read from this metric alone holds on questions it was not learnt on.

    For reading; no threshold is compared with it.
    """
    usable: Mask = np.isfinite(values)
    bad = (~good).astype(np.float64)
    if gate.metric.boolean or usable.sum() < LEAST:
        return None
    half = np.array([chance(0, "p_bad", group) < 0.5 for group in groups])
    said = np.full(len(values), math.nan)
    method = None
    for learn in (half, ~half):
        learnt, told = usable & learn, usable & ~learn
        if len(set(bad[learnt].tolist())) < 2 or not told.any():
            return None
        found = probabilities(values[learnt], bad[learnt], values[told])
        said[told], method = found.middle, found.method
    diagram = reliability(said[usable], bad[usable])
    return {
        "method": method,
        "expected_calibration_error": calibration_error(diagram),
        "reliability": reliability_json(diagram),
    }


def _intervals(fitted: Fitted) -> dict[int, tuple[float, float]]:
    """Return how far each joint threshold moves when units are drawn anew (bootstrap, 95 %)."""
    if fitted.shape is None:
        return {}
    width = len(fitted.shape.axes)
    plain = fitted.units[:, :width].copy()
    plain[np.any(fitted.units == -math.inf, axis=1)] = -math.inf
    drawn: list[JointCut] = []
    for indices in resampled(len(plain), BOOTSTRAPS, fitted.options.seed):
        cut = fitted.shape.cut(plain[indices], fitted.rank)
        if cut is not None:
            drawn.append(cut)
    found = {}
    for j, axis in enumerate(fitted.shape.axes):
        ends = [cut.cuts[j] for cut in drawn if math.isfinite(cut.cuts[j])]
        if ends:
            low, high = (axis.orient(float(np.quantile(ends, q))) for q in (0.025, 0.975))
            found[j] = (min(low, high), max(low, high))
    return found

"""Scores to P(bad): readable, for reports only. No threshold is ever compared with these.

Scores are oriented so that higher is better; labels are 1 for bad.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import isotonic_regression

from guardrail_offline.calibration.joint_rule import Matrix, Vector

PLATT_BELOW = 50
ISOTONIC_FROM = 500
"""Below 50 labels two parameters are all they carry; from 500 a free shape stops over-fitting;
between them Venn-Abers gives an interval that admits what it does not know.

Source: Niculescu-Mizil and Caruana 2005 (isotonic needs about 1000 cases, and is safe from several
hundred); Vovk and Petej 2014 for Venn-Abers."""

RIDGE = 1e-3
"""Weight of the penalty that keeps separable data from an infinite slope."""

ProbabilityMethod = Literal["platt", "venn_abers", "isotonic"]


@dataclass(frozen=True, slots=True)
class Probabilities:
    """P(bad) per score; for Venn-Abers with its interval, else three times the same."""

    method: ProbabilityMethod
    middle: Vector
    low: Vector
    high: Vector


@dataclass(frozen=True, slots=True)
class Reliability:
    """One bin of a reliability diagram: mean P(bad) said, share of bad found, cases."""

    said: float
    found: float
    n: int


def method_for(n: int) -> ProbabilityMethod:
    """Return the method that n labels can carry."""
    if n < PLATT_BELOW:
        return "platt"
    return "isotonic" if n >= ISOTONIC_FROM else "venn_abers"


def probabilities(
    scores: Vector, bad: Vector, wanted: Vector, method: ProbabilityMethod | None = None
) -> Probabilities:
    """Return P(bad) at the wanted scores, learnt from labelled ones."""
    chosen = method or method_for(len(scores))
    if chosen == "venn_abers":
        low, high = venn_abers(scores, bad, wanted)
        return Probabilities(chosen, high / (1 - low + high), low, high)
    learnt = platt if chosen == "platt" else isotonic
    values = learnt(scores, bad, wanted)
    return Probabilities(chosen, values, values, values)


def platt(scores: Vector, bad: Vector, wanted: Vector) -> Vector:
    """Return a logistic curve's P(bad), with Platt's smoothed targets.

    Source:
        Platt 1999; targets (n+ + 1)/(n+ + 2) and 1/(n- + 2) keep it off 0 and 1.
    """
    n_bad = float(bad.sum())
    target = np.where(bad > 0, (n_bad + 1) / (n_bad + 2), 1 / (len(bad) - n_bad + 2))
    centre, spread = float(scores.mean()), float(scores.std()) or 1.0
    weights = logistic(((scores - centre) / spread)[:, None], target)
    return sigmoid(weights[0] + weights[1] * (wanted - centre) / spread)


def isotonic(scores: Vector, bad: Vector, wanted: Vector) -> Vector:
    """Return the best falling step function's P(bad), straight between the labelled scores."""
    unique, where = np.unique(scores, return_inverse=True)
    count = np.bincount(where).astype(np.float64)
    share = np.bincount(where, bad) / count
    fitted = isotonic_regression(share, weights=count, increasing=False).x
    said: Vector = np.interp(wanted, unique, fitted)
    return said


def venn_abers(scores: Vector, bad: Vector, wanted: Vector) -> tuple[Vector, Vector]:
    """Return the lower and the upper P(bad) of every wanted score.

    Each is isotonic regression with the wanted score added once as good, once as bad.

    Source:
        Vovk and Petej, Venn-Abers predictors, UAI 2014.
    """
    both = []
    for label in (0.0, 1.0):
        both.append([_added(scores, bad, score, label) for score in wanted])
    return np.array(both[0]), np.array(both[1])


def _added(scores: Vector, bad: Vector, score: float, label: float) -> float:
    where = np.unique(np.append(scores, score), return_inverse=True)[1]
    count = np.bincount(where).astype(np.float64)
    share = np.bincount(where, np.append(bad, label)) / count
    fitted = isotonic_regression(share, weights=count, increasing=False).x
    return float(fitted[where[-1]])


def logistic(features: Matrix, target: Vector, steps: int = 50) -> Vector:
    """Return intercept and slopes of a ridge logistic regression, by Newton's method.

    Args:
        features: Shape (n, m).
        target: In [0, 1]. Shape (n,).
        steps: Largest number of Newton steps; it stops when nothing moves.
    """
    design = np.column_stack([np.ones(len(features)), features])
    penalty = RIDGE * len(features) * np.eye(design.shape[1])
    penalty[0, 0] = 1e-9  # the intercept is free; only kept off an exactly singular matrix
    weights = np.zeros(design.shape[1])
    for _ in range(steps):
        said = sigmoid(design @ weights)
        gradient = design.T @ (said - target) + penalty @ weights
        curvature = design.T @ (design * (said * (1 - said))[:, None]) + penalty
        step = np.linalg.solve(curvature, gradient)
        weights = weights - step
        if float(np.abs(step).max()) < 1e-10:
            break
    return weights


def sigmoid(values: Vector) -> Vector:
    """Return 1 / (1 + exp(-x)), without overflow."""
    half: Vector = 0.5 * (1 + np.tanh(values / 2))
    return half


def reliability(said: Vector, bad: Vector, bins: int = 10) -> tuple[Reliability, ...]:
    """Return a reliability diagram over bins of about equal counts; ties share a bin."""
    edges = np.unique(np.quantile(said, np.linspace(0, 1, bins + 1)[1:-1]))
    cell = np.searchsorted(edges, said, side="left")
    members = [cell == number for number in range(len(edges) + 1)]
    return tuple(
        Reliability(float(said[here].mean()), float(bad[here].mean()), int(here.sum()))
        for here in members
        if here.any()
    )


def calibration_error(diagram: tuple[Reliability, ...]) -> float:
    """Return the expected calibration error: mean |said - found|, weighted by cases."""
    total = sum(cell.n for cell in diagram)
    return sum(cell.n * abs(cell.said - cell.found) for cell in diagram) / total


def reliability_json(diagram: tuple[Reliability, ...]) -> list[dict[str, Any]]:
    """Return a diagram for JSON."""
    return [{"said": c.said, "found": c.found, "n": c.n} for c in diagram]

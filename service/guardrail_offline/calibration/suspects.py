"""Labels that the scores contradict most: worth a second look by a person, never changed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from guardrail_offline.calibration.labelled import Labelled
from guardrail_offline.calibration.probability import logistic, sigmoid
from guardrail_offline.calibration.scales import Axis, Matrix, Vector, fit_scales
from guardrail_offline.calibration.units import chance

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


def suspects(data: Labelled, axes: list[Axis]) -> list[Suspect]:
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

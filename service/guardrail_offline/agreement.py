"""Agreement of numbers and verdicts with labels: as a ranking, and beyond chance."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from guardrail_service.errors import NotScorable


def auroc(scores: npt.NDArray[np.float64], positive: npt.NDArray[np.bool_]) -> float:
    """Return the probability that a positive scores above a negative; ties count half.

    Raises:
        NotScorable: If either class is empty.
    """
    both_classes(positive)
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = ((ends - counts + 1 + ends) / 2.0)[inverse]
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    above = float(ranks[positive].sum()) - n_positive * (n_positive + 1) / 2
    return above / (n_positive * n_negative)


def kappa(passes: npt.NDArray[np.bool_], good: npt.NDArray[np.bool_]) -> float:
    """Return Cohen's kappa of decisions and labels; NaN where chance alone would agree."""
    agreed = float((passes == good).mean())
    p, q = float(passes.mean()), float(good.mean())
    chance = p * q + (1 - p) * (1 - q)
    return (agreed - chance) / (1 - chance) if chance < 1 else math.nan


def both_classes(labels: npt.NDArray[np.bool_]) -> None:
    """Refuse labels of one kind.

    Raises:
        NotScorable: If either class is empty.
    """
    if not 0 < int(labels.sum()) < len(labels):
        raise NotScorable("one class is empty")

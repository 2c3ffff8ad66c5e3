"""Confidence intervals that runs and calibration share."""

from __future__ import annotations

from scipy.stats import beta


def exact_interval(x: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a share x/n; (0, 1) where n is 0."""
    if n == 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, x, n - x + 1)) if x else 0.0
    high = float(beta.ppf(1 - tail, x + 1, n - x)) if x < n else 1.0
    return low, high

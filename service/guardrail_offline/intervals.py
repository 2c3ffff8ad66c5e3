"""Confidence intervals that runs and calibration share.

Quantiles come from scipy.special: loading scipy.stats takes longer than evaluating a small lab.
"""

from __future__ import annotations

from scipy.special import betaincinv


def exact_interval(x: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a share x/n; (0, 1) where n is 0.

    Numbers that are not whole are effective sizes of a sample.
    """
    if n == 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = float(betaincinv(x, n - x + 1, tail)) if x else 0.0
    high = float(betaincinv(x + 1, n - x, 1 - tail)) if x < n else 1.0
    return low, high

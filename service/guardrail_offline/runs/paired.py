"""Statistics of paired differences: one number per question, so that reruns are no new evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import bdtr, ndtr, stdtr, stdtrit

Numbers = np.ndarray[Any, np.dtype[np.float64]]
CONFIDENCE = 0.95
RESAMPLES = 4000
MOST_RESAMPLED = 2000
"""With more questions Student's interval is the bootstrap's, and costs nothing."""
_SEED = 20_190_501


def mean_interval(values: Numbers, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Return the bootstrap interval of a mean, with questions drawn anew.

    The percentiles are widened as Student's t is wider than the normal distribution: without it
    the interval of few questions is too short. The same values give the same interval.

    Args:
        values: One number per question. Shape (n,).
        confidence: Share of such intervals that hold the true mean.

    Returns:
        Lower and upper end. None below two values, and where the values are all the same number
        other than 0: no spread was seen, which is not a spread of 0.

    Source:
        T. Hesterberg, "What Teachers Should Know About the Bootstrap" (2015), expanded percentiles.
    """
    count = len(values)
    if count < 2:
        return None
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    if _no_spread(values):
        return None if mean else (0.0, 0.0)
    quantile = float(stdtrit(count - 1, (1 + confidence) / 2))
    if count > MOST_RESAMPLED:
        reach = quantile * spread / math.sqrt(count)
        return mean - reach, mean + reach
    tail = float(ndtr(-quantile * math.sqrt(count / (count - 1))))
    low, high = np.quantile(_weights(count) @ values, [tail, 1 - tail])
    return float(low), float(high)


def ratio_interval(
    sums: Numbers, counts: Numbers, confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """Return the cluster-bootstrap interval of a mean over cases, with questions drawn anew.

    Args:
        sums: Sum of each question's cases. Shape (n,).
        counts: How many cases that are, at least one each. Shape (n,).
        confidence: Share of such intervals that hold the true mean.

    Returns:
        Lower and upper end. None below two questions, and where no spread was seen.

    Source:
        As `mean_interval`, of the ratio of two sums.
    """
    count = len(sums)
    if count < 2:
        return None
    mean = float(sums.sum() / counts.sum())
    rest = sums - mean * counts
    if not rest.any() or float(np.abs(rest).max()) <= 1e-12 * max(1.0, float(np.abs(sums).max())):
        return None
    quantile = float(stdtrit(count - 1, (1 + confidence) / 2))
    if count > MOST_RESAMPLED:
        reach = quantile * float(rest.std(ddof=1)) * math.sqrt(count) / float(counts.sum())
        return mean - reach, mean + reach
    tail = float(ndtr(-quantile * math.sqrt(count / (count - 1))))
    weights = _weights(count)
    low, high = np.quantile((weights @ sums) / (weights @ counts), [tail, 1 - tail])
    return float(low), float(high)


def p_value(values: Numbers) -> float:
    """Return how likely a mean as far from 0 is if there is no difference; two-sided.

    Student's test. Where all values are the same number it has no spread to go by, and the chance
    that as many differences all point one way is returned. 1.0 without a value.
    """
    if not values.any():
        return 1.0
    if _no_spread(values):
        return min(1.0, 2.0 ** (1 - len(values)))
    count = len(values)
    statistic = float(values.mean()) / math.sqrt(float(values.var(ddof=1)) / count)
    return 2 * float(stdtr(count - 1, -abs(statistic)))


def sign_test(better: int, worse: int) -> float:
    """Return how likely so uneven counts are if better and worse are as likely; two-sided."""
    return min(1.0, 2 * float(bdtr(min(better, worse), better + worse, 0.5)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for having looked at all of them.

    Of twenty comparisons of equal runs at most one then has any p-value below .05 by chance,
    however many metrics there are.

    Source:
        S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure" (1979).
    """
    found = [1.0] * len(p_values)
    least = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, p_values[index] * (len(p_values) - rank)))
        found[index] = least
    return found


def _no_spread(values: Numbers) -> bool:
    """Return whether all values are one number, but for the last digits."""
    return bool(np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())))


@lru_cache(maxsize=8)
def _weights(count: int) -> Numbers:
    """Return how much each question counts in each resample. Shape (RESAMPLES, count)."""
    draws = np.random.default_rng(_SEED).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    return np.asarray(draws / count, dtype=np.float64)

"""Confidence intervals that runs and calibration share.

Quantiles come from scipy.special: loading scipy.stats takes longer than evaluating a small lab.
"""

from __future__ import annotations

from collections.abc import Iterable

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


def stratified_interval(
    strata: Iterable[tuple[int, int, float]], confidence: float = 0.95
) -> tuple[float, float]:
    """Return an interval of a share over strata that are known with unequal weight.

    Each stratum's exact interval holds with its part of what may go wrong (Bonferroni), so their
    weighted sum holds with all of it. One stratum: Clopper-Pearson.

    Args:
        strata: Per stratum the decisions that have the property, all decisions seen, and how many
            decisions each of them stands for.
        confidence: Of the interval.
    """
    kept = [(x, n, n * weight) for x, n, weight in strata if n]
    total = sum(size for _, _, size in kept)
    if not total:
        return 0.0, 1.0
    each = 1 - (1 - confidence) / len(kept)
    ends = [(exact_interval(x, n, each), size / total) for x, n, size in kept]
    return sum(e[0] * part for e, part in ends), min(1.0, sum(e[1] * part for e, part in ends))


def thinned_interval(
    x: int, rest: int, kept: float, confidence: float = 0.95
) -> tuple[float, float]:
    """Return an exact interval of a share of which only a part of the others was kept.

    Among what was kept the property is more frequent; its exact interval there is turned back.

    Args:
        x: With the property; all of them were kept.
        rest: Without it, as far as kept.
        kept: Chance that one without it was kept, in (0, 1].
        confidence: Of the interval.
    """
    low, high = exact_interval(x, x + rest, confidence)
    return low * kept / (1 - low + low * kept), high * kept / (1 - high + high * kept)

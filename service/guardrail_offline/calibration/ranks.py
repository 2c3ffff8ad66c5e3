"""How many of the sorted scores a cut may leave behind, and how many labels that takes.

Everything here counts units: answers that are independent of each other. Ranks start at one. With
the k-th smallest of n independent scores as a strict cut ("flag if below"), the chance that a new
score is flagged is at most a Beta(k, n - k + 1) variable, whatever the scores' distribution; ties
only make it smaller.

Source:
    Tong, Feng and Li, Neyman-Pearson classification algorithms and NP receiver operating
    characteristics, Science Advances 4(2), 2018, eaao1659. The same rule is Wilks' tolerance limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import betainc, betaln
from scipy.stats import beta, binom

_SLACK = 1e-12
"""Rounding of the distribution functions, so that a bound that holds exactly is not missed."""


def guaranteed_rank(n: int, alpha: float, delta: float) -> int:
    """Return the largest rank whose cut flags at most `alpha` of new scores, or 0 if none does.

    Args:
        n: Independent good scores.
        alpha: Largest share of good answers that may be flagged, in (0, 1).
        delta: Chance, over the labels, that the share is larger after all, in (0, 1).
    """
    # P(Beta(k, n-k+1) <= alpha) = P(Binomial(n, alpha) >= k), which falls with k.
    rank = int(binom.isf(1 - delta, n, alpha)) if n else 0
    while rank and binom.sf(rank - 1, n, alpha) < 1 - delta - _SLACK:
        rank -= 1
    while rank < n and binom.sf(rank, n, alpha) >= 1 - delta - _SLACK:
        rank += 1
    return rank


def average_rank(n: int, alpha: float) -> int:
    """Return the largest rank whose cut flags at most `alpha` on average over labels, or 0.

    Source:
        Split conformal prediction: k = floor(alpha (n + 1)).
    """
    return min(n, math.floor(alpha * (n + 1) + 1e-9))


def anytime_rank(n: int, alpha: float, delta: float) -> int:
    """Return a rank that keeps the promise of `guaranteed_rank` at every n at the same time.

    A cut at rank k is too high exactly when fewer than k of the n scores lie below the alpha
    quantile. That count is a binomial walk, and a mixture of likelihood ratios over all smaller
    rates is a martingale of mean one, so it ever reaches 1/delta with probability at most delta.
    Labels may be added and looked at as often as one likes while the rule stays the same.

    Source:
        Ville's inequality with the uniform mixture on (0, alpha); see Howard and Ramdas,
        Sequential estimation of quantiles with applications to A/B testing, Bernoulli 28(3), 2022.
    """
    below = np.arange(0, math.floor(alpha * n) + 1)
    with np.errstate(divide="ignore"):
        mixture = (
            betaln(below + 1, n - below + 1)
            + np.log(betainc(below + 1, n - below + 1, alpha))
            - math.log(alpha)
        )
    fair = below * math.log(alpha) + (n - below) * math.log1p(-alpha)
    refuted = mixture - fair >= -math.log(delta)
    return int(below[refuted].max()) + 1 if refuted.any() else 0


def labels_needed(alpha: float, delta: float, rank: int = 1) -> int:
    """Return how many good units the guaranteed cut at `rank` takes."""
    return _least(rank, lambda n: guaranteed_rank(n, alpha, delta) >= rank)


def labels_needed_on_average(alpha: float) -> int:
    """Return how many good units the on-average cut takes."""
    return math.ceil(1 / alpha - 1e-9) - 1


def labels_needed_anytime(alpha: float, delta: float) -> int:
    """Return how many good units the anytime cut takes before it admits a first rank.

    With no score below the quantile, every ratio in the mixture is ((1 - p) / (1 - alpha)) ** n,
    which grows with n: a size above one that admits a rank admits one.
    """
    return _least(labels_needed(alpha, delta), lambda n: anytime_rank(n, alpha, delta) >= 1)


def _least(low: int, enough: Callable[[int], bool]) -> int:
    """Return the smallest count from `low` that is enough, where every larger one is."""
    high = max(low, 1)
    while not enough(high):
        low, high = high + 1, 2 * high
    while low < high:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle + 1
    return high


def share_bound(n: int, rank: int, delta: float) -> float:
    """Return what the flagged share stays below with confidence 1 - `delta`, for one look."""
    return float(beta.ppf(1 - delta, rank, n - rank + 1)) if rank <= n else 1.0


def exact_interval(x: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a share x/n; (0, 1) where n is 0."""
    if n == 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, x, n - x + 1)) if x else 0.0
    high = float(beta.ppf(1 - tail, x + 1, n - x)) if x < n else 1.0
    return low, high

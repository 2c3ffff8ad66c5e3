"""Thresholds for one metric alone: three with a promise, three without for comparison.

Scores are oriented so that higher is better; "flag" means strictly below the cut. A promise about
one metric says nothing about several together: five metrics that each flag one good answer in ten
flag far more than one in ten between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from guardrail_offline.calibration.joint_rule import Vector
from guardrail_offline.calibration.statistics import average_rank, guaranteed_rank


@dataclass(frozen=True, slots=True)
class Trade:
    """The effect of every possible cut of one metric on the labelled answers.

    Attributes:
        cuts: Every observed value, then infinity (flag everything). Shape (c,).
        false_flags: Good answers below each cut.
        caught: Bad answers below each cut.
    """

    cuts: Vector
    false_flags: Vector
    caught: Vector
    n_good: int
    n_bad: int


def trade(good: Vector, bad: Vector) -> Trade:
    """Return the counts for every cut that makes a difference."""
    cuts = np.append(np.unique(np.concatenate([good, bad])), math.inf)
    return Trade(
        cuts,
        np.searchsorted(np.sort(good), cuts, side="left").astype(np.float64),
        np.searchsorted(np.sort(bad), cuts, side="left").astype(np.float64),
        len(good),
        len(bad),
    )


def false_flag_cut(good: Vector, alpha: float, delta: float) -> float | None:
    """Return the highest cut that flags at most `alpha` of good answers, surely to 1 - `delta`.

    Returns:
        None if there are too few good answers.
    """
    rank = guaranteed_rank(len(good), alpha, delta)
    return float(np.sort(good)[rank - 1]) if rank else None


def average_cut(good: Vector, alpha: float) -> float | None:
    """Return the highest cut that flags at most `alpha` of good answers on average, or None."""
    rank = average_rank(len(good), alpha)
    return float(np.sort(good)[rank - 1]) if rank else None


def recall_cut(bad: Vector, recall: float, delta: float) -> float | None:
    """Return the lowest cut that flags at least `recall` of bad answers, surely to 1 - `delta`.

    The mirror image of `false_flag_cut`: at most 1 - recall of bad answers lie above the cut. The
    cut is the next float above a bad score, so that this score itself is flagged.

    Returns:
        None if there are too few bad answers; minus infinity, which flags no score, if those
        flagged whatever the cut is are enough.
    """
    rank = guaranteed_rank(len(bad), 1 - recall, delta)
    if not rank:
        return None
    last = float(np.sort(bad)[-rank])
    return math.nextafter(last, math.inf) if math.isfinite(last) else last


def cheapest_cut(counts: Trade, false_flag_cost: float, miss_cost: float) -> float:
    """Return the cut with the least cost on the labelled answers; no promise about new ones."""
    missed = counts.n_bad - counts.caught
    return _best(counts, -(false_flag_cost * counts.false_flags + miss_cost * missed))


def f1_cut(counts: Trade) -> float:
    """Return the cut with the best F1 of catching bad answers; no promise."""
    flagged = counts.caught + counts.false_flags
    return _best(counts, 2 * counts.caught / (flagged + counts.n_bad))


def youden_cut(counts: Trade) -> float:
    """Return the cut with the largest recall minus false-flag rate; no promise."""
    recall = counts.caught / counts.n_bad
    return _best(counts, recall - counts.false_flags / counts.n_good)


def percentile_cut(good: Vector, alpha: float) -> float:
    """Return the empirical `alpha` quantile of good scores, as tutorials do; no promise."""
    return float(np.quantile(good, alpha, method="lower"))


def _best(counts: Trade, score: Vector) -> float:
    """Return the cut with the highest score; of equal ones the lowest, which flags least."""
    return float(counts.cuts[int(np.argmax(score))])


NAIVE: dict[str, Callable[[Vector, Vector, float], float]] = {
    "max_f1": lambda good, bad, _alpha: f1_cut(trade(good, bad)),
    "youden": lambda good, bad, _alpha: youden_cut(trade(good, bad)),
    "percentile": lambda good, _bad, alpha: percentile_cut(good, alpha),
}
"""Methods in common use, by name, each per metric: what the studies compare with."""

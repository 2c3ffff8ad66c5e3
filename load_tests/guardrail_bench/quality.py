"""The common part of quality measurements: labelled files, areas, rates and their intervals."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

from guardrail_offline.agreement import auroc as auroc
from guardrail_offline.agreement import both_classes
from guardrail_service.errors import InputError, NotScorable

Array = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Statistic = Callable[[Array, Bools], float]


def auprc(scores: Array, positive: Bools) -> float:
    """Return average precision; equal scores enter together.

    Raises:
        NotScorable: If either class is empty.
    """
    both_classes(positive)
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(positive[order])
    last = np.append(np.diff(scores[order]) != 0, True)
    taken = np.arange(1, len(scores) + 1)[last]
    found = hits[last]
    gained = np.diff(np.concatenate([[0], found]))
    return float((gained * (found / taken)).sum() / positive.sum())


def balanced_accuracy(flagged: Bools, bad: Bools) -> float:
    """Return the mean of the share of bad ones flagged and of good ones passed.

    Raises:
        NotScorable: If either class is empty.
    """
    both_classes(bad)
    return float((flagged[bad].mean() + (~flagged[~bad]).mean()) / 2)


def false_flags_at(recall: float, support: Array, bad: Bools) -> float:
    """Return the share of good ones flagged by the cut that catches `recall` of the bad ones.

    Args:
        recall: Share of the bad ones to catch, in (0, 1].
        support: Higher is better; a text is flagged at or below the cut.
        bad: Which texts should be flagged.

    Raises:
        NotScorable: If either class is empty.
    """
    both_classes(bad)
    worst = np.sort(support[bad])
    cut = worst[max(0, int(np.ceil(recall * len(worst))) - 1)]
    return float((support[~bad] <= cut).mean())


def interval(
    statistic: Statistic,
    scores: Array,
    labels: Bools,
    *,
    groups: npt.NDArray[Any] | None = None,
    draws: int = 500,
    seed: int = 0,
) -> tuple[float, float]:
    """Return a bootstrap 95 % interval; whole groups are drawn together where they are given.

    A draw without both classes is left out.
    """
    rng = np.random.default_rng(seed)
    members = _members(len(scores), groups)
    found = []
    for _ in range(draws):
        rows = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        if 0 < labels[rows].sum() < len(rows):
            found.append(statistic(scores[rows], labels[rows]))
    if not found:
        raise NotScorable("no bootstrap draw had both classes")
    low, high = np.quantile(np.array(found), [0.025, 0.975])
    return float(low), float(high)


def _members(size: int, groups: npt.NDArray[Any] | None) -> list[npt.NDArray[np.intp]]:
    if groups is None:
        return list(np.arange(size).reshape(-1, 1))
    _, inverse = np.unique(groups, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1)


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1.

    A line ends at a line feed only: text may hold other separators.

    Raises:
        InputError: If the file is named .gz and is none, is cut off or damaged.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        found = type(error).__name__
        raise InputError(f"{path.name}: found {found}; expected gzip, or another ending") from error


@dataclass(frozen=True, slots=True)
class ShareInterval:
    """A share with its 95 % interval; NaN where nothing could be counted."""

    value: float
    low: float
    high: float


def wilson(right: int, total: int) -> ShareInterval:
    """Return a share with its 95 % Wilson score interval."""
    if total == 0:
        return ShareInterval(math.nan, math.nan, math.nan)
    found = binomtest(right, total).proportion_ci(0.95, method="wilson")
    return ShareInterval(right / total, float(found.low), float(found.high))


def exact(right: int, total: int) -> ShareInterval:
    """Return a share with its exact 95 % interval (Clopper and Pearson)."""
    if total == 0:
        return ShareInterval(math.nan, math.nan, math.nan)
    found = binomtest(right, total).proportion_ci(0.95, method="exact")
    return ShareInterval(right / total, float(found.low), float(found.high))

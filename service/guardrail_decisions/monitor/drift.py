"""Says whether production scores still look like those that thresholds were fitted on.

A `calibration` block keeps, per metric, between which deciles how many labelled scores lay, and how
many were missing. Every new score is ranked among those and all new ones before it. While nothing
has changed, these ranks are independent and even in (0, 1), for any distribution and any size of
the labelled sample. A gambler bets that they are not; his wealth is a nonnegative martingale that
starts at one, so the chance that it ever reaches 1 / delta is at most delta.

Many gamblers share the money: some bet on low ranks, some on high, wide or narrow ones, and new
ones begin after every window, so that a long quiet time does not make the monitor slow.

Sources:
    Vovk, Nouretdinov and Gammerman, Testing exchangeability on-line, ICML 2003: conformal
    martingales. Vovk, Testing randomness online, Statistical Science 36(4), 2021. Shin, Ramdas and
    Rinaldo, E-detectors, arXiv 2203.03532: gamblers that begin later.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from guardrail_decisions.monitor.promise import Vector

Counts = NDArray[np.int64]
DriftState = Literal["as_before", "drifted", "no_reference"]

DELTA = 0.01
"""Chance, unless told otherwise, that any metric of a policy is ever called drifted for nothing."""
WINDOW = 100
"""Scores after which new gamblers begin."""
_MOST_STARTS = 64
"""Windows whose gamblers stay in the game; the poorest leave, which can only lower the wealth."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The scores that thresholds were fitted on.

    Attributes:
        edges: Deciles between them; a score equal to an edge lies above it.
        counts: Scores between the edges, one more than edges.
        missing: Cases without a score.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    missing: int

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Reference | None:
        """Return the reference of a `baseline` in a calibration block; None of an empty one."""
        edges, counts = tuple(stored["edges"]), tuple(stored["counts"])
        if len(counts) != len(edges) + 1 or sum(counts) + stored["missing"] < 2:
            return None
        return cls(edges, counts, int(stored["missing"]))

    @property
    def cells(self) -> Counts:
        """Return the counts, the missing ones last."""
        return np.array([*self.counts, self.missing], dtype=np.int64)

    def cell(self, values: Vector) -> Counts:
        """Return in which cell each score lies.

        Args:
            values: NaN where there is no score. Shape (n,).
        """
        found = np.searchsorted(np.array(self.edges), values, side="right")
        return np.where(np.isnan(values), len(self.counts), found).astype(np.int64)


class DriftWatch:
    """One metric's scores, watched as they come. Not safe for threads.

    Attributes:
        reference: What they are compared with.
        seen: Scores so far.
        log_wealth: Logarithm of the gamblers' money after the last score; at most delta of all
            undisturbed metrics ever see it above log(1 / delta).
        highest: The most it ever was.

    Args:
        reference: The scores that thresholds were fitted on.
    """

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.seen = 0
        self.log_wealth = 0.0
        self.highest = 0.0
        self._pool = reference.cells
        self._recent = np.zeros_like(self._pool)
        self._last = np.zeros_like(self._pool)
        self._money = np.empty((0, len(_BETS)))  # logarithms: by start, by bet
        self._unspent = 1.0

    def add(self, values: Vector, chances: Vector) -> Vector:
        """Take new scores, in the order in which they came.

        Args:
            values: NaN where there is no score. Shape (n,).
            chances: Independent of the scores and even in [0, 1): where a score ranks among equal
                ones. Shape (n,).

        Returns:
            Logarithm of the wealth after each of them. Shape (n,).
        """
        found = []
        start = 0
        while start < len(values):
            end = min(len(values), start + WINDOW - self.seen % WINDOW)
            found.append(self._within_window(values[start:end], chances[start:end]))
            start = end
        return np.concatenate(found) if found else np.empty(0)

    def _within_window(self, values: Vector, chances: Vector) -> Vector:
        """Take scores of which none but the first begins a window."""
        if self.seen % WINDOW == 0:
            self._begin(self.seen // WINDOW + 1)
        cells = self.reference.cell(values)
        ranks = self._ranks(cells, chances)
        gains = np.cumsum(np.log(_gains(ranks)), axis=0)  # (n, bets)
        wealth = self._money[None] + gains[:, None]
        together = np.logaddexp.reduce(wealth.reshape(len(values), -1), axis=1)
        after: Vector = np.logaddexp(together, _log(self._unspent))
        self._money = self._money + gains[-1]
        self.seen += len(values)
        self.log_wealth = float(after[-1])
        self.highest = max(self.highest, float(after.max()))
        return after

    def _begin(self, number: int) -> None:
        """Let new gamblers begin; the n-th get 1 / (n (n + 1)) of all money, which adds up to 1."""
        part = 1 / (number * (number + 1))
        self._unspent = 1 / (number + 1)
        new = np.full((1, len(_BETS)), math.log(part / len(_BETS)))
        self._money = np.concatenate([self._money, new])
        if len(self._money) > _MOST_STARTS:
            poorest = int(np.argmin(self._money[:-1].max(axis=1)))
            self._money = np.delete(self._money, poorest, axis=0)
        self._last, self._recent = self._recent, np.zeros_like(self._recent)

    def _ranks(self, cells: Counts, chances: Vector) -> Vector:
        """Return how each score ranks among all before it and itself, ties by chance; in (0, 1)."""
        one_hot = np.eye(len(self._pool), dtype=np.int64)[cells]
        pools = self._pool + np.cumsum(one_hot, axis=0)
        self._pool = pools[-1]
        self._recent = self._recent + one_hot.sum(axis=0)
        equal = pools[np.arange(len(cells)), cells]
        below = np.cumsum(pools, axis=1)[np.arange(len(cells)), cells] - equal
        found: Vector = (below + chances * equal) / pools.sum(axis=1)
        return found

    @property
    def recent(self) -> Counts:
        """Return the counts by cell of the last one to two windows, the missing ones last."""
        return self._last + self._recent


@dataclass(frozen=True, slots=True)
class DriftFinding:
    """One metric, then and now.

    Attributes:
        metric: `detector.metric`.
        state: `drifted` stays so until the policy is calibrated anew.
        seen: Scores and missing ones since.
        log_evidence: The most that the gamblers' money ever was, as a logarithm.
        limit: What it has to reach.
        stability: Population stability index of the last one to two hundred decisions; 0.1 is
            commonly called small, 0.25 large. None without a reference or decisions.
        then: Shares by cell of the scores that thresholds were fitted on, the missing ones last.
        now: The same of the last one to two hundred decisions.
        edges: Scores between the cells.
        delta: Chance that any metric of the policy is ever called drifted for nothing.
        drifted_at: When the decision was made that raised the alarm, in seconds; None if none did.
    """

    metric: str
    state: DriftState
    seen: int = 0
    log_evidence: float = 0.0
    limit: float = math.inf
    stability: float | None = None
    then: tuple[float, ...] = ()
    now: tuple[float, ...] = ()
    edges: tuple[float, ...] = ()
    delta: float = DELTA
    drifted_at: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the finding for reports and the studio."""
        return {
            "metric": self.metric,
            "state": self.state,
            "seen": self.seen,
            "log_evidence": self.log_evidence,
            "limit": self.limit if math.isfinite(self.limit) else None,
            "stability_index": self.stability,
            "edges": list(self.edges),
            "then": list(self.then),
            "now": list(self.now),
            "delta": self.delta,
            "drifted_at": self.drifted_at,
        }


def judge_drift(
    metric: str,
    watch: DriftWatch | None,
    metrics: int,
    delta: float = DELTA,
    drifted_at: float | None = None,
) -> DriftFinding:
    """Return whether a metric has drifted.

    Args:
        metric: `detector.metric`.
        watch: Its scores; None: nothing is known of how they were.
        metrics: Watched metrics of the policy; each has its part of delta (Bonferroni).
        delta: Chance that any of them is ever called drifted without reason; inside (0, 1).
        drifted_at: When the wealth first reached its limit, in seconds; None if it never did.
    """
    if watch is None:
        return DriftFinding(metric, "no_reference", delta=delta)
    limit = limit_of(metrics, delta)
    then, now = watch.reference.cells, watch.recent
    return DriftFinding(
        metric=metric,
        state="drifted" if watch.highest >= limit else "as_before",
        seen=watch.seen,
        log_evidence=watch.highest,
        limit=limit,
        stability=stability_index(then, now) if watch.seen else None,
        then=_shares(then),
        now=_shares(now),
        edges=watch.reference.edges,
        delta=delta,
        drifted_at=drifted_at,
    )


def limit_of(metrics: int, delta: float) -> float:
    """Return the logarithm of the wealth that raises the alarm of one of so many metrics."""
    return math.log(metrics / delta)


def stability_index(then: Counts, now: Counts) -> float:
    """Return the population stability index of two sets of counts; half a case in empty cells."""
    one, other = then + 0.5, now + 0.5
    one, other = one / one.sum(), other / other.sum()
    return float(np.sum((other - one) * np.log(other / one)))


def _shares(counts: Counts) -> tuple[float, ...]:
    total = max(1, int(counts.sum()))
    return tuple(float(count) / total for count in counts)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


_SLOPES = (-0.95, -0.5, -0.25, 0.25, 0.5, 0.95)
_BENDS = (-0.95, -0.5, 0.5, 0.95)
_ENDS = (0.05, 0.2)
_BETS: Sequence[str] = (
    *(f"slope {slope}" for slope in _SLOPES),
    *(f"bend {bend}" for bend in _BENDS),
    *(f"{end} on the {side} tenth" for side in ("lowest", "highest") for end in _ENDS),
)


def _gains(ranks: Vector) -> Vector:
    """Return the factor of every bet for every rank: at least 0.01, of mean one for even ranks.

    Returns:
        Shape (n, bets): straight lines, parabolas, and extra money on the outermost tenths.
    """
    line = 2 * ranks - 1
    bend = 6 * ranks**2 - 6 * ranks + 1  # mean 0, from -0.5 to 1
    columns: list[Vector] = [1 + slope * line for slope in _SLOPES]
    columns += [1 + part * bend for part in _BENDS]
    for tenth in (ranks < 0.1, ranks >= 0.9):
        columns += [np.where(tenth, 1 + 9 * part, 1 - part) for part in _ENDS]
    return np.stack(columns, axis=1)

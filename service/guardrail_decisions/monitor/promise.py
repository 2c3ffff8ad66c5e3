"""Says, label by label, whether a policy keeps its promise. Valid however often one looks.

A calibrated policy promises that at most a share `bound` of good answers is flagged, or of bad ones
missed. Every labelled decision is a bet of a gambler who holds the promise to be false. While it is
kept his wealth is a nonnegative supermartingale that starts at one, so it ever reaches 1 / delta
with probability at most delta (Ville's inequality): looking after every label costs nothing.

Labels must come from draws whose chances are known. Where flagged answers were drawn more often
than the others, a step weighs both by what they stand for.

Sources:
    Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, Journal of
    the Royal Statistical Society B 86(1), 2024: the grid-Kelly bets, and intervals by inversion.
    Waudby-Smith, Stark and Ramdas, RiLACS: Risk limiting audits via confidence sequences, E-Vote-ID
    2021: weighing draws of unequal chances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Kind = Literal["false_flag", "miss"]
PromiseState = Literal["kept_so_far", "broken", "not_enough_labels"]

DELTA = 0.05
"""Chance, over all looks together, that a kept promise is called broken, unless told otherwise."""
STAKES: Vector = np.geomspace(0.01, 0.95, 12)
"""Shares of what may be lost that the gambler stakes; he divides his money evenly over them. The
smallest is best where a rate is 1.09 times a bound of 10 %, the largest where it is beyond 0.9."""
_HALVINGS = 40


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise of a policy: at most `bound` of the good answers are flagged, or bad missed.

    Attributes:
        metric: `detector.metric` that alone is bounded; None: all checks together.
    """

    kind: Kind
    bound: float
    metric: str | None = None

    def __post_init__(self) -> None:
        """Refuse a bound that nothing can break or keep.

        Raises:
            ValueError: If the bound is not inside (0, 1).
        """
        if not 0 < self.bound < 1:
            raise ValueError(f"bound: found {self.bound!r}; expected a number inside (0, 1)")


@dataclass(frozen=True, slots=True)
class Step:
    """One bet: an unbiased look at two shares of all decisions, 0 <= hits <= base <= 1.

    Attributes:
        hits: Share that counts against the promise: good and flagged, or bad and passed.
        base: Share that the promise is about: good, or bad.
        at: When its last label was given; orders the steps.
        labels: Labels in it that the promise is about.
        against: Of these, the ones that count against the promise.
        most: The largest that the hits could have been, known from the design; in (0, 1].
    """

    hits: float
    base: float
    at: float = 0.0
    labels: int = 0
    against: int = 0
    most: float = 1.0


@dataclass(frozen=True, slots=True)
class LabelledDecision:
    """A drawn decision with a person's word on it.

    Attributes:
        flagged: Whether the policy flagged.
        good: Whether the person would show the answer.
        at: When the label was given, in seconds.
        by_metric: Whether the one metric that the promise is about flagged; None: it is about all.
    """

    flagged: bool
    good: bool
    at: float = 0.0
    by_metric: bool | None = None


@dataclass(frozen=True, slots=True)
class Stratum:
    """The decisions of one draw that were all flagged, or all passed.

    Attributes:
        population: Decisions that could have been drawn, one a question, or an estimate.
        drawn: Decisions that were.
    """

    population: float
    drawn: int


def promises(block: Mapping[str, Any]) -> tuple[Promise, ...]:
    """Return what a `calibration` block promises; nothing for a policy that promises nothing.

    A recall that was fitted metric by metric bounds the misses of all checks together: what one
    metric catches, the policy flags.
    """
    target = block.get("target", {})
    alpha = target.get("alpha")
    if alpha is None or not 0 < alpha < 1:
        return ()
    if target.get("kind") == "recall":
        return (Promise("miss", 1 - alpha),)
    if target.get("kind") != "false_flag_rate":
        return ()
    if target.get("scope") == "joint":
        return (Promise("false_flag", alpha),)
    names = [
        f"{detector}.{key}"
        for detector, metrics in sorted(block.get("per_metric", {}).items())
        for key, entry in sorted(metrics.items())
        if entry.get("status") == "calibrated"
    ]
    return tuple(Promise("false_flag", alpha, name) for name in names)


def even_steps(kind: Kind, labelled: Sequence[LabelledDecision]) -> list[Step]:
    """Return a step for each decision of a draw in which all had the same chance."""
    found = []
    for one in labelled:
        base = one.good if kind == "false_flag" else not one.good
        flagged = one.flagged if one.by_metric is None else one.by_metric
        hit = base and flagged == (kind == "false_flag")
        found.append(Step(float(hit), float(base), one.at, int(base), int(hit)))
    return found


def weighted_steps(
    kind: Kind, labelled: Sequence[LabelledDecision], chances: Sequence[float], least: float
) -> list[Step]:
    """Return a step for each decision of a draw in which each had a chance of its own.

    Args:
        kind: Of the promise.
        labelled: Decisions that were drawn independently of each other.
        chances: Of each decision to be drawn, in (0, 1].
        least: The smallest chance that any decision had.
    """
    steps = even_steps(kind, labelled)
    weights = [least / chance for chance in chances]
    if not all(0 < weight <= 1 for weight in weights):
        raise ValueError("chances: found one outside [least, 1]; expected all inside")
    return [
        replace(step, hits=step.hits * weight, base=step.base * weight)
        for step, weight in zip(steps, weights, strict=True)
    ]


def stratified_steps(
    kind: Kind, labelled: Sequence[LabelledDecision], flagged: Stratum, passed: Stratum
) -> list[Step]:
    """Return the steps of a draw that took flagged decisions more often than passed ones.

    A step is a small stratified sample of its own: flagged and passed decisions side by side, each
    part weighted by the decisions it stands for. The design says which decisions share a step, so
    a draw of which only the flagged ones are labelled yet says nothing. Steps that are not
    complete wait.

    Args:
        kind: Of the promise.
        labelled: Decisions with labels, in the order in which they were given.
        flagged: Of the draw.
        passed: Of the draw.
    """
    total = flagged.population + passed.population
    both = [stratum for stratum in (flagged, passed) if stratum.population]
    blocks = min((stratum.drawn for stratum in both), default=0)
    parts = []
    for stratum in both:
        own = [one for one in labelled if one.flagged == (stratum is flagged)]
        share = stratum.population / total
        parts.append(_parts(even_steps(kind, own), stratum.drawn, blocks, share))
    counted = flagged if kind == "false_flag" else passed
    by_metric = any(one.by_metric is not None for one in labelled)
    most = 1.0 if by_metric or not counted.population else counted.population / total
    return [replace(_together(beside), most=most) for beside in zip(*parts, strict=False)]


def _parts(steps: Sequence[Step], drawn: int, blocks: int, share: float) -> list[Step]:
    """Return one stratum's part of every step whose decisions are labelled, in order."""
    ends = [math.ceil(block * drawn / blocks) for block in range(blocks + 1)]
    found = []
    for start, end in pairwise(ends):
        if end > len(steps):
            break
        part = _together(steps[start:end])
        weight = share / (end - start)
        found.append(replace(part, hits=part.hits * weight, base=part.base * weight))
    return found


def _together(steps: Sequence[Step]) -> Step:
    """Return the sum of steps, at the time of the last."""
    return Step(
        hits=sum(step.hits for step in steps),
        base=sum(step.base for step in steps),
        at=max(step.at for step in steps),
        labels=sum(step.labels for step in steps),
        against=sum(step.against for step in steps),
    )


def log_wealth(
    hits: Vector, base: Vector, bound: float, *, above: bool = True, most: Vector | float = 1.0
) -> Vector:
    """Return the logarithm of the gambler's wealth after every step.

    Args:
        hits: Of each step. Shape (..., n).
        base: Of each step, at least `hits`. Shape (..., n).
        bound: The share he bets against, inside (0, 1).
        above: Whether he bets that the share is above the bound; else, that it is below.
        most: Of each step, at least `hits`: who bets below cannot lose more. Shape (..., n).

    Returns:
        Shape (..., n). Where the share is not what he bets on, its exponential is a nonnegative
        supermartingale of mean at most one.
    """
    gain = hits / bound - base if above else (bound * base - hits) / ((1 - bound) * most)
    total = np.full(gain.shape, -np.inf)
    for stake in STAKES:  # one at a time: a simulation has no room for all at once
        np.logaddexp(total, np.cumsum(np.log1p(stake * gain), axis=-1), out=total)
    found: Vector = total - math.log(len(STAKES))
    return found


def bounds(
    hits: Vector, base: Vector, delta: float = DELTA, most: Vector | float = 1.0
) -> tuple[float, float]:
    """Return between which ends the share hits / base lies, after all steps so far.

    Each end holds with confidence 1 - delta at every number of steps at the same time; an end that
    was once reached is not given up again.

    Args:
        hits: Of each step. Shape (n,).
        base: Of each step. Shape (n,).
        delta: Chance that an end is ever wrong.
        most: Of each step. Shape (n,).
    """
    if not len(hits):
        return 0.0, 1.0
    limit = -math.log(delta)

    def refuted(share: float, *, above: bool) -> bool:
        return bool(log_wealth(hits, base, share, above=above, most=most).max() >= limit)

    low, high = 0.0, 1.0
    if refuted(_TINY, above=True):
        low = _edge(lambda share: refuted(share, above=True))
    if refuted(1 - _TINY, above=False):
        high = 1 - _edge(lambda share: refuted(1 - share, above=False))
    return low, high


_TINY = 1e-6


def _edge(refuted: Callable[[float], bool]) -> float:
    """Return the largest share that is refuted, where every smaller one is."""
    low, high = _TINY, 1 - _TINY
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


@cache
def least_labels(bound: float, delta: float = DELTA) -> int:
    """Return how many good answers of an even draw, none of them flagged, show a promise kept.

    With fewer, nothing that people can say shows anything, and the state is not enough labels.
    """
    size = 64
    while True:
        clean = log_wealth(np.zeros(size), np.ones(size), bound, above=False)
        if (enough := np.flatnonzero(clean >= -math.log(delta))).size:
            return int(enough[0]) + 1
        size *= 4


@dataclass(frozen=True, slots=True)
class PathPoint:
    """The estimate and its interval after so many labels."""

    labels: int
    share: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class PromiseFinding:
    """A promise and what the labels so far say about it.

    Attributes:
        state: `broken` if some look so far refuted it; `kept_so_far` if none did and there are
            labels that all of them speaking for it would have shown that it is kept; else
            `not_enough_labels`.
        labels: Labels of good answers, or of bad ones for misses, that could be used.
        against: Of these, the ones that count against the promise.
        share: What they estimate, weighted; None without labels.
        interval: Ends that hold, each with confidence 1 - delta, at all looks together.
        needed: Labels of an even draw below which nothing is said.
        broken_at: When the label was given that broke it, in seconds; None if none did.
        steps: All looks in their order, for `path`.
    """

    promise: Promise
    delta: float
    state: PromiseState
    labels: int
    against: int
    share: float | None
    interval: tuple[float, float]
    needed: int
    broken_at: float | None = None
    steps: tuple[Step, ...] = field(default=(), repr=False, compare=False)

    def path(self, points: int = 12) -> list[PathPoint]:
        """Return the estimate and its interval after the first labels, after more, and so on.

        Args:
            points: At most so many; the last has all labels.
        """
        hits, base, most = _columns(self.steps)
        labels = np.cumsum([step.labels for step in self.steps])
        ends = np.unique(np.linspace(1, len(hits), points).astype(int)) if len(hits) else ()
        return [
            PathPoint(
                int(labels[end - 1]),
                float(hits[:end].sum() / base[:end].sum()),
                bounds(hits[:end], base[:end], self.delta, most[:end]),
            )
            for end in ends
        ]

    @property
    def shown(self) -> bool:
        """Return whether the labels show that the promise is kept; to fail to break it is less."""
        return self.state != "broken" and self.interval[1] <= self.promise.bound

    def as_json(self) -> dict[str, Any]:
        """Return the finding for reports and the studio."""
        return {
            "kind": self.promise.kind,
            "metric": self.promise.metric,
            "bound": self.promise.bound,
            "delta": self.delta,
            "state": self.state,
            "shown": self.shown,
            "labels": self.labels,
            "against": self.against,
            "share": self.share,
            "interval": list(self.interval),
            "labels_needed": self.needed,
            "broken_at": self.broken_at,
        }


def judge_promise(promise: Promise, steps: Sequence[Step], delta: float = DELTA) -> PromiseFinding:
    """Return what labelled decisions say about a promise.

    Args:
        promise: The promise.
        steps: In any order; they are taken in that of their times.
        delta: Chance, over all looks, that a kept promise is called broken; inside (0, 1).
    """
    ordered = [step for step in sorted(steps, key=lambda step: step.at) if step.base]
    hits, base, most = _columns(ordered)
    limit = -math.log(delta)
    broken = np.flatnonzero(log_wealth(hits, base, promise.bound) >= limit)
    clean = log_wealth(np.zeros_like(base), base, promise.bound, above=False, most=most)
    state: PromiseState = "kept_so_far" if (clean >= limit).any() else "not_enough_labels"
    return PromiseFinding(
        promise=promise,
        delta=delta,
        state="broken" if broken.size else state,
        labels=sum(step.labels for step in ordered),
        against=sum(step.against for step in ordered),
        share=float(hits.sum() / base.sum()) if len(ordered) else None,
        interval=bounds(hits, base, delta, most),
        needed=least_labels(promise.bound, delta),
        broken_at=ordered[int(broken[0])].at if broken.size else None,
        steps=tuple(ordered),
    )


def _columns(steps: Sequence[Step]) -> tuple[Vector, Vector, Vector]:
    """Return hits, base and most of steps; each of shape (n,)."""
    found = np.array([(step.hits, step.base, step.most) for step in steps], dtype=np.float64)
    hits, base, most = found.reshape(-1, 3).T
    return hits, base, most

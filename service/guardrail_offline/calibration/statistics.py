"""The statistics of a calibration: ranks that keep a bound, exact rates, agreement, drift.

A rank says how many of the sorted scores a cut may leave behind. Ranks count units: answers that
are independent of each other. They start at one. With the k-th smallest of n independent scores as
a strict cut ("flag if below"), the chance that a new score is flagged is at most a
Beta(k, n - k + 1) variable, whatever the scores' distribution; ties only make it smaller.

Source:
    Tong, Feng and Li, Neyman-Pearson classification algorithms and NP receiver operating
    characteristics, Science Advances 4(2), 2018, eaao1659. The same rule is Wilks' tolerance limit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import betainc, betaln
from scipy.stats import beta, binom, chi2_contingency

from guardrail_offline.calibration.deciding_metrics import DecidingMetric
from guardrail_offline.calibration.joint_rule import Vector
from guardrail_offline.calibration.scored_lab import LabCase
from guardrail_offline.calibration.split import Mask, one_per_group
from guardrail_offline.intervals import exact_interval

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


@dataclass(frozen=True, slots=True)
class Agreement:
    """Cohen's kappa over the cases two people labelled.

    Attributes:
        kappa: 1 for perfect agreement, 0 for what chance gives. None where both people always
            said the same one word, so that chance alone explains everything.
        interval: 95 % interval of kappa, from its large-sample error; None beside None.
        share: Cases on which they agree.
        cases: Cases labelled by both, abstentions left out.
        pairs: Pairs of annotators that were averaged, weighted by their cases.
    """

    kappa: float | None
    interval: tuple[float, float] | None
    share: float
    cases: int
    pairs: int = 1

    def as_json(self) -> dict[str, Any]:
        """Return the agreement for the provenance block."""
        return {
            "cohen_kappa": self.kappa,
            "ci95": None if self.interval is None else list(self.interval),
            "agree": self.share,
            "cases_by_two": self.cases,
            "pairs": self.pairs,
        }


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> Agreement:
    """Return the agreement of two annotators.

    Source:
        Cohen 1960; standard error sqrt(p (1 - p) / (n (1 - e)^2)) with observed agreement p and
        chance agreement e.
    """
    n = len(pairs)
    share = sum(one == other for one, other in pairs) / n
    first, second = (Counter(pair[i] for pair in pairs) for i in (0, 1))
    chance = sum(first[word] * second[word] for word in first) / n**2
    if chance == 1:
        return Agreement(None, None, share, n)
    kappa = (share - chance) / (1 - chance)
    error = 1.96 * math.sqrt(share * (1 - share) / n) / (1 - chance)
    return Agreement(kappa, (max(-1.0, kappa - error), min(1.0, kappa + error)), share, n)


def agreement_of(votes: Sequence[Mapping[str, str]]) -> Agreement | None:
    """Return the agreement over everybody's words, or None if no case has two.

    Args:
        votes: Per case, each annotator's word. With more than two annotators the pairs' kappas
            are averaged, weighted by their cases (Light's kappa); the interval is then the
            weighted average of theirs.
    """
    people = sorted({name for words in votes for name in words})
    found = [a for one, other in combinations(people, 2) if (a := _pair(votes, one, other))]
    if not found:
        return None
    if len(found) == 1:
        return found[0]
    total = sum(a.cases for a in found)
    share = sum(a.share * a.cases for a in found) / total
    known = [(a.cases, a.kappa, a.interval) for a in found if a.kappa is not None and a.interval]
    if not known:
        return Agreement(None, None, share, total, len(found))
    weight = sum(cases for cases, _, _ in known)
    kappa = sum(cases * value for cases, value, _ in known) / weight
    low, high = (sum(cases * ci[i] for cases, _, ci in known) / weight for i in (0, 1))
    return Agreement(kappa, (low, high), share, total, len(found))


def _pair(votes: Sequence[Mapping[str, str]], one: str, other: str) -> Agreement | None:
    both = [(words[one], words[other]) for words in votes if one in words and other in words]
    told = [pair for pair in both if "abstain" not in pair]
    return cohen_kappa(told) if told else None


_MOST_VALUES = 12
"""A fact with more values than this is a name, not a slice."""


@dataclass(frozen=True, slots=True)
class FlagRate:
    """A count: x of n answers were flagged."""

    x: int
    n: int

    @property
    def share(self) -> float | None:
        """Return x / n, or None of nothing."""
        return self.x / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float]:
        """Return the exact 95 % interval; it takes the answers as independent."""
        return exact_interval(self.x, self.n)

    def as_json(self) -> dict[str, Any]:
        """Return the rate for the provenance block."""
        return {"x": self.x, "n": self.n, "ci95": [round(end, 6) for end in self.interval]}

    def __str__(self) -> str:
        if not self.n:
            return "0 of 0"
        low, high = self.interval
        return f"{self.x} of {self.n} ({self.x / self.n:.1%}, 95 % interval {low:.1%}-{high:.1%})"


def rate(flags: Mask) -> FlagRate:
    """Return how many of some answers are flagged."""
    return FlagRate(int(flags.sum()), len(flags))


@dataclass(frozen=True, slots=True)
class Slice:
    """The answers that share one value of a fact."""

    fact: str
    value: str
    false_flags: FlagRate
    recall: FlagRate

    def as_json(self) -> dict[str, Any]:
        """Return the slice for the provenance block."""
        return {
            "fact": self.fact,
            "value": self.value,
            "false_flag": self.false_flags.as_json(),
            "recall": self.recall.as_json(),
        }


def slices(cases: Sequence[LabCase], good: Mask, flags: Mask) -> list[Slice]:
    """Return both rates for every value of every fact that divides the answers."""
    found = []
    for fact in sorted({name for case in cases for name in case.facts}):
        values = np.array([case.facts.get(fact, "(none)") for case in cases])
        names = sorted(set(values.tolist()))
        if 1 < len(names) <= _MOST_VALUES:
            for name in names:
                here = values == name
                found.append(Slice(fact, name, rate(flags[here & good]), rate(flags[here & ~good])))
    return found


BINS = 10
SURE = 0.01
"""Chance of a false alarm per metric."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One metric, then and now.

    Attributes:
        psi: Population stability index; 0.1 is commonly called small and 0.25 large.
        p: Chance of a difference as large between two samples of the same answers.
        then: Share of cases without a score in the calibration sample.
        now: The same in the new one.
    """

    metric: str
    psi: float
    p: float
    then: float
    now: float

    @property
    def found(self) -> bool:
        """Return whether the scores have moved, beyond what chance explains."""
        return self.p < SURE

    def as_json(self) -> dict[str, Any]:
        """Return the comparison for a report."""
        return {
            "metric": self.metric,
            "psi": round(self.psi, 6),
            "p": round(self.p, 6),
            "missing_then": self.then,
            "missing_now": self.now,
            "drift": self.found,
        }


def own_scores(gate: DecidingMetric, cases: Sequence[LabCase], seed: int) -> Vector:
    """Return a metric's scores of one case a question; infinite where there is none.

    A second answer to a question looks much like the first and would pass for a trend.
    """
    drawn = one_per_group([case.key for case in cases], [case.group for case in cases], seed)
    scores = gate.scores([cases[i] for i in drawn])
    return np.array([math.inf if s.value is None else s.value for s in scores], dtype=np.float64)


def baseline(values: Vector) -> dict[str, Any]:
    """Return what to keep of a metric's scores: decile edges, counts between them, missing.

    Args:
        values: Scores on the metric's own scale; infinite where there is none.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return {"edges": [], "counts": [0], "missing": len(values)}
    edges = np.unique(np.quantile(finite, np.linspace(0, 1, BINS + 1)[1:-1]))
    return {
        "edges": edges.tolist(),
        "counts": _counts(finite, edges),
        "missing": len(values) - len(finite),
    }


def compare(metric: str, stored: Mapping[str, Any], values: Vector) -> Drift:
    """Return how far new scores are from a stored baseline."""
    finite = values[np.isfinite(values)]
    edges = np.array(stored["edges"], dtype=np.float64)
    then = [*stored["counts"], stored["missing"]]
    now = [*_counts(finite, edges), len(values) - len(finite)]
    return Drift(
        metric=metric,
        psi=stability_index(then, now),
        p=_chance(then, now),
        then=stored["missing"] / max(1, sum(then)),
        now=now[-1] / max(1, sum(now)),
    )


def stability_index(then: Sequence[int], now: Sequence[int]) -> float:
    """Return the population stability index of two sets of counts; half a case in empty bins."""
    one, other = (np.array(c, dtype=np.float64) + 0.5 for c in (then, now))
    one, other = one / one.sum(), other / other.sum()
    return float(np.sum((other - one) * np.log(other / one)))


def _chance(then: Sequence[int], now: Sequence[int]) -> float:
    table = np.array([then, now])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or not table.sum(axis=1).all():
        return 1.0
    return float(chi2_contingency(table, correction=False).pvalue)


def _counts(values: Vector, edges: Vector) -> list[int]:
    """Return counts between edges; a value equal to an edge lies above it."""
    cells = np.searchsorted(edges, values, side="right")
    found: list[int] = np.bincount(cells, minlength=len(edges) + 1).tolist()
    return found

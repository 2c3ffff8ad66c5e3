"""How far annotators agree beyond chance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any


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

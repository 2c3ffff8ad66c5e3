"""GRAMMAR's scores over groups of questions that mean the same, and which part is to blame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from guardrail_service.errors import NotScorable

Blame = Literal["language_model", "retrieval", "knowledge", "undecidable"]
BLAMES: tuple[Blame, ...] = ("language_model", "retrieval", "knowledge", "undecidable")
DRAWS, SEED = 1000, 0
_BLOCK = 100


class GroupScores(NamedTuple):
    """A system's scores over groups of equivalent questions.

    `gap` groups are all wrong, `robust` ones all right, the others depend on the wording.
    `robustness` is the share of right answers outside gaps, None where there is nothing outside.
    """

    accuracy: float
    robustness: float | None
    gap: int
    robust: int
    non_robust: int
    gap_share: float

    @property
    def knowledge_accuracy(self) -> float:
        """Return the share of groups with a right answer: what the system knows at all."""
        return (self.robust + self.non_robust) / (self.gap + self.robust + self.non_robust)


def group_scores(groups: Sequence[tuple[int, int]]) -> GroupScores:
    """Return the scores of groups, each (right answers, answers).

    Raises:
        NotScorable: If there is no answer.
        ValueError: If a group has more right answers than answers.

    Source:
        GRAMMAR, 2024: Acc = R (1 - gap share), which is checked here on every call.
    """
    if any(not 0 <= right <= count or not count for right, count in groups):
        raise ValueError("a group: expected 0 <= right answers <= answers, and an answer")
    total = sum(count for _, count in groups)
    if not total:
        raise NotScorable("no answer")
    right = sum(right for right, _ in groups)
    outside = sum(count for correct, count in groups if correct)
    gap = sum(not correct for correct, _ in groups)
    robust = sum(correct == count for correct, count in groups)
    robustness = right / outside if outside else None
    scores = GroupScores(
        right / total, robustness, gap, robust, len(groups) - gap - robust, 1 - outside / total
    )
    if robustness is not None and abs(scores.accuracy - robustness * (1 - scores.gap_share)) > 1e-9:
        raise AssertionError("accuracy is not robustness times the share outside gaps")
    return scores


Interval = tuple[float, float] | None
"""The ends of a 95 % interval; None where it cannot be drawn."""


def cluster_intervals(
    groups: Sequence[tuple[int, int, bool]], draws: int = DRAWS, seed: int = SEED
) -> Mapping[str, Interval]:
    """Return 95 % intervals of accuracy, robustness, gap share and knowledge accuracy.

    Whole groups are drawn anew: answers to one question in other words are no independent cases.

    Args:
        groups: Each (right answers, answers, whether some answer of the group is right). The last
            says what is a gap where the answers are those of one style only.
        draws: Bootstrap samples.
        seed: The same one gives the same intervals.
    """
    names = ("accuracy", "robustness", "gap_share", "knowledge_accuracy")
    if len(groups) < 2:
        return dict.fromkeys(names)
    table = np.array([(r, n, n * known, known) for r, n, known in groups], dtype=np.float64)
    rng = np.random.default_rng(seed)
    even = np.full(len(groups), 1 / len(groups))
    sums = np.concatenate(
        [
            rng.multinomial(len(groups), even, size=min(_BLOCK, draws - at)) @ table
            for at in range(0, draws, _BLOCK)
        ]
    )
    right, count, outside, known = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (right / count, right / outside, 1 - outside / count, known / len(groups))
    return {name: _ends(values) for name, values in zip(names, found, strict=True)}


def _ends(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Interval:
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)


def compare_contexts(wrong: frozenset[str], right: Sequence[frozenset[str]]) -> Blame:
    """Return which part is to blame for a wrong answer, by the passages of right ones.

    Source:
        GRAMMAR, 2024, "context comparison": with one sufficient document, a wrong answer whose
        passages have the index of a right one's had what it needed. Retrievers give several
        passages, most of which nobody needed: here it counts what all right answers share. Where
        they share nothing, several documents are sufficient, and nothing can be said, unless the
        wrong answer has all that a right one had.

    Args:
        wrong: Ids of the wrong answer's passages.
        right: Ids of the passages of each right answer to the same question.
    """
    if any(one <= wrong for one in right if one):
        return "language_model"
    shared = frozenset.intersection(*right) if right else frozenset()
    if not shared:
        return "undecidable"
    if shared <= wrong:
        return "language_model"
    return "undecidable" if shared & wrong else "retrieval"


def select_variants(columns: int) -> int:
    """Return how many different SELECT lists a table of so many columns allows."""
    return (1 << columns) - 1


def text_queries(sql_queries: int, templates: int) -> int:
    """Return how many questions so many SQL queries give, each in every text template."""
    return sql_queries * templates

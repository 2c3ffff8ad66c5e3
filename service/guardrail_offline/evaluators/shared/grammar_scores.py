"""GRAMMAR's scores over groups of questions that mean the same; generation comes later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from guardrail_service.errors import NotScorable


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


def select_variants(columns: int) -> int:
    """Return how many different SELECT lists a table of so many columns allows."""
    return (1 << columns) - 1


def text_queries(sql_queries: int, templates: int) -> int:
    """Return how many questions so many SQL queries give, each in every text template."""
    return sql_queries * templates

"""GRAMMAR's scores and counts: known answers of its own tests and tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.evaluators.shared.grammar_scores import (
    cluster_intervals,
    compare_contexts,
    group_scores,
    select_variants,
    text_queries,
)
from guardrail_service.errors import NotScorable

MIXED = [(1, 3), (2, 3), (3, 3), (2, 3)]
BETTER = [(3, 3), (2, 3), (3, 3), (3, 3)]
GAP = [(0, 3)]
GROUPS = st.lists(
    st.integers(1, 5).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1
)


@pytest.mark.parametrize(
    ("groups", "accuracy", "robustness", "gap"),
    [
        (MIXED + 4 * GAP, 8 / 24, 8 / 12, 4),
        (MIXED + 2 * GAP, 8 / 18, 8 / 12, 2),
        (BETTER + 4 * GAP, 11 / 24, 11 / 12, 4),
    ],
)
def test_robustness_does_not_move_with_gaps(
    groups: list[tuple[int, int]], accuracy: float, robustness: float, gap: int
) -> None:
    """The point of the metric: fewer gaps change accuracy only. Known answers 20, 21, 22."""
    found = group_scores(groups)
    assert found.accuracy == pytest.approx(accuracy, rel=1e-9)
    assert found.robustness == pytest.approx(robustness, rel=1e-9)
    assert found.gap == gap


def test_groups_are_gaps_robust_or_neither() -> None:
    """One robust and three non-robust beside four gaps. Known answer 20."""
    found = group_scores(MIXED + 4 * GAP)
    assert (found.gap, found.robust, found.non_robust) == (4, 1, 3)


@given(GROUPS)
def test_accuracy_is_robustness_times_the_share_outside_gaps(groups: list[tuple[int, int]]) -> None:
    """The identity, on any groups."""
    found = group_scores(groups)
    if found.robustness is None:
        assert found.accuracy == 0.0
    else:
        assert found.accuracy == pytest.approx(found.robustness * (1 - found.gap_share))


@pytest.mark.parametrize(
    ("queries", "texts"), [(20, 120), (87, 522), (50, 300), (157, 942), (33, 198)]
)
def test_six_text_templates_a_query(queries: int, texts: int) -> None:
    """GRAMMAR's table 5. Known answer 23."""
    assert text_queries(queries, 6) == texts


def test_select_lists_are_the_non_empty_subsets_of_columns() -> None:
    """Five columns allow 31. Known answer 24."""
    assert select_variants(5) == 31
    assert select_variants(1) == 1


def test_no_answer_has_no_scores_and_bad_groups_are_refused() -> None:
    """Neither 0 nor 1."""
    with pytest.raises(NotScorable):
        group_scores([])
    with pytest.raises(ValueError, match="right answers"):
        group_scores([(4, 3)])


def test_intervals_draw_groups_and_not_answers() -> None:
    """Answers to one question are one draw: ten times the wordings make no interval narrower."""
    few = [(1, 1, True), (0, 1, False)] * 20
    many = [(10, 10, True), (0, 10, False)] * 20
    one, other = cluster_intervals(few), cluster_intervals(many)
    assert one == other == cluster_intervals(few)
    assert one["accuracy"] is not None
    assert one["accuracy"][0] == pytest.approx(0.35, abs=0.05)
    assert one["accuracy"][1] == pytest.approx(0.65, abs=0.05)
    assert one["robustness"] == (1.0, 1.0)
    assert set(cluster_intervals(few[:1]).values()) == {None}
    assert cluster_intervals([(0, 1, False)] * 3)["robustness"] is None


@pytest.mark.parametrize(
    ("wrong", "right", "blame"),
    [
        ("a", ["a", "a"], "language_model"),
        ("b", ["a", "a"], "retrieval"),
        ("abc", ["ab", "ac"], "language_model"),
        ("bc", ["ab", "ac"], "retrieval"),
        ("ad", ["ab", "ac"], "language_model"),
        ("b", ["a", "c"], "undecidable"),
        ("ax", ["ab", "ab"], "undecidable"),
        ("a", [], "undecidable"),
        ("a", [""], "undecidable"),
    ],
)
def test_contexts_are_compared_by_what_right_answers_share(
    wrong: str, right: list[str], blame: str
) -> None:
    """With one document each it is the paper's rule; several sufficient ones decide nothing."""
    assert compare_contexts(frozenset(wrong), [frozenset(one) for one in right]) == blame

"""Order statistics against a published table and exact laws; agreement of annotators."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binomtest
from sklearn.metrics import cohen_kappa_score

from guardrail_offline.calibration.statistics import (
    agreement_of,
    anytime_rank,
    average_rank,
    cohen_kappa,
    guaranteed_rank,
    labels_needed,
    labels_needed_anytime,
    labels_needed_on_average,
    share_bound,
)
from guardrail_offline.intervals import exact_interval

LABELS = {
    0.20: (11, 14, 4),
    0.10: (22, 29, 9),
    0.05: (45, 59, 19),
    0.02: (114, 149, 49),
    0.01: (230, 299, 99),
}

"""Good answers for alpha: with delta 0.10, with delta 0.05, on average."""

shares = st.floats(0.01, 0.5)


@pytest.mark.parametrize(("alpha", "expected"), LABELS.items())
def test_the_table_of_smallest_samples(alpha: float, expected: tuple[int, int, int]) -> None:
    """n >= ln delta / ln(1 - alpha), and floor(alpha (n + 1)) >= 1 on average. Known answer 53."""
    found = (
        labels_needed(alpha, 0.10),
        labels_needed(alpha, 0.05),
        labels_needed_on_average(alpha),
    )
    assert found == expected
    assert found[0] == math.ceil(math.log(0.10) / math.log1p(-alpha))


@given(st.integers(1, 400), shares, shares)
def test_the_rank_is_the_largest_that_keeps_the_promise(n: int, alpha: float, delta: float) -> None:
    """Checked against the beta distribution, in which the rule is stated."""
    rank = guaranteed_rank(n, alpha, delta)
    assert 0 <= rank <= n
    if rank:
        assert beta.cdf(alpha, rank, n - rank + 1) >= 1 - delta - 1e-9
    if rank < n:
        assert beta.cdf(alpha, rank + 1, n - rank) < 1 - delta + 1e-9


@given(st.integers(0, 300), shares, shares)
def test_a_weaker_promise_never_lowers_the_rank(n: int, alpha: float, delta: float) -> None:
    """In alpha, in delta and in the number of labels."""
    rank = guaranteed_rank(n, alpha, delta)
    assert guaranteed_rank(n, alpha * 1.5, delta) >= rank
    assert guaranteed_rank(n, alpha, delta * 1.5) >= rank
    assert guaranteed_rank(n + 1, alpha, delta) >= rank


@given(st.integers(1, 10), shares, shares)
def test_labels_needed_is_the_smallest_count_with_the_rank(
    rank: int, alpha: float, delta: float
) -> None:
    """One label less is too few."""
    n = labels_needed(alpha, delta, rank)
    assert guaranteed_rank(n, alpha, delta) >= rank
    assert n == rank or guaranteed_rank(n - 1, alpha, delta) < rank


def test_twenty_labels_promise_one_in_ten_at_eighty_eight_percent() -> None:
    """What a sample of twenty can say at best."""
    assert guaranteed_rank(20, 0.10, 0.12) == 0
    assert guaranteed_rank(20, 0.10, 0.125) == 1
    confidence = 1 - 0.9**20
    assert confidence == pytest.approx(0.878, abs=0.001)


@given(st.integers(0, 500), shares)
def test_the_average_rank_is_conformal(n: int, alpha: float) -> None:
    """k / (n + 1) <= alpha < (k + 1) / (n + 1)."""
    rank = average_rank(n, alpha)
    assert rank / (n + 1) <= alpha + 1e-9
    assert rank == n or (rank + 1) / (n + 1) > alpha - 1e-9


@given(st.integers(1, 300), shares, st.floats(0.01, 0.3))
def test_looking_at_every_size_costs_rank(n: int, alpha: float, delta: float) -> None:
    """The anytime rule is never looser than the rule for one look."""
    assert anytime_rank(n, alpha, delta) <= guaranteed_rank(n, alpha, delta)


def test_the_anytime_rank_holds_at_all_sizes_at_once() -> None:
    """Fewer than rank scores below the alpha quantile, at any n up to 400: at most delta of walks.

    The rule for one look fails this about three times as often: what stopping when it suits costs.
    """
    alpha, delta, walks, n = 0.1, 0.1, 4000, 400
    counts = np.cumsum(np.random.default_rng(7).random((walks, n)) < alpha, axis=1)
    sizes = range(1, n + 1)
    anytime = np.array([anytime_rank(size, alpha, delta) for size in sizes])
    once = np.array([guaranteed_rank(size, alpha, delta) for size in sizes])
    error = 3 * math.sqrt(delta * (1 - delta) / walks)
    assert (counts < anytime).any(axis=1).mean() <= delta + error
    assert (counts < once).any(axis=1).mean() > 2 * delta
    assert labels_needed_anytime(alpha, delta) == int(np.argmax(anytime > 0)) + 1


@given(shares, st.floats(0.01, 0.3))
def test_labels_needed_anytime_is_the_smallest_count_with_a_rank(
    alpha: float, delta: float
) -> None:
    """The same as counting up from one, and no larger count has none: halving may be used."""
    n = labels_needed_anytime(alpha, delta)
    assert [anytime_rank(size, alpha, delta) > 0 for size in range(1, n + 60)] == [
        size >= n for size in range(1, n + 60)
    ]


@given(st.integers(1, 200), shares)
def test_the_bound_of_a_rank_is_what_its_beta_says(n: int, delta: float) -> None:
    """And a rank beyond the sample bounds nothing."""
    for rank in {1, n}:
        bound = share_bound(n, rank, delta)
        assert beta.cdf(bound, rank, n - rank + 1) == pytest.approx(1 - delta)
    assert share_bound(n, n + 1, delta) == 1.0


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_exact_interval_is_scipys(x: int, more: int) -> None:
    """Clopper and Pearson."""
    n = x + more
    if n == 0:
        assert exact_interval(0, 0) == (0.0, 1.0)
        return
    interval = binomtest(x, n).proportion_ci(method="exact")
    assert exact_interval(x, n) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize(("n", "rank"), [(22, 1), (50, 2), (100, 6), (200, 15)])
def test_the_published_ranks_come_out(n: int, rank: int) -> None:
    """For alpha and delta 0.1 (Tong, Feng and Li 2018). Known answer 55."""
    assert guaranteed_rank(n, 0.10, 0.10) == rank


@pytest.mark.parametrize(
    ("x", "n", "interval"),
    [
        (0, 10, (0, 0.3085)),
        (0, 30, (0, 0.1157)),
        (3, 30, (0.0211, 0.2653)),
        (5, 100, (0.0164, 0.1128)),
    ],
)
def test_intervals_of_shares_are_exact(x: int, n: int, interval: tuple[float, float]) -> None:
    """Clopper-Pearson at 95 %, as scipy and every table have them. Known answer 54."""
    assert exact_interval(x, n) == pytest.approx(interval, abs=5e-5)


words = st.sampled_from(["pass", "fail"])


@given(st.lists(st.tuples(words, words), min_size=2, max_size=40))
def test_kappa_is_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    """Where it is defined; else it is not a number but unknown."""
    found = cohen_kappa(pairs)
    one, other = zip(*pairs, strict=True)
    if len({*one, *other}) == 1:
        assert found.kappa is None
        assert found.interval is None
        return
    assert found.kappa == pytest.approx(cohen_kappa_score(one, other))
    assert found.interval is not None
    assert found.interval[0] <= found.kappa <= found.interval[1]


def test_nobody_agrees_with_themselves() -> None:
    """One annotator has no agreement rate."""
    assert agreement_of([{"x": "pass"}, {"x": "fail"}]) is None
    assert agreement_of([]) is None


def test_abstentions_do_not_count_as_disagreement() -> None:
    """They say nothing about the answer."""
    found = agreement_of([{"x": "pass", "y": "abstain"}, {"x": "pass", "y": "pass"}])
    assert found is not None
    assert found.cases == 1


def test_three_people_are_compared_in_pairs() -> None:
    """Weighted by the cases they share."""
    votes = [{"x": "pass", "y": "pass", "z": "fail"}] * 3 + [{"x": "fail", "y": "fail"}] * 3
    found = agreement_of(votes)
    assert found is not None
    assert (found.pairs, found.cases) == (3, 12)
    assert found.share == pytest.approx(6 / 12)
    assert found.as_json()["pairs"] == 3

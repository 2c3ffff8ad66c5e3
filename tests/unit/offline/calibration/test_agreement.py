"""Kappa: scikit-learn as oracle, chance alone said to be chance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from guardrail_offline.calibration.statistics import agreement_of, cohen_kappa

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

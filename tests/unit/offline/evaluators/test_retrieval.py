"""Grades by bins, and the retrieval metrics that follow from them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from guardrail_offline.evaluators.retrieval import (
    UmbrelaParameters,
    grades,
    retrieval_scores,
)
from guardrail_service.errors import NotScorable

BINS = UmbrelaParameters().umbrela_bins


def test_a_score_on_the_edge_of_a_bin_belongs_to_the_higher_grade() -> None:
    """The edges are least scores."""
    assert grades([-0.2, BINS[0], BINS[1], BINS[2], 1.0], BINS) == [0, 1, 2, 3, 3]


def test_a_precision_at_more_passages_than_there_are_is_missing_not_padded() -> None:
    """Open RAG Eval skips it."""
    scores = retrieval_scores([3, 2, 0])
    assert scores["umbrela"].value == pytest.approx(5 / 3)
    assert scores["precision_at_3"].value == pytest.approx(2 / 3)
    assert scores["precision_at_5"].reason == "fewer_passages"
    assert scores["average_precision_at_5"].value is None


def test_passages_without_a_relevant_one_score_zero() -> None:
    """That is a finding, not a gap."""
    scores = retrieval_scores([1, 1, 0])
    assert [scores[k].value for k in ("precision_at_3", "average_precision_at_3", "mrr")] == [0] * 3


def test_no_passage_is_no_number() -> None:
    """Never 0."""
    with pytest.raises(NotScorable):
        retrieval_scores([])


def test_bins_must_ascend() -> None:
    """Else a grade could never be given."""
    with pytest.raises(ValidationError, match="ascending"):
        UmbrelaParameters(umbrela_bins=(0.5, 0.4, 0.6))

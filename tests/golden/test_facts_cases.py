"""How many changed facts of seeded minimal pairs are found, and how many true ones are flagged."""

from __future__ import annotations

import pytest

from guardrail_service.detectors.facts.detector import Facts, FactsParameters
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Passage, Sample
from tests.golden.facts_cases import KINDS, PAIRS, pairs

CUT = 0.5
LEAST_RECALL = dict.fromkeys(KINDS, 0.95)
MOST_FALSE = 0


def score(passage: str, claim: str) -> float:
    """Return the score of one claim."""
    sample = SegmentedSample(Sample(claim, None, (Passage(passage),)))
    return Facts().reduce(sample, (), FactsParameters()).scores["facts"]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_pairs_of_each_kind(kind: str) -> None:
    """A true claim passes; at least the stated share of its false twins does not."""
    found = flagged = 0
    for pair in pairs(kind):
        flagged += score(pair.passage, pair.true) < CUT
        found += score(pair.passage, pair.false) < CUT
    assert flagged <= MOST_FALSE
    assert found >= LEAST_RECALL[kind] * PAIRS

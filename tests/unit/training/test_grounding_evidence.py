"""The ways of choosing evidence that are compared, and how the comparison is summed up."""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from guardrail_bench.grounding_quality import LabelledAnswer
from guardrail_service.inference.models.encoder import EVIDENCE_SENTENCES, EVIDENCE_TOKENS, nearest
from guardrail_service.types import Passage, Sample

FOLDER = Path(__file__).parents[3] / "models" / "training" / "grounding"


@pytest.fixture(scope="module")
def evidence() -> Iterator[ModuleType]:
    """Yield the script, which lies outside every package."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield importlib.import_module("evidence")
    finally:
        sys.path.remove(str(FOLDER))
        for name in ("evidence", "measure"):
            sys.modules.pop(name, None)


def claim(evidence: ModuleType, count: int, tokens: int = 10) -> Any:
    """Return a claim over one passage whose third sentence is nearest, then the ones after it."""
    cosines = np.array([1.0 - abs(place - 2.2) / count for place in range(count)])
    beside = {
        place: [p for p in (place - 1, place + 1) if 0 <= p < count] for place in range(count)
    }
    texts = tuple(f"sentence {place}" for place in range(count))
    return evidence.Claim("claim", texts, [tokens] * count, cosines, beside)


def test_the_present_rule_is_the_shipped_function(evidence: ModuleType) -> None:
    """The table's base is what serves."""
    one = claim(evidence, 20, tokens=40)
    assert evidence.chosen(one)[evidence.SHIPPED] == [nearest(one.cosines, one.lengths)]


def test_neighbours_of_the_nearest_come_before_farther_sentences(evidence: ModuleType) -> None:
    """Both sides of the nearest are kept; limits hold; the order stays by cosine."""
    one = claim(evidence, 20)
    (kept,) = evidence.chosen(one)["nearest, its neighbours, then nearest"]
    assert kept[:3] == [2, 3, 1]
    assert len(kept) == EVIDENCE_SENTENCES
    (tight,) = evidence.chosen(claim(evidence, 20, tokens=80))["nearest 3 and their neighbours"]
    assert len(tight) * 80 <= EVIDENCE_TOKENS


def test_exhaustive_rules_read_every_sentence_once(evidence: ModuleType) -> None:
    """Alone and in groups that fit the limits."""
    rules = evidence.chosen(claim(evidence, 20, tokens=40))
    for name in ("every window alone, best", "every window in groups, best"):
        read = [place for part in rules[name] for place in part]
        assert sorted(read) == list(range(20))
    assert all(len(part) * 40 <= EVIDENCE_TOKENS for part in rules["every window in groups, best"])


def test_a_sample_of_records_keeps_groups_whole(evidence: ModuleType) -> None:
    """A claim with several passages is one case."""
    records = [
        LabelledAnswer(Sample("a", None, (Passage(f"{g} {n}"),)), True, g)
        for g in "abcde"
        for n in "xyz"
    ]
    kept = evidence.some(records, 7, random.Random(1))  # noqa: S311 - a reproducible draw
    assert len(kept) == 6
    assert len({record.group for record in kept}) == 2


def test_a_better_rule_has_a_difference_above_zero(evidence: ModuleType) -> None:
    """Areas, the macro area and the paired difference point the same way."""
    bad = np.array([n % 2 == 0 for n in range(60)])
    weak = [0.5 + (0.1 if n % 3 else -0.1) for n in range(60)]
    strong = [0.1 if is_bad else 0.9 for is_bad in bad]
    costs = [evidence.Cost(10, 1.0)] * 60
    part = {
        "support": {evidence.SHIPPED: weak, "other": strong},
        "costs": {evidence.SHIPPED: costs, "other": [evidence.Cost(30, 3.0)] * 60},
        "bad": bad,
        "units": np.arange(60),
    }
    found = evidence.areas({"set": part})
    assert found["other"]["macro"] == 1.0
    assert found["other"]["difference_interval95"][0] > 0
    assert found["other"]["ms_p50"] == pytest.approx(3.0)
    assert found[evidence.SHIPPED]["difference"] == 0.0
    assert "**nearest 6**" in evidence.table(found)

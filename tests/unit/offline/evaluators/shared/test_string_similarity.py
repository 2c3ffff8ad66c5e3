"""Edit distance, Jaro and chrF against the digits of rapidfuzz and sacrebleu."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.evaluators.shared.string_similarity import (
    chrf,
    edit_distance,
    edit_similarity,
    jaro_similarity,
)

GOLDEN = Path(__file__).parents[4] / "golden" / "evaluators" / "similarities.json"
PAIRS = json.loads(GOLDEN.read_text("utf-8"))["pairs"]


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_values_are_those_of_the_reference_implementations(pair: dict[str, Any]) -> None:
    """See the file for their versions."""
    left, right = pair["left"], pair["right"]
    assert edit_distance(left, right) == pair["edit_distance"]
    assert edit_similarity(left, right) == pytest.approx(pair["edit_similarity"], rel=1e-9)
    assert jaro_similarity(left, right) == pytest.approx(pair["jaro"], rel=1e-9)
    assert chrf(left, right) == pytest.approx(pair["chrf"], rel=1e-9)


@given(st.text(max_size=20), st.text(max_size=20))
def test_similarities_lie_between_0_and_1_and_a_text_is_itself(one: str, other: str) -> None:
    """In either order for the two that are symmetric."""
    assert edit_distance(one, other) == edit_distance(other, one)
    assert jaro_similarity(one, other) == pytest.approx(jaro_similarity(other, one))
    for found in (edit_similarity(one, other), jaro_similarity(one, other), chrf(one, other)):
        assert 0.0 <= found <= 1.0 + 1e-12
    assert edit_similarity(one, one) == jaro_similarity(one, one) == 1.0

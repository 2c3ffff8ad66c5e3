"""Samples: every question with the same chance, or weights that say otherwise."""

from __future__ import annotations

from collections import Counter

import pytest

from guardrail_offline.calibration.sampling import draw, simple_random, stratified
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.calibration import labs

CASES = labs.lab(60, reruns=2)[0].cases


def test_a_simple_sample_has_one_case_a_question() -> None:
    """All with the same weight; another seed draws others."""
    drawn = simple_random(CASES, 20, 1)
    assert len({item.case.group for item in drawn}) == len(drawn) == 20
    assert {item.weight for item in drawn} == {3.0}
    assert drawn == simple_random(CASES, 20, 1)
    assert drawn != simple_random(CASES, 20, 2)


def test_every_question_is_drawn_equally_often() -> None:
    """Over many seeds; the chance of each is n over all."""
    counts = Counter(i.case.group for seed in range(300) for i in simple_random(CASES, 20, seed))
    assert len(counts) == 60
    assert all(60 < count < 140 for count in counts.values())


def test_strata_share_evenly_and_weights_undo_it() -> None:
    """The weights of a stratum add up to its size."""
    uneven = [case for n, case in enumerate(CASES) if case.facts["topic"] == "leave" or n < 12]
    drawn = stratified(uneven, 10, 1, "topic")
    sizes = Counter(item.case.facts["topic"] for item in drawn)
    assert sizes == {"leave": 7, "travel": 3}
    total = sum(i.weight for i in drawn if i.case.facts["topic"] == "leave")
    assert total == pytest.approx(30)


def test_whole_questions_bring_all_their_answers() -> None:
    """With their question's weight."""
    drawn = draw(CASES, 20, 1, whole=True)
    assert len(drawn) == 40
    assert {item.weight for item in drawn} == {3.0}
    assert {i.case.group for i in drawn} == {i.case.group for i in draw(CASES, 20, 1)}


def test_impossible_draws_are_refused() -> None:
    """More questions than there are; a fact that no case has."""
    with pytest.raises(ConfigurationError, match="at most 60: the lab has 60 questions"):
        draw(CASES, 61, 1)
    with pytest.raises(ConfigurationError, match="no case with the fact 'planet'; expected topic"):
        draw(CASES, 10, 1, "planet")

"""Samples: how many labels a promise takes, and which cases to label."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.sampling import (
    best_promise,
    draw,
    plan,
    simple_random,
    stratified,
    table,
)
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.calibration import labs


def test_the_table_shown_before_labelling() -> None:
    """Good questions per promise."""
    rows = {need.alpha: (*need.surely, need.on_average) for need in table()}
    assert rows[0.05] == (45, 59, 19)
    assert rows[0.10] == (22, 29, 9)


def test_a_plan_counts_bad_answers_and_the_design_part() -> None:
    """105 good questions carry three odd answers at 5 %; half are bad, a fifth is for design."""
    found = plan(FitOptions(alpha=0.05, delta=0.10, split=0.2), 0.5)
    assert (found.least, found.comfortable) == (45, 105)
    assert found.labels == 263
    assert found.least_labels == 90
    assert found.anytime > found.least
    assert found.as_json()["questions_to_label"] == 263


def test_the_strictest_plan_is_quick() -> None:
    """It takes thousands of millions of labels, and saying so takes no time."""
    found = plan(FitOptions(alpha=1e-9, delta=0.10), 0.7)
    assert found.least == pytest.approx(-math.log(0.10) * 1e9, rel=1e-6)
    assert 1.5 < found.anytime / found.least < 1.6


def test_what_some_labels_can_promise_at_best() -> None:
    """The other way round."""
    assert best_promise(22, 0.10) == pytest.approx(1 - 0.1 ** (1 / 22), abs=1e-6)


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

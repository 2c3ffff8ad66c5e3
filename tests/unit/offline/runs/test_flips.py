"""Flips: every variant against its own source, both ways, with a rate and its interval."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.datasets.cases import PERTURBATION_SOURCE, SHOULD_FLIP, Case, Relationship
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result
from guardrail_offline.runs.flips import FlipTally, flip_problems, flipped
from guardrail_offline.runs.shards import ScoredCase
from guardrail_service.types import Direction, State

KEYS = ("faithfulness",)


def scored(key: str, value: float | None, source: str | None = None, *by: str) -> ScoredCase:
    """Return a case with one metric, possibly a variant."""
    links = (Relationship(PERTURBATION_SOURCE, source),) if source else ()
    categories = tuple(f"perturbed_by:{name}" for name in by)
    case = Case(key, "q", "a", relationships=links, categories=categories, model="m")
    result = (
        Result.missing(KEYS, State.NOT_APPLICABLE, "abstention")
        if value is None
        else Result.of({"faithfulness": value})
    )
    return ScoredCase(0, case, {"faithfulness": result})


def tally(*group: ScoredCase) -> FlipTally:
    """Return the flips of one question."""
    found = FlipTally(configure(["faithfulness"]))
    found.add(group)
    return found


def test_a_metric_that_rises_over_its_threshold_is_a_flip() -> None:
    """0.3 to 0.8 at 0.75: from fail to pass; the manual's example. Known answer 13."""
    assert flipped(0.3, 0.8, Direction.HIGHER, 0.75) == "fail_to_pass"
    assert flipped(0.8, 0.3, Direction.HIGHER, 0.75) == "pass_to_fail"
    assert flipped(0.3, 0.8, Direction.LOWER, 0.75) == "pass_to_fail"
    assert flipped(0.76, 0.8, Direction.HIGHER, 0.75) is None


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.sampled_from(list(Direction)))
def test_flips_are_mirrored_when_the_two_are_exchanged(
    a: float, b: float, cut: float, direction: Direction
) -> None:
    """And there is none on one side only."""
    mirror = {"fail_to_pass": "pass_to_fail", "pass_to_fail": "fail_to_pass", None: None}
    assert flipped(a, b, direction, cut) == mirror[flipped(b, a, direction, cut)]
    assert flipped(a, a, direction, cut) is None


def test_every_variant_is_reported_not_only_the_last() -> None:
    """H2O keeps one per source and metric."""
    found = tally(
        scored("s", 1.0), scored("v1", 0.2, "s", "comma"), scored("v2", 0.1, "s", "qwerty")
    ).as_json()
    assert [(f["source"], f["variant"]) for f in found["flips"]] == [("s", "v1"), ("s", "v2")]
    assert {f["kind"] for f in found["flips"]} == {"pass_to_fail"}


def test_a_rate_has_an_exact_interval() -> None:
    """Three flips in thirty pairs: .0211 to .2653."""
    variants = [scored(f"v{n}", 0.2 if n < 3 else 0.9, "s", "comma") for n in range(30)]
    (rate,) = tally(scored("s", 1.0), *variants).as_json()["rates"]
    assert (rate["flips"], rate["pairs"], rate["rate"]) == (3, 30, 0.1)
    assert rate["interval95"] == pytest.approx([0.0211, 0.2653], abs=5e-5)


def test_a_pair_with_one_missing_value_is_counted_apart() -> None:
    """It is neither a flip nor a pair that did not flip."""
    found = tally(scored("s", 1.0), scored("v", None, "s")).as_json()
    assert (found["rates"], found["flips"], found["unpaired"]) == ([], [], 1)


def test_a_variant_whose_source_is_not_in_the_lab_is_counted() -> None:
    """There is nothing to compare it with."""
    assert tally(scored("v", 0.2, "gone")).as_json()["variants_without_source"] == 1


def variant(key: str, value: float, by: str, *more: str) -> ScoredCase:
    """Return a variant that was perturbed and has further categories."""
    found = scored(key, value, "s", by)
    return replace(found, case=replace(found.case, categories=(*found.case.categories, *more)))


def test_a_chain_of_perturbations_is_counted_as_a_chain() -> None:
    """Not for each of its parts, whether one category names it or, as in 0.1.0, one for each."""
    chain = scored("v", 0.2, "s", "comma+qwerty")
    old = scored("o", 0.2, "s", "comma", "qwerty")
    found = tally(scored("s", 1.0), chain, old, scored("w", 1.0, "s")).as_json()
    rates = {rate["perturbation"]: (rate["flips"], rate["pairs"]) for rate in found["rates"]}
    assert rates == {"comma+qwerty": (2, 2), "(not named)": (0, 1)}


def test_intensities_have_rates_of_their_own() -> None:
    """A system may stand few typing errors and not many."""
    low = variant("l", 1.0, "comma", "perturbation_intensity:low")
    high = variant("h", 0.2, "comma", "perturbation_intensity:high")
    rates = tally(scored("s", 1.0), low, high).as_json()["rates"]
    assert {rate["intensity"]: rate["flips"] for rate in rates} == {"low": 0, "high": 1}


def test_what_should_flip_and_does_not_is_the_problem() -> None:
    """Of the pairs that passed before: another question has another answer."""
    answers = [variant(f"v{n}", 0.9 if n else 0.1, "antonym", SHOULD_FLIP) for n in range(3)]
    group = [scored("s", 1.0), *answers]
    compared = FlipTally(configure(["answer_correctness"]))
    compared.add([renamed(one, "answer_correctness") for one in group])
    (rate,) = compared.as_json()["rates"]
    assert (rate["expectation"], rate["flips"]) == ("flip", 1)
    assert (rate["unexpected"], rate["unexpected_of"]) == (2, 3)
    (problem,) = flip_problems(compared.as_json())
    assert "should flip and does not in 2 of 3 cases" in problem["description"]
    # A metric that knows no expected answer should stay.
    (rate,) = tally(*group).as_json()["rates"]
    assert (rate["expectation"], rate["unexpected"], rate["unexpected_of"]) == ("stay", 1, 3)


def test_a_source_that_failed_says_nothing_of_what_should_flip() -> None:
    """It cannot fail again."""
    compared = FlipTally(configure(["answer_correctness"]))
    group = [scored("s", 0.1), variant("v", 0.1, "antonym", SHOULD_FLIP)]
    compared.add([renamed(one, "answer_correctness") for one in group])
    (rate,) = compared.as_json()["rates"]
    assert (rate["pairs"], rate["unexpected_of"], rate["unexpected_interval95"]) == (1, 0, None)
    assert list(flip_problems(compared.as_json())) == []


def renamed(one: ScoredCase, evaluator: str) -> ScoredCase:
    """Return a case whose one metric is another evaluator's."""
    result = one.results["faithfulness"]
    scores = {evaluator: result.scores["faithfulness"]}
    return replace(one, results={evaluator: replace(result, scores=scores)})


def test_only_rates_above_zero_are_problems() -> None:
    """Graver the more often it happens."""
    group = (scored("s", 1.0), scored("v", 0.2, "s", "comma"), scored("w", 1.0, "s", "qwerty"))
    (problem,) = flip_problems(tally(*group).as_json())
    assert (problem["severity"], problem["problem_type"]) == ("high", "stability")
    assert "comma" in problem["description"]

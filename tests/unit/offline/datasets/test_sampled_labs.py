"""A sample holds whole questions, by seed and words alone, in proportion to who answered them."""

from __future__ import annotations

import pytest

from guardrail_offline.datasets.cases import PERTURBATION_SOURCE, Case, Lab, Relationship
from guardrail_offline.datasets.labs import LabSource, lab_source
from guardrail_offline.datasets.sampled_labs import (
    QuestionSample,
    QuestionStratum,
    SampleSize,
    sample_from_json,
    sampled,
)
from guardrail_service.errors import ConfigurationError

LAB = Lab(
    tuple(
        Case(f"{model}-{n}", f"q{n}", "a", model=model, group=f"g{n}")
        for n in range(300)
        for model in (("a", "b") if n < 200 else ("a",) if n < 297 else ("b", "c"))
    )
)


def drawn(lab: LabSource, cases: int, seed: int = 0) -> tuple[set[str], QuestionSample]:
    """Return the keys of a sample and what is known of it."""
    found = sampled(lab, SampleSize(cases, seed))
    keys = [case.key for case in found.cases()]
    assert keys == [case.key for case in found.cases()], "the second reading is the first"
    sample = found.drawn()
    assert sample is not None
    return set(keys), sample


def test_every_model_has_its_answers_to_the_questions_that_are_drawn() -> None:
    """In strata by who answered; what is too rare for a stratum is in the last one."""
    keys, sample = drawn(lab_source(LAB), 100)
    assert sample == QuestionSample(
        SampleSize(100),
        503,
        (
            QuestionStratum(("a",), 97, 19),
            QuestionStratum(("a", "b"), 200, 40),
            QuestionStratum((), 3, 2),
        ),
    )
    asked = {key.split("-")[1] for key in keys}
    assert keys == {case.key for case in LAB.cases if case.key.split("-")[1] in asked}
    assert (len(asked), sample.drawn, sample.questions) == (61, 61, 300)
    assert [sample.place(frozenset(one)) for one in ("a", "ab", "bc", "z")] == [0, 1, 2, 2]


def test_a_draw_depends_on_words_and_seed_alone_and_a_larger_one_holds_it() -> None:
    """Not on the order of the lab."""
    lab, turned = lab_source(LAB), lab_source(Lab(LAB.cases[::-1]))
    keys, _ = drawn(lab, 100)
    assert drawn(turned, 100)[0] == keys
    assert keys < drawn(lab, 200)[0]
    assert keys != drawn(lab, 100, seed=1)[0]


def test_a_variant_comes_with_its_source() -> None:
    """Though it asks in other words."""
    cases = [Case(f"k{n}", f"q{n}", "a", group=f"g{n}") for n in range(40)]
    link = (Relationship(PERTURBATION_SOURCE, f"k{n}") for n in range(40))
    variants = [
        Case(f"v{n}", f"Q{n}", "a", group=f"G{n}", relationships=(one,))
        for n, one in enumerate(link)
    ]
    keys, sample = drawn(lab_source(Lab((*cases, *variants))), 20)
    assert {key[1:] for key in keys if key[0] == "k"} == {key[1:] for key in keys if key[0] == "v"}
    assert (len(keys), sample.questions) == (20, 40)


def test_a_sample_of_everything_is_everything() -> None:
    """And one of an empty lab is refused."""
    keys, sample = drawn(lab_source(LAB), 10_000)
    assert len(keys) == 503
    assert sample.drawn == sample.questions == 300
    with pytest.raises(ConfigurationError, match="no case"):
        list(sampled(lab_source(Lab(())), SampleSize(5)).cases())


def test_a_sample_is_read_from_its_manifest() -> None:
    """As it was written."""
    content = {
        "size": {"cases": 5, "seed": 3},
        "cases": 9,
        "strata": [{"models": ["a"], "questions": 4, "drawn": 2}],
    }
    found = sample_from_json(content)
    assert found == QuestionSample(SampleSize(5, 3), 9, (QuestionStratum(("a",), 4, 2),))

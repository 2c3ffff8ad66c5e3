"""A case survives JSON, and a model the lab never named is still known."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.datasets.cases import (
    PERTURBATION_SOURCE,
    Case,
    Model,
    Relationship,
    case_from_json,
    case_json,
    model_from_json,
    model_json,
    models_of,
    question_group,
)
from guardrail_service.types import Passage

TEXT = st.text(max_size=20)
MAYBE = st.none() | TEXT
CASES = st.builds(
    Case,
    key=TEXT,
    question=TEXT,
    answer=MAYBE,
    expected=MAYBE,
    contexts=st.none() | st.lists(st.builds(Passage, TEXT, MAYBE), max_size=3).map(tuple),
    condition=MAYBE,
    schema=st.none() | st.just({"type": "object"}),
    categories=st.lists(TEXT, max_size=2).map(tuple),
    relationships=st.lists(st.builds(Relationship, TEXT, TEXT, TEXT), max_size=2).map(tuple),
    corpus=st.lists(TEXT, max_size=2).map(tuple),
    artifacts=MAYBE,
    duration_s=st.none() | st.floats(0, 10),
    cost=st.none() | st.floats(0, 10),
    model=TEXT,
    group=TEXT,
)


@given(CASES)
def test_a_case_survives_json(case: Case) -> None:
    """Nothing is lost; unknown passages stay apart from a retriever that found none."""
    assert case_from_json(json.loads(json.dumps(case_json(case)))) == case


def test_a_model_survives_json_with_what_else_the_lab_says() -> None:
    """Documents, collections and configurations have no field of their own."""
    model = Model("m", "Model M", "llm-7b", "rag", {"collection_id": "c"})
    assert model_from_json(model_json(model)) == model


def test_models_named_only_by_cases_follow_the_known_ones() -> None:
    """In the order they are met, each once."""
    cases = [Case("1", "q", model="b"), Case("2", "q", model="a"), Case("3", "q", model="b")]
    assert [m.key for m in models_of(cases, [Model("a")])] == ["a", "b"]


def test_a_case_without_a_model_belongs_to_one_without_name() -> None:
    """A table shows it as such instead of an empty cell."""
    (model,) = models_of([Case("1", "q")])
    assert model.title == "(no model)"


def test_the_source_is_the_target_of_the_perturbation_link_only() -> None:
    """Other links do not make a variant."""
    links = (Relationship("duplicate", "x"), Relationship(PERTURBATION_SOURCE, "y"))
    assert Case("1", "q", relationships=links).source == "y"
    assert Case("1", "q", relationships=links[:1]).source is None


def test_the_same_question_is_the_same_group_whatever_its_blanks() -> None:
    """Reruns often differ in line ends; another question is another group."""
    assert question_group("How  much?\n") == question_group("How much?")
    assert question_group("How much?") != question_group("how much?")


def test_a_sample_of_a_case_without_answer_has_an_empty_one() -> None:
    """Evaluators that need an answer look at the case, never at this empty text."""
    sample = Case("1", "q", contexts=(Passage("p"),)).sample()
    assert (sample.answer, sample.question, sample.contexts) == ("", "q", (Passage("p"),))

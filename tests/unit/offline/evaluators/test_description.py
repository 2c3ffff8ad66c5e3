"""What is said about evaluators: by suite, by how they do without a judge, with parameters."""

from __future__ import annotations

import pytest

from guardrail_offline.evaluators.catalogue import CATALOGUE, Common, EvaluatorSpec
from guardrail_offline.evaluators.description import (
    METHODS,
    chosen,
    declines,
    describe,
    documented_attributes,
    find,
    judge_free,
    markdown,
    of_suite,
    tags_of,
)
from guardrail_service.errors import ConfigurationError

SPECS = CATALOGUE.specs()


def test_evaluators_are_listed_by_suite() -> None:
    """An unknown suite lists what there is."""
    assert len(of_suite(None)) == len(CATALOGUE)
    assert {spec.id for spec in of_suite("trulens")} == {"rag_triad"}
    with pytest.raises(ConfigurationError, match="h2o, ragas, open_rag_eval"):
        of_suite("nonsense")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("rouge", "exact"),
        ("faithfulness", "surrogate"),
        ("toxicity", "surrogate"),
        ("answer_semantic_similarity", "other_model"),
        ("perplexity", "other_model"),
        ("facts", "own"),
        ("byop", "needs_judge"),
    ],
)
def test_an_evaluator_says_how_it_does_without_a_judge(name: str, kind: str) -> None:
    """Judge-only ones are listed, too."""
    assert judge_free(find(name)) == kind


def test_parameters_come_with_defaults_and_meaning() -> None:
    """From the docstrings of their classes, the common ones included."""
    found = describe(find("context_mrr"), parameters=True)["parameters"]
    assert found["mrr_relevant_chunk_threshold"]["default"] == 0.7
    assert "cosine" in found["mrr_relevant_chunk_threshold"]["description"]
    assert found["metric_threshold"]["default"] is None
    assert set(documented_attributes(Common)) == set(Common.model_fields)


def test_an_unbounded_metric_has_an_end_that_json_can_hold() -> None:
    """Infinity as a word, and no default threshold."""
    (metric,) = describe(find("perplexity"))["metrics"]
    assert (metric["range"], metric["threshold"]) == ([1.0, "infinity"], None)


def test_the_page_has_a_line_for_every_evaluator() -> None:
    """And the judge-only ones are marked."""
    page = markdown()
    assert all(f"| `{spec.id}` |" in page for spec in SPECS)
    lines = {spec.id: page.split(f"| `{spec.id}` |")[1].partition("\n")[0] for spec in SPECS}
    marked = {name for name, line in lines.items() if "| needs_judge |" in line}
    assert marked == {spec.id for spec in SPECS if spec.needs_judge}


def test_evaluators_are_chosen_by_what_they_are() -> None:
    """Method, principle, kind of problem, and whether numbers repeat; one has to have all."""
    by_judge = {spec.id for spec in SPECS if spec.needs_judge} - {"fact_check"}
    assert {spec.id for spec in chosen(method="judge")} == by_judge
    assert {spec.id for spec in chosen(deterministic=False)} == by_judge | {"fact_check"}
    assert len(chosen(deterministic=True)) == len(SPECS) - len(by_judge) - 1
    assert {spec.problem for spec in chosen(problem_type="retrieval")} == {"retrieval"}
    assert set(chosen(tag="nist:fair")) < set(chosen(tag="nist"))
    both = chosen("ragas", method="nli", problem_type="retrieval")
    names = {"context_precision", "context_recall", "context_utilization"}
    assert {spec.id for spec in both} == names


@pytest.mark.parametrize(
    ("asked", "known"),
    [({"method": "magic"}, "ngram"), ({"tag": "iso"}, "nist"), ({"problem_type": "x"}, "privacy")],
)
def test_an_unknown_choice_lists_what_there_is(asked: dict[str, str], known: str) -> None:
    """Instead of an empty list."""
    with pytest.raises(ConfigurationError, match=known):
        chosen(**asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", [pytest.param(one, id=one.id) for one in SPECS])
def test_every_evaluator_names_its_method_and_a_principle(spec: EvaluatorSpec) -> None:
    """Of NIST's AI risk management framework, and of SR 11-7: outcomes need a reference."""
    assert set(METHODS) & set(spec.tags)
    assert any(tag.startswith("nist:") for tag in spec.tags)
    parts = {tag for tag in tags_of(spec) if tag.startswith("sr11-7:")}
    assert parts
    if "expected" in spec.inputs:
        assert "sr11-7:ongoing-monitoring" not in parts
    assert all(spec in chosen(tag=part) for part in parts)


def test_what_declines_as_shipped_is_named() -> None:
    """Nine need a judge, five a causal language model."""
    away = {spec.id: why for spec in SPECS if (why := declines(spec))}
    assert len(away) == 14
    assert away["byop"] == "needs_judge"
    assert away["perplexity"] == "missing_role:causal_lm"
    assert "14 have no number with the pack that ships" in markdown()

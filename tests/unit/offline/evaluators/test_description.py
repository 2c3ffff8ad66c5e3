"""What is said about evaluators: by suite, by how they do without a judge, with parameters."""

from __future__ import annotations

import pytest

from guardrail_offline.evaluators.catalogue import CATALOGUE, Common
from guardrail_offline.evaluators.description import (
    describe,
    documented_attributes,
    find,
    judge_free,
    markdown,
    of_suite,
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
    ("name", "kind"), [("rouge", "exact"), ("faithfulness", "surrogate"), ("byop", "needs_judge")]
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

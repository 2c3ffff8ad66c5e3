"""Recipes: everything that decides a score is declared, or the recipe is refused."""

from __future__ import annotations

from typing import Any

import pytest

from guardrail_models.recipe import own_recipe, shipped_recipes
from guardrail_service.errors import ConfigurationError

OWN: dict[str, Any] = {
    "name": "mine",
    "role": "nli",
    "hub": None,
    "revision": None,
    "license": "MIT",
    "architecture": "bert",
    "loader": "transformers",
    "max_tokens": 512,
    "activation": "softmax",
    "original_labels": ["contradiction", "entailment", "neutral"],
    "labels": {
        "supported": "entailment",
        "contradicted": "contradiction",
        "not_mentioned": "neutral",
    },
}


def test_every_model_of_the_seeds_has_a_recipe() -> None:
    """By the names they have there; each role is served by at least one."""
    recipes = shipped_recipes()
    assert {
        "hhem-1.0-open",
        "hhem-2.1-open",
        "bge-small-en",
        "bge-small-en-v1.5",
        "detoxify-original",
        "bias-detection-model",
        "all-minilm-l6-v2",
        "distilgpt2",
        "nli-deberta-v3-base",
    } <= set(recipes)
    roles = {recipe.role for recipe in recipes.values()}
    assert roles == {"embedding", "grounding", "toxicity", "bias", "nli", "causal_lm"}


def test_labels_are_found_by_name_in_the_originals_order() -> None:
    """Not by the place that ours happen to have."""
    assert own_recipe(**OWN).order() == [1, 0, 2]
    unbiased = shipped_recipes()["detoxify-unbiased"]
    assert unbiased.order() == [0, 1, 2, 5, 4, 3]
    assert shipped_recipes()["hhem-2.1-open"].order() == [1]
    assert shipped_recipes()["bias-detection-model"].order() == [1]


def test_every_repository_is_pinned() -> None:
    """To a commit, so that one command with no more options exports it."""
    for recipe in shipped_recipes().values():
        assert (recipe.hub is None) == (recipe.checkpoint is not None)
        assert (recipe.revision is None) == (recipe.hub is None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation": None}, "needs activation"),
        ({"labels": None}, "needs labels"),
        ({"original_labels": None}, "needs original_labels"),
        ({"original_labels": ["a", "b", "c"]}, "not among the original_labels"),
        ({"labels": {"supported": "entailment"}}, "labels: found"),
        ({"labels": dict(reversed(OWN["labels"].items()))}, "labels: found"),
        ({"role": "embedding"}, "needs pooling"),
        ({"role": "causal_lm"}, "needs start_token"),
        ({"revision": "main"}, "pattern"),
        ({"architecture": "llama"}, "architecture"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"extra": 1}, "extra"),
    ],
)
def test_what_is_not_declared_is_refused(change: dict[str, Any], message: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ConfigurationError, match=message):
        own_recipe(**{**OWN, **change})

"""Recipes: everything that decides a score is declared, or the recipe is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_models.recipes import DeclaredModel, own_recipe, recipe_for, shipped_recipes
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
        ({"architecture": "mamba"}, "architecture"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"extra": 1}, "extra"),
    ],
)
def test_what_is_not_declared_is_refused(change: dict[str, Any], message: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ConfigurationError, match=message):
        own_recipe(**{**OWN, **change})


COMMIT = "ab" * 20
SAID: dict[str, Any] = {
    "role": "grounding",
    "activation": "sigmoid",
    "max_tokens": 256,
    "labels": ["supported=LABEL_0"],
    "original_labels": ["LABEL_0"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in the layout of a repository."""
    target = tmp_path / "My Model"
    target.mkdir()
    (target / "config.json").write_text(json.dumps({"model_type": "deberta-v2"}))
    return target


def test_a_name_is_its_recipe_at_another_commit_if_asked() -> None:
    """Everything else is what was declared for it."""
    recipe, local = recipe_for("distilgpt2", DeclaredModel())
    assert recipe == shipped_recipes()["distilgpt2"]
    assert local is None
    moved, _ = recipe_for("distilgpt2", DeclaredModel(revision=COMMIT, role="causal_lm"))
    assert moved.revision == COMMIT


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"role": "nli"}, "--role.*causal_lm"),
        ({"revision": "main"}, "revision"),
        ({"activation": "softmax"}, "--activation"),
        ({"labels": ["a=b"]}, "--label"),
        ({"max_tokens": 8}, "--max-token"),
    ],
)
def test_a_name_cannot_be_declared_anew(said: dict[str, Any], message: str) -> None:
    """Its scores would be others under the same name."""
    with pytest.raises(ConfigurationError, match=message):
        recipe_for("distilgpt2", DeclaredModel(**said))


def test_a_folder_says_its_architecture(folder: Path) -> None:
    """The command says the rest."""
    recipe, local = recipe_for(str(folder), DeclaredModel(**SAID))
    assert local == folder
    assert (recipe.name, recipe.architecture, recipe.hub) == ("my-model", "deberta-v2", None)
    assert recipe.license == "not declared"


def test_a_repository_is_named_with_its_owner(folder: Path) -> None:
    """With a local copy or without."""
    recipe, local = recipe_for("me/Model", DeclaredModel(**SAID, architecture="bert"))
    assert (recipe.name, recipe.hub, local) == ("model", "me/Model", None)
    recipe, local = recipe_for("me/Model", DeclaredModel(**SAID), folder)
    assert (recipe.architecture, recipe.hub, local) == ("deberta-v2", "me/Model", folder)


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        ("nothing", {}, "nothing.*a folder, a repository.*distilgpt2"),
        ("a/b/c", {}, "a folder"),
        ("me/model", {}, "--architecture"),
        ("me/model", {"role": None}, "--role"),
        ("me/model", {"max_tokens": None}, "--max-tokens"),
        ("me/model", {"labels": ["supported"]}, "--label"),
    ],
)
def test_what_is_missing_is_named(model: str, change: dict[str, Any], message: str) -> None:
    """With the option to give."""
    with pytest.raises(ConfigurationError, match=message):
        recipe_for(model, DeclaredModel(**{**SAID, **change}))


def test_a_folder_without_a_readable_configuration_is_named(folder: Path) -> None:
    """It is no repository's layout."""
    (folder / "config.json").write_text("{")
    with pytest.raises(ConfigurationError, match=r"config\.json"):
        recipe_for(str(folder), DeclaredModel(**SAID))

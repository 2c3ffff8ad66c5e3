"""What a command asks for: names keep their recipe, folders and repositories declare theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_models.recipe import shipped_recipes
from guardrail_models.targets import Declared, recipe_for
from guardrail_service.errors import ConfigurationError

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
    recipe, local = recipe_for("distilgpt2", Declared())
    assert recipe == shipped_recipes()["distilgpt2"]
    assert local is None
    moved, _ = recipe_for("distilgpt2", Declared(revision=COMMIT, role="causal_lm"))
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
        recipe_for("distilgpt2", Declared(**said))


def test_a_folder_says_its_architecture(folder: Path) -> None:
    """The command says the rest."""
    recipe, local = recipe_for(str(folder), Declared(**SAID))
    assert local == folder
    assert (recipe.name, recipe.architecture, recipe.hub) == ("my-model", "deberta-v2", None)
    assert recipe.license == "not declared"


def test_a_repository_is_named_with_its_owner(folder: Path) -> None:
    """With a local copy or without."""
    recipe, local = recipe_for("me/Model", Declared(**SAID, architecture="bert"))
    assert (recipe.name, recipe.hub, local) == ("model", "me/Model", None)
    recipe, local = recipe_for("me/Model", Declared(**SAID), folder)
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
        recipe_for(model, Declared(**{**SAID, **change}))


def test_a_folder_without_a_readable_configuration_is_named(folder: Path) -> None:
    """It is no repository's layout."""
    (folder / "config.json").write_text("{")
    with pytest.raises(ConfigurationError, match=r"config\.json"):
        recipe_for(str(folder), Declared(**SAID))

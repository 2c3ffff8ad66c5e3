"""What `models export` was asked for: a named model, a hub repository or a local folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import re2

from guardrail_models.recipe import Recipe, own_recipe, shipped_recipes
from guardrail_service.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Declared:
    """What a command says about a model; None where it says nothing."""

    role: str | None = None
    revision: str | None = None
    labels: Sequence[str] | None = None
    original_labels: Sequence[str] | None = None
    activation: str | None = None
    pooling: str | None = None
    architecture: str | None = None
    max_tokens: int | None = None
    start_token: str | None = None
    license: str | None = None
    languages: Sequence[str] | None = None


def recipe_for(
    model: str, declared: Declared, local: Path | None = None
) -> tuple[Recipe, Path | None]:
    """Return the recipe of what was asked for, and its local folder if it has one.

    Args:
        model: Name, repository or folder.
        declared: What the command says.
        local: Local copy of the repository.

    Raises:
        ConfigurationError: Naming the option that is missing or does not fit.
    """
    named = shipped_recipes().get(model)
    if named is not None:
        return _named(named, declared), local
    folder = local or (Path(model) if Path(model).is_dir() else None)
    if folder is None and model.count("/") != 1:
        names = ", ".join(shipped_recipes())
        raise ConfigurationError(
            "models export", f"{model!r}", f"a folder, a repository OWNER/NAME or one of {names}"
        )
    hub = None if folder is not None and local is None else model
    return _own(model, hub, folder, declared), folder


def _named(recipe: Recipe, declared: Declared) -> Recipe:
    """Return a named recipe at another commit; everything else is what its recipe says."""
    given = {key: value for key, value in asdict(declared).items() if value is not None}
    revision = given.pop("revision", None)
    role = given.pop("role", recipe.role)
    if role != recipe.role:
        raise ConfigurationError("--role", repr(role), f"{recipe.role}, which {recipe.name} has")
    if given:
        option = "--" + next(iter(given)).replace("_", "-").removesuffix("s")
        raise ConfigurationError(option, f"given for {recipe.name}", "nothing: its recipe says it")
    if revision is None:
        return recipe
    return own_recipe(**{**recipe.model_dump(), "revision": revision})


def _own(model: str, hub: str | None, folder: Path | None, declared: Declared) -> Recipe:
    architecture = declared.architecture or (_architecture(folder) if folder else None)
    given: dict[str, Any] = {key: v for key, v in asdict(declared).items() if v is not None}
    given["labels"] = _labels(declared.labels)
    needed = {"role": declared.role, "max-tokens": declared.max_tokens}
    for option, value in needed.items():
        if value is None:
            raise ConfigurationError(f"--{option}", "nothing", "a value; nothing is guessed")
    if architecture is None:
        raise ConfigurationError("--architecture", "nothing", "the repository's model_type")
    name = re2.sub("[^a-z0-9._-]+", "-", Path(model).name.lower()).strip("-._")
    return own_recipe(
        **{
            **given,
            "name": name or "model",
            "hub": hub,
            "revision": declared.revision,
            "license": declared.license or "not declared",
            "architecture": architecture,
            "loader": "transformers",
        }
    )


def _labels(given: Sequence[str] | None) -> dict[str, str] | None:
    if given is None:
        return None
    pairs = [label.partition("=") for label in given]
    if not all(ours and theirs for ours, _, theirs in pairs):
        raise ConfigurationError("--label", "no OURS=THEIRS", "such as supported=entailment")
    return {ours: theirs for ours, _, theirs in pairs}


def _architecture(folder: Path) -> str | None:
    try:
        found = json.loads((folder / "config.json").read_bytes()).get("model_type")
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{folder}/config.json", type(error).__name__, "a folder as the hub has it"
        ) from error
    return found if isinstance(found, str) else None

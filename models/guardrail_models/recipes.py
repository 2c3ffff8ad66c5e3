"""Recipes of models to export: shipped ones, and those a command declares."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import re2
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from guardrail_service.errors import ConfigurationError
from guardrail_service.inference.models.pair import ONE, THREE
from guardrail_service.types import Role

Commit = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
Loader = Literal["transformers", "tensorflow", "detoxify", "hhem-t5", "gguf"]
Architecture = Literal["bert", "distilbert", "roberta", "deberta-v2", "t5", "gpt2", "llama"]
GGUF = ".gguf"
SCHEMES: dict[Role, tuple[tuple[str, ...], ...]] = {"grounding": (ONE, THREE), "nli": (THREE,)}
"""Label schemes that a role knows. Classifiers name theirs; their detectors say what they need."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Foundation(_Frozen):
    """The repository that the architecture and the tokenizer come from."""

    hub: str
    revision: Commit


class Checkpoint(_Frozen):
    """A single file outside a hub."""

    url: str
    sha256: str = Field(pattern="^[0-9a-f]{8,64}$", description="Or as many digits as are known.")


class Recipe(_Frozen):
    """One model, and the way its scores are read.

    Attributes:
        revision: Commit of the hub repository; null: nobody pinned it yet, so a command must.
        original_labels: What the original calls its outputs, in its own order.
        labels: Ours in the order they are exported in, each with the original's name.
        gguf: Name of the one file that is everything, where the loader is `gguf`.
    """

    name: str = Field(pattern="^[a-z0-9][a-z0-9._-]{0,63}$")
    role: Role
    hub: str | None
    revision: Commit | None
    license: str
    architecture: Architecture
    loader: Loader
    max_tokens: int = Field(gt=2)
    languages: tuple[str, ...] | None = None
    pooling: Literal["mean", "cls"] | None = None
    activation: Literal["sigmoid", "softmax"] | None = None
    original_labels: tuple[str, ...] | None = None
    labels: dict[str, str] | None = None
    template: str | None = None
    start_token: str | None = None
    foundation: Foundation | None = None
    checkpoint: Checkpoint | None = None
    gguf: str | None = None

    @model_validator(mode="after")
    def _declares_what_its_role_needs(self) -> Recipe:
        needed = {"embedding": ("pooling",), "causal_lm": ("start_token",)}
        keys = needed.get(self.role, ("activation", "original_labels", "labels"))
        if missing := [key for key in keys if getattr(self, key) is None]:
            raise ValueError(f"role {self.role} needs {', '.join(missing)}; nothing is guessed")
        schemes = SCHEMES.get(self.role)
        ours = tuple(self.labels or ())
        if schemes is not None and ours not in schemes:
            raise ValueError(f"labels: found {list(ours)}; expected {list(map(list, schemes))}")
        unknown = set((self.labels or {}).values()) - set(self.original_labels or ())
        if unknown:
            raise ValueError(f"labels: {sorted(unknown)} are not among the original_labels")
        return self

    def order(self) -> list[int]:
        """Return at which place of the original's outputs each of our labels is."""
        original = self.original_labels or ()
        return [original.index(name) for name in (self.labels or {}).values()]


class Recipes(_Frozen):
    """The reference models that can be named."""

    schema_version: Literal["1"]
    recipes: tuple[Recipe, ...]


@cache
def shipped_recipes() -> dict[str, Recipe]:
    """Return the shipped recipes by name."""
    path = Path(__file__).with_name("recipes.json")
    return {r.name: r for r in Recipes.model_validate_json(path.read_bytes()).recipes}


def own_recipe(**declared: object) -> Recipe:
    """Return the recipe of a model that has no name here, from what a command declares.

    Raises:
        ConfigurationError: Naming what is missing or does not fit.
    """
    try:
        return Recipe.model_validate(declared)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "options"
        raise ConfigurationError(
            f"models export: {key}", "a value that does not fit", first["msg"]
        ) from (error)


@dataclass(frozen=True, slots=True)
class DeclaredModel:
    """A command's declarations about a model; None where it declares nothing."""

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
    model: str, declared: DeclaredModel, local: Path | None = None
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
    if Path(model).suffix == GGUF and Path(model).is_file():
        return _of_gguf(Path(model), declared), Path(model).parent
    folder = local or (Path(model) if Path(model).is_dir() else None)
    if folder is None and model.count("/") != 1:
        names = ", ".join(shipped_recipes())
        raise ConfigurationError(
            "models export", f"{model!r}", f"a folder, a repository OWNER/NAME or one of {names}"
        )
    hub = None if folder is not None and local is None else model
    return _own(model, hub, folder, declared), folder


def _named(recipe: Recipe, declared: DeclaredModel) -> Recipe:
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


def _own(model: str, hub: str | None, folder: Path | None, declared: DeclaredModel) -> Recipe:
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


def _of_gguf(path: Path, declared: DeclaredModel) -> Recipe:
    """Return the recipe of llama.cpp's single file, which says its architecture itself."""
    if declared.role not in (None, "causal_lm"):
        raise ConfigurationError("--role", repr(declared.role), "causal_lm: it is a language model")
    named = replace(declared, role="causal_lm", architecture=declared.architecture or "llama")
    recipe = _own(str(path.with_suffix("")), None, path.parent, named)
    return own_recipe(**{**recipe.model_dump(), "loader": "gguf", "gguf": path.name})


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

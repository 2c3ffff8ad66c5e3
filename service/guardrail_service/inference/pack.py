"""Model packs on disk: the manifest, the check that no file changed, and fingerprints."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from guardrail_service.errors import ConfigurationError, PackError, choices
from guardrail_service.types import EVERY, ROLES, OtherProvider, Provider, Role

MANIFEST = "manifest.json"
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
BatchRule = Literal["one_row", "same_length", "token_budget"]
"""The rows that may share a call: none; those of one length, which keep their bits; those of about
one length, which may move within the tolerance."""
RoleName = Annotated[str, Field(pattern="^[a-z][a-z0-9_]{0,63}$")]
ENCODER_ROLE: Role = "embedding"
"""The role whose model encodes texts for every model that reads states."""
PROVIDER_TOLERANCE = 0.02
"""How far a golden row may be off on another provider than the CPU, where the manifest says
nothing and the golden file allows less: OpenVINO gave 0.016 for the shipped encoder."""
_GPUS = frozenset({"cuda", "coreml"})
_PER_CALL = "int8-dynamic"
"""Precision with one activation scale for a whole call: a row's scores move beside others."""


def _inside(path: str) -> str:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or "\\" in path:
        raise ValueError("expected a path inside the pack's folder")
    return path


RelativePath = Annotated[str, AfterValidator(_inside)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PackFile(_Frozen):
    """One file of the pack and what it must be byte for byte."""

    path: RelativePath
    sha256: Sha256
    bytes: int = Field(gt=0)


class Source(_Frozen):
    """The origin of the weights."""

    name: str
    revision: str
    license: str


class Padding(_Frozen):
    """The filling of shorter rows when rows are run together."""

    side: Literal["left", "right"]
    id: int = Field(ge=0, description="Token that fills up.")
    multiple: int = Field(
        1, ge=1, description="Every row is filled up to a multiple of so many tokens, also alone."
    )


class ProviderRule(_Frozen):
    """Batches and tolerance of a model on one provider."""

    batch_rule: BatchRule
    tolerance: float = Field(gt=0, lt=1, description="How far a golden row may be off at most.")


class ModelFile(PackFile):
    """One ONNX model with everything that decides its scores."""

    tokenizer: PackFile
    golden: PackFile
    card: RelativePath
    kind: str | None = Field(
        None,
        description="What runs the model: encoder, branch, head, classifier, pair, causal_lm, or "
        "the name of a plug-in; null: told by role and inputs, as before the key existed.",
    )
    architecture: str
    precision: str
    opset: int
    inputs: tuple[str, ...]
    outputs: dict[str, tuple[str | int, ...]]
    max_tokens: int = Field(gt=2, description="Longest row the model reads, special tokens too.")
    batch_rule: BatchRule
    languages: tuple[str, ...] | None = Field(description="ISO 639-1 codes; null reads any.")
    source: Source
    labels: tuple[str, ...] | None = Field(description="Names of a classifier's outputs, in order.")
    encoder: str | None = Field(
        None, description="Model of this pack whose token embeddings the file reads; null: text."
    )
    activation: Literal["sigmoid", "softmax"] | None = Field(
        None, description="What the graph applied to its logits; its outputs are probabilities."
    )
    template: str | None = Field(
        None, description="Text a pair is put into, with {premise} and {hypothesis}; null: a pair."
    )
    start_token: str | None = Field(None, description="Token a causal model's rows begin with.")
    padding: Padding | None = Field(
        None, description="Null: rows are never filled up, so those of two lengths share no call."
    )
    providers: dict[OtherProvider, ProviderRule] = Field(
        {}, description="How the model runs elsewhere than on the CPU; see docs/models.md."
    )
    _provider: Provider = PrivateAttr("cpu")

    @property
    def provider(self) -> Provider:
        """Return which execution provider was chosen for the model."""
        return self._provider

    def on(self, provider: Provider) -> ModelFile:
        """Return the same model for another provider."""
        found = self.model_copy()
        found._provider = provider
        return found

    @property
    def may_batch(self) -> bool:
        """Return whether rows may run together on the chosen provider.

        By default they do on a GPU, unless a row's scores would move beside others.
        """
        rule = self._rule
        return rule == "same_length" or (rule == "token_budget" and self.padding is not None)

    @property
    def one_length(self) -> bool:
        """Return whether rows may share a call only if they have one length when filled up."""
        return self._rule == "same_length"

    @property
    def _rule(self) -> BatchRule:
        if self._provider in self.providers:
            return self.providers[self._provider].batch_rule
        if self._provider in _GPUS and not self.precision.startswith(_PER_CALL):
            return "token_budget"
        if self._provider != "cpu" and self.batch_rule == "same_length":
            return "one_row"  # that rows keep their bits was seen on the CPU
        return self.batch_rule

    @property
    def tolerance(self) -> float | None:
        """Return how far golden rows may be off where the model runs; None: as their file says."""
        if self._provider == "cpu":
            return None
        stated = self.providers.get(self._provider)
        return stated.tolerance if stated else PROVIDER_TOLERANCE

    def declared(self) -> dict[str, Any]:
        """Return what the exported graph carries about itself, too, and must agree with."""
        kept = ("max_tokens", "labels", "activation", "template", "start_token", "padding")
        found = self.model_dump(mode="json", include=set(kept))
        if self.padding is not None and self.padding.multiple == 1:
            del found["padding"]["multiple"]  # unknown to graphs that were exported before
        return found

    def fingerprint(self) -> str:
        """Return a hash of everything in the file that can move a score."""
        parts = [self.sha256, self.tokenizer.sha256, self.max_tokens, self.batch_rule, self.labels]
        if extra := [v for v in (self.activation, self.template, self.start_token) if v]:
            parts.append(extra)
        if self.padding is not None and self.padding.multiple > 1:
            parts.append(self.padding.multiple)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def computed_as(self) -> str:
        """Return what computed values depend on: the fingerprint, and another provider than CPU."""
        return self.fingerprint() + ("" if self._provider == "cpu" else f" on {self._provider}")


class Manifest(_Frozen):
    """The content of a pack's `manifest.json`."""

    schema_version: Literal["1"]
    name: str = Field(pattern="^[a-z0-9][a-z0-9._-]{0,63}$")
    version: str
    models: dict[str, ModelFile]
    roles: dict[RoleName, str]
    seal: Sha256 | None = Field(
        None, description="Hash of everything else in here; every export writes it."
    )

    @model_validator(mode="after")
    def _roles_exist(self) -> Manifest:
        for role, model in self.roles.items():
            if model not in self.models:
                raise ValueError(f"role {role} names the model {model}, which is not in `models`")
        for name, file in self.models.items():
            if file.encoder is not None and file.encoder not in self.models:
                raise ValueError(f"{name} reads {file.encoder}, which is not in `models`")
            if name in _below(self.models, name):
                raise ValueError(f"{name} reads itself through `encoder`")
        return self

    def on(self, providers: Mapping[Role, Provider]) -> Manifest:
        """Return the same models, each on the provider of the roles that read it.

        The encoder of all others runs on that of its own role.

        Raises:
            ConfigurationError: If two roles of different providers are served by one model.
        """
        readers: dict[str, Role] = {}
        models = dict(self.models)
        for role, name in self.roles.items():
            wanted = providers.get(role, providers[EVERY])
            for model in (name, *_below(self.models, name)):
                if model == self.roles.get(ENCODER_ROLE) and role != ENCODER_ROLE:
                    continue
                if model in readers and models[model].provider != wanted:
                    raise ConfigurationError(
                        "GUARDRAIL_PROVIDERS",
                        f"{readers[model]}={models[model].provider} and {role}={wanted}",
                        f"one provider for both: the model {model} serves them",
                    )
                readers.setdefault(model, role)
                models[model] = models[model].on(wanted)
        return self.model_copy(update={"models": models})


def _below(models: Mapping[str, ModelFile], name: str) -> list[str]:
    """Return the models that a model reads, directly or through others; ends at a cycle."""
    found: list[str] = []
    below = models[name].encoder
    while below is not None and below not in found:
        found.append(below)
        below = models[below].encoder if below in models else None
    return found


class Pack:
    """A pack whose files have been checked against its manifest.

    Args:
        folder: Where it lies.
        manifest: What it says.
        brought: Other packs that serve roles this one lacks, such as those of plug-ins.
        providers: What computes, by role.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        brought: Mapping[Role, Pack] | None = None,
        providers: Mapping[Role, Provider] | None = None,
    ) -> None:
        self.providers: Mapping[Role, Provider] = providers or {EVERY: "cpu"}
        self.folder = folder
        self.manifest = manifest.on(self.providers) if providers else manifest
        self.brought = dict(brought or {})

    @property
    def name(self) -> str:
        """Return the pack's name."""
        return self.manifest.name

    @property
    def roles(self) -> tuple[Role, ...]:
        """Return the roles this pack serves: the published ones in their order, then others."""
        served = {*self.manifest.roles, *self.brought}
        return (*(role for role in ROLES if role in served), *sorted(served - set(ROLES)))

    def owner(self, role: Role) -> Pack:
        """Return the pack whose files serve a role: this one, or one that a plug-in brought."""
        return self.brought.get(role, self)

    def model_name(self, role: Role) -> str:
        """Return what the model behind a role is called; KeyError if the pack lacks it."""
        return self.owner(role).manifest.roles[role]

    def joined(self, brought: Mapping[Role, Pack]) -> Pack:
        """Return this pack with other packs' roles beside its own."""
        found = {role: pack.on(self.providers) for role, pack in brought.items()}
        return Pack(self.folder, self.manifest, {**self.brought, **found}, self.providers)

    def on(self, providers: Mapping[Role, Provider]) -> Pack:
        """Return this pack, and what is joined to it now or later, with its models elsewhere.

        Args:
            providers: By role; under `EVERY` that of all others.

        Raises:
            ConfigurationError: If two roles of different providers are served by one model.
        """
        brought = {role: pack.on(providers) for role, pack in self.brought.items()}
        return Pack(self.folder, self.manifest, brought, providers)

    def refuse_unserved(self) -> None:
        """Raise ConfigurationError if a provider is chosen for a role that the pack lacks."""
        for role in self.providers:
            if role not in (EVERY, *self.roles):
                expected = choices(role, self.roles, "role")
                raise ConfigurationError("GUARDRAIL_PROVIDERS", f"role {role!r}", expected)

    def provider(self, role: Role) -> Provider:
        """Return what computes the scores of a role."""
        return self.model(role).provider

    def files(self, role: Role) -> list[ModelFile]:
        """Return the models that a role's scores depend on, its own first.

        That are the model behind the role, the models whose states it reads, and for grounding by
        a model that reads text the encoder that chooses its evidence.
        """
        manifest = self.owner(role).manifest
        models, roles = manifest.models, manifest.roles
        read = [roles[role], *_below(models, roles[role])]
        if role == "grounding" and len(read) == 1 and ENCODER_ROLE in roles:
            read.append(roles[ENCODER_ROLE])
        return [models[name] for name in read]

    def golden(self, role: Role) -> Path:
        """Return where the golden rows of a role's model lie."""
        return self.owner(role).path(self.model(role).golden)

    def model(self, role: Role) -> ModelFile:
        """Return the model behind a role; KeyError if the pack lacks it."""
        return self.owner(role).manifest.models[self.model_name(role)]

    def fingerprint(self, role: Role) -> str:
        """Return a hash of everything in the pack that can move a role's scores."""
        parts = [file.fingerprint() for file in self.files(role)]
        if len(parts) == 1:
            return parts[0]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def path(self, file: PackFile) -> Path:
        """Return where a file of the pack lies."""
        return self.folder / file.path


def resolve(name_or_folder: str, packs: Path) -> Path:
    """Return the folder of a pack given by name or by path.

    Raises:
        PackError: If there is no such folder; the message lists the shipped packs.
    """
    shipped = packs / name_or_folder
    if (shipped / MANIFEST).is_file():
        return shipped
    folder = Path(name_or_folder)
    if (folder / MANIFEST).is_file():
        return folder
    known = sorted(p.parent.name for p in packs.glob(f"*/{MANIFEST}"))
    raise PackError(
        f"model pack {name_or_folder!r}: no folder with a {MANIFEST}; "
        f"expected a shipped pack ({', '.join(known) or 'none found'}) or a path to one"
    )


def read_manifest(folder: Path) -> Manifest:
    """Return a pack's manifest.

    Raises:
        PackError: If it is missing or malformed; the message names the key.
    """
    path = folder / MANIFEST
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise PackError(f"{path}: {error.strerror}; expected a pack manifest") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "(whole file)"
        raise PackError(f"{path}: {key}: {first['msg']}") from error
    if manifest.seal is None and any(file.padding for file in manifest.models.values()):
        raise PackError(f"{path}: seal: found none, expected the one that the export wrote")
    if manifest.seal not in (None, seal_of(manifest)):
        raise PackError(
            f"{path}: edited by hand: found seal {(manifest.seal or '')[:12]}..., expected "
            f"{seal_of(manifest)[:12]}... Make the entry again instead of editing it"
        )
    return manifest


def seal_of(manifest: Manifest) -> str:
    """Return the hash of everything a manifest says, its own seal aside."""
    content = manifest.model_dump(mode="json", exclude={"seal"}, exclude_defaults=True)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write a pack's manifest with its seal; the only way to change one that the service accepts.

    Args:
        folder: Of the pack.
        content: What the manifest says; a seal in it is replaced.

    Raises:
        ValidationError: If it is no manifest.
    """
    sealed = {**content, "seal": seal_of(Manifest.model_validate(content))}
    text = json.dumps(sealed, ensure_ascii=False, indent=1) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def load_pack(folder: Path) -> Pack:
    """Return a pack after checking size and hash of every file it names.

    Raises:
        PackError: If a file is missing, truncated or changed; the message says which and how.
    """
    manifest = read_manifest(folder)
    for model in manifest.models.values():
        for file in (model, model.tokenizer, model.golden):
            check_file(folder, file)
    return Pack(folder, manifest)


def check_file(folder: Path, file: PackFile) -> None:
    """Raise PackError unless the file lies there with the stated size and hash."""
    path = folder / file.path
    if not path.is_file():
        raise PackError(f"{path}: missing; expected {file.bytes} bytes. Re-install the pack")
    size = path.stat().st_size
    if size != file.bytes:
        state = "truncated" if size < file.bytes else "changed"
        raise PackError(
            f"{path}: {state}: found {size} bytes, expected {file.bytes}. Re-install the pack"
        )
    found = content_hash(path)
    if found != file.sha256:
        raise PackError(
            f"{path}: changed: found sha256 {found[:12]}..., expected {file.sha256[:12]}... "
            "Re-install the pack"
        )


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()

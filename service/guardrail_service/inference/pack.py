"""Model packs on disk: the manifest, the check that no file changed, and fingerprints."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from guardrail_service.errors import PackError
from guardrail_service.types import ROLES, Role

MANIFEST = "manifest.json"
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
BatchRule = Literal["one_row", "token_budget"]


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
    """Where the weights come from."""

    name: str
    revision: str
    license: str


class ModelFile(PackFile):
    """One ONNX model with everything that decides its scores."""

    tokenizer: PackFile
    golden: PackFile
    card: RelativePath
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

    def fingerprint(self) -> str:
        """Return a hash of everything in the file that can move a score."""
        parts = (self.sha256, self.tokenizer.sha256, self.max_tokens, self.batch_rule, self.labels)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class Manifest(_Frozen):
    """What a pack's `manifest.json` says."""

    schema_version: Literal["1"]
    name: str = Field(pattern="^[a-z0-9][a-z0-9._-]{0,63}$")
    version: str
    models: dict[str, ModelFile]
    roles: dict[Role, str]

    @model_validator(mode="after")
    def _roles_exist(self) -> Manifest:
        for role, model in self.roles.items():
            if model not in self.models:
                raise ValueError(f"role {role} names the model {model}, which is not in `models`")
        for name, file in self.models.items():
            if file.encoder is not None and file.encoder not in self.models:
                raise ValueError(f"{name} reads {file.encoder}, which is not in `models`")
        return self


class Pack:
    """A pack whose files have been checked against its manifest."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest

    @property
    def name(self) -> str:
        """Return the pack's name."""
        return self.manifest.name

    @property
    def roles(self) -> tuple[Role, ...]:
        """Return the roles this pack serves, in the fixed order."""
        return tuple(role for role in ROLES if role in self.manifest.roles)

    def model(self, role: Role) -> ModelFile:
        """Return the model behind a role; KeyError if the pack lacks it."""
        return self.manifest.models[self.manifest.roles[role]]

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
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise PackError(f"{path}: {error.strerror}; expected a pack manifest") from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "(whole file)"
        raise PackError(f"{path}: {key}: {first['msg']}") from error


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
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != file.sha256:
        raise PackError(
            f"{path}: changed: found sha256 {found[:12]}..., expected {file.sha256[:12]}... "
            "Re-install the pack"
        )

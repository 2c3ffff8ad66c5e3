"""Brings an original to a local folder, at a pinned commit. Nothing here runs while serving."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import re2

from guardrail_service.errors import ConfigurationError, MissingExtra
from guardrail_service.inference.pack import content_hash

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoSibling

    from guardrail_models.recipes import Checkpoint, Recipe

COMMIT = re2.compile("[0-9a-f]{40}")
CONFIGURATION = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spm.model",
    "spiece.model",
)
"""The files an architecture and a tokenizer need; weights are asked for by name."""
SAFE = "model.safetensors"
PICKLE = "pytorch_model.bin"
TENSORFLOW = "tf_model.h5"


def pinned(revision: str | None, hub: str) -> str:
    """Return the revision if it is a commit.

    Raises:
        ConfigurationError: If it is none: a branch or a tag can be moved to other weights.
    """
    if revision is None or not COMMIT.fullmatch(revision):
        found = "no revision" if revision is None else repr(revision)
        raise ConfigurationError(
            f"{hub}: --revision", found, "a commit of 40 hexadecimal digits, which cannot move"
        )
    return revision


def snapshot(
    hub: str, revision: str | None, weights: tuple[str, ...], *, code: bool = False
) -> Path:
    """Return a local copy of a hub repository at one commit, each file checked by its hash.

    Args:
        hub: Repository id.
        revision: Commit.
        weights: Names of weight files to bring, too; the first that exists is enough.
        code: Bring the repository's own Python files.

    Raises:
        ConfigurationError: If the revision is not pinned, the hub does not answer, or a file is
            not the one that the commit has.
    """
    commit = pinned(revision, hub)
    where = f"{hub}@{commit[:12]}"
    try:
        import httpx
        from huggingface_hub import HfApi, errors, snapshot_download
    except ImportError as error:
        raise MissingExtra("rag-guardrail-models[export]") from error
    # Its warnings print addresses, which can carry keys.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        listed = HfApi().model_info(hub, revision=commit, files_metadata=True)
        if listed.sha != commit:
            raise ConfigurationError(where, "another commit in the hub's answer", "this one")
        files = _needed(where, listed.siblings or [], weights, code=code)
        names = [file.rfilename for file in files]
        folder = Path(snapshot_download(hub, revision=commit, allow_patterns=names))
    except errors.RevisionNotFoundError as error:
        raise ConfigurationError(where, "no such commit", "a commit of that repository") from error
    except errors.RepositoryNotFoundError as error:
        raise ConfigurationError(
            where, "no such repository, or no access to it", "one you can read, or --from FOLDER"
        ) from error
    except (errors.HfHubHTTPError, errors.HFValidationError, httpx.HTTPError, OSError) as error:
        raise ConfigurationError(
            where,
            f"{type(error).__name__} instead of its files",
            "a hub that answers, or --from FOLDER with a local copy of the repository",
        ) from error
    for file in files:
        _check(where, folder / file.rfilename, file)
    return folder


def _needed(
    where: str, listed: Sequence[RepoSibling], weights: tuple[str, ...], *, code: bool
) -> list[RepoSibling]:
    """Return which of a repository's files to bring: none that lies in a folder."""
    there = {file.rfilename for file in listed}
    chosen = [name for name in weights if name in there][:1]
    if weights and not chosen:
        raise ConfigurationError(where, "none of the weight files", " or ".join(weights))
    wanted = {*CONFIGURATION, *chosen}
    if code:
        wanted |= {name for name in there if name.endswith(".py") and "/" not in name}
    return [file for file in listed if file.rfilename in wanted]


def _check(where: str, path: Path, listed: RepoSibling) -> None:
    """Raise ConfigurationError unless a file has the hash that the commit lists for it."""
    if listed.lfs is not None:
        expected, found = str(listed.lfs.sha256), content_hash(path)
    else:  # git's own name for the content
        data = path.read_bytes()
        header = f"blob {len(data)}\0".encode()
        expected = str(listed.blob_id)
        found = hashlib.sha1(header + data, usedforsecurity=False).hexdigest()
    if found != expected:
        raise ConfigurationError(
            f"{where}: {listed.rfilename}",
            f"a file with hash {found[:12]}...",
            f"{expected[:12]}..., which the commit lists; it was changed or cut. Empty the hub's "
            "cache and fetch it again, or use --from FOLDER with a local copy",
        )


def download(checkpoint: Checkpoint, folder: Path) -> Path:
    """Return a checkpoint file in `folder` after checking its hash.

    Raises:
        ConfigurationError: If it cannot be had, or is not the file that was pinned.
    """
    import httpx

    target = folder / checkpoint.url.rsplit("/", 1)[-1]
    digest = hashlib.sha256()
    try:
        with (
            httpx.stream("GET", checkpoint.url, follow_redirects=True) as reply,
            target.open("wb") as stream,
        ):
            reply.raise_for_status()
            for chunk in reply.iter_bytes():
                digest.update(chunk)
                stream.write(chunk)
    except httpx.HTTPError as error:
        raise ConfigurationError(
            checkpoint.url, type(error).__name__, "the file, or --from with a local copy"
        ) from error
    if not digest.hexdigest().startswith(checkpoint.sha256):
        target.unlink()
        found = f"sha256 {digest.hexdigest()[:12]}..."
        raise ConfigurationError(checkpoint.url, found, f"{checkpoint.sha256[:12]}...")
    return target


def weight_names(recipe: Recipe) -> tuple[str, ...]:
    """Return the weight files a loader can read, the preferred one first."""
    return (TENSORFLOW,) if recipe.loader == "tensorflow" else (SAFE, PICKLE)


def originals(
    recipe: Recipe,
    local: Path | None,
    foundation: Path | None,
    scratch: Path,
    *,
    code: bool = False,
) -> tuple[Path, Path]:
    """Return the folder of the weights and the folder of architecture and tokenizer.

    Args:
        recipe: Names repositories and commits.
        local: A folder in the layout of the hub repository, used instead of the hub.
        foundation: The same for the foundation; by default `local`.
        scratch: Where a checkpoint outside the hub is downloaded to.
        code: Bring the code of the hub repository's own.
    """
    if local is not None:
        named = (local / "config.json").is_file() or list(local.glob("*.ckpt"))
        if not named and recipe.gguf is None:
            raise ConfigurationError(str(local), "no config.json", "a folder as the hub has it")
        return local, foundation or local
    base = recipe.foundation
    below = foundation or (snapshot(base.hub, base.revision, ()) if base else None)
    if recipe.checkpoint is not None and below is not None:
        return download(recipe.checkpoint, scratch).parent, below
    if recipe.hub is None:
        raise ConfigurationError(recipe.name, "no repository", "--from with a local folder")
    weights = snapshot(recipe.hub, recipe.revision, weight_names(recipe), code=code)
    return weights, below or weights

"""Originals come from a pinned commit or a local folder; a checkpoint must be the pinned file."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from guardrail_models import fetch
from guardrail_models.recipes import Checkpoint, shipped_recipes
from guardrail_service.errors import ConfigurationError


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def files(tmp_path: Path) -> Iterator[str]:
    """The address of a folder with one checkpoint."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "toxic.ckpt").write_bytes(b"weights")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("revision", [None, "main", "v1.0", "hhem-1.0-open", "ab" * 19, "AB" * 20])
def test_an_unpinned_revision_is_refused(revision: str | None) -> None:
    """A branch or a tag can be moved to other weights."""
    with pytest.raises(ConfigurationError, match=r"--revision: found .* commit of 40 hex"):
        fetch.pinned(revision, "me/model")


def test_a_recipe_without_a_commit_asks_for_one(tmp_path: Path) -> None:
    """Before any network is tried."""
    recipe = shipped_recipes()["bias-detection-model"].model_copy(update={"revision": None})
    with pytest.raises(ConfigurationError, match="--revision: found no revision"):
        fetch.originals(recipe, None, None, tmp_path)


def test_a_local_folder_needs_no_network(tmp_path: Path) -> None:
    """The same layout as the repository; anything else is named."""
    recipe = shipped_recipes()["distilgpt2"]
    with pytest.raises(ConfigurationError, match=r"no config\.json"):
        fetch.originals(recipe, tmp_path, None, tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert fetch.originals(recipe, tmp_path, None, tmp_path) == (tmp_path, tmp_path)
    other = tmp_path / "foundation"
    assert fetch.originals(recipe, tmp_path, other, tmp_path) == (tmp_path, other)


def test_a_checkpoint_is_the_file_that_was_pinned(files: str, tmp_path: Path) -> None:
    """By its hash, or by as many digits of it as are known."""
    url, digest = f"{files}/toxic.ckpt", hashlib.sha256(b"weights").hexdigest()
    found = fetch.download(Checkpoint(url=url, sha256=digest[:8]), tmp_path)
    assert found.read_bytes() == b"weights"
    with pytest.raises(ConfigurationError, match=f"found sha256 {digest[:12]}"):
        fetch.download(Checkpoint(url=url, sha256="0" * 64), tmp_path)
    assert not (tmp_path / "toxic.ckpt").exists()


def test_a_checkpoint_that_cannot_be_had_is_named(files: str, tmp_path: Path) -> None:
    """With what to do instead."""
    with pytest.raises(ConfigurationError, match=r"absent\.ckpt.*--from with a local copy"):
        fetch.download(Checkpoint(url=f"{files}/absent.ckpt", sha256="0" * 64), tmp_path)


def test_a_tensorflow_repository_is_asked_for_its_own_weights() -> None:
    """And every other one for safetensors before a pickle."""
    recipes = shipped_recipes()
    assert fetch.weight_names(recipes["bias-detection-model"]) == ("tf_model.h5",)
    assert fetch.weight_names(recipes["distilgpt2"])[0] == "model.safetensors"

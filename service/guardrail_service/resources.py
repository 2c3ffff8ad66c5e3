"""Finds the shipped files, and keeps what one start computed for the next one."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_LOG = logging.getLogger(__name__)


def shipped(installed: str, checkout: str) -> Path:
    """Return the installed copy of a shipped folder if there is one, else the checkout's."""
    inside = _PACKAGE / "_data" / installed
    return inside if inside.exists() else _PACKAGE.parent.parent / checkout


def packs_dir() -> Path:
    """Return the folder whose subfolders are the shipped model packs."""
    return shipped("packs", "models")


def configs_dir() -> Path:
    """Return the folder with the shipped guardrail configurations."""
    return shipped("configs", "configs")


def start_cache_dir() -> Path | None:
    """Return the folder of `StartCache` that the environment names; None: nothing is kept."""
    named = os.environ.get("GUARDRAIL_START_CACHE")
    if named is not None:
        return Path(named) if named and named != "off" else None
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "rag-guardrail"
    except RuntimeError:  # a user without a home
        return None


class StartCache:
    """Files with what every start would compute again: compiled patterns, golden rows passed.

    A file is found by the digest of everything its content rests on. One that another user could
    have written, or whose content is not what was written, counts as absent, and a folder that
    cannot be written keeps nothing: a start is slower then and otherwise the same.
    """

    MOST_FILES = 64
    """The oldest beyond these are removed when one is added."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def get(self, kind: str, rests_on: bytes) -> bytes | None:
        """Return what `put` kept under the same kind and bytes, or None."""
        if self.folder is None:
            return None
        path = self._path(kind, rests_on)
        try:
            with path.open("rb") as file:
                if not _only_ours(self.folder.stat()) or not _only_ours(os.fstat(file.fileno())):
                    _LOG.warning("%s can be written by others and is not read", self.folder)
                    return None
                digest, content = file.read(32), file.read()
        except OSError:
            return None
        return content if hashlib.sha256(content).digest() == digest else None

    def put(self, kind: str, rests_on: bytes, content: bytes) -> None:
        """Keep a result under everything it rests on, if the folder can be written."""
        if self.folder is None:
            return
        path = self._path(kind, rests_on)
        partial = path.with_suffix(f".{secrets.token_hex(4)}")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _only_ours(self.folder.stat()):
                return
            partial.write_bytes(hashlib.sha256(content).digest() + content)
            partial.chmod(0o600)
            partial.replace(path)
            self._remove_oldest()
        except OSError as error:
            _LOG.debug("nothing is kept in %s: %s", self.folder, error.strerror)
            with suppress(OSError):
                partial.unlink()

    def _path(self, kind: str, rests_on: bytes) -> Path:
        assert self.folder is not None  # noqa: S101 - both callers have looked
        return self.folder / f"{kind}-{hashlib.sha256(rests_on).hexdigest()}"

    def _remove_oldest(self) -> None:
        assert self.folder is not None  # noqa: S101 - its caller has looked
        files = [path for path in self.folder.iterdir() if _is_kept(path)]
        newest = sorted(files, key=lambda path: path.stat().st_mtime, reverse=True)
        for path in newest[self.MOST_FILES :]:
            path.unlink(missing_ok=True)


def _is_kept(path: Path) -> bool:
    """Return whether a file is of a `StartCache`; others may lie in the folder that was named."""
    digest = path.name.rpartition("-")[2]
    return len(digest) == 64 and set(digest) <= set("0123456789abcdef") and path.is_file()


def _only_ours(found: os.stat_result) -> bool:
    """Return whether nobody else can write a file or folder; systems without users say yes."""
    if not hasattr(os, "geteuid"):
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

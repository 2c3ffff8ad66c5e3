"""Collections of documents in the client's folder: what H2O's client names by an id."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from guardrail_offline.h2o_client.client_folder import ClientFolder
from guardrail_service.errors import ConfigurationError

_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_LONGEST = 64


@dataclass(frozen=True)
class _Collections:
    """The collections of a client: folders of files, by an id of letters, digits, - and _."""

    _folder: ClientFolder

    def create(self, key: str, files: Sequence[str | os.PathLike[str]]) -> str:
        """Copy files into a new collection and return its id.

        Args:
            key: Its id.
            files: Documents; their names are kept, so no two may have one name.

        Raises:
            ConfigurationError: If the id is taken or none, or a file cannot be read.
        """
        place = self._place(key)
        paths = [Path(one) for one in files]
        if wrong := next((one for one in paths if not one.is_file()), None):
            raise ConfigurationError("collections.create", f"{wrong}, no file", "documents")
        if len({one.name for one in paths}) < len(paths):
            raise ConfigurationError("collections.create", "two files of one name", "one each")
        if place.exists():
            raise ConfigurationError("collections.create", f"{key!r} a second time", "a new id")
        place.mkdir(mode=0o700, parents=True)
        for path in paths:
            shutil.copyfile(path, place / path.name)
        return key

    def list(self) -> list[str]:
        """Return the ids, in order."""
        place = self._folder.path / "collections"
        return sorted(one.name for one in place.iterdir()) if place.is_dir() else []

    def files(self, key: str) -> tuple[Path, ...]:
        """Return the documents of a collection.

        Raises:
            ConfigurationError: If there is none of this id.
        """
        place = self._place(key)
        if not place.is_dir():
            expected = "one of collections.list(); collections.create makes one"
            raise ConfigurationError("existing_collection", f"{key!r}", expected)
        return tuple(sorted(place.iterdir()))

    def delete(self, key: str) -> None:
        """Take a collection away with its copies; ConfigurationError if there is none."""
        self.files(key)
        shutil.rmtree(self._place(key))

    def _place(self, key: str) -> Path:
        if not key or len(key) > _LONGEST or not _SIGNS.issuperset(key):
            expected = f"1 to {_LONGEST} letters, digits, - and _"
            raise ConfigurationError("existing_collection", "another id", expected)
        return self._folder.path / "collections" / key

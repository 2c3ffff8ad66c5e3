"""Labs and results behind addresses such as s3://: copied here, and kept there as a run goes on.

The only file that imports fsspec, and only for an address. Files are copied whole, so a store that
is read while a run goes on has finished shards.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from guardrail_service.errors import ConfigurationError, MissingExtra

KEEP_S = 30.0
"""Seconds of work that are lost at most when the machine of the command is."""
_MADE_ANEW = ("results", "cases.jsonl", "scores.parquet", "report.html", "open_rag_eval.csv")
"""Large outputs that no run reads when it goes on."""
_RUN = "manifest.json"


class RunPlaces(NamedTuple):
    """A lab and a folder of results on this machine, wherever they came from.

    Attributes:
        lab: The file.
        out: The folder.
        shown: The folder as it was named.
        far: Keeps the folder where it belongs; None if it is there.
    """

    lab: Path
    out: Path
    shown: str
    far: FarFolder | None


@contextmanager
def places_here(lab: str, out: str) -> Iterator[RunPlaces]:
    """Yield where lab and results lie on this machine, as long as they are needed.

    Raises:
        ConfigurationError: If an address cannot be read or written.
        MissingExtra: If there is an address and fsspec or the package of its kind is missing.
    """
    with tempfile.TemporaryDirectory(prefix="guardrail-") as scratch:
        folder = Path(scratch)
        found = lab_here(lab, folder / "lab")
        path = _plain(out)
        if path is not None:
            yield RunPlaces(found, path, out, None)
            return
        far = FarFolder(out, folder / "out")
        far.fetch()
        try:
            yield RunPlaces(found, folder / "out", _without_secrets(out), far)
        finally:
            far.keep()


def lab_here(place: str, folder: Path) -> Path:
    """Return a lab on this machine; what an address names is copied into a folder."""
    path = _plain(place)
    if path is not None:
        return path
    system, root = _opened(place)
    name = PurePosixPath(root).name or "lab"
    with _explained(place, "a lab that can be read"):
        if system.isdir(root):
            for source in system.find(root):
                _get(system, source, folder / name / _inside(source, root))
        else:
            _get(system, root, folder / name)
    return folder / name


class FarFolder:
    """A folder of results behind an address, and its copy on this machine.

    Args:
        address: Of the folder.
        folder: The copy; made if it is not there.
    """

    def __init__(self, address: str, folder: Path) -> None:
        self._address, self._folder = address, folder
        self._system, self._root = _opened(address)
        self._kept: dict[Path, tuple[int, int]] = {}
        self._at = time.monotonic()

    def fetch(self) -> None:
        """Copy what an earlier run left, so that it is gone on with.

        Raises:
            ConfigurationError: If the folder cannot be read, or holds anything else.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        with _explained(self._address, "a folder that can be read"):
            self._system.invalidate_cache()
            there = self._system.find(self._root) if self._system.exists(self._root) else []
            inside = {_inside(path, self._root): path for path in there}
            if inside and Path(_RUN) not in inside:
                names = {path.parts[0] for path in inside if path.parts}
                if names - {"work"}:
                    where = _without_secrets(self._address)
                    expected = "an empty folder, or a run to go on with"
                    raise ConfigurationError(where, "other files", expected)
            for name, source in inside.items():
                if name.parts and name.parts[0] not in _MADE_ANEW:
                    path = self._folder / name
                    _get(self._system, source, path)
                    self._kept[path] = _state(path)

    def keep_soon(self) -> None:
        """Copy what is new there, if that was long enough ago."""
        if time.monotonic() - self._at >= KEEP_S:
            self.keep()

    def keep(self) -> None:
        """Copy every file that is new or changed; a manifest after what it promises."""
        paths = [path for path in self._folder.rglob("*") if path.is_file()]
        for path in sorted(paths, key=lambda one: one.name == _RUN):
            if path.name.endswith((".tmp", "-journal")) or self._kept.get(path) == _state(path):
                continue
            state = _state(path)
            self._put(path)
            self._kept[path] = state
        self._at = time.monotonic()

    def _put(self, path: Path) -> None:
        target = f"{self._root.rstrip('/')}/{path.relative_to(self._folder).as_posix()}"
        with (
            _explained(self._address, "a folder that can be written"),
            tempfile.TemporaryDirectory() as scratch,
        ):
            source = path
            if path.suffix == ".sqlite":  # another thread may be writing
                source = Path(scratch) / path.name
                with closing(sqlite3.connect(path)) as ours, closing(sqlite3.connect(source)) as it:
                    ours.backup(it)
            self._system.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._system.put_file(str(source), target)


def _plain(place: str) -> Path | None:
    """Return the path of a place on this machine; None of any other address."""
    if "://" not in place:
        return Path(place)
    parts = urlsplit(place)
    return Path(unquote(parts.path)) if parts.scheme == "file" and not parts.netloc else None


def _opened(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise MissingExtra("rag-guardrail-offline[remote]") from error
    try:
        system, root = url_to_fs(address)
    except ImportError as error:
        kind = urlsplit(address).scheme
        raise ConfigurationError(
            _without_secrets(address), f"no package for {kind}://", f"fsspec's package for {kind}"
        ) from error
    except ValueError as error:
        expected = "a path, or an address of a kind that fsspec knows"
        raise ConfigurationError(_without_secrets(address), "an unknown kind", expected) from error
    return system, str(root)


@contextmanager
def _explained(address: str, expected: str) -> Iterator[None]:
    """Say in one line what a store cannot do; each has errors of its own."""
    try:
        yield
    except ConfigurationError:
        raise
    except Exception as error:
        found = type(error).__name__
        raise ConfigurationError(_without_secrets(address), found, expected) from error


def _get(system: Any, source: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    system.get_file(source, str(target))


def _inside(path: str, root: str) -> Path:
    """Return the path of a store's file within a folder; nothing leads out of it."""
    found = PurePosixPath(path).relative_to(PurePosixPath(root))
    if ".." in found.parts:
        raise ValueError("a name that leads out of its folder")
    return Path(found)


def _state(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_mtime_ns, about.st_size


def _without_secrets(address: str) -> str:
    """Return an address as it may be shown: without user, password and query."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:200]

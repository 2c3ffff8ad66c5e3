"""One zip of a workflow for somebody else, and the way back: what comes in is not trusted."""

from __future__ import annotations

import json
import lzma
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from guardrail_offline.workflow.definition import Definition, read_definition, write_definition
from guardrail_offline.workflow.folder import (
    DEFINITION,
    STEPS,
    WorkflowFolder,
    file_of,
    leads_elsewhere,
    locked,
)
from guardrail_service.errors import ConfigurationError
from guardrail_service.inference.pack import MANIFEST
from guardrail_service.resources import packs_dir

MOST_FILES = 20_000
MOST_BYTES = 2 * 2**30
MOST_RATIO = 200
"""Bytes of a file per byte in the zip; text that repeats itself reaches a tenth of that."""
_SMALL = 2**20
_BLOCK = 2**20
_LEFT_OUT = {"work"}
"""Folders of shards: a finished run needs them no more, but to be gone on with."""
_CORRUPT = (
    OSError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error,
    lzma.LZMAError,
)  # fmt: skip
_TIME = (1980, 1, 1, 0, 0, 0)


def share(folder: WorkflowFolder, out: Path, *, texts: bool = True) -> int:
    """Write a workflow as one zip with names relative to it, and return how many files it has.

    Args:
        folder: Of the workflow.
        out: The zip; outside of the folder.
        texts: Whether documents go along; without them topics and generation cannot run again.

    Raises:
        ConfigurationError: If the zip would lie in the folder, or cannot be written.
    """
    if out.resolve().is_relative_to(folder.root.resolve()):
        raise ConfigurationError("--out", "a file in the workflow", "a place outside of it")
    count = 0
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        with locked(folder), zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in _shared(folder.root):
                name = path.relative_to(folder.root).as_posix()
                if not texts and name.startswith("documents/"):
                    continue
                about = zipfile.ZipInfo(name, _TIME)
                about.compress_type = zipfile.ZIP_DEFLATED
                about.external_attr = 0o644 << 16
                with path.open("rb") as source, archive.open(about, "w") as target:
                    shutil.copyfileobj(source, target, _BLOCK)
                count += 1
        temporary.replace(out)
    except OSError as error:
        raise ConfigurationError("--out", type(error).__name__, "a file to write") from error
    finally:
        temporary.unlink(missing_ok=True)
    return count


def receive(archive: Path, root: Path) -> WorkflowFolder:
    """Unpack a shared workflow into a new folder, and return it.

    Nothing is written outside of the folder, and nothing at all if anything is wrong: a name that
    leads elsewhere, a link, a name twice, too many or too large files, more bytes than are said, or
    no workflow in it.

    Whom its steps ask was chosen by somebody else: to run them would send documents, and the
    variable that is named for a key, to that host. Nobody is asked before `workflow edit --trust`.

    Raises:
        ConfigurationError: Naming what is wrong.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise ConfigurationError(str(root), "a folder with content", "an empty or new folder")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".workflow-", dir=root.parent) as place:
        inside = Path(place) / "workflow"
        inside.mkdir()
        try:
            with zipfile.ZipFile(archive) as packed:
                members = _checked(archive, packed)
                for member in members:
                    _unpack(archive, packed, member, inside)
        except _CORRUPT as error:
            expected = "a zip of guardrail workflow share"
            raise ConfigurationError(str(archive), type(error).__name__, expected) from error
        _refuse_no_workflow(archive, WorkflowFolder(inside))
        _distrust(WorkflowFolder(inside))
        if root.exists():
            root.rmdir()
        inside.replace(root)
    return WorkflowFolder(root)


def delete(folder: WorkflowFolder) -> None:
    """Remove a workflow and everything in its folder.

    Raises:
        ConfigurationError: If somebody runs it.
    """
    with locked(folder):
        shutil.rmtree(folder.root)


def absolute_paths(folder: WorkflowFolder) -> list[str]:
    """Return the files of our own that say where on this machine the workflow lies."""
    here = str(folder.root.resolve())
    names = (DEFINITION, *map(file_of, STEPS))
    found = ((name, folder.content(name)) for name in names)
    return [name for name, content in found if content and _says(content, here)]


def _says(value: Any, here: str) -> bool:
    return here in json.dumps(value, ensure_ascii=False)


def _shared(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        hidden = any(part.startswith(".") for part in parts)
        if path.is_file() and not path.is_symlink() and not hidden and not _LEFT_OUT & {*parts}:
            yield path


def _checked(archive: Path, packed: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    members = [one for one in packed.infolist() if not one.is_dir()]
    if len(members) > MOST_FILES:
        raise ConfigurationError(str(archive), f"{len(members)} files", f"at most {MOST_FILES}")
    total = sum(one.file_size for one in members)
    if total > MOST_BYTES:
        raise ConfigurationError(str(archive), f"{total} bytes", f"at most {MOST_BYTES}")
    seen: set[str] = set()
    for one in members:
        _refuse_name(archive, one)
        if one.filename.casefold() in seen:
            raise ConfigurationError(str(archive), "a name twice", "each name once")
        seen.add(one.filename.casefold())
        if one.file_size > _SMALL and one.file_size > MOST_RATIO * max(1, one.compress_size):
            found = f"a file {one.file_size // max(1, one.compress_size)} times its packed size"
            raise ConfigurationError(str(archive), found, f"at most {MOST_RATIO} times")
    return members


def _refuse_name(archive: Path, one: zipfile.ZipInfo) -> None:
    """Refuse a name that leads out of the folder, and whatever is no plain file.

    Raises:
        ConfigurationError: Without the name, which is somebody else's text.
    """
    name = PurePosixPath(one.filename)
    kind = stat.S_IFMT(one.external_attr >> 16)
    bad = (
        name.is_absolute()
        or ".." in name.parts
        or "\\" in one.filename
        or ":" in one.filename
        or "\0" in one.orig_filename
        or any(part.startswith(".") for part in name.parts)
    )
    if bad or not name.parts:
        raise ConfigurationError(str(archive), "a name that leads elsewhere", "plain names")
    if kind not in (0, stat.S_IFREG):
        raise ConfigurationError(str(archive), "a link or device", "plain files")
    if one.flag_bits & 1:
        raise ConfigurationError(str(archive), "an encrypted file", "a zip without password")


def _unpack(archive: Path, packed: zipfile.ZipFile, member: zipfile.ZipInfo, inside: Path) -> None:
    """Write one file, never more bytes than the zip says it has."""
    target = inside / member.filename
    target.parent.mkdir(parents=True, exist_ok=True)
    left = member.file_size
    with packed.open(member) as source, target.open("xb") as written:
        while block := source.read(_BLOCK):
            left -= len(block)
            if left < 0:
                raise ConfigurationError(str(archive), "more bytes than it says", "a whole zip")
            written.write(block)


def _distrust(folder: WorkflowFolder) -> None:
    """Note that somebody else chose whom to ask; results that came along stay current."""
    definition = read_definition(folder)
    asks = definition.judge is not None or (
        definition.target is not None and definition.target.asks
    )
    if asks != definition.received:
        write_definition(folder, definition.model_copy(update={"received": asks}))


def _refuse_no_workflow(archive: Path, folder: WorkflowFolder) -> None:
    if not folder.definition.is_file():
        raise ConfigurationError(str(archive), f"no {DEFINITION}", "a shared workflow")
    definition = read_definition(folder)
    named = [one.path for one in definition.documents]
    named += [name for name in (definition.cases, definition.labels) if name]
    if definition.target is not None:
        target = definition.target
        named += [name for name in (target.answers, target.template) if name]
    if definition.judge is not None:
        named.append(definition.judge.store)
    if any(map(leads_elsewhere, named)):
        raise ConfigurationError(str(archive), "a path that leads elsewhere", "names in it")
    if not _is_shipped(definition.pack):
        raise ConfigurationError(f"{archive}: pack", "a folder", "the name of a shipped model pack")
    for step in STEPS:
        folder.record(step)


def _is_shipped(pack: str) -> bool:
    """Return whether a model pack is ours, and no folder that somebody else chose."""
    is_name = len(PurePosixPath(pack).parts) == 1 and not leads_elsewhere(pack)
    return is_name and (pack == Definition().pack or (packs_dir() / pack / MANIFEST).is_file())

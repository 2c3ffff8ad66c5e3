"""A pack as one file that can be carried to a machine without a network, and back into a folder."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import IO

from guardrail_service.errors import PackError
from guardrail_service.inference.pack import MANIFEST, Manifest, content_hash, load_pack

LISTING = "bundle.json"
MAX_FILES = 200
MAX_BYTES = 8 * 2**30
"""A pack has five files per model; the largest reference model has 0.75 GB in fp32."""
CHUNK = 2**20


def bundle(folder: Path, target: Path) -> str:
    """Write a pack as one archive and return the archive's SHA-256.

    The same files give the same bytes: no dates, owners or order of the disk. The archive is not
    compressed, because weights do not shrink.

    Raises:
        PackError: If a file of the pack is missing or changed, or the archive cannot be written.
    """
    pack = load_pack(folder)
    names = sorted(_named(pack.manifest) | {MANIFEST})
    listing = {name: content_hash(folder / name) for name in names}
    head = json.dumps({"schema_version": "1", "files": listing}, indent=1).encode() + b"\n"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
            archive.addfile(_plain(LISTING, len(head)), io.BytesIO(head))
            for name in names:
                path = folder / name
                with path.open("rb") as stream:
                    archive.addfile(_plain(name, path.stat().st_size), stream)
    except OSError as error:
        raise PackError(f"{target}: {type(error).__name__}; expected a file to write") from error
    return content_hash(target)


def unbundle(archive: Path, target: Path, sha256: str | None = None) -> None:
    """Write a pack from an archive after checking everything about it.

    Args:
        archive: What `bundle` wrote.
        target: A folder that does not exist yet.
        sha256: What the archive must be, if it came with a checksum.

    Raises:
        PackError: If the archive is not the one that was sent, is damaged, holds anything but the
            files it lists, or they are not a pack.
    """
    if target.exists():
        raise PackError(f"{target}: exists; expected a folder that does not")
    try:
        if sha256 is not None and (found := content_hash(archive)) != sha256.lower():
            raise PackError(f"{archive}: found sha256 {found[:12]}..., expected {sha256[:12]}...")
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(dir=target.parent, prefix=".unbundle-") as scratch,
            tarfile.open(archive, "r:") as stream,
        ):
            folder = Path(scratch) / "pack"
            folder.mkdir()
            _extract(stream, folder, archive)
            load_pack(folder)
            folder.rename(target)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise PackError(
            f"{archive}: {type(error).__name__}; expected an archive as `models bundle` writes it"
        ) from error


def _named(manifest: Manifest) -> set[str]:
    """Return every file that a manifest names."""
    names = set()
    for model in manifest.models.values():
        names |= {model.path, model.tokenizer.path, model.golden.path, model.card}
    return names


def _plain(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    member.mode = 0o644
    return member


def _extract(stream: tarfile.TarFile, folder: Path, archive: Path) -> None:
    members = iter(stream)
    listing = _listing(stream, next(members, None), archive)
    total = 0
    for member in members:
        total += member.size
        if member.name not in listing or not member.isreg() or not _is_inside(member.name):
            raise PackError(f"{archive}: holds something that it does not list, or no plain file")
        if total > MAX_BYTES:
            raise PackError(f"{archive}: more than {MAX_BYTES} bytes")
        content = stream.extractfile(member)
        if content is None:
            raise PackError(f"{archive}: {member.name}: no content")
        path = folder / member.name
        path.parent.mkdir(parents=True, exist_ok=True)
        found = _copy(content, path)
        if found != listing.pop(member.name):
            raise PackError(f"{archive}: {member.name}: changed or truncated on the way")
    if listing:
        raise PackError(f"{archive}: truncated: {len(listing)} of its files are missing")


def _listing(
    stream: tarfile.TarFile, first: tarfile.TarInfo | None, archive: Path
) -> dict[str, str]:
    expected = f"expected {LISTING} first, as `models bundle` writes it"
    if first is None or first.name != LISTING or not first.isreg() or first.size > CHUNK:
        raise PackError(f"{archive}: {expected}")
    content = stream.extractfile(first)
    try:
        files = json.loads(content.read() if content else b"")["files"]
        listing = {str(name): str(digest) for name, digest in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PackError(f"{archive}: {LISTING}: {type(error).__name__}; {expected}") from error
    if len(listing) > MAX_FILES or not all(map(_is_inside, listing)):
        raise PackError(f"{archive}: lists more than {MAX_FILES} files, or one outside the pack")
    return listing


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name and name != ""


def _copy(content: IO[bytes], path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("xb") as target:
        while chunk := content.read(CHUNK):
            digest.update(chunk)
            target.write(chunk)
    return digest.hexdigest()

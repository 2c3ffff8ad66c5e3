"""Bundles: the same pack gives the same bytes, and nothing else comes out of an archive."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from guardrail_service.errors import PackError
from guardrail_service.inference import bundle as module
from guardrail_service.inference.bundle import LISTING, bundle, unbundle
from guardrail_service.inference.pack import load_pack

Members = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture
def archive(tiny: Path, tmp_path: Path) -> Path:
    """The tiny pack in an archive."""
    target = tmp_path / "tiny.tar"
    bundle(tiny, target)
    return target


def members(archive: Path) -> Members:
    """Return an archive's members with their content."""
    with tarfile.open(archive) as stream:
        return [(m, (stream.extractfile(m) or io.BytesIO()).read()) for m in stream]


def write(archive: Path, content: Members) -> None:
    """Write an archive again."""
    with tarfile.open(archive, "w") as stream:
        for member, data in content:
            stream.addfile(member, io.BytesIO(data))


def member(name: str, data: bytes, kind: bytes = tarfile.REGTYPE) -> tuple[tarfile.TarInfo, bytes]:
    """Return a member."""
    info = tarfile.TarInfo(name)
    info.size, info.type = len(data) if kind == tarfile.REGTYPE else 0, kind
    info.linkname = "/etc/passwd"
    return info, data


def listed(archive: Path, name: str, data: bytes) -> Members:
    """Return an archive's members with one more, which the listing names, too."""
    (head, listing), *rest = members(archive)
    content = json.loads(listing)
    content["files"][name] = hashlib.sha256(data).hexdigest()
    text = json.dumps(content).encode()
    head.size = len(text)
    return [(head, text), *rest, member(name, data)]


def test_a_pack_comes_back_as_it_was(tiny: Path, archive: Path, tmp_path: Path) -> None:
    """Every file that the manifest names, and the manifest."""
    unbundle(archive, tmp_path / "there")
    assert load_pack(tmp_path / "there").manifest == load_pack(tiny).manifest
    for path in (tmp_path / "there").rglob("*"):
        assert path.read_bytes() == (tiny / path.name).read_bytes()


def test_the_same_pack_gives_the_same_bytes(tiny: Path, archive: Path, tmp_path: Path) -> None:
    """Whatever the disk says about dates, owners and order."""
    copy = Path(shutil.copytree(tiny, tmp_path / "copy"))
    os.utime(copy / "model.onnx", (1, 1))
    (copy / "model.onnx").chmod(0o600)
    (copy / "notes.txt").write_text("not of the pack")
    digest = bundle(copy, tmp_path / "again.tar")
    assert (tmp_path / "again.tar").read_bytes() == archive.read_bytes()
    assert digest == hashlib.sha256(archive.read_bytes()).hexdigest()


def test_the_archives_folder_is_made(tiny: Path, archive: Path, tmp_path: Path) -> None:
    """As `unbundle` makes the pack's."""
    bundle(tiny, tmp_path / "new" / "folder" / "tiny.tar")
    again = tmp_path / "new" / "folder" / "tiny.tar"
    assert again.read_bytes() == archive.read_bytes()


def test_what_cannot_be_an_archive_is_named(tiny: Path, archive: Path, tmp_path: Path) -> None:
    """A folder, and a file below a file."""
    with pytest.raises(PackError, match=f"{tmp_path}: IsADirectoryError; expected a file"):
        bundle(tiny, tmp_path)
    with pytest.raises(PackError, match=r"x\.tar: .*; expected a file to write"):
        bundle(tiny, archive / "x.tar")


def test_a_damaged_pack_is_not_bundled(tiny: Path, tmp_path: Path) -> None:
    """What is sent is what was exported."""
    copy = Path(shutil.copytree(tiny, tmp_path / "copy"))
    (copy / "golden.json").write_text("{}")
    with pytest.raises(PackError, match=r"golden\.json"):
        bundle(copy, tmp_path / "never.tar")


def test_a_checksum_is_compared(archive: Path, tmp_path: Path) -> None:
    """If the archive came with one."""
    good = hashlib.sha256(archive.read_bytes()).hexdigest()
    with pytest.raises(PackError, match="found sha256"):
        unbundle(archive, tmp_path / "there", "0" * 64)
    unbundle(archive, tmp_path / "there", good.upper())


def damaged(content: Members, place: int) -> Members:
    """Flip a bit of one member."""
    info, data = content[place]
    content[place] = info, bytes([data[0] ^ 1]) + data[1:]
    return content


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda a: members(a)[:-1], "truncated"),
        (lambda a: damaged(members(a), 2), "changed or truncated"),
        (lambda a: members(a)[1:], f"expected {LISTING} first"),
        (lambda a: [*members(a), member("extra.txt", b"x")], "does not list"),
        (lambda a: [*members(a), members(a)[-1]], "does not list"),
        (lambda a: [*members(a), member("link", b"", tarfile.SYMTYPE)], "no plain file"),
        (lambda a: listed(a, "../outside", b"x"), "outside the pack"),
        (lambda a: listed(a, "/tmp/outside", b"x"), "outside the pack"),  # noqa: S108
        (lambda a: listed(a, "a/../../b", b"x"), "outside the pack"),
        (lambda a: [member(LISTING, b"{}")], LISTING),
        (lambda a: [member(LISTING, b"\xff")], LISTING),
        (lambda a: [], "expected"),
    ],
)
def test_an_archive_that_is_not_what_it_lists_is_refused(
    damage: Callable[[Path], Members], message: str, archive: Path, tmp_path: Path
) -> None:
    """And nothing is left behind, inside or outside."""
    write(archive, damage(archive))
    before = set(tmp_path.rglob("*"))
    with pytest.raises(PackError, match=message):
        unbundle(archive, tmp_path / "there")
    assert set(tmp_path.rglob("*")) == before
    assert not (tmp_path.parent / "outside").exists()


def test_a_file_that_lies_about_its_size_is_refused(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound on all files together, before they are written."""
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    with pytest.raises(PackError, match="more than 100 bytes"):
        unbundle(archive, tmp_path / "there")


@pytest.mark.parametrize("content", [b"", b"not an archive" * 100])
def test_what_is_no_archive_is_named(content: bytes, tmp_path: Path) -> None:
    """With what was expected."""
    path = tmp_path / "x.tar"
    path.write_bytes(content)
    with pytest.raises(PackError, match=r"x\.tar.*expected"):
        unbundle(path, tmp_path / "there")
    with pytest.raises(PackError, match="expected"):
        unbundle(tmp_path / "absent.tar", tmp_path / "there")


def test_an_existing_folder_is_left_alone(archive: Path, tmp_path: Path) -> None:
    """Another pack is never overwritten."""
    (tmp_path / "there").mkdir()
    with pytest.raises(PackError, match="exists"):
        unbundle(archive, tmp_path / "there")

"""Results kept for the next start are found again, and not believed if others may have written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from guardrail_service.resources import StartCache, start_cache_dir
from guardrail_service.text.patterns import search
from guardrail_service.text.patterns.search import Pattern, PatternSet


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that does not exist yet."""
    return tmp_path / "kept" / "here"


def test_what_was_put_is_found_under_everything_it_rests_on(folder: Path) -> None:
    """Kind and bytes both count, and nobody else can read the folder."""
    cache = StartCache(folder)
    assert cache.get("patterns", b"a") is None
    cache.put("patterns", b"a", b"content")
    assert StartCache(folder).get("patterns", b"a") == b"content"
    assert cache.get("patterns", b"b") is None
    assert cache.get("golden", b"a") is None
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:-1]), id="cut short"),
        pytest.param(lambda path: path.write_bytes(b""), id="emptied"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes() + b"x"), id="longer"),
        pytest.param(lambda path: path.chmod(0o666), id="file writable by others"),
        pytest.param(lambda path: path.parent.chmod(0o777), id="folder writable by others"),
    ],
)
def test_a_file_that_may_not_be_ours_is_not_read(folder: Path, damage: object) -> None:
    """Damaged, or open to others: as if it were absent."""
    cache = StartCache(folder)
    cache.put("patterns", b"a", b"content")
    (path,) = folder.iterdir()
    assert callable(damage)
    damage(path)
    assert cache.get("patterns", b"a") is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_a_file_of_another_user_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever else owns it could have put anything there."""
    cache = StartCache(folder)
    cache.put("patterns", b"a", b"content")
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    assert cache.get("patterns", b"a") is None


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path: Path) -> None:
    """The start goes on without."""
    (tmp_path / "file").write_text("in the way", "utf-8")
    cache = StartCache(tmp_path / "file" / "kept")
    cache.put("patterns", b"a", b"content")
    assert cache.get("patterns", b"a") is None
    assert StartCache(None).get("patterns", b"a") is None


def test_nothing_is_put_where_others_can_write(folder: Path) -> None:
    """A folder that is open to all belongs to nobody."""
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    StartCache(folder).put("patterns", b"a", b"content")
    assert not list(folder.iterdir())


def test_the_oldest_files_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New versions do not fill the disk, and files of anybody else stay."""
    folder.mkdir(mode=0o700, parents=True)
    others = [folder / "keys.json", folder / "decisions-2026.db"]
    for path in others:
        path.write_text("not of this cache", "utf-8")
        os.utime(path, (1, 1))
    monkeypatch.setattr(StartCache, "MOST_FILES", 2)
    cache = StartCache(folder)
    for number in range(3):
        cache.put("patterns", b"%d" % number, b"content")
        for path in folder.iterdir():
            if number == 0:
                os.utime(path, (1, 1))
    assert len(list(folder.iterdir())) == 2 + len(others)
    assert all(path.exists() for path in others)
    assert cache.get("patterns", b"0") is None
    assert cache.get("patterns", b"2") == b"content"


@pytest.mark.parametrize(
    ("named", "home", "found"),
    [
        ("/kept", "/cache", Path("/kept")),
        ("off", "/cache", None),
        ("", "/cache", None),
        (None, "/cache", Path("/cache/rag-guardrail")),
        (None, None, Path.home() / ".cache" / "rag-guardrail"),
    ],
    ids=["named", "off", "empty", "cache folder", "home"],
)
def test_the_environment_names_the_folder(
    named: str | None, home: str | None, found: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder by name, the user's cache folder, or none."""
    for name, value in (("GUARDRAIL_START_CACHE", named), ("XDG_CACHE_HOME", home)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert start_cache_dir() == found


PATTERNS = [Pattern("number", r"\d{3}-\d{4}"), Pattern("name", "jos[eé]", ignore_case=True)]
TEXT = "Call JOSÉ or jose: 555-1234, not 55-1234."


def test_kept_patterns_find_what_compiled_ones_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same matches, nothing compiled."""
    monkeypatch.setenv("GUARDRAIL_START_CACHE", str(folder))
    compiled = PatternSet(PATTERNS, "hyperscan").scan(TEXT)
    (kept,) = folder.iterdir()
    assert kept.name.startswith("patterns-")

    monkeypatch.setattr(StartCache, "put", lambda *_: pytest.fail("compiled although it was kept"))
    assert PatternSet(PATTERNS, "hyperscan").scan(TEXT) == compiled
    assert [match.pattern for match in compiled] == ["name", "name", "number"]


def test_a_database_that_this_processor_cannot_read_is_compiled_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that hyperscan refuses costs one compilation."""
    monkeypatch.setenv("GUARDRAIL_START_CACHE", str(folder))
    expected = PatternSet(PATTERNS, "hyperscan").scan(TEXT)
    get = StartCache.get
    monkeypatch.setattr(search.StartCache, "get", lambda *args: b"\0" * 100 if get(*args) else None)
    assert PatternSet(PATTERNS, "hyperscan").scan(TEXT) == expected

"""Looks through documents before they are indexed: instructions to a model, personal data, secrets.

Findings are places, never texts. They may be remembered under a hash of their text.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from guardrail_service import detectors
from guardrail_service.commands.warm import texts_of
from guardrail_service.detectors.injection import instructions
from guardrail_service.detectors.pii import detector as pii
from guardrail_service.detectors.secrets import detector as secrets
from guardrail_service.errors import ConfigurationError, GuardrailError, choices
from guardrail_service.server.translate import decode

MOST_BYTES = 64 * 1024 * 1024
"""A document of text that is larger is another kind of file; JSON lines may be longer."""
_PART = 50_000
"""Code points searched at once."""
_OVERLAP = 2_000
"""Code points of a part that are searched again with the next, so that a cut hides nothing."""
_LONGEST_LINE = 16 * 1024 * 1024


class ScanPlace(NamedTuple):
    """One finding in a text; offsets are code points [start, end)."""

    check: str
    kind: str
    start: int
    end: int


class ScanFinding(NamedTuple):
    """One finding in a file; `text` counts the texts of one line of JSON from 0."""

    file: str
    line: int
    text: int
    check: str
    kind: str
    start: int
    end: int


class NotScanned(NamedTuple):
    """A document that was not searched, and why."""

    file: str
    found: str
    expected: str


class ScanReport(NamedTuple):
    """Everything a scan says."""

    files: int
    texts: int
    remembered: int
    findings: list[ScanFinding]
    unread: list[NotScanned]


class ScanText(NamedTuple):
    """One text of a document, and where it is."""

    file: str
    line: int
    number: int
    text: str
    bytes: int


def _injection(text: str) -> Iterator[tuple[str, int, int]]:
    return ((item.kind, item.start, item.end) for item in instructions.find(text))


def _pii(text: str) -> Iterator[tuple[str, int, int]]:
    return ((item.type, item.start, item.end) for item in pii.findings(text, pii.PIIParameters()))


def _secrets(text: str) -> Iterator[tuple[str, int, int]]:
    return ((item.type, item.start, item.end) for item in secrets.find(text))


CHECKS: dict[str, Callable[[str], Iterator[tuple[str, int, int]]]] = {
    "injection": _injection,
    "pii": _pii,
    "secrets": _secrets,
}


def named(given: Sequence[str] | None, option: str, *more: str) -> tuple[str, ...]:
    """Return checks by name, all of them if none is named.

    Raises:
        ConfigurationError: Naming the option and the names there are.
    """
    names = tuple(dict.fromkeys(given or CHECKS))
    for name in names:
        if name not in (*CHECKS, *more):
            raise ConfigurationError(option, repr(name), choices(name, (*CHECKS, *more), "check"))
    return names


def documents(given: Iterable[Path]) -> list[Path]:
    """Return the files that are meant: files as they are, folders with all in them but dot files.

    Raises:
        ConfigurationError: If something does not exist.
    """
    found: dict[Path, None] = {}
    for path in given:
        if not path.exists():
            raise ConfigurationError(str(path), "no file", "a file or a folder")
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in inside:
            hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
            if not file.is_dir() and not hidden:
                found[file] = None
    return list(found)


def scan(
    files: Sequence[Path],
    checks: Sequence[str],
    cache: ScanCache | None,
    advance: Callable[[int], object],
) -> ScanReport:
    """Search documents; one that cannot be read is reported and the others go on.

    Args:
        files: Documents; `.jsonl` holds a text, an object with "text" or "contexts" a line.
        checks: Names of `CHECKS`.
        cache: What was found before; None searches everything.
        advance: Told how many bytes are done.
    """
    findings: list[ScanFinding] = []
    unread: list[NotScanned] = []
    texts = remembered = 0
    for file in files:
        try:
            for item in _read(file):
                places = cache.get(item.text) if cache else None
                remembered += places is not None
                if places is None:
                    places = list(search(item.text, checks))
                    if cache:
                        cache.put(item.text, places)
                findings += (_finding(item, place) for place in places)
                texts += 1
                advance(item.bytes)
        except _NotText as error:
            unread.append(NotScanned(str(file), error.found, error.expected))
    return ScanReport(len(files), texts, remembered, findings, unread)


def _finding(item: ScanText, place: ScanPlace) -> ScanFinding:
    line = item.line or item.text.count("\n", 0, place.start) + 1
    return ScanFinding(item.file, line, item.number, *place)


def search(text: str, checks: Sequence[str]) -> Iterator[ScanPlace]:
    """Yield what the checks find in a text, part by part, each place once."""
    seen: set[ScanPlace] = set()
    begin = 0
    while begin < len(text):
        end = _cut(text, begin)
        again = len(text) if end == len(text) else end - _OVERLAP
        for check in checks:
            for kind, start, stop in CHECKS[check](text[begin:end]):
                place = ScanPlace(check, kind, begin + start, begin + stop)
                if place not in seen and place.start < again:
                    seen.add(place)
                    yield place
        begin = again


def _cut(text: str, begin: int) -> int:
    if len(text) - begin <= _PART:
        return len(text)
    line = text.rfind("\n", begin + _PART // 2, begin + _PART)
    return line + 1 if line >= 0 else begin + _PART


class _NotText(Exception):
    def __init__(self, found: str, expected: str) -> None:
        super().__init__(found)
        self.found, self.expected = found, expected


def _read(file: Path) -> Iterator[ScanText]:
    try:
        if not file.is_file():
            raise _NotText("no ordinary file", "a file of text")
        if file.suffix == ".jsonl":
            yield from _lines(file)
        else:
            yield _whole(file)
    except OSError as error:
        raise _NotText(error.strerror or "no access", "a file that can be read") from error


def _whole(file: Path) -> ScanText:
    size = file.stat().st_size
    if size > MOST_BYTES:
        raise _NotText(f"{size} bytes", f"at most {MOST_BYTES}; split it or write JSON lines")
    data = file.read_bytes()
    if b"\0" in data[:8_192]:
        raise _NotText("a binary file", "text in UTF-8; extract its text first")
    try:
        return ScanText(str(file), 0, 0, data.decode("utf-8-sig"), size)
    except UnicodeDecodeError as error:
        raise _NotText(f"no UTF-8 at byte {error.start}", "text in UTF-8") from None


def _lines(file: Path) -> Iterator[ScanText]:
    with file.open("rb") as stream:
        number = 0
        while line := stream.readline(_LONGEST_LINE + 1):
            number += 1
            where = f"line {number}"
            if len(line) > _LONGEST_LINE:
                raise _NotText(f"{where} with over {_LONGEST_LINE} bytes", "shorter lines")
            if not line.strip():
                continue
            try:
                texts = texts_of(decode(line, where))
            except GuardrailError as error:
                raise _NotText(str(error), "JSON lines") from None
            if texts is None:
                expected = 'a text, or an object with "text" or "contexts"'
                raise _NotText(f"{where} of another kind", expected)
            for index, text in enumerate(texts):
                yield ScanText(str(file), number, index, text, 0 if index else len(line))


class ScanCache:
    """The findings of earlier scans in an SQLite file: hashes and places, no text.

    Another version of the rules, or other checks, find nothing in it.
    """

    def __init__(self, connection: sqlite3.Connection, checks: Sequence[str]) -> None:
        self._connection = connection
        self._salt = f"{_rules()} {','.join(checks)}\0".encode()

    def get(self, text: str) -> list[ScanPlace] | None:
        """Return the places found in a text; None if it is new."""
        row = self._connection.execute(
            "SELECT places FROM scanned WHERE key = ?", (self._key(text),)
        ).fetchone()
        return None if row is None else [ScanPlace(*place) for place in json.loads(row[0])]

    def put(self, text: str, places: Sequence[ScanPlace]) -> None:
        """Remember the places of a text."""
        self._connection.execute(
            "INSERT OR REPLACE INTO scanned VALUES (?, ?)", (self._key(text), json.dumps(places))
        )

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(self._salt + text.encode("utf-8", "surrogatepass")).digest()


@contextmanager
def opened(path: Path | None, checks: Sequence[str]) -> Iterator[ScanCache | None]:
    """Yield the cache in a file, which is made if it is not there; None without one.

    Raises:
        ConfigurationError: If the file cannot be used, or is something else.
    """
    if path is None:
        yield None
        return
    try:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE IF NOT EXISTS scanned (key BLOB PRIMARY KEY, places)")
            yield ScanCache(connection, checks)
    except sqlite3.Error as error:
        expected = "a file of an earlier scan, or a new one in a folder"
        raise ConfigurationError(f"--cache {path}", str(error), expected) from error


def _rules() -> str:
    """Return a hash of the code that finds: other rules find other things."""
    package = Path(detectors.__file__).parent
    folders = (package / "injection", package / "pii", package / "secrets", package.parent / "text")
    digest = hashlib.sha256()
    for file in sorted(file for folder in folders for file in folder.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def as_json(report: ScanReport) -> dict[str, Any]:
    """Return a report as `--json` prints it."""
    return {
        "files": report.files,
        "texts": report.texts,
        "remembered": report.remembered,
        "findings": [finding._asdict() for finding in report.findings],
        "unread": [unread._asdict() for unread in report.unread],
    }

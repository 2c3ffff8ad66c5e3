"""Documents and their texts. Each is parsed in a process of its own, which may fail alone."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guardrail_offline.generation import extraction
from guardrail_offline.generation.extraction import TextBlock
from guardrail_service.errors import ConfigurationError

KINDS = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    ".text": "text",
}
STATES = (
    "read", "encrypted", "no_text", "corrupt", "too_large", "too_slow", "too_much_memory",
    "unknown_kind", "no_access", "no_library",
)  # fmt: skip
_BLOCK = 2**20


@dataclass(frozen=True)
class SourceDocument:
    """A document and what became of it; all offsets are code points of `text`.

    Attributes:
        id: Its name, with folders below the one that was given; unique in one reading.
        path: As it was given.
        kind: pdf, docx, html, markdown or text; empty where it is unknown.
        state: `read`, or another of `STATES`.
        reason: Why it was not read, in a sentence.
        sha256: Of its bytes; empty where they cannot be had.
        bytes: How many it has.
        text: What was extracted.
        blocks: Headings, paragraphs, items, rows, their headers and code, in order.
        pages: Where each page begins, in a PDF.
        encoding: Of a file of text.
        title: As the document says it.
        notes: What was left out, such as pages without text.
    """

    id: str
    path: str
    kind: str
    state: str
    reason: str = ""
    sha256: str = ""
    bytes: int = 0
    text: str = ""
    blocks: tuple[TextBlock, ...] = ()
    pages: tuple[int, ...] = ()
    encoding: str = ""
    title: str = ""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as manifests have it: without its text."""
        said: dict[str, Any] = {
            "id": self.id, "kind": self.kind, "state": self.state, "sha256": self.sha256,
            "bytes": self.bytes, "chars": len(self.text), "pages": len(self.pages) or None,
            "title": self.title, "encoding": self.encoding or None, "reason": self.reason or None,
            "notes": list(self.notes) or None,
        }  # fmt: skip
        return {name: value for name, value in said.items() if value is not None}

    def page_of(self, offset: int) -> int | None:
        """Return the page an offset stands on, from 1; None where there are none."""
        return sum(start <= offset for start in self.pages) or None


@dataclass(frozen=True)
class ReadLimits:
    """The limits of reading one document.

    Attributes:
        seconds: By the clock.
        cpu_seconds: Of computing.
        memory_bytes: Of address space, where the system can limit it.
        file_bytes: Of the file.
        text_chars: Of its text.
    """

    seconds: float = 120.0
    cpu_seconds: int = 60
    memory_bytes: int = 2 * 1024**3
    file_bytes: int = 256 * 1024**2
    text_chars: int = 20_000_000


def read_documents(
    paths: Sequence[Path],
    limits: ReadLimits | None = None,
    advance: Callable[[int], object] = lambda _count: None,
) -> list[SourceDocument]:
    """Return all documents of files and folders, in order; a bad one has a state and a reason.

    Args:
        paths: Files, and folders with all in them but dot files.
        limits: Of each document.
        advance: Told when one is done.

    Raises:
        ConfigurationError: If a path does not exist.
    """
    allowed = limits or ReadLimits()
    found = []
    for name, path, leads_out in _named(paths):
        found.append(_read(name, path, allowed, leads_out=leads_out))
        advance(1)
    return found


def files_in(folder: Path) -> list[Path]:
    """Return what lies in a folder and those below, in order: files, links to any, special files.

    Dot files are left out, and linked folders are not followed. A folder that cannot be listed
    stands for what is in it.
    """
    shut: list[Path] = []

    def note(error: OSError) -> None:
        shut.append(Path(error.filename))

    found = [Path(at, name) for at, _, names in os.walk(folder, onerror=note) for name in names]
    inside = (one.relative_to(folder).parts for one in (*found, *shut))
    kept = [one for one in inside if not any(part.startswith(".") for part in one)]
    return sorted(folder.joinpath(*parts) for parts in kept)


def leads_out(file: Path, folder: Path) -> bool:
    """Return whether a file of a folder is a link to what lies elsewhere: it may be a secret."""
    if not file.is_symlink():
        return False
    return not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))


def _named(paths: Iterable[Path]) -> list[tuple[str, Path, bool]]:
    """Return files with names that are unique: longer ones where two files share a name.

    With each stands whether it is a link that leads out of its folder. Signs of a name that only
    steer a terminal, and bytes that are no text, are replaced.
    """
    files: dict[Path, str] = {}
    outside: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise ConfigurationError(str(path), "no file", "a document or a folder of documents")
        if not path.is_dir():
            files.setdefault(path, path.name)
            continue
        for file in files_in(path):
            files.setdefault(file, file.relative_to(path).as_posix())
            if leads_out(file, path):
                outside.add(file)
    taken: set[str] = set()
    named = []
    for file, told in files.items():
        name = "".join(sign if sign.isprintable() else "\ufffd" for sign in told)
        unique, number = name, 2
        while unique in taken:
            unique, number = f"{name} ({number})", number + 1
        taken.add(unique)
        named.append((unique, file, file in outside))
    return named


def _read(name: str, path: Path, limits: ReadLimits, *, leads_out: bool) -> SourceDocument:
    kind = KINDS.get(path.suffix.lower(), "")

    def failed(state: str, reason: str, digest: str = "", size: int = 0) -> SourceDocument:
        return SourceDocument(name, str(path), kind, state, reason, digest, size)

    if leads_out:
        return failed("no_access", "it is a link that leads out of its folder")
    try:
        if path.is_dir():
            return failed("no_access", "a folder that cannot be listed")
        if not path.is_file():
            return failed("no_access", "it is no ordinary file")
        size = path.stat().st_size
        if size > limits.file_bytes:
            return failed("too_large", f"it has over {limits.file_bytes} bytes", size=size)
        digest = _sha256(path)
    except OSError as error:
        return failed("no_access", error.strerror or "it cannot be opened")
    if not kind:
        known = ", ".join(sorted(KINDS))
        return failed("unknown_kind", f"its name ends with none of {known}", digest, size)
    if size == 0:
        return failed("no_text", "it is empty", digest, size)
    told = _extracted(path, kind, limits)
    if told["state"] != "read":
        return failed(told["state"], told["reason"], digest, size)
    return SourceDocument(
        id=name,
        path=str(path),
        kind=kind,
        state="read",
        sha256=digest,
        bytes=size,
        text=told["text"],
        blocks=tuple(TextBlock(*block) for block in told["blocks"]),
        pages=tuple(told["pages"]),
        encoding=told["encoding"],
        title=told["title"],
        notes=tuple(told["notes"]),
    )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _extracted(path: Path, kind: str, limits: ReadLimits) -> dict[str, Any]:
    """Return what the child process says, or what its end means."""
    asked = {
        "path": str(path.resolve()), "kind": kind, "memory": limits.memory_bytes,
        "cpu": limits.cpu_seconds, "chars": limits.text_chars,
    }  # fmt: skip
    command = [sys.executable, "-P", str(Path(extraction.__file__)), json.dumps(asked)]
    child = subprocess.Popen(  # noqa: S603 - our own file, arguments without a shell
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        said, _ = child.communicate(timeout=limits.seconds)
    except subprocess.TimeoutExpired:
        _end(child)
        return {"state": "too_slow", "reason": f"it took over {limits.seconds:g} seconds"}
    except BaseException:
        _end(child)
        raise
    try:
        told = json.loads(said)
        return told if isinstance(told, dict) else _ended(child.returncode, limits)
    except ValueError:
        return _ended(child.returncode, limits)


def _end(child: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()
    child.communicate()


def _ended(code: int, limits: ReadLimits) -> dict[str, Any]:
    """Return the state that an end without a word means."""
    if -code in (getattr(signal, "SIGXCPU", 0), getattr(signal, "SIGKILL", 0)) and code < 0:
        reason = f"it took over {limits.cpu_seconds} seconds of computing, or was ended"
        return {"state": "too_slow", "reason": reason}
    if code >= 0:  # the interpreter itself had no memory left to say so
        return {"state": "too_much_memory", "reason": "its reader ended for want of memory"}
    return {"state": "corrupt", "reason": f"its reader crashed with signal {-code}"}

"""A folder of policies in immutable versions: what lies there, what is live, how that changes.

    FOLDER/<name>/<version>.json    a guardrail JSON; never written again
    FOLDER/<name>/versions.jsonl    the ledger: every version with its hash, every change, who, why
    FOLDER/<name>/live              which version is live, on trial for a share, or in the shadow

Changes are made under a lock and are whole or not there: `live` is replaced, the ledger is only
added to. A running service reads the folder; commands and the studio change it.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.policy.file_schema import MOST_FILE_BYTES, Name, parse, read_json
from guardrail_service.posix import lock

ALIAS, LEDGER, LOCK = "live", "versions.jsonl", ".lock"
VersionNumber = Annotated[str, Field(pattern="^[1-9][0-9]{0,8}$")]
_NAME: TypeAdapter[str] = TypeAdapter(Name)
Check = Callable[[Path], object]
"""Raises ConfigurationError if a guardrail JSON cannot be served here."""


class CanaryShare(BaseModel):
    """A version on trial for a share of the callers, in (0, 1]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: VersionNumber
    share: float = Field(gt=0, le=1)


class Alias(BaseModel):
    """The versions of one policy that have a part to play; the content of `live`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    live: VersionNumber | None = None
    canary: CanaryShare | None = None
    shadow: tuple[VersionNumber, ...] = ()

    @property
    def needed(self) -> tuple[str, ...]:
        """Return the versions that a service has to load, each once."""
        canary = () if self.canary is None else (self.canary.version,)
        live = () if self.live is None else (self.live,)
        return tuple(dict.fromkeys((*live, *canary, *self.shadow)))


Event = Literal["add", "promote", "rollback", "shadow", "canary"]


class LedgerLine(BaseModel):
    """One change of a policy: what, when, by whom, and why.

    Attributes:
        version: That was added, made live, or put on trial; empty where a trial ended.
        sha256: Of the bytes of an added file.
        shadow: The versions in the shadow from then on.
        share: Of a canary.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    event: Event
    at: str
    by: str
    why: str = ""
    version: str = ""
    sha256: str = ""
    shadow: tuple[str, ...] = ()
    share: float | None = None


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """One version as the ledger has it."""

    name: str
    version: str
    path: Path
    sha256: str
    at: str
    by: str
    why: str

    @property
    def address(self) -> str:
        """Return how a request names it."""
        return f"{self.name}@{self.version}"


class AddedVersion(NamedTuple):
    """A version that a file is; `is_new`: it was none before."""

    version: str
    sha256: str
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class PolicyFolder:
    """One policy of a folder as it lies there now."""

    name: str
    path: Path
    alias: Alias
    lines: tuple[LedgerLine, ...]
    versions: Mapping[str, PolicyVersion] = field(default_factory=dict)

    def version(self, number: str) -> PolicyVersion:
        """Return a version.

        Raises:
            ConfigurationError: If there is none of that number.
        """
        found = self.versions.get(number)
        if found is None:
            expected = choices(number, list(self.versions), "version")
            raise ConfigurationError(f"{self.path}: version", repr(number), expected)
        return found

    def before(self) -> str:
        """Return the version that was live before the present one, rollbacks taken back.

        Raises:
            ConfigurationError: If there was none.
        """
        lived: list[str] = []
        for line in self.lines:
            if line.event == "promote":
                lived.append(line.version)
            elif line.event == "rollback" and lived:
                lived.pop()
        if len(lived) < 2:
            found, expected = "no version that was live before", "a policy promoted twice"
            raise ConfigurationError(f"{self.path}: rollback", found, expected)
        return lived[-2]


def read_folder(folder: Path) -> list[PolicyFolder]:
    """Return every policy of a folder, by name. Names that begin with a dot are links and locks.

    Raises:
        ConfigurationError: If the folder, a ledger or an alias cannot be read.
    """
    try:
        found = sorted(path for path in folder.iterdir() if path.is_dir() and is_name(path.name))
    except OSError as error:
        raise ConfigurationError(str(folder), _why(error), "a folder of policies") from error
    return [read_policy(folder, path.name) for path in found]


def read_policy(folder: Path, name: str) -> PolicyFolder:
    """Return one policy of a folder.

    Raises:
        ConfigurationError: If there is none of that name, or it cannot be read.
    """
    path = folder / _named(folder, name)
    if not path.is_dir():
        known = [p.name for p in folder.iterdir() if p.is_dir()] if folder.is_dir() else []
        expected = choices(name, [n for n in sorted(known) if is_name(n)], "policy")
        raise ConfigurationError(f"{folder}: policy", repr(name), expected)
    lines = _ledger(path)
    versions = {
        line.version: PolicyVersion(
            name,
            line.version,
            path / f"{line.version}.json",
            line.sha256,
            line.at,
            line.by,
            line.why,
        )
        for line in lines
        if line.event == "add"
    }
    return PolicyFolder(name, path, _alias(path), lines, versions)


def policy_files(folder: Path) -> list[Path]:
    """Return every file by which the policies of a folder may change."""
    try:
        names = sorted(path for path in folder.iterdir() if is_name(path.name))
        return [file for path in names if path.is_dir() for file in sorted(path.iterdir())
                if not file.name.startswith(".")]  # fmt: skip
    except OSError:
        return []  # a volume that is being switched: the next look sees it


def checked_path(version: PolicyVersion) -> Path:
    """Return the file of a version.

    Raises:
        ConfigurationError: If its bytes are not those that were added.
    """
    if hashlib.sha256(_bytes(version.path)).hexdigest() != version.sha256:
        found, expected = "other bytes than the ledger says", "a version as it was added"
        raise ConfigurationError(str(version.path), found, expected)
    return version.path


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a policy."""
    try:
        _NAME.validate_python(text)
    except ValidationError:
        return False
    return True


def add_version(
    folder: Path,
    file: Path,
    *,
    name: str | None = None,
    why: str = "",
    by: str | None = None,
    check: Check = parse,
) -> AddedVersion:
    """Add a guardrail JSON as the next version of a policy; it is not live by that.

    A file that is a version already, byte for byte, becomes none again: the newest of those is
    returned, and nothing is written.

    Args:
        folder: Where policies lie; made if there is none.
        file: What to add, byte for byte.
        name: Of the policy; None: as the file says, else its stem.
        why: A remark for the ledger.
        by: Who does it; None: the user of the system.
        check: Refuses a file that cannot be served.

    Raises:
        ConfigurationError: If the file is wrong, or the folder cannot be written to.
    """
    content = _bytes(file)
    name = _named(folder, name or parse(file).policy.name or file.stem)
    check(file)
    with _changing(folder, name, is_new=True) as path:
        added = {line.version: line.sha256 for line in _ledger(path) if line.event == "add"}
        sha256 = hashlib.sha256(content).hexdigest()
        for number in reversed(added):
            if added[number] == sha256 and _is_file(path / f"{number}.json", content):
                return AddedVersion(number, sha256, is_new=False)
        taken = [*added, *(p.stem for p in path.glob("*.json") if p.stem.isdecimal())]
        number = str(max(map(int, taken), default=0) + 1)
        _write_new(path / f"{number}.json", content)
        _note(path, "add", by, why, version=number, sha256=sha256)
        return AddedVersion(number, sha256)


def promote(
    folder: Path,
    name: str,
    version: str,
    *,
    why: str = "",
    by: str | None = None,
    check: Check = parse,
) -> LedgerLine:
    """Make a version live; it leaves the shadow and its trial, if it was there.

    Raises:
        ConfigurationError: If there is no such version, or it cannot be served.
    """
    with _changing(folder, name) as path:
        policy = read_policy(folder, name)
        check(checked_path(policy.version(version)))
        return _go_live(path, policy.alias, "promote", version, why, by)


def rollback(
    folder: Path, name: str, *, why: str = "", by: str | None = None, check: Check = parse
) -> LedgerLine:
    """Make the version live again that was before the present one; again: the one before that.

    Raises:
        ConfigurationError: If there was none before, or it cannot be served any more.
    """
    with _changing(folder, name) as path:
        policy = read_policy(folder, name)
        version = policy.before()
        check(checked_path(policy.version(version)))
        return _go_live(path, policy.alias, "rollback", version, why, by)


def set_shadow(
    folder: Path,
    name: str,
    versions: tuple[str, ...],
    *,
    why: str = "",
    by: str | None = None,
    check: Check = parse,
) -> LedgerLine:
    """Let these versions, and no others, judge what the live one judges; none decides.

    Raises:
        ConfigurationError: If one is not there or cannot be served.
    """
    with _changing(folder, name) as path:
        policy = read_policy(folder, name)
        for version in versions:
            check(checked_path(policy.version(version)))
        shadow = tuple(dict.fromkeys(versions))
        _replace(path / ALIAS, policy.alias.model_copy(update={"shadow": shadow}))
        return _note(path, "shadow", by, why, shadow=shadow)


def set_canary(
    folder: Path,
    name: str,
    version: str | None,
    share: float = 0.0,
    *,
    why: str = "",
    by: str | None = None,
    check: Check = parse,
) -> LedgerLine:
    """Let a version decide for a share of the callers; None ends the trial.

    Raises:
        ConfigurationError: If it is not there, cannot be served, or the share is none.
    """
    with _changing(folder, name) as path:
        policy = read_policy(folder, name)
        if version is None:
            _replace(path / ALIAS, policy.alias.model_copy(update={"canary": None}))
            return _note(path, "canary", by, why)
        if not 0 < share <= 1:
            raise ConfigurationError("share", f"{share:g}", "a number above 0, at most 1")
        if policy.alias.live is None:
            expected = "a policy with a live version: promote one"
            raise ConfigurationError(f"{path}: live", "no version", expected)
        check(checked_path(policy.version(version)))
        trial = CanaryShare(version=version, share=share)
        _replace(path / ALIAS, policy.alias.model_copy(update={"canary": trial}))
        return _note(path, "canary", by, why, version=version, share=share)


def _go_live(
    path: Path, alias: Alias, event: Event, version: str, why: str, by: str | None
) -> LedgerLine:
    canary = alias.canary if alias.canary and alias.canary.version != version else None
    shadow = tuple(other for other in alias.shadow if other != version)
    _replace(path / ALIAS, Alias(live=version, canary=canary, shadow=shadow))
    return _note(path, event, by, why, version=version)


def _named(folder: Path, name: str) -> str:
    if not is_name(name):
        expected = "a name of letters, digits, '.', '_' and '-'"
        raise ConfigurationError(f"{folder}: policy", "what is no name", expected)
    return name


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(str(path), _why(error), "a guardrail JSON") from error
    if len(content) > MOST_FILE_BYTES:
        expected = f"at most {MOST_FILE_BYTES} bytes"
        raise ConfigurationError(str(path), f"more than {MOST_FILE_BYTES} bytes", expected)
    return content


def _is_file(path: Path, content: bytes) -> bool:
    """Return whether a file has these bytes still; somebody may have changed or removed it."""
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _alias(path: Path) -> Alias:
    file = path / ALIAS
    if not file.exists():
        return Alias()
    try:
        return Alias.model_validate(read_json(file))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "(whole file)"
        found = "a value that does not fit"
        raise ConfigurationError(f"{file}: {where}", found, first["msg"]) from error


def _ledger(path: Path) -> tuple[LedgerLine, ...]:
    """Return the lines of a ledger. One without an end was being written by a process that died."""
    file = path / LEDGER
    if not file.exists():
        return ()
    lines = _bytes(file).split(b"\n")[:-1]
    found: list[LedgerLine] = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(LedgerLine.model_validate_json(line))
        except ValidationError as error:
            where = f"{file}: line {number}"
            expected = "a line as guardrail policies writes it"
            raise ConfigurationError(where, "something else", expected) from error
    return tuple(found)


@contextmanager
def _changing(folder: Path, name: str, *, is_new: bool = False) -> Iterator[Path]:
    """Yield the folder of one policy, which nobody else changes meanwhile; made if it may be new.

    Raises:
        ConfigurationError: If it cannot be written to.
    """
    path = folder / _named(folder, name)
    try:
        if is_new:
            path.mkdir(parents=True, exist_ok=True)
        elif not path.is_dir():
            read_policy(folder, name)  # says which there are
        held = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ConfigurationError(str(path), _why(error), "a folder to write to") from error
    try:
        lock(held, str(path))
        yield path
    except OSError as error:
        raise ConfigurationError(str(path), _why(error), "a folder to write to") from error
    finally:
        os.close(held)


def _write_new(path: Path, content: bytes) -> None:
    """Write a file that does not exist, whole before it has its name."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        _flushed(new, content)
        os.link(new, path)  # refuses a name that is taken, as a rename would not
    finally:
        new.unlink(missing_ok=True)
    _flush_folder(path.parent)


def _replace(path: Path, alias: Alias) -> None:
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        _flushed(new, alias.model_dump_json(exclude_none=True).encode() + b"\n")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    _flush_folder(path.parent)


def _flushed(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _note(path: Path, event: Event, by: str | None, why: str, **given: Any) -> LedgerLine:
    """Add a line to the ledger and return it; half a line of a process that died goes first."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    line = LedgerLine(event=event, at=at, by=by or _user(), why=why, **given)
    with (path / LEDGER).open("ab+") as file:
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        file.write(line.model_dump_json(exclude_defaults=True).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return line


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return str(os.getuid())

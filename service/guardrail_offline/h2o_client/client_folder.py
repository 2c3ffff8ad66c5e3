"""The folder of the client, in place of a server: a JSON file per object.

    client.json                      format, and how many keys were given out
    tests/test-1.json                and so on for documents, models, labs and evaluations
    tests/test-1/                    further files of an object

Keys are made here and never come from names, so no name is ever a path. Every change happens under
a lock that the operating system frees when a process dies, and files appear whole.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, get_args

from guardrail_offline.runs.shards import whole_file
from guardrail_service.errors import ConfigurationError

Kind = Literal["document", "model", "test", "lab", "evaluation"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FORMAT = 1
LOG = logging.getLogger("guardrail_offline.h2o_client")
_HEAD = "client.json"


class ClientFolder:
    """A client's objects on disk. Several processes may use one folder.

    Args:
        path: Of a folder that is one already, is empty, or does not exist; None for a temporary
            one, which is gone when nothing refers to it any more.

    Raises:
        ConfigurationError: If there is something else in it.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.is_temporary = path is None
        if path is None:
            made = Path(tempfile.mkdtemp(prefix="guardrail-client-"))
            weakref.finalize(self, shutil.rmtree, made, ignore_errors=True)
            LOG.warning("the client keeps its state in %s, which goes with this process", made)
        self.path = Path(path or made).absolute()
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._counted: dict[Path, tuple[int, int]] = {}
        with self._locked():
            self._check()

    def add(self, kind: Kind, record: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a new object and return its record, with `key`, `create_time`, `update_time`."""
        with self._locked():
            head = json.loads((self.path / _HEAD).read_text("utf-8"))
            number = head["keys"].get(kind, 0) + 1
            head["keys"][kind] = number
            _write(self.path / _HEAD, head)
            key, now = f"{kind}-{number}", _now()
            kept = {**record, "key": key, "create_time": now, "update_time": now}
            _write(self._file(key), kept)
        return kept

    def get(self, key: str) -> dict[str, Any]:
        """Return an object's record; KeyError if there is none with this key."""
        try:
            found: dict[str, Any] = json.loads(self._file(key).read_text("utf-8"))
        except FileNotFoundError:
            raise KeyError(key) from None
        return found

    @contextmanager
    def change(self, key: str) -> Iterator[dict[str, Any]]:
        """Give an object's record to change; it is kept when the block ends without an error."""
        with self._locked():
            record = self.get(key)
            yield record
            _write(self._file(key), {**record, "update_time": _now()})

    def delete(self, key: str) -> None:
        """Take an object away with all its files; KeyError if there is none."""
        with self._locked():
            path = self._file(key)
            if not path.exists():
                raise KeyError(key)
            path.unlink()
            shutil.rmtree(self.place(key), ignore_errors=True)

    def all(self, kind: Kind) -> list[dict[str, Any]]:
        """Return the records of a kind, in the order they were made."""
        found = [path.stem for path in (self.path / f"{kind}s").glob(f"{kind}-*.json")]
        records = []
        for key in sorted(filter(_kind_of, found), key=lambda key: int(key.split("-")[1])):
            try:
                records.append(self.get(key))
            except KeyError:  # deleted by somebody else in the meantime
                continue
        return records

    def place(self, key: str) -> Path:
        """Return the folder for further files of an object, which need not exist."""
        return self._file(key).with_suffix("")

    def append(self, key: str, value: Mapping[str, Any]) -> int:
        """Add a line to an object's list and return how many there are."""
        path = self.place(key) / "lines.jsonl"
        line = json.dumps(value).encode() + b"\n"
        with self._locked():
            self.get(key)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            with path.open("ab+") as stream:
                whole, count = self._whole_lines(path)
                stream.truncate(whole)
                stream.write(line)
            self._counted[path] = whole + len(line), count + 1
        return count + 1

    def lines(self, key: str) -> list[dict[str, Any]]:
        """Return an object's list; a line that was cut off is not in it."""
        try:
            content = (self.place(key) / "lines.jsonl").read_bytes()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in content.split(b"\n")[:-1]]

    @contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Hold an object's work while the block lasts; give False if another one holds it."""
        import fcntl

        place = self.place(key)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (place / "lock").open("a") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
                return
            yield True

    def _whole_lines(self, path: Path) -> tuple[int, int]:
        """Return the bytes and the number of whole lines; reads only what is new."""
        size, (known, count) = path.stat().st_size, self._counted.get(path, (0, 0))
        if size == known:
            return known, count
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        return whole, content.count(b"\n")

    def _file(self, key: str) -> Path:
        kind = _kind_of(key)
        if kind is None:
            raise KeyError(key)
        return self.path / f"{kind}s" / f"{key}.json"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        import fcntl

        with (self.path / ".lock").open("a") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def _check(self) -> None:
        head = self.path / _HEAD
        if not head.exists():
            if any(one.name != ".lock" for one in self.path.iterdir()):
                expected = "a folder of the client, or an empty one"
                raise ConfigurationError(str(self.path), "other files", expected)
            _write(head, {"format": FORMAT, "keys": {}})
            return
        try:
            found = json.loads(head.read_text("utf-8"))["format"]
        except (ValueError, KeyError, TypeError):
            found = "nothing"
        if found != FORMAT:
            raise ConfigurationError(str(head), f"format {found!r:.40}", f"format {FORMAT}")


class Deletable(Protocol):
    """An object that can be taken away."""

    def delete(self) -> None:
        """Take it away for good."""
        ...


T = TypeVar("T", bound=Deletable)


@dataclass(frozen=True)
class KeptObject:
    """An object of a client. Attributes are read from the folder: other processes change them."""

    key: str
    pack: str = field(repr=False, compare=False)
    _folder: ClientFolder = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """Return what it is called."""
        return str(self._record["name"])

    @property
    def description(self) -> str:
        """Return what it is for."""
        return str(self._record["description"])

    @property
    def _record(self) -> dict[str, Any]:
        return self._folder.get(self.key)


@dataclass(frozen=True)
class KeptObjects(ABC, Generic[T]):
    """The objects of one kind that a client keeps."""

    _kind: ClassVar[Kind]

    _folder: ClientFolder
    _pack: str

    @abstractmethod
    def _opened(self, record: Mapping[str, Any]) -> T:
        """Return the object of a record."""

    def get(self, key: str) -> T:
        """Return an object; KeyError if there is none of this kind with this key."""
        if not key.startswith(f"{self._kind}-"):
            raise KeyError(key)
        return self._opened(self._folder.get(key))

    def list(self) -> list[T]:
        """Return all, in the order they were made."""
        return [self._opened(record) for record in self._folder.all(self._kind)]

    def delete(self, key: str) -> None:
        """Take an object away; KeyError if there is none with this key."""
        self.get(key).delete()


def moment(record: Mapping[str, Any], name: str) -> datetime:
    """Return a time of a record."""
    return datetime.fromisoformat(record[name])


def _kind_of(key: object) -> str | None:
    """Return the kind of object a key is of; None if it is no key that was made here."""
    kind, _, number = key.partition("-") if isinstance(key, str) else ("", "", "")
    is_number = number.isascii() and number.isdecimal() and str(int(number[:12])) == number
    return kind if kind in KINDS and is_number else None


def _now() -> str:
    return datetime.now(UTC).isoformat()


def _write(path: Path, value: Mapping[str, Any]) -> None:
    with whole_file(path) as stream:
        json.dump(value, stream, indent=1)
        stream.write("\n")

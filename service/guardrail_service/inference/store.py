"""Model outputs on disk: what was computed once survives a restart, bit for bit."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from guardrail_service.errors import ConfigurationError
from guardrail_service.types import RowOutput

_LOG = logging.getLogger(__name__)
_APPLICATION = 0x52474753
"""SQLite's application id: "RGGS". A database of anybody else is never touched."""
_VERSION = 1
_MAGIC = b"SQLite format 3\x00"
_DIGEST_BYTES = 16
_WAITING = 4_096
"""Outputs that may wait for the disk; more are not stored, which costs a model run later."""
_AT_ONCE = 32
"""Outputs written in one transaction: who reads waits for it, a few milliseconds."""
_TOUCH_S = 3_600
"""How old a time of use may be: writing on each read would make reading slow."""
_EVICTED = 0.1
"""Share of the limit that is freed at a time."""
_BUSY_S = 5.0
_SCHEMA = (
    """CREATE TABLE outputs (
  space BLOB NOT NULL, key BLOB NOT NULL, used INTEGER NOT NULL, value BLOB NOT NULL,
  PRIMARY KEY (space, key)
)""",
    "CREATE INDEX by_use ON outputs (used)",
)


def write_ahead(database: sqlite3.Connection) -> None:
    """Let a file of SQLite have readers beside a writer.

    For the switch SQLite waits for nobody: of two that open a new file, one would fail.

    Raises:
        sqlite3.OperationalError: If others keep the file for too long.
    """
    end = time.monotonic() + _BUSY_S
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
            time.sleep(0.01)


class StoreStats(NamedTuple):
    """Bytes on disk in use, their limit, values refused as damaged, values dropped when busy."""

    bytes: int
    limit_bytes: int
    damaged: int
    dropped: int


class _Put(NamedTuple):
    space: bytes
    key: bytes
    value: bytes | None
    """None: only note that it was used."""


class Store:
    """A bounded SQLite file that several processes may share. Thread-safe.

    Every value carries a digest of itself, so a damaged one is never returned. A fault at run time
    costs speed, never an answer: it is logged once, and a damaged file is begun anew.

    Args:
        path: The file; created if it is missing.
        limit_bytes: How large it may get; what was used longest ago goes first.

    Raises:
        ConfigurationError: If something else lies there, or it cannot be opened.
    """

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._damaged = self._dropped = 0
        self._closed = False
        _refuse_foreign(path)
        try:
            self._database = self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise _unusable(path, error) from error
            self._database = self._begin_anew(error)
        self._waiting: queue.Queue[_Put | None] = queue.Queue(_WAITING)
        self._writer = threading.Thread(target=self._write, name="store", daemon=True)
        self._writer.start()

    def shelf(self, space: bytes) -> StoreShelf:
        """Return the part of the store whose values depend on the same things."""
        return StoreShelf(self, space)

    def get(self, space: bytes, key: bytes) -> RowOutput | None:
        """Return what was put under a key, bit for bit, or None."""
        with self._lock:
            found = self._read(space, key)
        if found is None:
            return None
        used, value = found
        outputs = unpacked(value)
        if outputs is None:
            self._damaged += 1
            _LOG.warning("store: one damaged value was left out")
            return None
        if used < time.time() - _TOUCH_S:
            self._later(_Put(space, key, None))
        return outputs

    def put(self, space: bytes, key: bytes, outputs: RowOutput) -> None:
        """Keep outputs soon; if too much waits for the disk, not at all."""
        self._later(_Put(space, key, packed(outputs)))

    def stats(self) -> StoreStats:
        """Return size and faults."""
        with self._lock:
            used = 0 if self._closed else self._bytes()
        return StoreStats(used, self._limit_bytes, self._damaged, self._dropped)

    def flush(self) -> None:
        """Return when everything put so far has been written."""
        self._waiting.join()

    def close(self) -> None:
        """Write what waits and close the file."""
        if self._writer.is_alive():
            self._waiting.put(None)
            self._writer.join()
        with self._lock:
            self._closed = True
            with contextlib.suppress(sqlite3.Error):
                self._database.close()

    def _later(self, put: _Put) -> None:
        try:
            self._waiting.put_nowait(put)
        except queue.Full:
            self._dropped += 1

    def _read(self, space: bytes, key: bytes) -> tuple[int, bytes] | None:
        if self._closed:
            return None
        asked = "SELECT used, value FROM outputs WHERE space = ? AND key = ?"
        try:
            found: tuple[int, bytes] | None = self._database.execute(asked, (space, key)).fetchone()
        except sqlite3.Error as error:
            self._recover(error)
            return None
        return found

    def _write(self) -> None:
        """Write batches until told to stop. Ends for no error, so nobody waits in `flush`."""
        while True:
            batch, is_last = self._batch()
            with self._lock:
                if not self._closed:
                    try:
                        self._write_batch(batch)
                    except sqlite3.Error as error:
                        self._recover(error)
            for _ in range(len(batch) + is_last):
                self._waiting.task_done()
            if is_last:
                return

    def _batch(self) -> tuple[list[_Put], bool]:
        batch: list[_Put] = []
        put = self._waiting.get()
        while put is not None:
            batch.append(put)
            if len(batch) == _AT_ONCE or self._waiting.empty():
                return batch, False
            put = self._waiting.get()
        return batch, True

    def _write_batch(self, batch: Sequence[_Put]) -> None:
        now = int(time.time())
        with self._database as database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT INTO outputs (space, key, used, value) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET value = excluded.value, used = excluded.used",
                [(put.space, put.key, now, put.value) for put in batch if put.value is not None],
            )
            database.executemany(
                "UPDATE outputs SET used = ? WHERE space = ? AND key = ?",
                [(now, put.space, put.key) for put in batch if put.value is None],
            )
            while self._bytes() > self._limit_bytes and self._evict():
                pass

    def _evict(self) -> bool:
        """Delete what was used longest ago; return whether there was anything."""
        (count,) = self._database.execute("SELECT count(*) FROM outputs").fetchone()
        oldest = "SELECT rowid FROM outputs ORDER BY used LIMIT ?"
        self._database.execute(
            f"DELETE FROM outputs WHERE rowid IN ({oldest})",  # noqa: S608 - a constant
            (max(1, int(count * _EVICTED)),),
        )
        return bool(count)

    def _bytes(self) -> int:
        """Return the bytes of the pages in use."""
        numbers = ("page_count", "freelist_count", "page_size")
        pages, free, size = (
            int(self._database.execute(f"PRAGMA {name}").fetchone()[0]) for name in numbers
        )
        return (pages - free) * size

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            self._path, timeout=_BUSY_S, check_same_thread=False, isolation_level=None
        )
        try:
            if not self._has_tables(database):
                database.execute("BEGIN IMMEDIATE")  # processes that start together take turns
                if not self._has_tables(database):
                    database.execute(f"PRAGMA application_id = {_APPLICATION}")
                    database.execute(f"PRAGMA user_version = {_VERSION}")
                    for statement in _SCHEMA:
                        database.execute(statement)
                database.execute("COMMIT")
            write_ahead(database)
            database.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            database.close()
            raise
        return database

    def _has_tables(self, database: sqlite3.Connection) -> bool:
        """Return whether a file has tables, which are then ours, as it is at one moment."""
        query = "SELECT (SELECT count(*) FROM sqlite_master), application_id, user_version"
        pragmas = "pragma_application_id, pragma_user_version"
        tables, *marks = database.execute(f"{query} FROM {pragmas}").fetchone()
        if tables and tuple(marks) != (_APPLICATION, _VERSION):
            raise _foreign(self._path)
        return bool(tables)

    def _recover(self, error: sqlite3.Error) -> None:
        """Go on after a fault: begin a damaged file anew, else only say what happened."""
        if isinstance(error, sqlite3.OperationalError):
            _LOG.warning("store: %s; the values at hand are not stored", type(error).__name__)
            return
        with contextlib.suppress(sqlite3.Error):
            self._database.close()
        self._damaged += 1
        try:
            self._database = self._begin_anew(error)
        except ConfigurationError:
            self._closed = True
            _LOG.error("store: given up until the next start; answers do not depend on it")

    def _begin_anew(self, error: sqlite3.Error) -> sqlite3.Connection:
        _LOG.warning("store: %s is damaged (%s) and begun anew", self._path, type(error).__name__)
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        try:
            return self._open()
        except sqlite3.Error as again:
            raise _unusable(self._path, again) from again


class StoreShelf:
    """The values of one store that depend on the same models; a `memory.Shelf`."""

    def __init__(self, store: Store, space: bytes) -> None:
        self._store = store
        self._space = space

    def get(self, key: bytes) -> RowOutput | None:
        """Return what was put there, bit for bit, or None."""
        return self._store.get(self._space, key)

    def put(self, key: bytes, outputs: RowOutput) -> None:
        """Keep outputs if there is room; never waits for a disk."""
        self._store.put(self._space, key, outputs)


def packed(outputs: RowOutput) -> bytes:
    """Return outputs as bytes that begin with their own digest."""
    shapes = [[name, values.dtype.str, values.shape] for name, values in outputs.items()]
    body = b"".join(
        (json.dumps(shapes).encode(), b"\n", *(values.tobytes() for values in outputs.values()))
    )
    return _digest(body) + body


def unpacked(value: bytes) -> RowOutput | None:
    """Return the outputs that were packed, bit for bit; None if a bit is not as it was."""
    body = value[_DIGEST_BYTES:]
    if value[:_DIGEST_BYTES] != _digest(body):
        return None
    header, _, data = body.partition(b"\n")
    outputs: dict[str, npt.NDArray[Any]] = {}
    start = 0
    for name, kind, shape in json.loads(header):
        count = int(np.prod(shape, dtype=np.int64))
        found = np.frombuffer(data, np.dtype(kind), count, start)
        outputs[name] = found.reshape(shape)
        start += found.nbytes
    return outputs


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()


def _refuse_foreign(path: Path) -> None:
    """Raise ConfigurationError if a file lies there that is no SQLite database at all."""
    try:
        if path.is_dir():
            raise _foreign(path)
        if path.is_file():
            with path.open("rb") as stream:
                begin = stream.read(len(_MAGIC))
            if begin and begin != _MAGIC:
                raise _foreign(path)
    except OSError as error:
        raise _unusable(path, error) from error


def _foreign(path: Path) -> ConfigurationError:
    return ConfigurationError(
        "GUARDRAIL_STORE", f"something else at {path}", "no file, or a store of this service"
    )


def _unusable(path: Path, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        "GUARDRAIL_STORE", f"{path}: {type(error).__name__}", "a file that can be written"
    )

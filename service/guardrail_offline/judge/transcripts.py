"""Keeps questions to a judge and its answers in SQLite, by a digest of the question.

One file may serve several processes, judges and runs. It is readable by its owner only.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from guardrail_offline.judge.judge_tasks import Task, texts_only
from guardrail_offline.judge.results import FINAL, STATUSES, JudgeResult, JudgeStatus, TokenUsage
from guardrail_service.errors import ConfigurationError

VERSION = 1
APPLICATION = 0x47524A54
"""Marks the file as ours: "GRJT"."""
_WAIT_S = 60.0
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE transcripts (
    key TEXT PRIMARY KEY, task TEXT NOT NULL, model TEXT NOT NULL, vote INTEGER NOT NULL,
    status TEXT NOT NULL, detail TEXT, value TEXT, weights TEXT, messages TEXT, raw TEXT,
    prompt INTEGER NOT NULL, completion INTEGER NOT NULL, cached INTEGER NOT NULL,
    latency REAL NOT NULL, attempts INTEGER NOT NULL, fingerprint TEXT
) WITHOUT ROWID;
CREATE TABLE spending (
    run TEXT NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL, prompt INTEGER NOT NULL,
    completion INTEGER NOT NULL, cached INTEGER NOT NULL, PRIMARY KEY (run, model)
) WITHOUT ROWID;
"""
_COLUMNS = (
    "status, detail, value, weights, raw, prompt, completion, cached, latency, attempts, model, "
    "fingerprint"
)
_OVERWRITTEN = ", ".join(
    f"{name} = excluded.{name}" for name in ("messages", *_COLUMNS.split(", "))
)
_FINAL = "('" + "', '".join(sorted(FINAL)) + "')"
REDACTED = "redacted"
"""Stands in the place of a detail where a text was erased."""


class TranscriptStore:
    """Transcripts on disk. Threads share it.

    Args:
        path: Of the file; made if it is not there, unless only read.
        read_only: Nothing is written, and a missing file is an error.
        keep_texts: Keep messages and the judge's words, not only its verdicts.

    Raises:
        ConfigurationError: If it is no store, one of another version, or cannot be opened.
    """

    def __init__(self, path: Path, *, read_only: bool = False, keep_texts: bool = True) -> None:
        self.path = path
        self._read_only, self._keep_texts = read_only, keep_texts
        self._lock = threading.Lock()
        with self._explained():
            self._connection = self._open()
            self._check_version()
            self._secret = bytes.fromhex(self._about("secret") or "")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def get(self, key: str) -> JudgeResult | None:
        """Return what became of a question before; None if it was not asked, or is redacted."""
        with self._explained(), self._lock:
            row = self._connection.execute(
                f"SELECT {_COLUMNS} FROM transcripts WHERE key = ?",  # noqa: S608 - constants
                (key,),
            ).fetchone()
        return None if row is None or row[1] == REDACTED else _result(row)

    def has_redacted(self) -> bool:
        """Return whether any answer was erased."""
        with self._explained(), self._lock:
            row = self._connection.execute(
                "SELECT 1 FROM transcripts WHERE detail = ? LIMIT 1", (REDACTED,)
            ).fetchone()
        return row is not None

    def is_redacted(self, key: str) -> bool:
        """Return whether a question was answered, and the answer erased."""
        with self._explained(), self._lock:
            row = self._connection.execute(
                "SELECT detail FROM transcripts WHERE key = ?", (key,)
            ).fetchone()
        return row is not None and row[0] == REDACTED

    def put(
        self,
        key: str,
        task: Task,
        messages: list[dict[str, Any]],
        vote: int,
        result: JudgeResult,
        *,
        again: bool = False,
    ) -> JudgeResult:
        """Keep what became of a question; return what the store has.

        Where another process was first, its final answer stays, so that both go on with one;
        unless the question was asked `again` on purpose.
        """
        keep = "" if again else f"WHERE status NOT IN {_FINAL} OR detail = '{REDACTED}'"
        self._write(
            f"INSERT INTO transcripts (key, task, vote, messages, {_COLUMNS}) "  # noqa: S608
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            f"ON CONFLICT (key) DO UPDATE SET {_OVERWRITTEN} {keep}",
            self._row(key, task, messages, vote, result),
        )
        known = None if self._read_only else self.get(key)
        return result if known is None or known.value == result.value else known

    def record(self, key: str) -> tuple[Any, ...] | None:
        """Return all that is kept of a question, for another store; None if it was not asked."""
        with self._explained(), self._lock:
            found = self._connection.execute(
                f"SELECT key, task, vote, messages, {_COLUMNS} FROM transcripts "  # noqa: S608
                "WHERE key = ?",
                (key,),
            ).fetchone()
        return None if found is None else tuple(found)

    def keep(self, record: tuple[Any, ...]) -> None:
        """Keep what another store has of a question."""
        self._write(
            f"INSERT OR REPLACE INTO transcripts (key, task, vote, messages, {_COLUMNS}) "  # noqa: S608
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            record,
        )

    def _row(
        self, key: str, task: Task, messages: list[dict[str, Any]], vote: int, result: JudgeResult
    ) -> tuple[Any, ...]:
        texts = self._keep_texts
        return (
            key,
            task.name,
            vote,
            json.dumps(texts_only(messages)) if texts else None,
            result.status,
            result.detail,
            json.dumps(result.value, sort_keys=True) if result.status == "ok" else None,
            json.dumps(result.weights, sort_keys=True) if result.weights else None,
            _storable(result.raw) if texts else None,
            result.usage.prompt,
            result.usage.completion,
            result.usage.cached,
            result.latency,
            result.attempts,
            result.model,
            result.fingerprint,
        )

    def spend(self, run: str, model: str, usage: TokenUsage) -> None:
        """Add one call to what a run has cost."""
        self._write(
            "INSERT INTO spending VALUES (?, ?, 1, ?, ?, ?) ON CONFLICT (run, model) DO UPDATE SET "
            "calls = calls + 1, prompt = prompt + excluded.prompt, "
            "completion = completion + excluded.completion, cached = cached + excluded.cached",
            (run, model, usage.prompt, usage.completion, usage.cached),
        )

    def spent(self, run: str, model: str) -> tuple[int, TokenUsage]:
        """Return the calls and tokens of a run so far."""
        with self._explained(), self._lock:
            row = self._connection.execute(
                "SELECT calls, prompt, completion, cached FROM spending "
                "WHERE run = ? AND model = ?",
                (run, model),
            ).fetchone()
        return (0, TokenUsage()) if row is None else (row[0], TokenUsage(*row[1:]))

    def statuses(self) -> dict[str, dict[str, int]]:
        """Return by task how many transcripts have which status."""
        with self._explained(), self._lock:
            rows = self._connection.execute(
                "SELECT task, status, count(*) FROM transcripts GROUP BY task, status"
            ).fetchall()
        found: dict[str, dict[str, int]] = {}
        for task, status, count in rows:
            found.setdefault(task, {})[status] = count
        return found

    def usual(self, task: str) -> tuple[float, float] | None:
        """Return the mean prompt and completion tokens of a task's answers; None without one."""
        with self._explained(), self._lock:
            row = self._connection.execute(
                "SELECT avg(prompt), avg(completion) FROM transcripts "
                "WHERE task = ? AND status = 'ok' AND prompt > 0",
                (task,),
            ).fetchone()
        return None if row[0] is None else (row[0], row[1])

    def note(self, name: str, value: str) -> None:
        """Remember something about an endpoint."""
        self._write("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    def noted(self, name: str) -> str | None:
        """Return what was remembered."""
        with self._explained(), self._lock:
            return self._about(name)

    def mark(self, key: str) -> str:
        """Return the mark that stands around the data of a question.

        It is the same whenever the question is asked, and only who has the store can tell it.
        """
        return hmac.new(self._secret, key.encode(), hashlib.sha256).hexdigest()[:8]

    def redact(self) -> int:
        """Erase every text: messages, the judge's words, and what it quoted; return of how many.

        Statuses and tokens stay. A redacted answer cannot be replayed and would be asked again.
        """
        self._write(
            "UPDATE transcripts SET messages = NULL, raw = NULL, value = NULL, weights = NULL, "
            "detail = ? WHERE status = 'ok'",
            (REDACTED,),
        )
        self._write("UPDATE transcripts SET messages = NULL, raw = NULL", ())
        with self._explained(), self._lock:
            self._connection.execute("VACUUM")
            (count,) = self._connection.execute("SELECT count(*) FROM transcripts").fetchone()
        return int(count)

    def _open(self) -> sqlite3.Connection:
        if self._read_only:
            if not self.path.is_file():
                raise ConfigurationError(str(self.path), "no file", "transcripts to replay")
            address = f"{self.path.resolve().as_uri()}?mode=ro"
            return sqlite3.connect(address, uri=True, check_same_thread=False, timeout=_WAIT_S)
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self.path.chmod(0o600)
        except OSError as error:
            expected = "a file that can be written"
            raise ConfigurationError(str(self.path), type(error).__name__, expected) from error
        connection = sqlite3.connect(
            self.path, check_same_thread=False, timeout=_WAIT_S, isolation_level=None
        )
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _check_version(self) -> None:
        number = self._pragma("user_version")
        if number == 0 and not self._read_only and self._is_empty():
            self._create()
            number = self._pragma("user_version")
        if self._pragma("application_id") != APPLICATION:
            raise ConfigurationError(str(self.path), "another file", "a store of transcripts")
        if number != VERSION:
            found, expected = f"version {number}", f"version {VERSION}; begin another file"
            raise ConfigurationError(f"{self.path}: transcripts", found, expected)

    def _create(self) -> None:
        """Make the tables; whoever else does so at the same time is waited for."""
        self._connection.execute("BEGIN EXCLUSIVE")
        try:
            if self._is_empty():
                for statement in filter(str.strip, _TABLES.split(";")):
                    self._connection.execute(statement)
                self._connection.execute(
                    "INSERT INTO about VALUES ('secret', ?)", (secrets.token_hex(32),)
                )
                self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
                self._connection.execute(f"PRAGMA user_version = {VERSION}")
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    def _is_empty(self) -> bool:
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return not tables

    def _pragma(self, name: str) -> int:
        (value,) = self._connection.execute(f"PRAGMA {name}").fetchone()
        return int(value)

    def _about(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        if self._read_only:
            return
        with self._explained(), self._lock:
            self._connection.execute(statement, values)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in one line what SQLite cannot do: a full disk, a locked or damaged file."""
        try:
            yield
        except sqlite3.Error as error:
            found = _FAULTS.get(getattr(error, "sqlite_errorname", ""), type(error).__name__)
            expected = "a store of transcripts that can be read and written"
            raise ConfigurationError(str(self.path), found, expected) from error


_FAULTS: Mapping[str, str] = {
    "SQLITE_FULL": "a full disk",
    "SQLITE_NOTADB": "another file",
    "SQLITE_CORRUPT": "a damaged file",
    "SQLITE_READONLY": "a file that may not be written",
    "SQLITE_BUSY": "a file that another process does not let go",
    "SQLITE_IOERR_WRITE": "a disk that cannot be written",
}


def key_of(address: Mapping[str, Any]) -> str:
    """Return the digest that a question is found by."""
    text = json.dumps(address, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _storable(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _result(row: tuple[Any, ...]) -> JudgeResult:
    status: JudgeStatus = next((one for one in STATUSES if one == row[0]), "error")
    return JudgeResult(
        status=status,
        detail=row[1],
        value=None if row[2] is None else json.loads(row[2]),
        weights={} if row[3] is None else json.loads(row[3]),
        raw=row[4],
        usage=TokenUsage(row[5], row[6], row[7]),
        latency=row[8],
        attempts=row[9],
        model=row[10],
        fingerprint=row[11],
        cached=True,
    )

"""Asks a user's database, read-only: SQLite, or DuckDB behind the same protocol.

Nothing is ever written: the file is opened read-only, an authorizer lets through what a question
needs and nothing else, and a statement that takes too long or gives too many rows is ended.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any, Protocol
from urllib.parse import quote

from guardrail_service.errors import ConfigurationError, MissingExtra

Value = Any
"""What a cell holds: None, int, float, str, bytes, or a date of DuckDB's."""
DUCKDB_ENDINGS = frozenset({".duckdb", ".ddb"})
_EXPECTED = "a database of SQLite or DuckDB that can be read"


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Bounds of one statement.

    Attributes:
        seconds: Longest it may run.
        rows: Most rows it may give.
    """

    seconds: float = 30.0
    rows: int = 10_000_000


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A column of a table that names a row of another one, or of its own."""

    column: str
    to_table: str
    to_column: str


@dataclass(frozen=True, slots=True)
class RawColumn:
    """A column as the database declares it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class RawTable:
    """A table or a view as the database declares it.

    Attributes:
        unique: Columns that identify a row by themselves: a lone primary key, a UNIQUE column.
        foreign_keys: Those of one column; one over several columns joins nothing here.
    """

    name: str
    columns: tuple[RawColumn, ...]
    unique: frozenset[str] = frozenset()
    foreign_keys: tuple[ForeignKey, ...] = ()
    is_view: bool = False


class Engine(Protocol):
    """A database that is open for reading.

    Attributes:
        dialect: As sqlglot names it.
    """

    dialect: str

    def tables(self) -> tuple[RawTable, ...]:
        """Return every table and view of the user's, by name."""

    def rows(self, sql: str, values: Sequence[Value] = ()) -> Iterator[tuple[Value, ...]]:
        """Yield the rows of one SELECT; `?` stand for the values, in order.

        Raises:
            ConfigurationError: If it is refused, fails, or passes one of the limits.
        """

    def close(self) -> None:
        """Close the file."""


def open_engine(path: Path, limits: QueryLimits | None = None) -> Engine:
    """Return a database file, open for reading only.

    Raises:
        ConfigurationError: If there is no such file, it is locked, or it is no database.
        MissingExtra: If it is DuckDB's and duckdb is not installed.
    """
    if not path.is_file():
        raise ConfigurationError(str(path), "no such file", _EXPECTED)
    limits = limits or QueryLimits()
    return (DuckDbEngine if path.suffix in DUCKDB_ENDINGS else SqliteEngine)(path, limits)


def quoted(name: str) -> str:
    """Return a name as SQL writes any name, reserved words and blanks included."""
    return '"' + name.replace('"', '""') + '"'


_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})
_PRAGMAS = frozenset({"table_xinfo", "foreign_key_list", "index_list", "index_info"})
_FUNCTIONS = frozenset({
    "count", "sum", "total", "avg", "min", "max", "abs", "round", "length", "lower", "upper",
    "trim", "ltrim", "rtrim", "substr", "substring", "replace", "coalesce", "ifnull", "nullif",
    "iif", "like", "glob", "date", "time", "datetime", "julianday", "strftime", "typeof", "instr",
    "printf", "format",
})  # fmt: skip
"""None of them reads a file, loads code or differs from call to call."""
_EACH = 2000
"""Steps of SQLite's machine between two looks at the clock: far below a millisecond."""


def _authorize(action: int, one: str | None, two: str | None, *_: str | None) -> int:
    allowed = (
        action in _READS
        or (action == sqlite3.SQLITE_FUNCTION and (two or "").lower() in _FUNCTIONS)
        or (action == sqlite3.SQLITE_PRAGMA and (one or "").lower() in _PRAGMAS)
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


class SqliteEngine:
    """SQLite's file, through the standard library."""

    dialect = "sqlite"

    def __init__(self, path: Path, limits: QueryLimits) -> None:
        self._path, self._limits = path, limits
        self._ends = 0.0
        address = f"file:{quote(str(path.resolve()))}?mode=ro"
        try:
            self._connection = sqlite3.connect(address, uri=True, timeout=1.0)
            self._connection.execute("PRAGMA query_only = ON")
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except sqlite3.Error as error:
            raise self._refused(error) from error
        self._connection.text_factory = _text
        self._connection.set_authorizer(_authorize)
        self._connection.set_progress_handler(self._is_late, _EACH)

    def _is_late(self) -> int:
        return int(time.monotonic() > self._ends)

    def _refused(self, error: sqlite3.Error) -> ConfigurationError:
        # Not the message: it may quote the database. The name of the code is SQLite's own.
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        if name == "SQLITE_INTERRUPT":
            return _limit(self._path, f"a statement of over {self._limits.seconds:g} s")
        told = {
            "SQLITE_BUSY": "a locked database", "SQLITE_LOCKED": "a locked database",
            "SQLITE_NOTADB": "a file that is no database", "SQLITE_CORRUPT": "a damaged database",
            "SQLITE_CANTOPEN": "a file that cannot be opened", "SQLITE_AUTH": "more than reading",
        }  # fmt: skip
        return ConfigurationError(str(self._path), f"{told.get(name, name)} ({name})", _EXPECTED)

    def rows(self, sql: str, values: Sequence[Value] = ()) -> Iterator[tuple[Value, ...]]:
        """Yield the rows of one SELECT; time counts only while SQLite works."""
        left = self._limits.rows
        spent = 0.0
        try:
            with closing(self._connection.cursor()) as cursor:
                begun = time.monotonic()
                self._ends = begun + self._limits.seconds
                found = cursor.execute(sql, values)
                while True:
                    row = found.fetchone()
                    spent += time.monotonic() - begun
                    if row is None:
                        return
                    left -= 1
                    if left < 0:
                        raise _limit(self._path, f"over {self._limits.rows} rows")
                    yield row
                    begun = time.monotonic()
                    self._ends = begun + self._limits.seconds - spent
        except sqlite3.Error as error:
            raise self._refused(error) from error

    def tables(self) -> tuple[RawTable, ...]:
        """Return every table and view of the user's, by name."""
        wanted = (
            "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
        )
        found = [(str(name), kind == "view") for name, kind in self.rows(wanted)]
        primary = {name: self._primary_key(name) for name, _ in found}
        return tuple(self._table(name, is_view, primary) for name, is_view in found)

    def _pragma(self, name: str, table: str) -> list[tuple[Value, ...]]:
        return list(self.rows(f"PRAGMA {name}({quoted(table)})"))

    def _primary_key(self, table: str) -> list[str]:
        rows = [(row[5], str(row[1])) for row in self._pragma("table_xinfo", table) if row[5]]
        return [name for _, name in sorted(rows)]

    def _table(self, name: str, is_view: bool, primary: dict[str, list[str]]) -> RawTable:
        # a hidden column of kind 1 belongs to a virtual table's machinery
        columns = [row for row in self._pragma("table_xinfo", name) if row[6] != 1]
        own = primary[name]
        unique = set(own) if len(own) == 1 else set()
        for index in self._pragma("index_list", name):
            if index[2] and not index[4]:  # unique, and not over a part of the rows
                parts = [row[2] for row in self._pragma("index_info", str(index[1]))]
                unique |= {str(parts[0])} if len(parts) == 1 and parts[0] is not None else set()
        return RawTable(
            name,
            tuple(RawColumn(str(row[1]), str(row[2] or "")) for row in columns),
            frozenset(unique),
            tuple(self._foreign_keys(name, primary)),
            is_view,
        )

    def _foreign_keys(self, table: str, primary: dict[str, list[str]]) -> Iterator[ForeignKey]:
        rows = self._pragma("foreign_key_list", table)
        wide = {row[0] for row in rows if row[1] > 0}
        known = {name.casefold(): name for name in primary}
        for number, _, to_table, column, to_column, *_ in sorted(rows, reverse=True):
            target = known.get(str(to_table).casefold())
            if number in wide or target is None:
                continue
            if to_column is None and len(primary[target]) != 1:
                continue
            yield ForeignKey(str(column), target, str(to_column or primary[target][0]))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _text(value: bytes) -> str:
    """Return a text; bytes that are none stay marked, so that no answer is made of them."""
    return value.decode("utf-8", "surrogateescape")


def _limit(path: Path, found: str) -> ConfigurationError:
    expected = "less; --max-seconds and --max-rows set the limits of one statement"
    return ConfigurationError(str(path), found, expected)


_BLOCK = 1000
_DUCKDB_SETTINGS = {"enable_external_access": "false", "autoload_known_extensions": "false"}


class DuckDbEngine:
    """DuckDB's file. It has no authorizer: it is read-only and may reach no other file."""

    dialect = "duckdb"

    def __init__(self, path: Path, limits: QueryLimits) -> None:
        try:
            import duckdb
        except ImportError as error:
            raise MissingExtra("rag-guardrail-offline[duckdb]") from error
        self._path, self._limits, self._error = path, limits, duckdb.Error
        try:
            self._connection = duckdb.connect(str(path), read_only=True, config=_DUCKDB_SETTINGS)
        except duckdb.Error as error:
            raise ConfigurationError(str(path), type(error).__name__, _EXPECTED) from error

    def rows(self, sql: str, values: Sequence[Value] = ()) -> Iterator[tuple[Value, ...]]:
        """Yield the rows of one SELECT, each statement in a cursor of its own."""
        left = self._limits.rows
        cursor = self._connection.cursor()
        try:
            with self._watched(cursor):
                found = cursor.execute(sql, list(values))
            while True:
                with self._watched(cursor):
                    block = found.fetchmany(_BLOCK)
                if not block:
                    return
                left -= len(block)
                if left < 0:
                    raise _limit(self._path, f"over {self._limits.rows} rows")
                yield from block
        except self._error as error:
            if type(error).__name__ == "InterruptException":
                told = f"a statement of over {self._limits.seconds:g} s"
                raise _limit(self._path, told) from error
            raise ConfigurationError(str(self._path), type(error).__name__, _EXPECTED) from error
        finally:
            cursor.close()

    @contextmanager
    def _watched(self, cursor: Any) -> Iterator[None]:
        """End what a cursor does when it takes too long."""
        watch = Timer(self._limits.seconds, cursor.interrupt)
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    def tables(self) -> tuple[RawTable, ...]:
        """Return every table and view of the user's, by name."""
        columns: dict[str, list[RawColumn]] = {}
        asked = (
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE NOT internal AND database_name = current_database() "
            "ORDER BY table_name, column_index"
        )
        for table, name, kind in self.rows(asked):
            columns.setdefault(table, []).append(RawColumn(name, kind))
        views = {
            row[0] for row in self.rows("SELECT view_name FROM duckdb_views() WHERE NOT internal")
        }
        unique, links = self._constraints()
        return tuple(
            RawTable(
                name,
                tuple(found),
                frozenset(unique.get(name, ())),
                tuple(links.get(name, ())),
                name in views,
            )
            for name, found in sorted(columns.items())
        )

    def _constraints(self) -> tuple[dict[str, set[str]], dict[str, list[ForeignKey]]]:
        """Return by table the columns that are unique alone, and the foreign keys."""
        unique: dict[str, set[str]] = {}
        links: dict[str, list[ForeignKey]] = {}
        asked = (
            "SELECT table_name, constraint_type, constraint_column_names, referenced_table, "
            "referenced_column_names FROM duckdb_constraints()"
        )
        for table, kind, columns, other, others in self.rows(asked):
            if len(columns) != 1:
                continue
            if kind in ("PRIMARY KEY", "UNIQUE"):
                unique.setdefault(table, set()).add(columns[0])
            elif kind == "FOREIGN KEY" and len(others) == 1:
                links.setdefault(table, []).append(ForeignKey(columns[0], other, others[0]))
        return unique, links

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

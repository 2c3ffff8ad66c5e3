"""A database is read and never written; what takes too long or is no database says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from guardrail_offline.grammar.engine import QueryLimits, open_engine, quoted
from guardrail_offline.grammar.schema import read_schema
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.grammar.conftest import Database


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM Client",
        "INSERT INTO Client VALUES ('x', 'y', NULL)",
        "ATTACH '/tmp/other.db' AS other",
        "PRAGMA journal_mode = WAL",
        "CREATE TABLE t (a)",
        "SELECT load_extension('x')",
        "SELECT randomblob(10)",
        "SELECT readfile('/etc/passwd')",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t",
    ],
)
def test_nothing_but_reading_is_let_through(shop: Database, statement: str) -> None:
    """The file is the same afterwards."""
    before = shop.path.read_bytes()
    with pytest.raises(ConfigurationError):
        list(shop.engine.rows(statement))
    assert shop.path.read_bytes() == before


def test_a_statement_has_limits_of_time_and_rows(made: Callable[[str], Path]) -> None:
    """Whatever is joined with whatever."""
    path = made("CREATE TABLE t (a); " + "INSERT INTO t VALUES (1);" * 200)
    endless = "SELECT count(*) FROM t AS a, t AS b, t AS c, t AS d, t AS e"
    with pytest.raises(ConfigurationError, match=r"over 0\.05 s"):
        list(open_engine(path, QueryLimits(seconds=0.05)).rows(endless))
    with pytest.raises(ConfigurationError, match="over 10 rows"):
        list(open_engine(path, QueryLimits(rows=10)).rows("SELECT a FROM t"))


def test_two_readers_share_an_engine(shop: Database) -> None:
    """One statement runs inside the loop over another."""
    found = [
        list(shop.engine.rows('SELECT "Budget" FROM "Project" WHERE "Name" = ?', row))
        for row in shop.engine.rows('SELECT "Name" FROM "Project" ORDER BY "Name"')
    ]
    assert found == [[(10.0,)], [(20.5,)], [(20.5,)]]


def test_files_that_cannot_be_read_say_why(tmp_path: Path, shop: Database) -> None:
    """No such file, no database, a damaged one, a locked one."""
    with pytest.raises(ConfigurationError, match="no such file"):
        open_engine(tmp_path / "none.db")
    text = tmp_path / "text.db"
    text.write_text("not a database at all, " * 100)
    with pytest.raises(ConfigurationError, match="no database"):
        open_engine(text)
    damaged = tmp_path / "damaged.db"
    content = bytearray(shop.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    damaged.write_bytes(content)
    with pytest.raises(ConfigurationError, match="damaged"):
        read_schema(open_engine(damaged))
    writer = sqlite3.connect(shop.path)
    writer.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(ConfigurationError, match="locked"):
            open_engine(shop.path)
    finally:
        writer.close()


def test_keys_are_read_with_and_without_a_named_column(made: Callable[[str], Path]) -> None:
    """A key over several columns, or to a table that is not there, joins nothing."""
    path = made(
        "CREATE TABLE a (k TEXT PRIMARY KEY, x TEXT);"
        "CREATE TABLE w (p INT, q INT, PRIMARY KEY (p, q));"
        "CREATE TABLE b (n TEXT UNIQUE, a TEXT REFERENCES A, g TEXT REFERENCES gone(x),"
        " p INT, q INT, FOREIGN KEY (p, q) REFERENCES w (p, q));"
        "CREATE VIEW v AS SELECT x FROM a;"
    )
    tables = {table.name: table for table in open_engine(path).tables()}
    assert [(k.column, k.to_table, k.to_column) for k in tables["b"].foreign_keys] == [
        ("a", "a", "k")
    ]
    assert tables["b"].unique == {"n"}
    assert tables["v"].is_view
    assert not tables["w"].unique


def test_a_name_is_quoted_whatever_it_is() -> None:
    """Quotes are doubled."""
    assert quoted('a "b"') == '"a ""b"""'

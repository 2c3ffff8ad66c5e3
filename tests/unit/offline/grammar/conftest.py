"""Databases for tests of GRAMMAR: made from SQL, and the example's company."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from guardrail_offline.grammar.engine import Engine, open_engine
from guardrail_offline.grammar.schema import Schema, read_schema
from guardrail_service.commands.main import app

SHOP = """
CREATE TABLE Client (Name TEXT PRIMARY KEY, Industry TEXT, Logo BLOB);
CREATE TABLE Project (
    ProjectID INTEGER PRIMARY KEY, Name TEXT UNIQUE, Budget REAL, "order" TEXT,
    Client TEXT REFERENCES Client (Name));
INSERT INTO Client VALUES ('Acme', 'rail', x'00'), ('Zürich & Co', 'food', NULL);
INSERT INTO Project VALUES
    (1, 'Alder', 10.0, 'first', 'Acme'), (2, 'Birch', 20.5, NULL, 'Acme'),
    (3, 'Cedar', 20.5, 'third', 'Zürich & Co');
"""


class Database(NamedTuple):
    """A file that is open, with its schema."""

    path: Path
    engine: Engine
    schema: Schema


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str], Path]:
    """Write a SQLite file from a script."""

    def write(script: str) -> Path:
        path = tmp_path / "made.db"
        connection = sqlite3.connect(path)
        connection.executescript(f"BEGIN; {script}; COMMIT;")
        connection.close()
        return path

    return write


@pytest.fixture
def shop(made: Callable[[str], Path]) -> Database:
    """Clients and projects, with an identifier, a blob, a NULL and a reserved word."""
    path = made(SHOP)
    engine = open_engine(path)
    return Database(path, engine, read_schema(engine))


class Ran(NamedTuple):
    """A command that has ended."""

    status: int
    text: str
    json: Any


def guardrail(*words: object) -> Ran:
    """Run `guardrail grammar` with these words."""
    found = CliRunner().invoke(app, ["grammar", *map(str, words)])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    content = json.loads(found.stdout) if "--json" in words and found.exit_code != 2 else None
    return Ran(found.exit_code, found.output, content)

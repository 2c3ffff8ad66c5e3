"""DuckDB behind the protocol of the engine."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from guardrail_offline.grammar.engine import open_engine
from guardrail_offline.grammar.schema import read_schema
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.grammar.conftest import SHOP, Database


def test_duckdb_gives_the_same_schema_as_sqlite(tmp_path: Path, shop: Database) -> None:
    """Behind one protocol; it is read-only, too."""
    path = tmp_path / "made.duckdb"
    connection = duckdb.connect(str(path))
    for statement in SHOP.replace("x'00'", "'\\x00'::BLOB").split(";\n"):
        connection.execute(statement)
    connection.close()
    engine = open_engine(path)
    schema = read_schema(engine)
    for table in schema.tables:
        known = shop.schema.table(table.name)
        assert known is not None
        assert [(c.name, c.kind, c.hidden, c.identifies) for c in table.columns] == [
            (c.name, c.kind, c.hidden, c.identifies) for c in known.columns
        ]
        assert table.foreign_keys == known.foreign_keys
    with pytest.raises(ConfigurationError):
        list(engine.rows("DELETE FROM Client"))
    with pytest.raises(ConfigurationError):
        list(engine.rows(f"COPY Client TO '{tmp_path / 'stolen.csv'}'"))
    engine.close()

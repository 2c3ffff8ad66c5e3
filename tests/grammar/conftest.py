"""Run by `.ci/grammar` only: DuckDB and a small language model, which `make test` has not."""

from __future__ import annotations

from importlib.util import find_spec

from tests.unit.offline.grammar.conftest import made, shop

__all__ = ["made", "shop"]

collect_ignore_glob = [] if find_spec("xllamacpp") and find_spec("duckdb") else ["test_*.py"]

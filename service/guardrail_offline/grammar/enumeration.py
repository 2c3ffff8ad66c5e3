"""Enumerates the SQL of templates from a schema, along foreign keys; nothing is prompted.

Four shapes: a fact of a row that a question names, a fact of what the row refers to, a fact of a
row that links several named ones, and the rows that refer to a named one, listed or counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from guardrail_offline.grammar.engine import ForeignKey, quoted
from guardrail_offline.grammar.schema import Schema, Table, TableColumn


@dataclass(frozen=True, slots=True)
class EnumerationOptions:
    """The shapes of queries that are enumerated.

    Attributes:
        joins: Foreign keys that a query follows at most, 0 to 2.
        selected: Columns that a query asks for at most.
        lists: Also rows that refer to a named one: their answers are sets.
        counts: Also how many rows refer to a named one.
    """

    joins: int = 2
    selected: int = 1
    lists: bool = False
    counts: bool = False


def enumerate_sql(schema: Schema, options: EnumerationOptions) -> Iterator[str]:
    """Yield the SQL of every template, table by table."""
    tables = [table for table in schema.tables if not table.hidden]
    for table in tables:
        for start in table.identifiers:
            yield from _own(table, start, options)
            yield from _referred(schema, table, start, options)
        if not table.identifiers:
            yield from _linking(schema, table, options)
    for table in tables:
        yield from _referring(schema, table, options)


def _own(table: Table, start: TableColumn, options: EnumerationOptions) -> Iterator[str]:
    facts = [c for c in table.columns if not c.hidden and c.name != start.name]
    for chosen in _subsets(facts, options.selected):
        columns = ", ".join(quoted(c.name) for c in chosen)
        yield (
            f"SELECT {columns} FROM {quoted(table.name)} "
            f"WHERE {quoted(start.name)} = {placeholder(table, start)}"
        )


def _referred(
    schema: Schema, table: Table, start: TableColumn, options: EnumerationOptions
) -> Iterator[str]:
    for path in _paths(schema, table, options.joins):
        last = _target(schema, path[-1])
        facts = [c for c in last.columns if not c.hidden and not _is_known(table, path, c)]
        tables = [table, *(_target(schema, key) for key in path)]
        joined = _joined(tables, [(n, key, n + 1) for n, key in enumerate(path)])
        for chosen in _subsets(facts, options.selected):
            columns = ", ".join(f"t{len(path)}.{quoted(c.name)}" for c in chosen)
            yield (
                f"SELECT {columns} {joined} "
                f"WHERE t0.{quoted(start.name)} = {placeholder(table, start)}"
            )


def _is_known(table: Table, path: Sequence[ForeignKey], fact: TableColumn) -> bool:
    """Return whether the key itself holds a fact: asking for it needs no join."""
    key = path[-1]
    own = table.column(key.column) if len(path) == 1 else None
    holds = own is None or not own.hidden
    return fact.name == key.to_column and holds


def _paths(schema: Schema, table: Table, most: int) -> Iterator[tuple[ForeignKey, ...]]:
    """Yield the ways along keys to what a row refers to, the short ones first."""
    known: list[tuple[ForeignKey, ...]] = [()]
    for _ in range(most):
        longer = []
        for path in known:
            here = table if not path else _target(schema, path[-1])
            for key in here.foreign_keys:
                target = schema.table(key.to_table)
                if target is not None and not target.hidden and key not in path:
                    longer.append((*path, key))
        yield from longer
        known = longer


def _target(schema: Schema, key: ForeignKey) -> Table:
    found = schema.table(key.to_table)
    if found is None:
        raise AssertionError("a foreign key to no table")
    return found


def _linking(schema: Schema, table: Table, options: EnumerationOptions) -> Iterator[str]:
    """Yield queries for a row that only the rows it refers to name, such as an employment."""
    keys = [k for k in table.foreign_keys if _target(schema, k).identifiers]
    keys = [k for k in keys if not _target(schema, k).hidden]
    if len(keys) < 2 or options.joins < len(keys):
        return
    links = {key.column for key in table.foreign_keys}
    facts = [c for c in table.columns if not c.hidden and c.name not in links]
    tables = [table, *(_target(schema, key) for key in keys)]
    joined = _joined(tables, [(0, key, n) for n, key in enumerate(keys, 1)])
    for starts in product(*(one.identifiers for one in tables[1:])):
        names = _placeholders(tables[1:], starts)
        given = " AND ".join(
            f"t{n}.{quoted(start.name)} = {name}"
            for n, (start, name) in enumerate(zip(starts, names, strict=True), 1)
        )
        for chosen in _subsets(facts, options.selected):
            columns = ", ".join(f"t0.{quoted(c.name)}" for c in chosen)
            yield f"SELECT {columns} {joined} WHERE {given}"


def _referring(schema: Schema, table: Table, options: EnumerationOptions) -> Iterator[str]:
    """Yield queries for the rows of a table that refer to a named row of another."""
    if options.joins < 1:
        return
    for key in table.foreign_keys:
        target = _target(schema, key)
        if target.hidden:
            continue
        joined = _joined([table, target], [(0, key, 1)])
        for start in target.identifiers:
            given = f"WHERE t1.{quoted(start.name)} = {placeholder(target, start)}"
            if options.lists:
                for name in table.identifiers:
                    yield f"SELECT t0.{quoted(name.name)} {joined} {given}"
            if options.counts:
                yield f"SELECT COUNT(*) {joined} {given}"


def _joined(tables: Sequence[Table], keys: Sequence[tuple[int, ForeignKey, int]]) -> str:
    """Return FROM and the joins; each key goes from one numbered table to another."""
    parts = [f"FROM {quoted(tables[0].name)} AS t0"]
    for one, key, other in keys:
        parts.append(
            f"JOIN {quoted(tables[other].name)} AS t{other} "
            f"ON t{one}.{quoted(key.column)} = t{other}.{quoted(key.to_column)}"
        )
    return " ".join(parts)


def _subsets(columns: Sequence[TableColumn], most: int) -> Iterator[tuple[TableColumn, ...]]:
    for size in range(1, min(most, len(columns)) + 1):
        yield from combinations(columns, size)


def placeholder(table: Table, column: TableColumn, number: int = 1) -> str:
    """Return the SQL text that stands for a column's values, such as '[Project.Name]'."""
    name = f"{table.name}.{column.name}".replace("[", "(").replace("]", ")").replace("'", "''")
    return f"'[{name}]'" if number == 1 else f"'[{name}:{number}]'"


def _placeholders(tables: Sequence[Table], starts: Sequence[TableColumn]) -> list[str]:
    """Return a placeholder each; a second one of the same column has a number."""
    found: list[str] = []
    for table, start in zip(tables, starts, strict=True):
        number = 1
        while placeholder(table, start, number) in found:
            number += 1
        found.append(placeholder(table, start, number))
    return found

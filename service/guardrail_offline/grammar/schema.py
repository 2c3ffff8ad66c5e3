"""Reads a database's schema, and the labels file that says in words what it holds.

The labels file is JSON, written once by `guardrail grammar schema` and edited by people: phrases,
synonyms, units, other names of values, and what no question should be about.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import re2
from pydantic import BaseModel, ConfigDict, ValidationError

from guardrail_offline.grammar.engine import Engine, ForeignKey, RawTable, Value, quoted
from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.text.patterns.search import encodable

Kind = Literal["text", "number", "date", "blob", "empty"]
FORMAT = "guardrail-grammar-labels"
VERSION = 1
_PROBED = 200
"""Distinct values of a column that are looked at to say what kind it is."""
_LONG_TEXT = 120
"""Mean characters from which a text is a description, and no answer to a question."""
_IDENTIFIER = re2.compile(
    r"(?i)(?:^|[^\p{L}])(?:id|uuid|guid|rowid|pk|fk|key|hash)$|\p{Ll}(?:ID|Id|Uuid|UUID|Key)$|^id$"
)
_WORDS = re2.compile(r"\p{Lu}+(?:\p{Ll}|\p{M})+|\p{Lu}+|(?:\p{L}|\p{M})+|\p{N}+")
_CAMEL = re2.compile(r"(\p{Ll}|\p{N})(\p{Lu})")
_DATE = re2.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table, and what people call it.

    Attributes:
        kind: Of what its values are.
        type: As the database declares it.
        distinct: How many different values it has, NULL aside.
        nulls: How many rows have none.
        is_unique: It is declared to tell rows apart.
        hidden: Why no question is about it; empty if questions may be.
        identifies: Questions name a row of the table by it.
        phrase: In the words of a question: "start date".
        synonyms: Further phrases, for further wordings.
        unit: What its numbers count, such as "EUR".
        aliases: Other names of its values, all of them right.
    """

    name: str
    kind: Kind
    type: str = ""
    distinct: int = 0
    nulls: int = 0
    is_unique: bool = False
    hidden: str = ""
    identifies: bool = False
    phrase: str = ""
    synonyms: tuple[str, ...] = ()
    unit: str = ""
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Table:
    """A table and what people call one of its rows.

    Attributes:
        phrase: One row in the words of a question: "project".
        plural: Several of them.
        hidden: Why no question is about it; empty if questions may be.
        documents: The id of the document that tells of a row, with columns in braces, such as
            "projects/{ProjectID}"; empty where nothing is known about documents.
    """

    name: str
    columns: tuple[TableColumn, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    rows: int = 0
    phrase: str = ""
    plural: str = ""
    hidden: str = ""
    documents: str = ""

    def column(self, name: str) -> TableColumn | None:
        """Return a column by name, in any case, or None."""
        return next((c for c in self.columns if c.name.casefold() == name.casefold()), None)

    @property
    def identifiers(self) -> tuple[TableColumn, ...]:
        """Return the columns by which questions name a row."""
        return tuple(c for c in self.columns if c.identifies and not c.hidden)


@dataclass(frozen=True, slots=True)
class Schema:
    """Every table of a database, by name."""

    tables: tuple[Table, ...]

    def table(self, name: str) -> Table | None:
        """Return a table by name, in any case, or None."""
        return next((t for t in self.tables if t.name.casefold() == name.casefold()), None)

    @property
    def sha256(self) -> str:
        """Return the hash of what templates depend on: names, types and keys, and no data."""
        plain = [
            [t.name, [[c.name, c.type] for c in t.columns], sorted(map(repr, t.foreign_keys))]
            for t in self.tables
        ]
        return hashlib.sha256(json.dumps(plain).encode("utf-8", "surrogatepass")).hexdigest()


def read_schema(engine: Engine) -> Schema:
    """Return a database's tables with the labels that its names and values suggest.

    Raises:
        ConfigurationError: If it has no table, or cannot be read.
    """
    raw = engine.tables()
    tables = [_table(engine, one) for one in raw]
    if not tables:
        raise ConfigurationError("the database", "no table", "tables with rows")
    hidden = {(t.name, c.name) for t in tables for c in t.columns if c.hidden}
    return Schema(tuple(_without_hidden_targets(table, hidden) for table in tables))


def _table(engine: Engine, raw: RawTable) -> Table:
    (count,) = next(iter(engine.rows(f"SELECT count(*) FROM {quoted(raw.name)}")))
    columns = tuple(_column(engine, raw, c.name, c.type, int(count)) for c in raw.columns)
    phrase = phrase_of(raw.name)
    one = singular(phrase)
    hidden = "no rows" if not count else "a view" if raw.is_view else ""
    table = Table(raw.name, columns, raw.foreign_keys, int(count), one, plural(one), hidden=hidden)
    return replace(table, columns=tuple(_identifying(table)))


def _column(engine: Engine, raw: RawTable, name: str, declared: str, rows: int) -> TableColumn:
    place = quoted(name)
    table = quoted(raw.name)
    counted = f"SELECT count({place}), count(DISTINCT {place}) FROM {table}"
    filled, distinct = next(iter(engine.rows(counted)))
    probe = f"SELECT DISTINCT {place} FROM {table} WHERE {place} IS NOT NULL LIMIT {_PROBED}"
    values = [row[0] for row in engine.rows(probe)]
    kind = _kind(values)
    link = next((key for key in raw.foreign_keys if key.column == name), None)
    words = phrase_of(name)
    if link is not None and words.rpartition(" ")[2] in ("id", "key", "fk", "uuid"):
        words = words.rpartition(" ")[0] or words
    found = TableColumn(
        name, kind, declared, int(distinct), rows - int(filled), name in raw.unique, phrase=words
    )
    return replace(found, hidden=_why_hidden(found, values, rows, is_link=link is not None))


def _kind(values: Sequence[Value]) -> Kind:
    if not values:
        return "empty"
    if any(isinstance(value, bytes | bytearray | memoryview) for value in values):
        return "blob"
    if all(isinstance(value, datetime.date) or _is_date(value) for value in values):
        return "date"
    if all(not isinstance(value, str) for value in values):
        return "number"
    return "text"


def _is_date(value: Value) -> bool:
    return isinstance(value, str) and _DATE.fullmatch(encodable(value)) is not None


def _why_hidden(column: TableColumn, values: Sequence[Value], rows: int, *, is_link: bool) -> str:
    """Return why a column says nothing to people who do not know the database, or "".

    Source:
        GRAMMAR, 2024, table 4: "meaningful and descriptive", no "semantically void record
        identifiers".
    """
    if column.kind == "blob":
        return "binary data"
    if column.kind == "empty":
        return "no values"
    if _IDENTIFIER.search(encodable(column.name)):
        return "a record identifier"
    if column.kind == "number" and rows > 1 and column.distinct == rows:
        return "numbers that are all different"
    texts = [value for value in values if isinstance(value, str)]
    if column.kind == "text" and sum(map(len, texts)) > _LONG_TEXT * len(texts) > 0:
        return "long texts"
    if is_link and column.kind == "number":
        return "a key of another table"
    return ""


def _identifying(table: Table) -> Iterator[TableColumn]:
    """Yield a table's columns, marked by which of them questions name a row.

    Declared unique texts; where there are none, texts that are unique in the data, and of several
    those that are called a name or a title.
    """
    shown = [c for c in table.columns if not c.hidden and c.kind == "text"]
    chosen = [c for c in shown if c.is_unique]
    if not chosen:
        links = {key.column for key in table.foreign_keys}
        free = [c for c in shown if c.name not in links]
        distinct = [c for c in free if table.rows and c.distinct == table.rows and not c.nulls]
        named = [c for c in distinct if c.phrase.split()[-1:] in (["name"], ["title"])]
        chosen = named or distinct[:1]
    for column in table.columns:
        yield replace(column, identifies=column in chosen)


def _without_hidden_targets(table: Table, hidden: set[tuple[str, str]]) -> Table:
    """Hide what refers to a hidden column: it holds the same identifiers."""
    void = {k.column for k in table.foreign_keys if (k.to_table, k.to_column) in hidden}
    columns = tuple(
        replace(c, hidden="a key of another table", identifies=False)
        if c.name in void and not c.hidden
        else c
        for c in table.columns
    )
    return replace(table, columns=columns)


def phrase_of(name: str) -> str:
    """Return a name as words: "StartDate" and "start_date" are "start date"."""
    spaced = _CAMEL.sub(r"\1 \2", encodable(name))
    found = _WORDS.findall(spaced)
    kept = [word if len(word) > 1 and word.isupper() and not name.isupper() else word.lower()
            for word in found]  # fmt: skip
    return " ".join(kept) or encodable(name)


_PEOPLE = {"people": "person", "children": "child", "men": "man", "women": "woman"}


def singular(phrase: str) -> str:
    """Return a phrase with its last word in the singular, as far as endings tell."""
    head, _, last = phrase.rpartition(" ")
    low = last.lower()
    if low in _PEOPLE:
        last = _PEOPLE[low]
    elif low.endswith("ies") and len(low) > 4:
        last = last[:-3] + "y"
    elif low.endswith(("sses", "xes", "ches", "shes")):
        last = last[:-2]
    elif low.endswith("s") and not low.endswith(("ss", "us", "is", "news", "series")):
        last = last[:-1]
    return f"{head} {last}".strip()


def plural(phrase: str) -> str:
    """Return a phrase with its last word in the plural."""
    head, _, last = phrase.rpartition(" ")
    for many, one in _PEOPLE.items():
        if last == one:
            return f"{head} {many}".strip()
    if last.endswith("y") and last[-2:-1] not in "aeiou":
        return f"{head} {last[:-1]}ies".strip()
    return phrase + ("es" if last.endswith(("s", "x", "ch", "sh")) else "s")


class _ColumnLabels(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    phrase: str | None = None
    synonyms: list[str] | None = None
    hidden: bool | None = None
    why: str = ""
    identifies: bool | None = None
    unit: str | None = None
    aliases: dict[str, list[str]] | None = None


class _TableLabels(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    phrase: str | None = None
    plural: str | None = None
    hidden: bool | None = None
    why: str = ""
    documents: str | None = None
    columns: dict[str, _ColumnLabels] = {}


class _Labels(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    format: Literal["guardrail-grammar-labels"]
    version: Literal[1]
    tables: dict[str, _TableLabels]


def labels_json(schema: Schema) -> dict[str, Any]:
    """Return a schema's labels as the file for people to edit; `labelled` reads it back."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "tables": {table.name: _table_labels(table) for table in schema.tables},
    }


def _table_labels(table: Table) -> dict[str, Any]:
    found: dict[str, Any] = {"phrase": table.phrase, "plural": table.plural}
    if table.hidden:
        found |= {"hidden": True, "why": table.hidden}
    if table.documents:
        found["documents"] = table.documents
    found["columns"] = {column.name: _column_labels(column) for column in table.columns}
    return found


def _column_labels(column: TableColumn) -> dict[str, Any]:
    if column.hidden:
        return {"hidden": True, "why": column.hidden, "phrase": column.phrase}
    found: dict[str, Any] = {"phrase": column.phrase, "synonyms": list(column.synonyms)}
    if column.identifies:
        found["identifies"] = True
    if column.unit:
        found["unit"] = column.unit
    if column.aliases:
        found["aliases"] = {name: list(others) for name, others in column.aliases.items()}
    return found


def labelled(schema: Schema, path: Path) -> Schema:
    """Return a schema with the labels of a file; what the file leaves out stays as it was.

    Raises:
        ConfigurationError: If the file is none, or names a table or column that is not there.
    """
    try:
        found = _Labels.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(str(path), type(error).__name__, "a labels file") from error
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigurationError(f"{path}: {place}", first["type"], "a labels file") from error
    names = {table.name for table in schema.tables}
    for name in found.tables:
        if name not in names:
            hint = choices(name, names, "table")
            raise ConfigurationError(f"{path}: tables", f"{name!r}", hint)
    return Schema(
        tuple(_with(table, found.tables.get(table.name), path) for table in schema.tables)
    )


def _with(table: Table, labels: _TableLabels | None, path: Path) -> Table:
    if labels is None:
        return table
    names = {column.name for column in table.columns}
    for name in labels.columns:
        if name not in names:
            where = f"{path}: tables.{table.name}.columns"
            raise ConfigurationError(where, f"{name!r}", choices(name, names, "column"))
    columns = tuple(_with_labels(c, labels.columns.get(c.name)) for c in table.columns)
    return replace(
        table,
        columns=columns,
        phrase=labels.phrase or table.phrase,
        plural=labels.plural or plural(labels.phrase or table.phrase),
        hidden=_hidden(labels, table.hidden),
        documents=table.documents if labels.documents is None else labels.documents,
    )


def _hidden(labels: _TableLabels | _ColumnLabels, before: str) -> str:
    """Return why nothing is asked about a table or column; a file that does not say leaves it."""
    if labels.hidden is None:
        return before
    return labels.why or before or "hidden" if labels.hidden else ""


def _with_labels(column: TableColumn, labels: _ColumnLabels | None) -> TableColumn:
    if labels is None:
        return column
    hidden = _hidden(labels, column.hidden)
    identifies = column.identifies if labels.identifies is None else labels.identifies
    known = column.aliases if labels.aliases is None else labels.aliases
    return replace(
        column,
        phrase=labels.phrase or column.phrase,
        synonyms=column.synonyms if labels.synonyms is None else tuple(labels.synonyms),
        hidden=hidden,
        identifies=identifies and not hidden,
        unit=column.unit if labels.unit is None else labels.unit,
        aliases={name: tuple(others) for name, others in known.items()},
    )

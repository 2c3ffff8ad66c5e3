"""Reads the SQL of a template, checks it against the criteria, and proves it on the data.

The criteria are those of GRAMMAR's table 4: one SELECT, named columns that people understand, a
placeholder, joins along keys, nothing asked that is said, one answer. The last one is not a matter
of the SQL: the data say for each filled query how many answers it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import re2

from guardrail_offline.grammar.engine import Engine, Value
from guardrail_offline.grammar.schema import Schema, Table, TableColumn
from guardrail_service.errors import MissingExtra
from guardrail_service.text.patterns.search import encodable

try:
    import sqlglot
    from sqlglot import exp
except ImportError as error:
    raise MissingExtra("rag-guardrail-offline") from error

Criterion = Literal[
    "not_sql", "not_one_select", "star", "unknown_table", "unknown_column", "no_placeholder",
    "placeholder_elsewhere", "join_without_key", "not_descriptive", "asks_what_it_says",
    "hides_answers", "aggregate", "duplicate", "several_answers", "no_rows", "text_placeholders",
]  # fmt: skip
MEANING: Mapping[Criterion, str] = {
    "not_sql": "the SQL cannot be read",
    "not_one_select": "not one plain SELECT",
    "star": "* in place of named columns",
    "unknown_table": "a table that the database does not have",
    "unknown_column": "a column that its tables do not have, or several have",
    "no_placeholder": "no placeholder in WHERE",
    "placeholder_elsewhere": "a placeholder that is not compared with a column by =, or is twice",
    "join_without_key": "a join that follows no foreign key",
    "not_descriptive": "a column or table that is hidden from questions",
    "asks_what_it_says": "a column that is both asked for and given",
    "hides_answers": "LIMIT, GROUP BY, HAVING or a window, which hide answers",
    "aggregate": "an aggregate other than a lone COUNT(*)",
    "duplicate": "the same question as an earlier template",
    "several_answers": "several answers in the data to each filled query",
    "no_rows": "no row of the data fills it",
    "text_placeholders": "a text without exactly the placeholders of the SQL",
}
PLACEHOLDER = re2.compile(r"\[[^\[\]]+\]")


class Refusal(NamedTuple):
    """The criterion that a template does not meet, and where."""

    criterion: Criterion
    where: str = ""

    @property
    def reason(self) -> str:
        """Return what is wrong, for people."""
        return MEANING[self.criterion] + (f" ({self.where})" if self.where else "")


class Named(NamedTuple):
    """A column of one of a query's tables, as it is written there."""

    alias: str
    table: Table
    column: TableColumn


class Given(NamedTuple):
    """A column that a query compares with a placeholder."""

    named: Named
    placeholder: str


class Proof(NamedTuple):
    """The counts of a template on the data.

    Attributes:
        combinations: Of the distinct values of its placeholders, joined or not.
        filled: Combinations that rows have.
        single: Those with one answer; `unknown` of them have NULL for it.
        several: Those with more.
    """

    combinations: int
    filled: int
    single: int
    unknown: int

    @property
    def several(self) -> int:
        """Return how many filled queries have more than one answer."""
        return self.filled - self.single


class Wrong(Exception):
    """A template that does not meet a criterion."""

    def __init__(self, criterion: Criterion, where: str = "") -> None:
        super().__init__(criterion)
        self.refusal = Refusal(criterion, where)


@dataclass(frozen=True)
class TemplateQuery:
    """A template's SQL that meets every criterion but those of the data.

    Attributes:
        sql: As it was written.
        asked: The columns of the answer; none where rows are counted.
        given: What is compared with a placeholder, in the order of the SQL.
        sources: Its tables in order, each with the name that the query calls it.
        links: The joins, from the column with the foreign key to what it names.
    """

    sql: str
    dialect: str
    select: exp.Select
    asked: tuple[Named, ...]
    given: tuple[Given, ...]
    sources: tuple[tuple[str, Table], ...]
    links: tuple[tuple[Named, Named], ...]

    @property
    def joins(self) -> int:
        """Return how many tables are joined to the first."""
        return len(self.links)

    @property
    def counts(self) -> bool:
        """Return whether the answer is how many rows there are."""
        return not self.asked

    @cached_property
    def placeholders(self) -> tuple[str, ...]:
        """Return the placeholders, in order."""
        return tuple(one.placeholder for one in self.given)

    @cached_property
    def logic(self) -> str:
        """Return what makes two templates one question: tables, keys, what is asked and given."""
        shape = [
            sorted(f"{n.table.name}.{n.column.name}" for n in self.asked),
            sorted(f"{g.named.table.name}.{g.named.column.name}" for g in self.given),
            sorted(self._sql(link) for link in self.select.args.get("joins") or ()),
            self._sql(self.select.args["from_"]),
        ]
        return json.dumps(shape)

    @cached_property
    def bound(self) -> str:
        """Return the SQL with `?` for each placeholder, in the order of `given`."""
        return self._sql(self._bound())

    def bound_for(self, columns: Sequence[Named]) -> str:
        """Return the SQL of `bound` that asks for other columns of the same rows."""
        found = self._bound()
        found.set("expressions", [_place(one) for one in columns])
        found.set("distinct", exp.Distinct())
        return self._sql(found)

    def _bound(self) -> exp.Select:
        found = self.select.copy()
        for literal in list(found.find_all(exp.Literal)):
            if literal.is_string and literal.this in self.placeholders:
                literal.replace(exp.Placeholder())
        return found

    def answers(
        self, engine: Engine, values: Sequence[Value], most: int
    ) -> list[tuple[Value, ...]]:
        """Return the distinct answers of a filled query, at most one more than `most`."""
        found: dict[tuple[Value, ...], None] = {}
        for row in engine.rows(self.bound, values):
            found.setdefault(row)
            if len(found) > most:
                break
        return list(found)

    def proof(self, engine: Engine) -> Proof:
        """Return on how many rows a template stands."""
        inner = self._by_fill(("1", "one_of"), (self._single, "is_single"), (self._null, "is_null"))
        counted = (
            "SELECT count(*), coalesce(sum(CASE WHEN is_single THEN 1 ELSE 0 END), 0), "
            "coalesce(sum(CASE WHEN is_single AND is_null THEN 1 ELSE 0 END), 0) "
            f"FROM ({self._sql(inner)}) AS fills"
        )
        filled, single, unknown = next(iter(engine.rows(counted)))
        product = 1
        for one in self.given:
            place = exp.column(one.named.column.name, quoted=True)
            source = exp.to_table(one.named.table.name).transform(_quoted)
            distinct = exp.select(exp.Count(this=exp.Distinct(expressions=[place]))).from_(source)
            product *= int(next(iter(engine.rows(self._sql(distinct))))[0])
        return Proof(product, int(filled), int(single), int(unknown))

    def fills(self, engine: Engine, *, several: bool) -> Iterator[tuple[Value, ...]]:
        """Yield the values of the placeholders that joined rows have, in order.

        Args:
            engine: The database.
            several: Also those with more than one answer.
        """
        found = self._by_fill()
        if not several:
            found = found.having(self._single)
        for place in self._places:
            found = found.order_by(place)
        return engine.rows(self._sql(found))

    @property
    def _places(self) -> list[exp.Expression]:
        return [_place(one.named) for one in self.given]

    def _by_fill(self, *shown: tuple[str, str]) -> exp.Select:
        """Return the joined rows, put together by the values of the placeholders."""
        found = exp.select(*[place.copy() for place in self._places])
        for text, name in shown:
            found = found.select(f"({text}) AS {name}", dialect=self.dialect)
        found.set("from_", self.select.args["from_"].copy())
        joins = self.select.args.get("joins") or []
        if joins:
            found.set("joins", [link.copy() for link in joins])
        for condition in self._conditions:
            found = found.where(condition.copy())
        for place in self._places:
            found = found.where(exp.Not(this=exp.Is(this=place.copy(), expression=exp.Null())))
            found = found.group_by(place.copy())
        return found

    @property
    def _conditions(self) -> list[exp.Expression]:
        """Return the conditions without a placeholder."""
        parts = _anded(self.select.args["where"].this)
        return [part for part in parts if _placeholder_of(part) is None]

    @property
    def _single(self) -> str:
        """Return a condition: one answer, where NULL beside a value is a second one."""
        columns = [self._sql(_place(one)) for one in self.asked]
        each = [
            f"count(DISTINCT {c}) + CASE WHEN count({c}) < count(*) THEN 1 ELSE 0 END <= 1"
            for c in columns
        ]
        return " AND ".join(each) or "1 = 1"

    @property
    def _null(self) -> str:
        columns = [self._sql(_place(one)) for one in self.asked]
        return " OR ".join(f"count({c}) = 0" for c in columns) or "1 = 0"

    def _sql(self, found: exp.Expression) -> str:
        return str(found.sql(dialect=self.dialect))


def read_query(sql: str, schema: Schema, dialect: str, *, counts: bool = False) -> TemplateQuery:
    """Return a template's SQL if it meets the criteria that need no data.

    Args:
        sql: With placeholders such as '[Project.Name]'.
        schema: The labelled schema.
        dialect: As sqlglot names it.
        counts: Whether a lone COUNT(*) is allowed.

    Raises:
        Wrong: If it does not meet one.
    """
    select = _parsed(sql, dialect)
    sources = _sources(select, schema)
    _refuse_shapes(select)
    given = tuple(_given(select, sources))
    asked = tuple(_asked(select, sources, counts=counts))
    links = tuple(_links(select, sources))
    for one in (*asked, *(g.named for g in given)):
        if one.column.hidden or one.table.hidden:
            where = f"{one.table.name}.{one.column.name}: {one.column.hidden or one.table.hidden}"
            raise Wrong("not_descriptive", where)
    both = {(g.named.alias, g.named.column.name) for g in given} & {
        (one.alias, one.column.name) for one in asked
    }
    if both:
        raise Wrong("asks_what_it_says", ".".join(min(both)))
    return TemplateQuery(sql, dialect, select, asked, given, tuple(sources.items()), links)


def _parsed(sql: str, dialect: str) -> exp.Select:
    try:
        found = sqlglot.parse(encodable(sql), dialect=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise Wrong("not_sql") from error
    if len(found) != 1 or not isinstance(found[0], exp.Select) or found[0].args.get("with_"):
        raise Wrong("not_one_select")
    select = found[0]
    if len(list(select.find_all(exp.Select, exp.SetOperation))) > 1:
        raise Wrong("not_one_select", "a query within it")
    return select


def _sources(select: exp.Select, schema: Schema) -> dict[str, Table]:
    """Return the tables of a query by the name that it calls them."""
    if select.args.get("from_") is None:
        raise Wrong("unknown_table", "none")
    found: dict[str, Table] = {}
    parts = [select.args["from_"].this, *(link.this for link in select.args.get("joins") or ())]
    for part in parts:
        table = schema.table(part.name) if isinstance(part, exp.Table) else None
        if table is None or part.args.get("db"):
            raise Wrong("unknown_table")
        name = part.alias_or_name
        if name in found:
            raise Wrong("unknown_table", "one name for two tables")
        found[name] = table
    return found


def _resolved(column: exp.Column, sources: Mapping[str, Table]) -> Named:
    if isinstance(column.this, exp.Star):
        raise Wrong("star")
    found = [
        Named(alias, table, known)
        for alias, table in sources.items()
        if column.table in ("", alias) and (known := table.column(column.name)) is not None
    ]
    if len(found) != 1:
        raise Wrong("unknown_column")
    return found[0]


_HIDING = ("limit", "offset", "group", "having", "windows", "qualify", "laterals", "pivots")


def _refuse_shapes(select: exp.Select) -> None:
    if any(select.args.get(name) for name in _HIDING) or select.find(exp.Window):
        raise Wrong("hides_answers")
    if select.args.get("where") is None:
        raise Wrong("no_placeholder")


def _anded(condition: exp.Expression) -> list[exp.Expression]:
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.And):
        return [*_anded(condition.left), *_anded(condition.right)]
    return [condition]


def _placeholder_of(part: exp.Expression) -> tuple[exp.Column, str] | None:
    """Return the column and the placeholder of a condition `column = '[...]'`, or None."""
    if not isinstance(part, exp.EQ):
        return None
    for one, other in ((part.left, part.right), (part.right, part.left)):
        if isinstance(one, exp.Column) and _is_placeholder(other):
            return one, str(other.this)
    return None


def _is_placeholder(part: exp.Expression) -> bool:
    return (
        isinstance(part, exp.Literal)
        and part.is_string
        and PLACEHOLDER.fullmatch(encodable(part.this)) is not None
    )


def _given(select: exp.Select, sources: Mapping[str, Table]) -> Iterator[Given]:
    """Yield what WHERE compares with a placeholder, each of them once in the whole query."""
    pairs = [
        found for part in _anded(select.args["where"].this) if (found := _placeholder_of(part))
    ]
    names = [name for _, name in pairs]
    everywhere = [one.this for one in select.find_all(exp.Literal) if _is_placeholder(one)]
    if not everywhere:
        raise Wrong("no_placeholder")
    if sorted(names) != sorted(everywhere) or len(set(names)) < len(names):
        raise Wrong("placeholder_elsewhere")
    for column, name in pairs:
        yield Given(_resolved(column, sources), name)
    for column in select.args["where"].find_all(exp.Column):
        _resolved(column, sources)


def _asked(select: exp.Select, sources: Mapping[str, Table], *, counts: bool) -> Iterator[Named]:
    for part in select.expressions:
        plain = part.unalias()
        if isinstance(plain, exp.Star):
            raise Wrong("star")
        is_count = isinstance(plain, exp.Count) and isinstance(plain.this, exp.Star)
        if is_count and counts and len(select.expressions) == 1:
            return
        if isinstance(plain, exp.AggFunc):
            raise Wrong("aggregate")
        if not isinstance(plain, exp.Column):
            raise Wrong("unknown_column", "an expression")
        yield _resolved(plain, sources)


def _links(select: exp.Select, sources: Mapping[str, Table]) -> Iterator[tuple[Named, Named]]:
    """Yield the joins, each of which has to be one foreign key, in either direction."""
    for link in select.args.get("joins") or ():
        condition = link.args.get("on")
        if not isinstance(condition, exp.EQ) or link.args.get("side"):
            raise Wrong("join_without_key")
        ends = [side for side in (condition.left, condition.right) if isinstance(side, exp.Column)]
        if len(ends) != 2:
            raise Wrong("join_without_key")
        one, other = (_resolved(end, sources) for end in ends)
        if not (_is_key(one, other) or _is_key(other, one)):
            raise Wrong("join_without_key")
        yield (one, other) if _is_key(one, other) else (other, one)


def _is_key(one: Named, other: Named) -> bool:
    return any(
        key.column == one.column.name
        and key.to_table == other.table.name
        and key.to_column == other.column.name
        for key in one.table.foreign_keys
    )


def _place(named: Named) -> exp.Expression:
    return exp.column(named.column.name, table=named.alias, quoted=True)


def _quoted(node: Any) -> Any:
    if isinstance(node, exp.Identifier):
        node.set("quoted", True)
    return node

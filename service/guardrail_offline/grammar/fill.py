"""Fills templates with what joined rows hold, asks the database for the answers, makes cases.

Values travel as bound parameters. Everything is read row by row and written case by case; only the
values of a drawn sample are in memory.
"""

from __future__ import annotations

import datetime
import hashlib
import heapq
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import re2

from guardrail_offline.datasets.cases import GENERATED, Case
from guardrail_offline.grammar.engine import Engine, Value
from guardrail_offline.grammar.queries import PLACEHOLDER, Named, TemplateQuery
from guardrail_offline.grammar.schema import Table, TableColumn
from guardrail_offline.grammar.templates import QuestionTemplate
from guardrail_service.errors import ConfigurationError
from guardrail_service.text.patterns.search import encodable

Sampling = Literal["stratified", "proportional"]
SAMPLINGS: tuple[Sampling, ...] = ("stratified", "proportional")
MOST_ITEMS = 20
"""A longer list is no answer that anybody would write."""
_COLUMN = re2.compile(r"\{([^{}]+)\}")
Skipped = Literal["several_answers", "too_many_items", "unreadable_value", "blank_value"]


@dataclass(frozen=True, slots=True)
class FillOptions:
    """The size and the draw of a generation.

    Attributes:
        cases: At most about so many; all of them if None.
        per_template: Filled queries of each template at most.
        sampling: `stratified` gives every template the same share, `proportional` one by its rows.
        several: Also filled queries with several answers: their cases ask for the set.
        seed: The same seed gives the same bytes.
    """

    cases: int | None = None
    per_template: int | None = None
    sampling: Sampling = "stratified"
    several: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class FilledQuery:
    """One template with values, and what the database answers.

    Attributes:
        group: The digest of the query: its cases all mean the same.
        answers: Distinct rows of the answer, as text. One where NULL is all there is, and then
            None is in it.
        documents: Ids of the documents that together hold the answer; none if that is not known.
    """

    template: QuestionTemplate
    values: tuple[Value, ...]
    group: str
    answers: tuple[tuple[str | None, ...], ...]
    documents: tuple[str, ...] = ()

    @property
    def is_unknown(self) -> bool:
        """Return whether the database does not know the answer either."""
        return any(cell is None for row in self.answers for cell in row)

    def as_json(self) -> dict[str, Any]:
        """Return the line of the file of queries: what was asked and what came."""
        return {
            "group": self.group,
            "template": self.template.id,
            "sql": self.template.query.bound,
            "values": [_plain(value) for value in self.values],
            "answers": [list(row) for row in self.answers],
            "documents": list(self.documents),
        }


@dataclass
class FillStatistics:
    """The counts of a generation.

    Attributes:
        templates: By template: combinations, filled queries, those taken, cases.
        skipped: Filled queries that were not taken, by reason.
    """

    templates: dict[str, dict[str, int]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    queries: int = 0
    cases: int = 0
    unknown: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"skipped": dict(sorted(self.skipped.items()))}


def quotas(templates: Sequence[QuestionTemplate], options: FillOptions) -> list[int | None]:
    """Return how many filled queries each template gives; None for all of them.

    Stratified: one share for all, and what small ones leave goes to the others. Proportional: by
    largest remainders.
    """
    there = [t.proof.filled if options.several else t.proof.single for t in templates]
    most = [min(n, options.per_template or n) for n in there]
    texts = [max(1, len(t.texts)) for t in templates]
    total = sum(n * size for n, size in zip(most, texts, strict=True))
    if options.cases is None or options.cases >= total:
        return [None if options.per_template is None else n for n in most]
    if options.sampling == "proportional":
        exact = [options.cases * n / total for n in most]
        taken = [int(share) for share in exact]
        left = options.cases - sum(n * size for n, size in zip(taken, texts, strict=True))
        order = sorted(range(len(most)), key=lambda at: taken[at] - exact[at])
    else:
        taken, order, left = [0] * len(most), list(range(len(most))), options.cases
    while True:
        before = left
        for at in order:
            if taken[at] < most[at] and texts[at] <= left:
                taken[at] += 1
                left -= texts[at]
        if left == before:
            return list(taken)


def fill(
    engine: Engine,
    templates: Sequence[QuestionTemplate],
    options: FillOptions,
    statistics: FillStatistics,
) -> Iterator[FilledQuery]:
    """Yield filled queries, template by template, in the order of their values."""
    for template, quota in zip(templates, quotas(templates, options), strict=True):
        counts = {"combinations": template.proof.combinations, "filled": template.proof.filled}
        counts |= {"queries": 0, "cases": 0}
        statistics.templates[template.id] = counts
        for values in _drawn(engine, template, quota, options, statistics):
            filled = _filled(engine, template, values, options, statistics)
            if filled is None:
                continue
            statistics.queries += 1
            statistics.unknown += filled.is_unknown
            statistics.cases += len(template.texts)
            counts["queries"] += 1
            counts["cases"] += len(template.texts)
            yield filled


def _drawn(
    engine: Engine,
    template: QuestionTemplate,
    quota: int | None,
    options: FillOptions,
    statistics: FillStatistics,
) -> Iterator[tuple[Value, ...]]:
    """Yield the values of filled queries: all, or those with the smallest seeded hashes.

    So a row that comes or goes moves the sample by one.
    """
    query = template.query
    if not options.several and template.proof.several:
        statistics.skipped["several_answers"] += template.proof.several
    rows = _usable(query.fills(engine, several=options.several), query, statistics)
    if quota is None:
        yield from rows
        return
    drawn: list[tuple[int, int, tuple[Value, ...]]] = []
    for number, values in enumerate(rows):
        entry = (-_hash(options.seed, template.query.sql, values), -number, values)
        if len(drawn) < quota:
            heapq.heappush(drawn, entry)
        elif quota and entry[:2] > drawn[0][:2]:
            heapq.heapreplace(drawn, entry)
    yield from (values for _, _, values in sorted(drawn, key=lambda one: -one[1]))


def _usable(
    rows: Iterator[tuple[Value, ...]], query: TemplateQuery, statistics: FillStatistics
) -> Iterator[tuple[Value, ...]]:
    for values in rows:
        columns = [one.named.column for one in query.given]
        shown = [text_of(v, c) for v, c in zip(values, columns, strict=True)]
        if None in shown:
            statistics.skipped["unreadable_value"] += 1
        elif not all((text or "").strip() for text in shown):
            statistics.skipped["blank_value"] += 1
        else:
            yield values


def _hash(seed: int, sql: str, values: Sequence[Value]) -> int:
    plain = json.dumps([seed, sql, [_plain(value) for value in values]])
    digest = hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest())


def _plain(value: Value) -> Any:
    return value if isinstance(value, str | int | float | None) else str(value)


def _filled(
    engine: Engine,
    template: QuestionTemplate,
    values: tuple[Value, ...],
    options: FillOptions,
    statistics: FillStatistics,
) -> FilledQuery | None:
    query = template.query
    found = query.answers(engine, values, MOST_ITEMS)
    if len(found) > (MOST_ITEMS if options.several else 1):
        reason: Skipped = "too_many_items" if options.several else "several_answers"
        statistics.skipped[reason] += 1
        return None
    columns: Sequence[TableColumn | None] = [one.column for one in query.asked] or [None]
    answers = []
    for row in found:
        shown = tuple(
            None if cell is None else text_of(cell, column) or ""
            for cell, column in zip(row, columns, strict=True)
        )
        if any(cell is not None and not cell.strip() for cell in shown):
            statistics.skipped["blank_value"] += 1
            return None
        answers.append(shown)
    plain = json.dumps([query.bound, [_plain(value) for value in values]])
    group = hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    documents = _documents(engine, query, values, several=len(answers) > 1)
    return FilledQuery(template, values, group, tuple(sorted(answers, key=str)), documents)


def text_of(value: Value, column: TableColumn | None = None) -> str | None:
    """Return a value as people write it, or None where it is no text that can be read."""
    if isinstance(value, bytes | bytearray | memoryview):
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15
        shown = str(int(value)) if whole else repr(value)
    elif isinstance(value, Decimal):
        shown = f"{value.normalize():f}"
    elif isinstance(value, datetime.datetime):
        shown = value.isoformat(" ")
    else:
        shown = value.isoformat() if isinstance(value, datetime.date) else str(value)
    if encodable(shown) != shown:  # bytes of the file that are no UTF-8
        return None
    return shown


class _DocumentKey(NamedTuple):
    """The columns of a table of the query that the id of a document is made of."""

    pattern: str
    columns: tuple[Named, ...]


def _documents(
    engine: Engine, query: TemplateQuery, values: Sequence[Value], *, several: bool
) -> tuple[str, ...]:
    """Return the ids of the documents of every row behind an answer.

    None where a table of the query has no documents, and where different rows give one answer:
    then one of them would be enough.
    """
    keys = [_document_key(alias, table) for alias, table in query.sources]
    if query.counts or not all(key.pattern for key in keys):
        return ()
    wanted = [named for key in keys for named in key.columns]
    rows = list(engine.rows(query.bound_for(wanted), values))
    if not several and len(rows) != 1:
        return ()
    found: dict[str, None] = {}
    for row in rows:
        cells = iter(row)
        for key in keys:
            named = {one.column.name: text_of(next(cells)) or "" for one in key.columns}
            found[_COLUMN.sub(lambda m, named=named: named[m[1]], key.pattern)] = None
    return tuple(found)


def _document_key(alias: str, table: Table) -> _DocumentKey:
    columns = []
    for name in dict.fromkeys(_COLUMN.findall(encodable(table.documents))):
        column = table.column(name)
        if column is None or column.name != name:
            where = f"labels: tables.{table.name}.documents"
            raise ConfigurationError(where, repr(name), "a column of the table")
        columns.append(Named(alias, table, column))
    return _DocumentKey(table.documents, tuple(columns))


def cases_of(filled: FilledQuery) -> Iterator[Case]:
    """Yield a case for each text of a filled query, without an answer of a model."""
    template = filled.template
    expected = None if filled.is_unknown else expected_of(filled)
    kinds = [f"{GENERATED}:unknown"] if filled.is_unknown else []
    kinds += (
        [f"{GENERATED}:set"] if len(filled.answers) > 1 or len(template.query.asked) > 1 else []
    )
    seen: Counter[str] = Counter()
    for style, text in template.texts:
        seen[style] += 1
        yield Case(
            key=f"{filled.group}-{style}-{seen[style]}",
            question=_asked(text, filled),
            expected=expected,
            categories=(GENERATED, f"sql:{template.id}", f"style:{style}", *kinds),
            group=filled.group,
            references=() if filled.is_unknown else _aliases(filled),
            reference_ids=filled.documents,
            answerable=not filled.is_unknown,
        )


def _asked(text: str, filled: FilledQuery) -> str:
    """Return a text with the values in it; what a value looks like does not matter."""
    shown = dict(zip(filled.template.query.placeholders, _shown_values(filled), strict=True))
    pieces: list[str] = []
    at = 0
    for found in PLACEHOLDER.finditer(text):
        pieces += [text[at : found.start()], shown[found[0]]]
        at = found.end()
    return "".join([*pieces, text[at:]])


def _shown_values(filled: FilledQuery) -> list[str]:
    columns = [one.named.column for one in filled.template.query.given]
    return [text_of(v, c) or "" for v, c in zip(filled.values, columns, strict=True)]


def expected_of(filled: FilledQuery) -> str:
    """Return the right answer; of a set each item on a line of its own."""
    columns: Sequence[TableColumn | None] = [one.column for one in filled.template.query.asked] or [
        None
    ]
    items = [
        _with_unit(cell or "", column)
        for row in filled.answers
        for cell, column in zip(row, columns, strict=True)
    ]
    return "\n".join(dict.fromkeys(items))


def _with_unit(text: str, column: TableColumn | None) -> str:
    return f"{text} {column.unit}" if column is not None and column.unit else text


def _aliases(filled: FilledQuery) -> tuple[str, ...]:
    """Return other right answers: other names of the value, and a number without its unit."""
    asked = filled.template.query.asked
    if len(asked) != 1 or len(filled.answers) != 1:
        return ()
    column, (cell,) = asked[0].column, filled.answers[0]
    known: Mapping[str, tuple[str, ...]] = column.aliases
    bare = [cell or ""] if column.unit else []
    return tuple(dict.fromkeys([*known.get(cell or "", ()), *bare]))


def count_cases(templates: Sequence[QuestionTemplate], options: FillOptions) -> int:
    """Return about how many cases a generation gives: the total of a progress bar."""
    found = 0
    for template, quota in zip(templates, quotas(templates, options), strict=True):
        all_of_it = template.proof.filled if options.several else template.proof.single
        found += len(template.texts) * (all_of_it if quota is None else quota)
    return found

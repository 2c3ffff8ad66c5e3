"""Makes templates, checks them, and keeps them in a file that people edit and that is read again.

A template is one SQL query with placeholders and the texts that ask for the same. Written by
rules, people or a judge, it meets the same criteria each time it is read.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from guardrail_offline.grammar.engine import Engine
from guardrail_offline.grammar.enumeration import EnumerationOptions, enumerate_sql
from guardrail_offline.grammar.queries import (
    PLACEHOLDER,
    Proof,
    Refusal,
    TemplateQuery,
    Wrong,
    read_query,
)
from guardrail_offline.grammar.schema import Schema
from guardrail_offline.grammar.wording import STYLES, Wording, word
from guardrail_service.errors import ConfigurationError
from guardrail_service.text.patterns.search import encodable

FORMAT = "guardrail-grammar-templates"
VERSION = 1


class Rewriter(Protocol):
    """Words a question anew, as a judge does; what it gives back is checked."""

    def __call__(self, text: str, style: str) -> str | None:
        """Return another wording with the same placeholders, or None if there is none."""


@dataclass(frozen=True)
class QuestionTemplate:
    """One query and the texts that ask for it.

    Attributes:
        id: Unique in its file; the category `sql:` of its cases.
        query: Its SQL, read and checked.
        texts: The wordings, with the placeholders of the SQL.
        proof: Its counts on the data.
        made: The hash that rules gave it when they wrote it; another one says that it was edited.
    """

    id: str
    query: TemplateQuery
    texts: tuple[Wording, ...]
    proof: Proof
    made: str = ""

    @property
    def sha256(self) -> str:
        """Return the hash of SQL and texts."""
        plain = json.dumps([self.query.sql, [list(text) for text in self.texts]])
        return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def is_edited(self) -> bool:
        """Return whether it is not, or not any more, as rules wrote it."""
        return self.made != self.sha256


@dataclass(frozen=True)
class TemplateSet:
    """The templates of a file, and what was refused with the reason.

    Attributes:
        edition: Counts how often the set was written on.
        parent: The hash of the file that it was made from.
        notes: What a reader should know, such as that the schema has changed.
    """

    templates: tuple[QuestionTemplate, ...]
    refused: tuple[tuple[str, Refusal], ...]
    edition: int = 1
    parent: str = ""
    notes: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """Return the hash of what its cases depend on: ids, SQL and texts."""
        plain = json.dumps([[one.id, one.sha256] for one in self.templates])
        return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class TemplateOptions:
    """The bounds within which templates are made.

    Attributes:
        sql: What is enumerated.
        texts: Texts of each query, at most two a style.
        several: Keep templates with several answers: their cases ask for the set.
    """

    sql: EnumerationOptions = field(default_factory=EnumerationOptions)
    texts: int = len(STYLES)
    several: bool = False


def make_templates(
    engine: Engine,
    schema: Schema,
    options: TemplateOptions,
    advance: Callable[[], None] = lambda: None,
) -> TemplateSet:
    """Return the templates of a schema that meet every criterion, in the order of the tables."""
    sql = replace(options.sql, lists=options.sql.lists or options.several)
    wanted = [(text, "", ()) for text in enumerate_sql(schema, sql)]
    found = _checked(engine, schema, wanted, options, advance)
    return replace(found, templates=tuple(replace(t, made=t.sha256) for t in found.templates))


def _checked(
    engine: Engine,
    schema: Schema,
    wanted: Iterable[tuple[str, str, tuple[Wording, ...]]],
    options: TemplateOptions,
    advance: Callable[[], None] = lambda: None,
) -> TemplateSet:
    """Return templates of (SQL, id, texts); an empty id or no texts are made."""
    kept: list[QuestionTemplate] = []
    refused: list[tuple[str, Refusal]] = []
    seen: set[str] = set()
    ids: Counter[str] = Counter()
    for sql, name, texts in wanted:
        try:
            one = _template(engine, schema, (sql, name, texts), options)
            if one.query.logic in seen:
                raise Wrong("duplicate")
            seen.add(one.query.logic)
            ids[one.id] += 1
            number = f" ({ids[one.id]})" if ids[one.id] > 1 else ""
            kept.append(replace(one, id=one.id + number))
        except Wrong as wrong:
            refused.append((name or sql, wrong.refusal))
        advance()
    return TemplateSet(tuple(kept), tuple(refused))


def _template(
    engine: Engine,
    schema: Schema,
    wanted: tuple[str, str, tuple[Wording, ...]],
    options: TemplateOptions,
) -> QuestionTemplate:
    sql, name, texts = wanted
    query = read_query(sql, schema, engine.dialect, counts=True)
    texts = texts or word(query, options.texts)
    for text in texts:
        refuse_other_placeholders(text.text, query)
    proof = query.proof(engine)
    if not proof.filled:
        raise Wrong("no_rows")
    if not proof.single and not options.several:
        raise Wrong("several_answers", f"{proof.several} of {proof.filled}")
    return QuestionTemplate(name or name_of(query), query, texts, proof)


def refuse_other_placeholders(text: str, query: TemplateQuery) -> None:
    """Raise Wrong unless a text has every placeholder of a query and no other."""
    found = set(PLACEHOLDER.findall(encodable(text)))
    wanted = set(map(encodable, query.placeholders))
    if found != wanted:
        lost = sorted(wanted - found)
        where = f"{lost[0]} is missing" if lost else f"{min(found - wanted)} is not in the SQL"
        raise Wrong("text_placeholders", where)


def name_of(query: TemplateQuery) -> str:
    """Return what a template is called: what it asks for, and by what."""
    asked = ", ".join(f"{one.table.name}.{one.column.name}" for one in query.asked)
    given = ", ".join(f"{g.named.table.name}.{g.named.column.name}" for g in query.given)
    way = "".join(f" via {one.column.name}" for one, _ in query.links)
    return f"{asked or f'count of {query.sources[0][1].name}'} by {given}{way}"


def reworded(
    found: TemplateSet, rewriter: Rewriter, advance: Callable[[], None] = lambda: None
) -> TemplateSet:
    """Return templates with a further text of each style, by a judge.

    A text that lacks a placeholder or has a new one is refused and said, and not dropped in
    silence; so is one that is there already.
    """
    refused = list(found.refused)
    kept = []
    for template in found.templates:
        texts = list(template.texts)
        for style, text in template.texts:
            new = rewriter(text, style)
            try:
                if new is None or new.strip() in {known for _, known in texts}:
                    raise Wrong("duplicate", f"no new {style} text")
                refuse_other_placeholders(new, template.query)
                texts.append(Wording(style, new.strip()))
            except Wrong as wrong:
                refused.append((template.id, wrong.refusal))
            advance()
        kept.append(replace(template, texts=tuple(texts)))
    return replace(found, templates=tuple(kept), refused=tuple(refused))


def templates_json(found: TemplateSet, schema: Schema, dialect: str) -> dict[str, Any]:
    """Return a set as the file for people to edit; `read_templates` reads it back."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "edition": found.edition,
        "parent": found.parent,
        "dialect": dialect,
        "schema_sha256": schema.sha256,
        "templates": [_template_json(one) for one in found.templates],
        "refused": [
            {"template": name, "criterion": why.criterion, "reason": why.reason}
            for name, why in found.refused
        ],
    }


def _template_json(one: QuestionTemplate) -> dict[str, Any]:
    return {
        "id": one.id,
        "sql": one.query.sql,
        "texts": [{"style": style, "text": text} for style, text in one.texts],
        "on_the_data": one.proof._asdict(),
        "made": one.made,
    }


class _Text(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    style: str
    text: str


class _Template(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    id: str = ""
    sql: str
    texts: list[_Text] = []
    on_the_data: dict[str, int] = {}
    made: str = ""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    format: Literal["guardrail-grammar-templates"]
    version: Literal[1]
    edition: int = 1
    parent: str = ""
    dialect: str = ""
    schema_sha256: str = ""
    templates: list[_Template]
    refused: list[dict[str, str]] = []


def read_templates(
    path: Path,
    engine: Engine,
    schema: Schema,
    options: TemplateOptions,
    advance: Callable[[], None] = lambda: None,
) -> TemplateSet:
    """Return the templates of a file, each checked anew against schema and data.

    Raises:
        ConfigurationError: If it is no such file, or one id is there twice.
    """
    try:
        content = path.read_bytes()
        file = _File.model_validate_json(content)
    except OSError as error:
        raise ConfigurationError(str(path), type(error).__name__, "a file of templates") from error
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = f"{path}: {'.'.join(map(str, first['loc'])) or 'the file'}"
        raise ConfigurationError(where, first["type"], "a file of templates") from error
    names = Counter(one.id for one in file.templates if one.id)
    if twice := [name for name, count in names.items() if count > 1]:
        raise ConfigurationError(f"{path}: templates", f"the id {twice[0]!r} twice", "each id once")
    found = _checked(engine, schema, _wanted(file), options, advance)
    made = {one.id: one.made for one in file.templates}
    notes = [] if file.schema_sha256 in ("", schema.sha256) else ["the schema has changed since"]
    return replace(
        found,
        templates=tuple(replace(one, made=made.get(one.id, "")) for one in found.templates),
        edition=file.edition,
        parent=hashlib.sha256(content).hexdigest(),
        notes=tuple(notes),
    )


def _wanted(file: _File) -> Iterator[tuple[str, str, tuple[Wording, ...]]]:
    for one in file.templates:
        yield one.sql, one.id, tuple(Wording(text.style, text.text) for text in one.texts)


def counts_of(found: TemplateSet) -> Mapping[str, int]:
    """Return how many templates were refused for which criterion."""
    return dict(sorted(Counter(why.criterion for _, why in found.refused).items()))

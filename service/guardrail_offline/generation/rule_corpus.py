"""Collects what rules read of a corpus: statements, questions, tables and lists."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_offline.generation.generated import GeneratedCase, SourceSpan
from guardrail_offline.generation.plain_statements import (
    Statement,
    Wordbook,
    is_english,
    statements_of,
    titles_of,
)
from guardrail_offline.generation.questions import WhQuestion, wh_questions
from guardrail_offline.perturbation.misinformation import other_number
from guardrail_service.detectors.facts.amounts import Fact
from guardrail_service.detectors.facts.read import read
from guardrail_service.text.cached import cached_property

_NUMBER_WORDS = (
    "two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
)
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
MOST_CELL_WORDS = 14


@dataclass(frozen=True)
class TableCell:
    """A cell of a table with its row's first cell and its column's header."""

    row: str
    column: str
    value: str
    span: SourceSpan
    heading: str
    title: str


@dataclass(frozen=True)
class PointList:
    """A list with the line that leads into it."""

    lead: str
    points: tuple[str, ...]
    spans: tuple[SourceSpan, ...]
    title: str


class Corpus:
    """The chunks of a corpus as the rules read them.

    Args:
        chunks: In the order of their documents.
        titles: Titles of documents by id.
        seed: Of everything that is drawn.
        outside: Chunks of documents that the system under test does not have.
    """

    def __init__(
        self,
        chunks: Sequence[DocumentChunk],
        titles: Mapping[str, str],
        seed: int = 0,
        outside: Sequence[DocumentChunk] = (),
    ) -> None:
        self.chunks, self.outside, self.seed = list(chunks), list(outside), seed
        known = {c.document: titles.get(c.document, "") for c in [*chunks, *outside]}
        self.titles = titles_of(known.items())
        self.book = Wordbook(chunk.text for chunk in chunks)

    @cached_property
    def statements(self) -> list[Statement]:
        """Return the plain statements, each line once."""
        found: dict[str, Statement] = {}
        for one in statements_of(self.chunks, self.titles, self.book):
            found.setdefault(one.line, one)
        return list(found.values())

    @cached_property
    def clauses(self) -> list[Statement]:
        """Return the statements whose parts the rules are sure of."""
        return [one for one in self.statements if one.clause is not None]

    @cached_property
    def questions(self) -> list[WhQuestion]:
        """Return the questions about single facts that have one answer in the whole corpus."""
        found: dict[str, list[WhQuestion]] = {}
        for statement in self.clauses:
            for question in wh_questions(statement):
                found.setdefault(question.text, []).append(question)
        return [same[0] for same in found.values() if len({q.answer for q in same}) == 1]

    @cached_property
    def outside_questions(self) -> list[WhQuestion]:
        """Return questions that only the documents outside answer."""
        book = Wordbook(chunk.text for chunk in self.outside)
        found = statements_of(self.outside, self.titles, book)
        return [question for one in found for question in wh_questions(one)]

    @cached_property
    def cells(self) -> list[TableCell]:
        """Return the cells of tables with headers, where row and column name one cell."""
        return list(_cells(self.chunks, self.titles))

    @cached_property
    def lists(self) -> list[PointList]:
        """Return lists that a line with a colon leads into."""
        return list(_lists(self.chunks, self.titles))

    @cached_property
    def text(self) -> str:
        """Return all texts in lower case, to look for words."""
        return "\n".join(chunk.text.lower() for chunk in self.chunks)

    def rng(self, *parts: str) -> random.Random:
        """Return what draws for some parts of a case; the same parts draw the same."""
        digest = hashlib.sha256("\0".join((str(self.seed), *parts)).encode("utf-8", "replace"))
        return random.Random(digest.digest())  # noqa: S311 - test cases, not secrets


def _span(chunk: DocumentChunk, start: int, end: int) -> SourceSpan:
    text = chunk.text[start - chunk.start : end - chunk.start]
    return SourceSpan(chunk.document, start, end, text, chunk.id)


def _cells(chunks: Sequence[DocumentChunk], titles: Mapping[str, str]) -> Iterator[TableCell]:
    found: dict[tuple[str, str, str, str], list[TableCell]] = {}
    header: list[str] = []
    heading = document = ""
    for chunk in chunks:
        if chunk.document != document:
            document, header, heading = chunk.document, [], ""
        for block in chunk.blocks:
            text = chunk.text[block.start - chunk.start : block.end - chunk.start]
            if block.kind == "header":
                header = text.split(" | ")
            elif block.kind != "row":
                header = []
                heading = text if block.kind == "heading" else heading
            else:
                span = _span(chunk, block.start, block.end)
                for cell in _row_cells(text, header, span, heading, titles[document]):
                    key = (cell.title, cell.heading, cell.row, cell.column)
                    found.setdefault(key, []).append(cell)
    for same in found.values():
        if len(same) == 1 and same[0].heading:
            yield same[0]


def _row_cells(
    text: str, header: Sequence[str], span: SourceSpan, heading: str, title: str
) -> Iterator[TableCell]:
    cells = text.split(" | ")
    if len(cells) != len(header) or len(header) < 2 or not is_english(" ".join(cells)):
        return
    row = cells[0].strip()
    if not row or len(row.split()) > 8 or '"' in row or len(heading) > 100 or '"' in heading:
        return
    for column, value in zip(header[1:], cells[1:], strict=True):
        name, said = column.strip(), value.strip()
        short = 0 < len(said.split()) <= MOST_CELL_WORDS and any(map(str.isalnum, said))
        if name and short and '"' not in name and said.count("(") == said.count(")"):
            yield TableCell(row, name, said, span, heading, title)


def _lists(chunks: Sequence[DocumentChunk], titles: Mapping[str, str]) -> Iterator[PointList]:
    lead: tuple[str, SourceSpan] | None = None
    points: list[SourceSpan] = []
    document = ""

    def closed() -> Iterator[PointList]:
        if lead is not None and 2 <= len(points) <= 8:
            texts = tuple(_point(span.text) for span in points)
            if all(1 <= len(text.split()) <= 30 for text in texts):
                yield PointList(lead[0], texts, (lead[1], *points), titles[document])

    for chunk in chunks:
        if chunk.document != document:
            yield from closed()
            lead, points, document = None, [], chunk.document
        for block in chunk.blocks:
            text = chunk.text[block.start - chunk.start : block.end - chunk.start]
            if block.kind == "item":
                points.append(_span(chunk, block.start, block.end))
                continue
            yield from closed()
            last = " ".join(text.split()).rpartition(". ")[2]
            usable = block.kind == "paragraph" and last.endswith(":") and '"' not in last
            fits = usable and 3 <= len(last.split()) <= 22 and is_english(last)
            lead = (last, _span(chunk, block.start, block.end)) if fits else None
            points = []
    yield from closed()


def _point(text: str) -> str:
    line = " ".join(text.split())
    bare = line.lstrip("•-*– ")  # noqa: RUF001
    head, _, rest = bare.partition(" ")
    numbered = head.rstrip(".)").isdecimal() and head.endswith((".", ")")) and rest
    return rest if numbered else bare


def other_value(fact: Fact, text: str, rng: random.Random) -> str | None:
    """Return the text of a fact with another value of the same form; None if there is none.

    Facts with a bound are left alone: "more than 50" does not contradict "more than 100".
    """
    if fact.bound or fact.is_range or fact.minus or fact.other is not None:
        return None
    low = text.lower()
    if fact.kind == "weekday":
        plural = "s" if low.endswith("s") else ""
        others = [day for day in _DAYS if day.lower() != low.removesuffix("s")]
        return rng.choice(others) + plural if len(others) < len(_DAYS) else None
    if fact.is_word:
        others = [word for word in _NUMBER_WORDS if word != low]
        return rng.choice(others) if low in _NUMBER_WORDS else None
    if fact.kind == "ordinal":
        return None
    months = [month for month in _MONTHS if month in text]
    if fact.kind == "date" and months:
        other = rng.choice([month for month in _MONTHS if month != months[0]])
        return text.replace(months[0], other, 1)
    at = next((place for place, sign in enumerate(text) if sign.isdigit()), None)
    if at is None or text[at - 1 : at] == "." or (fact.kind == "date" and not text.isdecimal()):
        return None
    end = at
    while end < len(text) and (text[end].isdigit() or text[end] in ".,:"):
        end += 1
    number = text[at:end].rstrip(".,:")
    if number.startswith("0") or number.count(".") > 1:
        return None
    changed = other_number(number, rng)
    if fact.kind == "percentage" and fact.raw > 31:
        changed = f"{int(fact.raw) // 2}"
    return (
        None if changed == number or changed.startswith("0") else text.replace(number, changed, 1)
    )


@dataclass(frozen=True)
class Falsehood:
    """A statement with one value changed, as a clause without a full stop."""

    line: str
    rest: str
    before: str
    after: str


def falsified(statement: Statement, rng: random.Random) -> Falsehood | None:
    """Return a clause that contradicts a statement by one value; None if there is no such value.

    The new value stands nowhere in the chunk.
    """
    clause = statement.clause
    if clause is None:
        return None
    found = list(clause.facts)
    rng.shuffle(found)
    for place in found:
        fact = place.fact
        if place.start != fact.start or clause.rest[fact.start - 1 : fact.start] == ".":
            continue
        before = clause.rest[fact.start : fact.end]
        after = other_value(fact, before, rng)
        if after is None or after in statement.chunk.text:
            continue
        rest = clause.rest[: fact.start] + after + clause.rest[fact.end :]
        return Falsehood(clause.statement(rest), rest, before, after)
    return None


def condition_of(answer: str) -> str | None:
    """Return what a right answer holds: its number, date or name; None where that is unsure."""
    facts = read(answer).facts
    if '"' in answer or "\\" in answer or len(facts) > 1:
        return None
    if facts:
        return _of_fact(facts[0], answer[facts[0].start : facts[0].end])
    bare = answer
    for opening in ("in ", "at ", "on ", "the "):
        bare = bare.removeprefix(opening)
    parts = bare.split()
    return f'"{bare}"' if len(parts) <= 4 and parts and parts[0][0].isupper() else None


def _of_fact(fact: Fact, text: str) -> str | None:
    if fact.is_word:
        word = text.split()[0]
        whole = fact.raw == int(fact.raw)
        return f'word("{word}") OR word("{int(fact.raw)}")' if whole and word.isalpha() else None
    digits = "".join(c for c in text if c.isdigit() or c in ".,:/- ").strip(".,:/- ")
    names = [f'"{n}"' for n in (*_MONTHS, *_DAYS) if n in text]
    numbers = [f'word("{part}")' for part in digits.replace(",", ", " if names else ",").split()]
    parts = [*names, *(number.replace(',")', '")') for number in numbers)]
    return " AND ".join(parts) if 1 <= len(parts) <= 3 else None


def made(
    generator: str, question: str, expected: str | None, spans: Sequence[SourceSpan], **more: object
) -> GeneratedCase:
    """Return a case of a rule; its key follows from generator, question and places."""
    places = "|".join(f"{s.document}:{s.start}:{s.end}" for s in spans)
    text = "\0".join((generator, question, expected or "", places, str(more.get("turn", ""))))
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    values: dict[str, object] = {
        "key": f"{generator}-{digest}", "generator": generator, "form": "rule",
        "question": question, "expected": expected, "spans": tuple(spans), **more,
    }  # fmt: skip
    return GeneratedCase(**values)  # type: ignore[arg-type]


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"

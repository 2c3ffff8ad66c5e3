"""Compares what a claim says of a row or column with the tables of the passages, or of two names.

A claim that names one row and says a value that stands in other rows alone has misread the table.
Tables are read as Markdown has them; the same holds for columns, so each is also read turned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple

from guardrail_service.detectors.facts import vocabulary as words
from guardrail_service.detectors.facts.align import (
    Held,
    PassageFacts,
    Place,
    agrees,
    is_amount,
    rivals,
)
from guardrail_service.detectors.facts.amounts import Fact
from guardrail_service.detectors.facts.read import ReadSentence, read
from guardrail_service.text.budget import check_time, in_time

_MOST_CELLS = 600
"""Of a table that is compared; longer ones are searched number by number like any text."""
_LEAST_ROWS = 2
YES = frozenset(("yes", "y", "true", "included", "\u2713", "\u2714", "\u2705", "available"))
NO = frozenset(("no", "n", "false", "none", "\u2717", "\u2718", "\u274c", "excluded"))


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell with its place in the passage."""

    text: str
    read: ReadSentence
    start: int


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: its headings, and rows whose cells stand under them.

    Attributes:
        context: Number of its passage.
        start: Where it begins there.
        end: Where it ends.
        headings: The cells of its first line.
        rows: The cells of the other lines; the first one that is no mere number names the row.
    """

    context: int
    start: int
    end: int
    headings: tuple[GridCell, ...]
    rows: tuple[tuple[GridCell, ...], ...]

    @property
    def names(self) -> tuple[GridCell, ...]:
        """Return the cell that names each row."""
        counted = all(_is_count(row[0]) for row in self.rows) and len(self.headings) > _LEAST_ROWS
        return tuple(row[1 if counted else 0] for row in self.rows)

    def turned(self) -> Grid:
        """Return the table with rows and columns exchanged."""
        every = (self.headings, *self.rows)
        first, *others = zip(*every, strict=True)
        return Grid(self.context, self.start, self.end, first, tuple(others))


def _is_count(cell: GridCell) -> bool:
    facts = cell.read.facts
    return len(facts) == 1 and facts[0].kind == "number" and not cell.read.content


def grids(texts: Sequence[str]) -> tuple[Grid, ...]:
    """Return the tables of some passages, each also turned."""
    found: list[Grid] = []
    for context, text in enumerate(texts):
        if "|" in text:
            for table in _grids_of(context, text):
                found += [table, table.turned()]
    return tuple(found)


def _grids_of(context: int, text: str) -> Iterator[Grid]:
    lines: list[list[GridCell]] = []
    start = at = 0
    for line in (*text.splitlines(keepends=True), ""):
        check_time()
        if line.count("|") > 1:
            start = start if lines else at
            if not set(line) <= _RULE:
                lines.append(_cells(line, at))
            elif len(lines) == 1 and len(lines[0]) == len(line.strip().strip("|").split("|")) + 1:
                lines[0] = lines[0][1:]  # "Prices. | Size | Price |"
        elif lines:
            width = len(lines[0])
            rows = tuple(tuple(row) for row in lines[1:] if len(row) == width)
            if len(rows) >= _LEAST_ROWS and width > 1 and len(rows) * width <= _MOST_CELLS:
                yield Grid(context, start, at, tuple(lines[0]), rows)
            lines = []
        at += len(line)


_RULE = frozenset("|-: \t\r\n")


def _cells(line: str, start: int) -> list[GridCell]:
    body = line.strip()
    at = start + line.index(body)
    inner = body.removeprefix("|")
    at += len(body) - len(inner)
    found = []
    for piece in inner.removesuffix("|").split("|"):
        text = piece.strip(" \t*_`")
        place = at + piece.find(text)
        found.append(GridCell(text, read(text), place))
        at += len(piece) + 1
    return found


class GridReading:
    """Compares one claim with the rows and columns of the tables.

    Args:
        claim: The claim.
        source: Passages and question.
        before: Sentences of the answer before it.
        found: The tables of the passages.
        headings: The first line of the answer's own table, if the claim is of one.
    """

    def __init__(
        self,
        claim: ReadSentence,
        source: PassageFacts,
        before: Sequence[ReadSentence],
        found: Sequence[Grid],
        headings: Sequence[GridCell] = (),
    ) -> None:
        self.claim = claim
        self.source = source
        self.grids = found
        self.headings = headings
        asked = [source.question] if source.question is not None else []
        given = [one for one in before if not (_is_point(one) and _is_point(claim))]
        self.around = [*given, *asked]

    def misread(self) -> Iterator[tuple[int, Place]]:
        """Yield the token of each value that stands in another row, and its own row's value."""
        is_table = "|" in self.claim.text
        for fact in self.claim.facts:
            if fact.kind in ("ordinal", "weekday") or fact.is_range or fact.bound in words.LOOSE:
                continue
            if self.source.is_asked(fact):
                continue
            if any(fact.lead and fact.lead in one.headings[0].read.content for one in self.grids):
                continue  # "berth 6" names a row
            cell = self._cell(fact) if is_table else None
            if is_table and cell is None:
                continue
            for table in self.grids:
                check_time()
                place = (
                    self._of_another_row(fact, table)
                    if cell is None
                    else self._of_its_cell(fact, table, *cell)
                )
                if place is not None:
                    yield fact.token, place
                    break

    def denied(self) -> Iterator[tuple[str, Place]]:
        """Yield "negation" or "quantifier" where a cell says no to a yes, or yes to a no."""
        lows = {token.low.replace("\u2019", "'") for token in self.claim.tokens}
        if "|" in self.claim.text or "?" in self.claim.text or not lows.isdisjoint(words.HEDGED):
            return
        denials = sum(low in words.NEGATORS or low in words.CONTRACTED for low in lows)
        if denials > 1:
            return
        for table in self.grids[::2]:
            named = self._columns(table, self.claim.content)
            if len(named) != 1 or not named[0]:
                continue
            column = named[0]
            said = [_said(row[column]) for row in table.rows]
            if None in said or len(set(said)) == 1:
                continue
            rows = self._rows(table, self.claim.content, None)
            if lows & _UNIVERSAL and not denials and len(rows) in (0, len(table.rows)):
                yield "quantifier", _place(table, table.rows[said.index(False)][column])
            elif len(rows) == 1 and said[rows[0]] is bool(denials):
                yield "negation", _place(table, table.rows[rows[0]][column])

    def _cell(self, fact: Fact) -> tuple[frozenset[str], frozenset[str]] | None:
        """Return the stems of a cell's row label and heading in the answer's own table, or None."""
        text = self.claim.text
        start = text.rfind("\n", 0, fact.start) + 1
        end = text.find("\n", fact.end)
        column = text.count("|", start, fact.start) - 1
        cells = _cells(text[start : end if end >= 0 else len(text)] + "\n", 0)
        if not 0 < column < len(self.headings) or len(cells) != len(self.headings):
            return None
        label, heading = cells[0].read.content, self.headings[column].read.content
        return (label, heading) if label and heading else None

    def _of_its_cell(
        self, fact: Fact, table: Grid, label: frozenset[str], heading: frozenset[str]
    ) -> Place | None:
        """Return the value that a table has under a fact's label and heading, if it is another."""
        rows = [at for at, cell in enumerate(table.names) if cell.read.content == label]
        columns = [at for at, cell in enumerate(table.headings) if cell.read.content == heading]
        if len(rows) != 1 or len(columns) != 1 or not columns[0]:
            return None
        cell = table.rows[rows[0]][columns[0]]
        own = cell.read.facts
        is_other = any(_may_be(fact, one) for one in own) and not any(agrees(fact, o) for o in own)
        return _place(table, cell) if is_other else None

    def _of_another_row(self, fact: Fact, table: Grid) -> Place | None:
        """Return the value of the claim's row if a fact stands in other rows alone, or None."""
        holding = [
            (row, column)
            for row, cells in enumerate(table.rows)
            for column, cell in enumerate(cells)
            if cell is not table.names[row] and any(agrees(fact, one) for one in cell.read.facts)
        ]
        if not holding or self._stands_outside(fact, table):
            return None
        clause = self._clause(fact)
        row = self._row(fact, table, clause)
        if row is None:
            return None
        is_own = row in self._rows(table, clause, fact)
        own = {column for at, column in holding if at == row}
        columns = self._columns(table, clause)
        if own:
            if len(columns) != 1 or columns[0] in own or self._is_one_of_two(fact):
                return None
            wanted = columns
        else:
            wanted = [column for _, column in holding]
            if columns and not set(wanted) & set(columns):
                return None
        for column in wanted:
            cell = table.rows[row][column]
            if any(_may_be(fact, one) and not self._is_taken(fact, one, is_own) for one in
                   cell.read.facts):  # fmt: skip
                return _place(table, cell)
        return None

    def _is_one_of_two(self, fact: Fact) -> bool:
        """Return whether a clause has another value of the kind: it may be the column's."""
        own = self.claim.clauses[fact.token]
        return any(
            one is not fact and one.kind == fact.kind and self.claim.clauses[one.token] == own
            for one in self.claim.facts
        )

    def _is_taken(self, fact: Fact, held: Fact, is_own: bool) -> bool:
        """Return whether another number of the claim is the cell's: "196, compared to 184".

        Args:
            fact: The claim's number.
            held: The cell's.
            is_own: Whether the number's own clause names the row; then no other clause counts.
        """
        clauses = self.claim.clauses
        return any(
            one is not fact
            and agrees(one, held)
            and (not is_own or clauses[one.token] == clauses[fact.token])
            for one in self.claim.facts
        )

    def _row(self, fact: Fact, table: Grid, clause: frozenset[str]) -> int | None:
        """Return the one row that a fact's clause names, or the words before it, or others."""
        ahead = frozenset(self.claim.stems[: fact.token]) - {""}
        for content in (clause, ahead):
            rows = self._rows(table, content, fact)
            if rows:
                return rows[0] if len(rows) == 1 else None
        if any(cell.read.content <= self.claim.content for cell in table.names if cell.text):
            return None
        rows = sorted({at for one in self.around for at in self._rows(table, one.content, fact)})
        return rows[0] if len(rows) == 1 else None

    def _rows(self, table: Grid, content: frozenset[str], fact: Fact | None) -> list[int]:
        """Return the rows that some words and the numbers around name; the most exact ones."""
        named: dict[int, frozenset[str]] = {}
        for at, cell in enumerate(table.names):
            own = cell.read.content
            if cell.read.facts and not _is_count(cell):
                if self._is_in(cell, fact) and _words_beside(cell.read) <= content:
                    named[at] = own | {cell.text}
            elif own and own <= content:
                named[at] = own
        return [
            at
            for at, own in named.items()
            if not any(own < other for place, other in named.items() if place != at)
        ]

    def _is_in(self, cell: GridCell, fact: Fact | None) -> bool:
        """Return whether a number of claim or question lies in the range that names a row."""
        said = [one for read in (self.claim, *self.around) for one in read.facts if one is not fact]
        label = cell.read.facts
        if all(any(agrees(one, own) for one in said) for own in label):
            return True
        if len(label) == 2 and label[0].is_range and label[0].unit == label[1].unit:
            low, high = sorted((label[0].values[0], label[1].values[0]))
            high += label[1].factor * label[1].step
            return any(one.unit == label[0].unit and low <= one.values[0] < high for one in said)
        if len(label) == 1 and label[0].bound in _SIDES and label[0].unit:
            return any(
                one.unit == label[0].unit
                and _SIDES[label[0].bound] * (one.values[0] - label[0].values[0]) > 0
                for one in said
            )
        return False

    def _columns(self, table: Grid, content: frozenset[str]) -> list[int]:
        """Return the columns whose headings some words name."""
        found = []
        for at, cell in enumerate(table.headings):
            named = cell.read.content - {""}
            if at and named and not cell.read.facts and named <= content:
                found.append(at)
        return found

    def _clause(self, fact: Fact) -> frozenset[str]:
        """Return the stems of a fact's clause."""
        clause = self.claim.clauses[fact.token]
        pairs = zip(self.claim.stems, self.claim.clauses, strict=True)
        return frozenset(stem for stem, own in pairs if stem and own == clause)

    def _stands_outside(self, fact: Fact, table: Grid) -> bool:
        """Return whether a passage says a value anywhere but in a table."""
        return any(
            agrees(fact, held.fact)
            and (held.fact.unit == fact.unit or not is_amount(fact))
            and not self._is_within(held, table)
            for held in self.source.comparable(fact)
        )

    @staticmethod
    def _is_within(held: Held, table: Grid) -> bool:
        start = held.read.start + held.fact.start
        return held.context == table.context and table.start <= start < table.end


_SIDES = {"over": 1.0, "least": 1.0, "under": -1.0, "most": -1.0}
_BOUNDS = words.listed("up more less over under least most from about than after")
_UNIVERSAL = frozenset(("all", "every", "each", "everyone", "always", "both"))


def _is_point(one: ReadSentence) -> bool:
    """Return whether a sentence is a point of a list: the one before tells of another thing."""
    return bool(one.tokens) and one.tokens[0].text in ("-", "*", "\u2022")


def headings_of(answer: str) -> dict[int, tuple[GridCell, ...]]:
    """Return the cells of an answer's first table lines, by where each line below them begins."""
    found: dict[int, tuple[GridCell, ...]] = {}
    at, first = 0, tuple[GridCell, ...]()
    for line in in_time(answer.splitlines(keepends=True), every=64):
        if first:
            found[at] = first
        first = (first or tuple(_cells(line, 0))) if line.count("|") > 1 else ()
        at += len(line)
    return found


def _may_be(fact: Fact, other: Fact) -> bool:
    """Return whether a cell's value could be the claim's in another row."""
    if agrees(fact, other):
        return False
    if rivals(fact, other) or (fact.unit == other.unit == "" and fact.kind == other.kind):
        return True
    is_price = fact.kind == "money" and other.kind == "number" and not other.nouns
    return is_price and other.step == fact.step < 1  # "38.00 euros", under a heading without unit


def _words_beside(label: ReadSentence) -> frozenset[str]:
    """Return the stems of a label beside its numbers and their units."""
    inside = {at for fact in label.facts for at in range(fact.token, fact.last)}
    return frozenset(
        stem
        for at, (stem, token) in enumerate(zip(label.stems, label.tokens, strict=True))
        if stem and at not in inside and token.low not in _BOUNDS
    )


def _said(cell: GridCell) -> bool | None:
    """Return what a cell of yes and no says, None for any other."""
    word = cell.text.lower()
    return True if word in YES else False if word in NO else None


def _place(table: Grid, cell: GridCell) -> Place:
    return Place(table.context, cell.start, cell.start + len(cell.text))


class NamedValue(NamedTuple):
    """A value told of a name: the stems of the name, and the value."""

    name: frozenset[str]
    fact: Fact


def exchanged(claim: ReadSentence, source: PassageFacts) -> dict[int, Place]:
    """Return the values that a claim tells of each other's names, each with its name's own place.

    "64 % at Sallow Reef, compared with 29 % at Gull Point" is wrong if a passage sentence tells
    them the other way round. Only names and values in strict turns count.
    """
    found: dict[int, Place] = {}
    for unit, ours in _in_turns(claim, source.named).items():
        for context, one in in_time(source.sentences):
            theirs = _in_turns(one, source.named).get(unit, ()) if len(one.facts) > 1 else ()
            for first, second in combinations(ours, 2) if theirs else ():
                check_time()
                one_held, other_held = _of_name(first, theirs), _of_name(second, theirs)
                if one_held is None or other_held is None or one_held is other_held:
                    continue
                crossed = agrees(first.fact, other_held) and agrees(second.fact, one_held)
                if crossed and not agrees(first.fact, one_held):
                    for own, held in ((first.fact, one_held), (second.fact, other_held)):
                        at = one.start
                        found[own.token] = Place(context, at + held.start, at + held.end)
    return found


def _of_name(value: NamedValue, others: Sequence[NamedValue]) -> Fact | None:
    """Return the value that others tell of the same name, or None where it is none or several."""
    same = [one.fact for one in others if value.name & one.name]
    return same[0] if len(same) == 1 else None


def _in_turns(one: ReadSentence, named: frozenset[str]) -> dict[str, tuple[NamedValue, ...]]:
    """Return the values of each unit that stand in strict turns with names."""
    names = list(_names(one, named))
    found: dict[str, tuple[NamedValue, ...]] = {}
    for unit in {fact.unit for fact in one.facts if fact.unit}:
        facts = [fact for fact in one.facts if fact.unit == unit and not fact.is_range]
        if len(facts) < _TWO or len(facts) != len(names):
            continue
        turns = sorted([(at, name) for at, name in names] + [(f.token, f) for f in facts],
                       key=lambda turn: turn[0])  # fmt: skip
        kinds = [isinstance(what, Fact) for _, what in turns]
        if any(a == b for a, b in pairwise(kinds)):
            continue
        whats = [what for _, what in turns]
        pairs = zip(whats[::2], whats[1::2], strict=True)
        told = [(b, a) if isinstance(a, Fact) else (a, b) for a, b in pairs]
        found[unit] = tuple(
            NamedValue(name, fact)
            for name, fact in told
            if isinstance(fact, Fact) and isinstance(name, frozenset)
        )
    return found


def _names(one: ReadSentence, named: frozenset[str]) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield the names of a sentence with their places: words with capitals side by side."""
    name: list[str] = []
    start = 0
    for at, (token, stem) in enumerate(zip(one.tokens, one.stems, strict=True)):
        is_part = token.kind == "w" and token.text[0].isupper() and stem in named
        is_part = is_part and token.low not in words.WEEKDAYS and token.low not in words.MONTHS
        if is_part:
            start = at if not name else start
            name.append(stem)
        elif name:
            yield start, frozenset(name)
            name = []
    if name:
        yield start, frozenset(name)


_TWO = 2

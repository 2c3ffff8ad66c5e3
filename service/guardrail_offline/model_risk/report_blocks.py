"""A report as blocks of text and numbers, before it becomes HTML, DOCX or PDF.

Every number says where it stands. In a table whose rows each rest on one object, the row names the
object and a line under the table the fields of its columns; every other number gets a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from guardrail_offline.model_risk.drawings import Drawing
from guardrail_offline.model_risk.step_data import JsonPlace, ReportNumber, Run

Cell = tuple[Run, ...]


@dataclass(frozen=True)
class ReportSection:
    """A heading of level 1, with the parts of the frameworks that the section speaks to."""

    title: str
    tags: tuple[str, ...] = ()
    new_page: bool = False


@dataclass(frozen=True)
class Subsection:
    """A heading of level 2."""

    title: str


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; `kind` is `plain`, `note` or `verdict`."""

    runs: Cell
    kind: str = "plain"


@dataclass(frozen=True)
class Bullets:
    """A list without order."""

    items: tuple[Cell, ...]


@dataclass(frozen=True)
class ReportRow:
    """A row of a table.

    Attributes:
        cells: As many as the table has columns.
        base: The object that its numbers stand in; None for notes instead.
        shades: From 0 (good) to 4 (bad) per cell; None for no colour.
    """

    cells: tuple[Cell, ...]
    base: JsonPlace | None = None
    shades: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class ReportTable:
    """A table with a caption.

    Attributes:
        caption: What it shows.
        head: Titles of the columns.
        rows: Its rows.
        widths: Relative widths of the columns; equal if empty.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[ReportRow, ...]
    widths: tuple[float, ...] = ()


@dataclass(frozen=True)
class Form:
    """Lines that people fill in: a table of empty cells."""

    caption: str
    head: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class ReportChart:
    """A picture of numbers that a table beside it has.

    Attributes:
        caption: Its subject.
        alt: The same for whoever does not see it.
        drawing: The picture.
        source: File and fields that it was drawn from.
    """

    caption: str
    alt: str
    drawing: Drawing
    source: str


Block = ReportSection | Subsection | Paragraph | Bullets | ReportTable | ReportChart | Form


@dataclass(frozen=True)
class ReportDocument:
    """A report.

    Attributes:
        title: Of the cover.
        subtitle: Of the cover: the system.
        facts: Lines of the cover: name and text.
        blocks: In order.
    """

    title: str
    subtitle: str
    facts: tuple[tuple[str, str], ...]
    blocks: tuple[Block, ...]


@dataclass
class Notes:
    """The notes of a document: a number for each place, in the order of the text."""

    places: list[ReportNumber] = field(default_factory=list)
    _known: dict[tuple[object, ...], int] = field(default_factory=dict)

    def of(self, number: ReportNumber) -> int:
        """Return the note of a number, from 1."""
        key = (number.file, number.pointer, number.form, number.of)
        if key not in self._known:
            self.places.append(number)
            self._known[key] = len(self.places)
        return self._known[key]


@dataclass(frozen=True)
class TableSources:
    """The origin of a table's numbers.

    Attributes:
        rows: Per row, file and pointer of its object; empty where it has none.
        fields: Per column, the fields under that object; empty where no number stands.
    """

    rows: tuple[str, ...]
    fields: tuple[str, ...]

    @property
    def line(self) -> str:
        """Return the fields of the columns as a text without their titles."""
        return "; ".join(one for one in self.fields if one)


def table_sources(table: ReportTable) -> TableSources:
    """Return the objects of a table's rows and the fields of its columns."""
    columns = []
    for position in range(len(table.head)):
        found = (fields_of(row, position) for row in table.rows)
        columns.append(next((one for one in found if one), ""))
    rows = (
        f"{row.base.file} {row.base.pointer}" if row.base is not None else "" for row in table.rows
    )
    return TableSources(tuple(rows), tuple(columns))


def fields_of(row: ReportRow, position: int) -> str:
    """Return the fields of a cell's numbers under the row's object; empty if some are elsewhere."""
    numbers = [run for run in row.cells[position] if isinstance(run, ReportNumber)]
    if row.base is None or not numbers:
        return ""
    prefix = f"{row.base.pointer}/"
    if any(n.file != row.base.file or not n.pointer.startswith(prefix) or n.of for n in numbers):
        return ""
    return " ".join(n.pointer[len(prefix) - 1 :] for n in numbers)


def is_covered(row: ReportRow, position: int, sources: TableSources) -> bool:
    """Return whether the row's object and the column's fields say where a cell's numbers stand."""
    found = fields_of(row, position)
    return bool(found) and found == sources.fields[position]


def numbers_in(document: ReportDocument) -> Iterator[ReportNumber]:
    """Yield every number of a document, in order."""
    for block in document.blocks:
        for cell in cells_of(block):
            yield from (run for run in cell if isinstance(run, ReportNumber))


def cells_of(block: Block) -> Iterable[Cell]:
    """Return the cells, items or the paragraph of a block."""
    if isinstance(block, Paragraph):
        return (block.runs,)
    if isinstance(block, Bullets):
        return block.items
    if isinstance(block, ReportTable):
        return tuple(cell for row in block.rows for cell in row.cells)
    return ()


def sentence(*runs: Run) -> Paragraph:
    """Return a plain paragraph."""
    return Paragraph(runs)


def metric_name(one: JsonPlace) -> str:
    """Return the metric of an entry: one that is called as its evaluator by a single word."""
    name = one["metric"].text
    evaluator, _, key = name.partition(".")
    return key if evaluator == key else name


def row(
    *cells: Run | Cell, base: JsonPlace | None = None, shades: Sequence[int | None] = ()
) -> ReportRow:
    """Return a row of cells, each one run or several."""
    made = tuple(cell if isinstance(cell, tuple) else (cell,) for cell in cells)
    return ReportRow(made, base, tuple(shades))

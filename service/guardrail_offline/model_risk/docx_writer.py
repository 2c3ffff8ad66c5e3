"""Writes a report as DOCX, and through LibreOffice as PDF."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from guardrail_offline.model_risk.drawings import png_of, shown
from guardrail_offline.model_risk.frameworks import in_words
from guardrail_offline.model_risk.report_blocks import (
    Bullets,
    Cell,
    Form,
    Notes,
    Paragraph,
    ReportChart,
    ReportDocument,
    ReportSection,
    ReportTable,
    Subsection,
    is_covered,
    table_sources,
)
from guardrail_offline.model_risk.step_data import ReportNumber
from guardrail_service.errors import ConfigurationError, MissingExtra

FONT = "Arial"
INK, QUIET, ACT, HEAD, EDGE = "16202C", "4C5967", "0B4A8F", "E9EEF4", "B9C3CE"
SHADES = ("F3F8F3", "FDF3D8", "FBE0BB", "F6C0A4", "EE9A86")
WIDTH_CM = 17.4
_CM_PER_PX = 2.54 / 96
LONG_NAME = 18
LONGEST_PROPERTY = 255
"""Code points that a property of a document holds; the title on its page is whole."""
"""Characters of a name that hardly fits into a column."""
CONVERT_S = 180.0
"""LibreOffice begins in seconds; one that takes minutes hangs."""
_PDF = (
    'pdf:writer_pdf_Export:{"UseTaggedPDF":{"type":"boolean","value":"true"},'
    '"ExportBookmarks":{"type":"boolean","value":"true"}}'
)


def write_docx(document: ReportDocument, out: Path) -> None:
    """Write the report, whole or not at all.

    Raises:
        MissingExtra: If python-docx is not installed.
    """
    try:
        import docx
    except ImportError as error:
        raise MissingExtra("rag-guardrail-offline[documents]") from error
    writing = _DocxWriting(docx.Document())
    writing.write(document)
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        writing.file.save(str(temporary))
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)


def write_pdf(document: ReportDocument, out: Path) -> None:
    """Write the report as PDF through LibreOffice without a screen, whole or not at all.

    Raises:
        MissingExtra: If python-docx is not installed.
        ConfigurationError: If LibreOffice is not installed, or does not convert.
    """
    office = shutil.which("soffice") or shutil.which("libreoffice")
    if office is None:
        expected = "LibreOffice on the PATH (Debian: libreoffice-writer)"
        raise ConfigurationError("--format pdf", "no soffice", expected)
    with tempfile.TemporaryDirectory(prefix="guardrail-pdf-") as name:
        folder = Path(name)
        source = folder / "report.docx"
        write_docx(document, source)
        profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
        command = [office, profile, "--headless", "--norestore", "--convert-to", _PDF]
        _run([*command, "--outdir", str(folder), str(source)], folder)
        made = folder / "report.pdf"
        if not made.is_file():
            raise ConfigurationError("--format pdf", "no PDF from LibreOffice", "one")
        temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
        shutil.copyfile(made, temporary)
        temporary.replace(out)


def _run(command: list[str], home: Path) -> None:
    """Run LibreOffice in a group of its own, with a home of its own and no display."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    quiet = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    try:
        subprocess.run(  # noqa: S603 - our own arguments, no shell
            command,
            env={**kept, "HOME": str(home)},
            timeout=CONVERT_S,
            check=True,
            **quiet,  # type: ignore[call-overload]
        )
    except subprocess.TimeoutExpired as error:
        found = f"LibreOffice not done after {CONVERT_S:g} s"
        raise ConfigurationError("--format pdf", found, "a PDF") from error
    except subprocess.CalledProcessError as error:
        found = f"LibreOffice ended with {error.returncode}"
        raise ConfigurationError("--format pdf", found, "a PDF") from error


class _DocxWriting:
    """Adds a report's blocks to a DOCX."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.notes = Notes()
        self._bookmarks = 0

    def write(self, document: ReportDocument) -> None:
        """Add everything: cover, contents, blocks, notes."""
        self._styles(document)
        self._cover(document)
        titles = [one.title for one in document.blocks if isinstance(one, ReportSection)]
        self._contents([*titles, _SOURCES])
        for block in document.blocks:
            self._block(block)
        self._sources()

    def _block(self, block: Any) -> None:
        match block:
            case ReportSection():
                self._heading(block.title, new_page=block.new_page)
                if block.tags:
                    self._small("; ".join(map(in_words, block.tags)), keep=True)
            case Subsection():
                self.file.add_heading(_clean(block.title), 2)
            case Paragraph():
                self._runs(self.file.add_paragraph(style=_STYLES[block.kind]), block.runs)
            case Bullets():
                for item in block.items:
                    self._runs(self.file.add_paragraph(style="List Bullet"), item)
            case ReportTable():
                self._table(block)
            case ReportChart():
                self._chart(block)
            case Form():
                self._form(block)

    def _styles(self, document: ReportDocument) -> None:
        from docx.enum.style import WD_STYLE_TYPE
        from docx.shared import Cm, Pt, RGBColor

        file = self.file
        file.core_properties.title = shown(
            _clean(f"{document.title}: {document.subtitle}"), LONGEST_PROPERTY
        )
        file.core_properties.author = "rag-guardrail"
        file.core_properties.language = "en-GB"
        page = file.sections[0]
        page.page_width, page.page_height = Cm(21), Cm(29.7)
        page.left_margin = page.right_margin = Cm(1.8)
        page.top_margin, page.bottom_margin = Cm(2.2), Cm(2)
        page.different_first_page_header_footer = True
        sizes = {"Normal": 10, "Title": 26, "Heading 1": 15, "Heading 2": 12, "List Bullet": 10}
        for name, size in sizes.items():
            style = file.styles[name]
            style.font.name, style.font.size = FONT, Pt(size)
            style.font.color.rgb = RGBColor.from_string(ACT if name == "Heading 1" else INK)
            fonts = style.element.get_or_add_rPr().get_or_add_rFonts()
            for key in ("w:asciiTheme", "w:hAnsiTheme", "w:eastAsiaTheme", "w:cstheme"):
                fonts.attrib.pop(_qn(key), None)
        file.styles["Normal"].paragraph_format.space_after = Pt(6)
        file.styles["Heading 1"].paragraph_format.space_before = Pt(18)
        for name, fill, size in (("Verdict", HEAD, 12), ("Remark", "FFF6E0", 10)):
            style = file.styles.add_style(name, WD_STYLE_TYPE.PARAGRAPH)
            style.base_style, style.font.size, style.font.bold = (
                file.styles["Normal"],
                Pt(size),
                name == "Verdict",
            )
            style.paragraph_format.space_before = style.paragraph_format.space_after = Pt(6)
            _shade_paragraph(style.element.get_or_add_pPr(), fill)
        self._frame(page, document)

    def _frame(self, page: Any, document: ReportDocument) -> None:
        """Write the running header and the page numbers; the cover has none."""
        header = page.header.paragraphs[0]
        self._add(header, f"{document.title}: {document.subtitle}", size=8, color=QUIET)
        footer = page.footer.paragraphs[0]
        footer.alignment = 2
        self._add(footer, "Page ", size=8, color=QUIET)
        _field(footer, "PAGE")
        self._add(footer, " of ", size=8, color=QUIET)
        _field(footer, "NUMPAGES")

    def _cover(self, document: ReportDocument) -> None:
        from docx.shared import Pt

        kind = self.file.add_paragraph()
        kind.paragraph_format.space_before = Pt(120)
        self._add(kind, document.title.upper(), size=13, bold=True, color=ACT)
        title = self.file.add_paragraph(style="Title")
        self._add(title, document.subtitle, size=28, bold=True, color=INK)
        table = self._grid(len(document.facts), 2, (1, 2.6))
        for row, (name, text) in zip(table.rows, document.facts, strict=True):
            self._fill(row.cells[0], (name,), bold=True, fill=HEAD)
            self._fill(row.cells[1], (text,))

    def _contents(self, titles: Iterable[str]) -> None:
        from docx.enum.text import WD_TAB_ALIGNMENT, WD_TAB_LEADER
        from docx.shared import Cm

        heading = self.file.add_paragraph()
        heading.paragraph_format.page_break_before = True
        self._add(heading, "Contents", size=15, bold=True, color=ACT)
        for number, title in enumerate(titles, start=1):
            line = self.file.add_paragraph()
            stops = line.paragraph_format.tab_stops
            stops.add_tab_stop(Cm(WIDTH_CM), WD_TAB_ALIGNMENT.RIGHT, WD_TAB_LEADER.DOTS)
            self._add(line, f"{title}\t")
            _field(line, f"PAGEREF section_{number} \\h", size=20)

    def _heading(self, title: str, *, new_page: bool = False) -> None:
        heading = self.file.add_heading(_clean(title), 1)
        heading.paragraph_format.page_break_before = new_page
        self._bookmarks += 1
        _bookmark(heading, f"section_{self._bookmarks}", self._bookmarks)

    def _small(self, text: str, *, keep: bool = False) -> None:
        from docx.shared import Pt

        line = self.file.add_paragraph()
        line.paragraph_format.space_after = Pt(8)
        line.paragraph_format.keep_with_next = keep
        self._add(line, text, size=8, color=QUIET, italic=True)

    def _table(self, block: ReportTable) -> None:
        sources = table_sources(block)
        has_sources = any(sources.fields)
        head = (*block.head, "Source") if has_sources else block.head
        widths = block.widths or tuple(1.0 for _ in block.head)
        self._caption(block.caption)
        table = self._grid(
            len(block.rows) + 1, len(head), (*widths, 0.22 * sum(widths))[: len(head)]
        )
        _repeat(table.rows[0])
        for cell, name in zip(table.rows[0].cells, head, strict=True):
            self._fill(cell, (name,), bold=True, fill=HEAD, size=8)
        for line, row, source in zip(table.rows[1:], block.rows, sources.rows, strict=True):
            cells = line.cells
            shades = [*row.shades, *([None] * len(row.cells))]
            for position, content in enumerate(row.cells):
                shade = shades[position]
                self._fill(
                    cells[position],
                    content,
                    noted=not is_covered(row, position, sources),
                    fill=None if shade is None else SHADES[shade],
                )
            if has_sources:
                self._fill(cells[-1], (source,), size=6.5, color=QUIET)
        if has_sources:
            named = zip(block.head, sources.fields, strict=True)
            text = "; ".join(f"{name} {field}" for name, field in named if field)
            self._small(f"Fields under each row's source: {text}")
        else:
            self._gap()

    def _chart(self, block: ReportChart) -> None:
        """Add a picture with its description; without matplotlib a line says what is missing."""
        from docx.shared import Cm

        self._caption(block.caption)
        try:
            picture = io.BytesIO(png_of(block.drawing))
        except MissingExtra as error:
            self._small(f"This chart is left out, the table has its numbers: {error}")
            return
        line = self.file.add_paragraph()
        line.paragraph_format.keep_with_next = True
        wide = min(WIDTH_CM, block.drawing.wide * _CM_PER_PX)
        shape = line.add_run().add_picture(picture, width=Cm(wide))
        shape._inline.docPr.set("descr", _clean(block.alt))
        self._small(f"Drawn from {block.source}")

    def _form(self, block: Form) -> None:
        from docx.shared import Cm

        self._caption(block.caption)
        widths = (1.4, *(1.6 for _ in block.head[1:])) if len(block.head) > 2 else (1, 2)
        table = self._grid(len(block.labels) + 1, len(block.head), widths)
        _repeat(table.rows[0])
        for cell, name in zip(table.rows[0].cells, block.head, strict=True):
            self._fill(cell, (name,), bold=True, fill=HEAD)
        for row, label in zip(table.rows[1:], block.labels, strict=True):
            row.height = Cm(1)
            self._fill(row.cells[0], (label,))
        for row in table.rows[:-1]:
            for cell in row.cells:
                cell.paragraphs[0].paragraph_format.keep_with_next = True
        self._gap()

    def _gap(self) -> None:
        from docx.shared import Pt

        gap = self.file.add_paragraph()
        gap.paragraph_format.space_after = gap.paragraph_format.space_before = Pt(0)
        gap.paragraph_format.line_spacing = Pt(8)

    def _caption(self, text: str) -> None:
        from docx.shared import Pt

        caption = self.file.add_paragraph()
        caption.paragraph_format.keep_with_next = True
        caption.paragraph_format.space_before, caption.paragraph_format.space_after = Pt(8), Pt(3)
        self._add(caption, text, size=9, bold=True)

    def _sources(self) -> None:
        self._heading(_SOURCES, new_page=True)
        self.file.add_paragraph(
            "Numbers in the text carry a note. Each names a file of the workflow's folder and the "
            "place in it (JSON pointer, RFC 6901); in tables the row names the object and the line "
            "below the fields."
        )
        table = self._grid(len(self.notes.places) + 1, 4, (0.5, 1, 1.8, 4))
        _repeat(table.rows[0])
        heads = ("Note", "Number", "File", "Place")
        for cell, name in zip(table.rows[0].cells, heads, strict=True):
            self._fill(cell, (name,), bold=True, fill=HEAD)
        for number, (row, one) in enumerate(
            zip(table.rows[1:], self.notes.places, strict=True), start=1
        ):
            of = "" if one.of is None else f" of {one.of[0]} {one.of[1]}"
            entries = " (number of entries)" if one.form == "count" else ""
            texts = (str(number), one.text, one.file, f"{one.pointer}{of}{entries}")
            for cell, text in zip(row.cells, texts, strict=True):
                self._fill(cell, (text,), size=8)

    def _grid(self, rows: int, columns: int, widths: tuple[float, ...]) -> Any:
        from docx.shared import Cm

        table = self.file.add_table(rows, columns)
        table.style, table.autofit = "Table Grid", False
        _borders(table)
        whole = sum(widths)
        for position, width in enumerate(widths):
            size = Cm(WIDTH_CM * width / whole)
            table.columns[position].width = size
            for cell in table.columns[position].cells:
                cell.width = size
        for row in table.rows:
            _keep_together(row)
        return table

    def _fill(
        self, cell: Any, content: Cell, *, fill: str | None = None, noted: bool = True, **look: Any
    ) -> None:
        from docx.shared import Pt

        line = cell.paragraphs[0]
        line.paragraph_format.space_after = Pt(1)
        broken = tuple(_breakable(run) if isinstance(run, str) else run for run in content)
        self._runs(line, broken, noted=noted, **{"size": 8.5, **look})
        if fill is not None:
            _shade_cell(cell, fill)

    def _runs(self, paragraph: Any, runs: Cell, *, noted: bool = True, **look: Any) -> None:
        for run in runs:
            self._add(paragraph, run.text if isinstance(run, ReportNumber) else run, **look)
            if noted and isinstance(run, ReportNumber):
                added = paragraph.add_run(f"[{self.notes.of(run)}]")
                added.font.superscript = True

    def _add(
        self,
        paragraph: Any,
        text: str,
        *,
        size: float | None = None,
        bold: bool = False,
        italic: bool = False,
        color: str | None = None,
    ) -> None:
        from docx.shared import Pt, RGBColor

        run = paragraph.add_run(_clean(text))
        run.bold, run.italic = bold or None, italic or None
        if size is not None:
            run.font.size = Pt(size)
        if color is not None:
            run.font.color.rgb = RGBColor.from_string(color)


_SOURCES = "Appendix C: Sources of the numbers"
_STYLES = {"plain": "Normal", "note": "Remark", "verdict": "Verdict"}


def _breakable(text: str) -> str:
    """Return a text whose long names may break behind a point or an underscore."""
    return " ".join(
        word.replace("_", "_\u200b").replace(".", ".\u200b") if len(word) > LONG_NAME else word
        for word in text.split(" ")
    )


def _clean(text: str) -> str:
    """Return a text without what XML has no form for: control characters and lone surrogates."""
    return "".join(
        sign
        if sign in "\t\n" or (ord(sign) >= 32 and not 0xD800 <= ord(sign) <= 0xDFFF)
        else "\ufffd"
        for sign in text
        if sign not in "\ufffe\uffff"
    )


def _qn(name: str) -> str:
    from docx.oxml.ns import qn

    found: str = qn(name)
    return found


def _element(tag: str, /, **values: str) -> Any:
    from docx.oxml import OxmlElement

    made = OxmlElement(tag)
    for key, value in values.items():
        made.set(_qn(f"w:{key}"), value)
    return made


def _field(paragraph: Any, code: str, size: int = 16) -> None:
    """Add a field that the reader's program fills in; `size` in half points."""
    field = _element("w:fldSimple", instr=code)
    run, text = _element("w:r"), _element("w:t")
    look = _element("w:rPr")
    look.append(_element("w:sz", val=str(size)))
    text.text = "1"
    run.append(look)
    run.append(text)
    field.append(run)
    paragraph._p.append(field)


def _bookmark(paragraph: Any, name: str, number: int) -> None:
    start = _element("w:bookmarkStart", id=str(number), name=name)
    paragraph._p.insert(1 if paragraph._p.pPr is not None else 0, start)
    paragraph._p.append(_element("w:bookmarkEnd", id=str(number)))


def _shade_cell(cell: Any, fill: str) -> None:
    cell._tc.get_or_add_tcPr().append(_element("w:shd", val="clear", color="auto", fill=fill))


def _shade_paragraph(properties: Any, fill: str) -> None:
    properties.append(_element("w:shd", val="clear", color="auto", fill=fill))


def _repeat(row: Any) -> None:
    row._tr.get_or_add_trPr().append(_element("w:tblHeader", val="true"))


def _keep_together(row: Any) -> None:
    row._tr.get_or_add_trPr().append(_element("w:cantSplit", val="true"))


def _borders(table: Any) -> None:
    borders = _element("w:tblBorders")
    for side in ("top", "left", "bottom", "right", "insideH", "insideV"):
        borders.append(_element(f"w:{side}", val="single", sz="4", space="0", color=EDGE))
    table._tbl.tblPr.append(borders)

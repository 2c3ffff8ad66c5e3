"""The model-risk report as DOCX, and as PDF through LibreOffice: pages, headings, numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import docx
import pypdf
import pytest
from typer.testing import CliRunner

from guardrail_offline.model_risk import write_mrm_report
from guardrail_offline.model_risk.mrm_report import mrm_report
from guardrail_offline.model_risk.report_blocks import ReportChart, ReportSection, numbers_in
from guardrail_offline.model_risk.step_data import WorkflowData
from guardrail_service.commands.main import app
from guardrail_service.errors import MissingExtra
from tests.unit.offline.model_risk.made_workflow import HOSTILE, make_workflow
from tests.unit.offline.model_risk.test_mrm_report import DAY, follow

SOURCES = "Appendix C: Sources of the numbers"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workflow whose nine steps were run."""
    return make_workflow(tmp_path_factory.mktemp("workflow") / "wf")


@pytest.fixture(scope="module")
def document(root: Path) -> Any:
    """Its report for Word, read again."""
    return docx.Document(str(write_mrm_report(root, "docx", day=DAY)))


@pytest.fixture(scope="module")
def pages(root: Path) -> list[str]:
    """The text of each page of its PDF."""
    reader = pypdf.PdfReader(write_mrm_report(root, "pdf", day=DAY))
    return [page.extract_text() for page in reader.pages]


def titles(root: Path) -> list[str]:
    """Return the headings that a report has."""
    blocks = mrm_report(WorkflowData(root), DAY).blocks
    return [*(one.title for one in blocks if isinstance(one, ReportSection)), SOURCES]


def test_word_has_every_heading_and_text(root: Path, document: Any) -> None:
    """In order; texts of others as they are, but for signs that XML has no form for."""
    heads = [p.text for p in document.paragraphs if p.style.name == "Heading 1"]
    assert heads == titles(root)
    told = "\n".join(p.text for p in document.paragraphs)
    assert HOSTILE in told
    assert "\x00" not in told


def test_word_has_the_charts_with_their_descriptions(
    root: Path, document: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One picture for each; without matplotlib a line says that it is left out."""
    blocks = mrm_report(WorkflowData(root), DAY).blocks
    charts = [one for one in blocks if isinstance(one, ReportChart)]
    assert len(charts) == 4
    said = [shape._inline.docPr.get("descr") for shape in document.inline_shapes]
    assert said == [one.alt for one in charts]

    def missing(_: object) -> bytes:
        raise MissingExtra("rag-guardrail-offline[plots]")

    monkeypatch.setattr("guardrail_offline.model_risk.docx_writer.png_of", missing)
    bare = docx.Document(str(write_mrm_report(root, "docx", tmp_path / "bare.docx", day=DAY)))
    assert len(bare.inline_shapes) == 0
    assert "\n".join(p.text for p in bare.paragraphs).count("This chart is left out") == 4


def test_every_number_of_word_can_be_followed(root: Path, document: Any) -> None:
    """By the note's row in the appendix, or by its row's source."""
    numbers = list(numbers_in(mrm_report(WorkflowData(root), DAY)))
    forms = {(n.file, n.pointer): n.form for n in numbers}
    notes = document.tables[-1].rows[1:]
    assert len(notes) > 20
    for row in notes:
        _, text, file, place = (cell.text.replace("\u200b", "") for cell in row.cells)
        pointer = place.removesuffix(" (number of entries)")
        assert follow(root, f"{file} {pointer}", forms[file, pointer]) == text
    told = "\n".join(c.text for t in document.tables for r in t.rows for c in r.cells)
    told += "\n".join(p.text for p in document.paragraphs)
    assert all(number.text in told for number in numbers)
    sources = [
        r.cells[-1].text for t in document.tables for r in t.rows if "/results/" in r.cells[-1].text
    ]
    assert "4-evaluation.json /results/metrics/0" in sources


def test_the_pdf_has_its_pages_and_headings(root: Path, pages: list[str]) -> None:
    """Cover, contents with page numbers that are right, sections, sign-off, appendices."""
    assert 8 <= len(pages) <= 20
    assert "MODEL RISK REPORT" in pages[0]
    assert "Guest desk assistant" in pages[0]
    contents = {
        line.split("..")[0].strip(): int(line.rstrip().rpartition(".")[2])
        for line in pages[1].splitlines()
        if ".." in line
    }
    assert list(contents) == titles(root)
    for title, page in contents.items():
        assert title in pages[page - 1], title
        assert f"Page {page} of {len(pages)}" in pages[page - 1]
    signed = " ".join(pages[contents["12 Sign-off"] - 1].split())
    for role in ("Model developer", "Model owner", "Independent validator", "Signature"):
        assert role in signed


def test_the_pdf_says_the_numbers(root: Path, pages: list[str]) -> None:
    """Every one of the document; spaces and breaks are the page's."""
    told = "".join("".join(pages).split())
    for number in numbers_in(mrm_report(WorkflowData(root), DAY)):
        assert "".join(number.text.split()) in told, number


def test_the_pdf_serves_screen_readers(root: Path) -> None:
    """Tagged, with a language, a title and bookmarks."""
    reader = pypdf.PdfReader(root / "artefacts" / "mrm-report.pdf")
    catalog: Any = reader.trailer["/Root"]
    assert catalog["/MarkInfo"]["/Marked"] is not None
    assert "/StructTreeRoot" in catalog
    assert str(catalog["/Lang"]).startswith("en")
    assert reader.metadata is not None
    assert reader.metadata.title == "Model risk report: Guest desk assistant"
    assert len(reader.outline) >= 15
    described = [
        told
        for number in range(1, len(reader.xref[0]) + len(reader.xref_objStm))
        if isinstance(one := reader.get_object(number), dict) and (told := one.get("/Alt"))
    ]
    assert len(described) >= 4
    assert any(str(told).startswith("A row for each metric") for told in described)


@pytest.mark.parametrize("kind", ["html", "docx", "pdf"])
def test_the_command_writes_each_format(root: Path, tmp_path: Path, kind: str) -> None:
    """Where it is told to."""
    out = tmp_path / f"report.{kind}"
    command = ["workflow", "report", str(root), "--format", kind, "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    begins = {"html": b"<!doctype html>", "docx": b"PK", "pdf": b"%PDF-"}
    assert out.read_bytes().startswith(begins[kind])
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_a_long_name_is_whole_on_the_page(tmp_path: Path) -> None:
    """A property of a document holds 255 code points; the title does not end there."""
    long = make_workflow(tmp_path / "w")
    content = json.loads((long / "workflow.json").read_text("utf-8"))
    content["name"] = "x" * 20_000
    (long / "workflow.json").write_text(json.dumps(content), "utf-8")
    found = docx.Document(str(write_mrm_report(long, "docx", day=DAY)))
    assert len(found.core_properties.title) == 255
    assert any("x" * 20_000 in one.text.replace("\u200b", "") for one in found.paragraphs)

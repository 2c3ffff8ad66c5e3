"""Large documents, and documents as LibreOffice writes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from guardrail_offline.generation.chunks import chunks_of
from guardrail_offline.generation.source_documents import ReadLimits, read_documents
from tests.unit.offline.generation.files import pdf_bomb, pdf_bytes, write, zip_bomb

PAGE = (
    "<h1>Pool rules</h1><p>The Linden pool opened in 1974. A day ticket costs 6 euros.</p>"
    "<ul><li>No dogs</li><li>No glass</li></ul>"
    "<table><tr><th>ticket</th><th>price</th></tr><tr><td>day</td><td>6 euros</td></tr></table>"
)


def test_five_hundred_pages_are_read(tmp_path: Path) -> None:
    """Every page, each chunk with its own."""
    pages = [[f"Page {n} tells that hall {n} has {n + 2} doors."] for n in range(1, 501)]
    (found,) = read_documents([write(tmp_path, "long.pdf", pdf_bytes(pages))])
    assert (found.state, len(found.pages), found.notes) == ("read", 500, ())
    assert all(f"hall {n} has" in found.text for n in range(1, 501))
    chunks = chunks_of([found])
    assert chunks[-1].page is not None
    assert chunks[-1].page > 450  # where its first sentence stands


@pytest.mark.parametrize("ending", ["pdf", "docx"])
def test_what_libreoffice_writes_is_read(tmp_path: Path, ending: str) -> None:
    """Headings, items and cells are all there."""
    page = write(tmp_path, "rules.html", PAGE)
    subprocess.run(
        ["soffice", "--headless", f"-env:UserInstallation=file://{tmp_path}/profile",  # noqa: S607
         "--infilter=HTML (StarWriter)", "--convert-to",
         {"pdf": "pdf:writer_pdf_Export", "docx": "docx:MS Word 2007 XML"}[ending], "--outdir",
         str(tmp_path), str(page)],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    (found,) = read_documents([tmp_path / f"rules.{ending}"])
    assert found.state == "read", found.reason
    words = " ".join(found.text.split())
    for text in ("Pool rules", "The Linden pool opened in 1974.", "No glass", "6 euros"):
        assert text in words


def test_larger_bombs_end_their_process_only(tmp_path: Path) -> None:
    """A PDF that unpacks to a gigabyte and a DOCX that does to half of it, beside a text."""
    write(tmp_path, "a.pdf", pdf_bomb(1024))
    write(tmp_path, "b.docx", zip_bomb(500))
    write(tmp_path, "c.txt", "The pool opened in 1974.")
    bomb, zipped, text = read_documents([tmp_path], ReadLimits(memory_bytes=2**29))
    assert bomb.state in ("too_much_memory", "corrupt", "too_slow"), bomb.reason
    assert (zipped.state, text.state) == ("too_large", "read")

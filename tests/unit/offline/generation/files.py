"""Writes documents for tests: PDFs by hand, the rest by the libraries that read them."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import docx
import pypdf


def pdf_bytes(pages: Sequence[Sequence[str]], content: bytes | None = None) -> bytes:
    """Return a PDF with lines of Helvetica on each page; `content` replaces every page's stream."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(count))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, lines in enumerate(pages):
        stream = content if content is not None else _text(lines)
        page = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R"
        )
        objects.append(f"{page} /Resources << /Font << /F1 3 0 R >> >> >>".encode())
        filter_ = b"" if content is None else b" /Filter /FlateDecode"
        head = b"<< /Length %d%s >>\nstream\n" % (len(stream), filter_)
        objects.append(head + stream + b"\nendstream")
    return _file(objects)


def _text(lines: Sequence[str]) -> bytes:
    shown = [line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in lines]
    body = " ".join(f"({line}) Tj T*" for line in shown)
    return f"BT /F1 11 Tf 14 TL 50 740 Td {body} ET".encode("cp1252")


def _file(objects: Sequence[bytes]) -> bytes:
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    root = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n"
    return out.getvalue() + root.encode()


def encrypted_pdf(password: str) -> bytes:
    """Return a PDF that needs a password."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf_bytes([["A secret stands here."]])))
    writer.encrypt(password, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def pdf_bomb(megabytes: int) -> bytes:
    """Return a PDF of some KB whose one page unpacks to many megabytes."""
    packer = zlib.compressobj(9)
    parts = [packer.compress(b" " * 2**20) for _ in range(megabytes)]
    return pdf_bytes([[]], b"".join([*parts, packer.flush()]))


def docx_bytes() -> bytes:
    """Return a Word document with headings, a list and a table."""
    document = docx.Document()
    document.add_heading("Pool rules", level=1)
    document.add_paragraph("The pool opened in 1974.")
    document.add_paragraph("No running", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for place, text in enumerate(("ticket", "price", "day", "6 euros")):
        table.cell(place // 2, place % 2).text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def zip_bomb(megabytes: int) -> bytes:
    """Return a Word document one of whose parts unpacks to many megabytes."""
    out = io.BytesIO(docx_bytes())
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("word/media/image1.xml", b" " * (megabytes * 2**20))
    return out.getvalue()


def write(folder: Path, name: str, content: bytes | str) -> Path:
    """Write a document and return its path."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path

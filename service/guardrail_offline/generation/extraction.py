"""Extracts the text of one document, in a process of its own with limits on memory and time.

`source_documents.py` runs this file as a program; it imports nothing of ours, so that little stands
in the memory that is limited. Whatever becomes of a document is one JSON object on standard output.
"""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import re2

UNPACKED_BYTES = 400 * 1024 * 1024
"""Most that the parts of a DOCX may hold together: more is a bomb or no text for tests."""
UNPACKED_RATIO = 200
"""Most that a part of over a megabyte may grow; text in XML grows tenfold."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_OLE = "EncryptedPackage".encode("utf-16-le")
_CHARSET = re2.compile(rb"(?i)charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{2,40})")
_ENDS = (".", "!", "?", ":", ";", ".”", '."', ".)")


class TextBlock(NamedTuple):
    """A stretch of the text: heading, paragraph, item, header, row or code; [start, end)."""

    start: int
    end: int
    kind: str


class Unreadable(Exception):
    """There is no text, for a reason that is a state of the document."""

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(reason)
        self.state, self.reason = state, reason


class Extracted:
    """The text as it grows, block by block, and what stands where.

    Args:
        most_chars: Longest text that is taken.
    """

    def __init__(self, most_chars: int) -> None:
        self.blocks: list[TextBlock] = []
        self.pages: list[int] = []
        self.notes: list[str] = []
        self.encoding = self.title = ""
        self._parts: list[str] = []
        self._length, self._most = 0, most_chars

    def add(self, text: str, kind: str, *, apart: bool = True) -> None:
        """Add a block behind a blank line, or behind a line's end where it is not `apart`.

        Raises:
            Unreadable: If the text becomes too long.
        """
        text = without_surrogates(text.strip())
        if not text:
            return
        if self._parts:
            gap = "\n\n" if apart else "\n"
            self._parts.append(gap)
            self._length += len(gap)
        self.blocks.append(TextBlock(self._length, self._length + len(text), kind))
        self._parts.append(text)
        self._length += len(text)
        if self._length > self._most:
            raise Unreadable("too_large", f"its text has over {self._most} characters")

    def begin_page(self) -> None:
        """Say that what comes now stands on a new page."""
        self.pages.append(self._length + (2 if self._parts else 0))

    def as_json(self) -> dict[str, Any]:
        """Return text, blocks, pages and notes.

        Raises:
            Unreadable: If there is no text at all.
        """
        text = "".join(self._parts)
        if not text:
            raise Unreadable("no_text", self.notes[0] if self.notes else "it holds no text")
        pages = [min(page, len(text)) for page in self.pages]
        return {
            "state": "read", "reason": "", "text": text, "blocks": self.blocks, "pages": pages,
            "notes": self.notes, "encoding": self.encoding, "title": self.title,
        }  # fmt: skip


def without_surrogates(text: str) -> str:
    """Return a text whose halves of characters are whole or replaced: broken PDFs have them."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def pdf(data: bytes, found: Extracted) -> None:
    """Add the text of a PDF, page by page; lines of a paragraph are joined."""
    import pypdf
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not _opens(reader):
            raise Unreadable("encrypted", "it is encrypted with a password")
        pages = list(reader.pages)
        title = reader.metadata.title if reader.metadata else None
    except DependencyError as error:
        raise Unreadable("encrypted", "it is encrypted, with AES") from error
    except (PyPdfError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise Unreadable("corrupt", f"no PDF that can be read: {type(error).__name__}") from error
    found.title = str(title or "").strip()[:200]
    empty, broken = [], []
    for number, page in enumerate(pages, start=1):
        found.begin_page()
        try:
            text = page.extract_text()
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - one page of many; it is named in the notes
            broken.append(number)
            continue
        if not text.strip():
            empty.append(number)
        for block, kind in joined_lines(text):
            found.add(block, kind)
    if broken:
        found.notes.append(f"pages that cannot be read: {_ranges(broken)}")
        if len(broken) == len(pages):
            raise Unreadable("corrupt", "none of its pages can be read")
    if empty:
        scanned = " (scanned?)" if len(empty) == len(pages) else ""
        found.notes.append(f"pages without text: {_ranges(empty)}{scanned}")


def _opens(reader: Any) -> bool:
    """Return whether an empty password opens it: many only forbid printing."""
    return bool(reader.decrypt("").value)


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers with neighbours as ranges: "1-3, 7"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)


def joined_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the blocks of a page's lines; short lines without an end are headings or cells.

    A line that ends before three fifths of the usual width ends its block. A word that is divided
    at a line's end is joined.
    """
    lines = [" ".join(line.split()) for line in text.splitlines()]
    widths = sorted(len(line) for line in lines if line)
    usual = widths[len(widths) * 4 // 5] if widths else 0
    held: list[str] = []
    for line in lines:
        if not line:
            yield from _block(held)
            held = []
            continue
        held.append(line)
        if line.endswith("-") and line[-2:-1].isalpha():
            continue  # the word goes on
        if len(line) < usual * 3 // 5 or (line.endswith(_ENDS) and len(line) < usual * 9 // 10):
            yield from _block(held)
            held = []
    yield from _block(held)


def _block(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    if not lines:
        return
    text = lines[0]
    for line in lines[1:]:
        divided = text.endswith("-") and text[-2:-1].isalpha() and line[:1].islower()
        text = text[:-1] + line if divided else f"{text} {line}"
    is_item = text[:2] in ("• ", "- ", "– ", "* ")  # noqa: RUF001 - dashes of lists
    short = len(lines) == 1 and len(text) <= 90 and not text.endswith(_ENDS)
    yield text, "item" if is_item else "heading" if short else "paragraph"


def docx(data: bytes, found: Extracted) -> None:
    """Add headings, paragraphs, items and rows of a Word document, in its order."""
    _refuse_bomb(data)
    import docx as word
    from docx.opc.exceptions import PackageNotFoundError
    from docx.table import Table
    from lxml.etree import LxmlError

    try:
        document = word.Document(io.BytesIO(data))
        found.title = (document.core_properties.title or "").strip()[:200]
        for part in document.iter_inner_content():
            if isinstance(part, Table):
                for number, row in enumerate(part.rows):
                    cells = {id(cell._tc): cell.text for cell in row.cells}  # merged ones once
                    text = " | ".join(" ".join(cell.split()) for cell in cells.values())
                    found.add(text, "row" if number else "header", apart=not number)
                continue
            style = (part.style.name or "") if part.style is not None else ""
            kind = "heading" if style.startswith(("Heading", "Title")) else "paragraph"
            kind = "item" if style.startswith("List") else kind
            found.add(part.text, kind)
    except (PackageNotFoundError, LxmlError, KeyError, ValueError, zipfile.BadZipFile) as error:
        found_kind = type(error).__name__
        raise Unreadable("corrupt", f"no DOCX that can be read: {found_kind}") from error


def _refuse_bomb(data: bytes) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            parts = packed.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise Unreadable("corrupt", f"no DOCX: {type(error).__name__}") from error
    if any(part.flag_bits & 1 for part in parts):
        raise Unreadable("encrypted", "parts of it are encrypted")
    if sum(part.file_size for part in parts) > UNPACKED_BYTES:
        raise Unreadable("too_large", f"it unpacks to over {UNPACKED_BYTES} bytes")
    for part in parts:
        if part.file_size > max(1_000_000, UNPACKED_RATIO * part.compress_size):
            raise Unreadable("too_large", f"a part unpacks to over {UNPACKED_RATIO} times its size")


_BLOCKS = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), "heading"),
    **dict.fromkeys(("p", "blockquote", "figcaption", "dd", "address", "caption"), "paragraph"),
    **dict.fromkeys(("li", "dt"), "item"),
    "tr": "row",
    "pre": "code",
}
_NO_TEXT = ("script", "style", "noscript", "template", "svg", "nav", "head", "iframe")
_BREAKS = frozenset(
    ("div", "section", "article", "main", "body", "html", "ul", "ol", "dl", "table", "tbody",
     "thead", "header", "footer", "aside", "form", "figure", "hr")
)  # fmt: skip


def html(data: bytes, found: Extracted) -> None:
    """Add what a page shows: scripts, styles and navigation are left out."""
    from lxml import etree
    from lxml import html as pages

    text, found.encoding = decoded(data, declared=True)
    text = _DECLARATION.sub("", text)
    parser = pages.HTMLParser(huge_tree=True)  # else all behind 256 nested elements is left out
    try:
        root = pages.document_fromstring(text, parser=parser)
    except (etree.LxmlError, ValueError) as error:
        raise Unreadable("no_text", "no element of it holds text") from error
    if any("Excessive depth" in one.message for one in parser.error_log):
        found.notes.append("what comes behind over 2048 nested elements is left out")
    title = root.find(".//title")
    found.title = " ".join((title.text or "").split())[:200] if title is not None else ""
    for element in list(root.iter(*_NO_TEXT)):
        element.drop_tree()
    held: list[str] = []
    kinds = ["paragraph"]

    def close() -> None:
        text = "".join(held)
        held.clear()
        text = text if kinds[-1] == "code" else " ".join(text.split()).removesuffix(" |")
        found.add(text, kinds[-1], apart=kinds[-1] != "row")

    for event, element in etree.iterwalk(root, events=("start", "end", "comment")):
        tag = element.tag if isinstance(element.tag, str) else ""
        opens = tag in _BLOCKS or tag in _BREAKS
        if event == "start":
            if opens:
                close()
                kinds.append(_BLOCKS.get(tag, "paragraph" if tag in _BREAKS else kinds[-1]))
            held += (" " if tag in ("br", "td", "th") else "", element.text or "")
        if event == "end" and opens:
            if tag == "tr" and element.find("td") is None:
                kinds[-1] = "header"
            close()
            kinds.pop()
        if event in ("end", "comment"):
            held.append(f"{' |' if tag in ('td', 'th') else ''}{element.tail or ''}")


def markdown(data: bytes, found: Extracted) -> None:
    """Add headings, paragraphs, items and rows as they read, without marks; code is code."""
    from markdown_it import MarkdownIt

    text, found.encoding = decoded(data)
    if text.startswith("---\n") and "\n---\n" in text[4:4_000]:
        text = text[text.index("\n---\n", 4) + 5 :]
    tokens = MarkdownIt("commonmark", {"maxNesting": _NESTED}).enable("table").parse(text)
    if any(token.level >= _NESTED - 1 for token in tokens):
        found.notes.append(f"what is nested over {_NESTED} deep is left out")
    kinds = ["paragraph"]
    row: list[str] | None = None
    in_head = False
    for token in tokens:
        if token.type in ("fence", "code_block"):
            found.add(token.content, "code")
        elif token.type == "inline":
            shown = _shown(token.children or ())
            if row is not None:
                row.append(shown)
            else:
                found.add(shown, kinds[-1])
            if kinds[-1] == "heading" and not found.title:
                found.title = shown[:200]
        elif token.type in ("heading_open", "list_item_open"):
            kinds.append("heading" if token.type == "heading_open" else "item")
        elif token.type in ("heading_close", "list_item_close"):
            kinds.pop()
        elif token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and row is not None:
            found.add(" | ".join(row), "header" if in_head else "row", apart=in_head)
            row = None
        elif token.type in ("thead_open", "thead_close"):
            in_head = token.type == "thead_open"


_NESTED = 100
"""Quotations and lists in one another."""


def _shown(children: Iterable[Any]) -> str:
    """Return what is read of a line: links as their words, code without its marks."""
    parts = []
    for child in children:
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return " ".join("".join(parts).split())


def plain(data: bytes, found: Extracted) -> None:
    """Add the paragraphs of a text, which blank lines divide; short single lines are headings."""
    text, found.encoding = decoded(data)
    for part in _BLANK_LINES.split(text.replace("\r\n", "\n").replace("\r", "\n")):
        lines = [line.strip() for line in part.strip().split("\n") if line.strip()]
        if not lines:
            continue
        marked = [line[:2] in ("- ", "* ", "• ") or bool(_NUMBERED.match(line)) for line in lines]
        if all(marked):
            for line in lines:
                found.add(line, "item", apart=line is lines[0])
        elif len(lines) == 1 and len(lines[0]) <= 80 and not lines[0].endswith(_ENDS):
            found.add(lines[0], "heading")
        else:
            found.add("\n".join(lines), "paragraph")


_NUMBERED = re2.compile(r"\d{1,3}[.)] ")
_DECLARATION = re2.compile(r"^\s*<\?xml[^>]{0,200}\?>")
_BLANK_LINES = re2.compile(r"\n[ \t]*\n")


def decoded(data: bytes, *, declared: bool = False) -> tuple[str, str]:
    """Return the text of bytes and its encoding: a mark, what is declared, UTF-8, the likeliest.

    Raises:
        Unreadable: If it is no text.
    """
    for mark, name in (
        (b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"),
    ):  # fmt: skip
        if data.startswith(mark):
            try:
                return data.decode(name), name
            except UnicodeDecodeError as error:
                raise Unreadable("corrupt", f"its mark says {name}, its bytes do not") from error
    if b"\0" in data[:8_192]:
        raise Unreadable("corrupt", "it holds zero bytes: no text")
    said = _CHARSET.search(data[:2_048]) if declared else None
    for name in ([said[1].decode("ascii").lower()] if said else []) + ["utf-8"]:
        try:
            return data.decode(name), name
        except (UnicodeDecodeError, LookupError):
            continue
    from charset_normalizer import from_bytes

    best = from_bytes(data[:200_000]).best()
    if best is None:
        raise Unreadable("corrupt", "no encoding fits its bytes")
    try:
        return data.decode(best.encoding), best.encoding
    except UnicodeDecodeError as error:
        raise Unreadable("corrupt", f"no text in {best.encoding}, as it seemed") from error


READERS: dict[str, Callable[[bytes, Extracted], None]] = {
    "pdf": pdf, "docx": docx, "html": html, "markdown": markdown, "text": plain,
}  # fmt: skip


def extract(data: bytes, kind: str, most_chars: int) -> dict[str, Any]:
    """Return what became of a document's bytes, as JSON has it; only memory errors pass."""
    found = Extracted(most_chars)
    try:
        if data.startswith(_OLE):
            state = "encrypted" if _ENCRYPTED_OLE in data else "unknown_kind"
            reasons = {
                "encrypted": "it is encrypted with a password",
                "unknown_kind": "an Office file of before 2007; save it as .docx",
            }
            raise Unreadable(state, reasons[state])
        READERS[kind](data, found)
        return found.as_json()
    except Unreadable as error:
        return {"state": error.state, "reason": error.reason}
    except MemoryError:
        raise
    except ImportError as error:
        reason = f"rag-guardrail-offline[documents] is not installed: {error.name}"
        return {"state": "no_library", "reason": reason}
    except Exception as error:  # noqa: BLE001 - libraries raise anything on broken files
        return {"state": "corrupt", "reason": f"cannot be read: {type(error).__name__}"}


def _limit(memory: int, cpu: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has the wall clock of the parent only
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Read one document, as the argument says in JSON, and print what became of it."""
    asked = json.loads(sys.argv[1])
    reply = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # libraries may print
    _limit(asked["memory"], asked["cpu"])
    try:
        told = extract(Path(asked["path"]).read_bytes(), asked["kind"], asked["chars"])
        text = json.dumps(told)
    except MemoryError:
        text = json.dumps({"state": "too_much_memory", "reason": "it needs too much memory"})
    except OSError as error:
        text = json.dumps({"state": "no_access", "reason": error.strerror or "no access"})
    reply.write(text)
    reply.flush()


if __name__ == "__main__":
    main()

"""Every document ends in text or in a state with a reason; nothing crashes, hangs or is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from guardrail_offline.generation.chunks import chunks_of
from guardrail_offline.generation.extraction import extract, joined_lines
from guardrail_offline.generation.source_documents import ReadLimits, read_documents
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.generation.files import (
    docx_bytes,
    encrypted_pdf,
    pdf_bomb,
    pdf_bytes,
    write,
    zip_bomb,
)

WIDE = "The basin of the pool is fifty metres long and has eight lanes for"
PAGE = ["Pool rules", WIDE, "swimmers of all ages. Dogs are not al-", "lowed on the lawn."]
HTML = b"""<html><head><title>Pool</title><script>alert(1)</script></head><body><nav>Home</nav>
<h1>Rules</h1><p>The pool <b>opened</b> in 1974.<br>It is deep.</p><ul><li>No dogs</li></ul>
<table><tr><th>ticket</th><th>price</th></tr><tr><td>day</td><td>6 euros</td></tr></table>
<pre>code  here</pre></body></html>"""
MARKDOWN = """# Pool

The pool [opened](http://x.example) in `1974`.

- No dogs

ticket | price
--- | ---
day | 6 euros

```
code
```
"""


def blocks(content: bytes, kind: str) -> list[tuple[str, str]]:
    """Return the blocks of a document by kind, as texts."""
    told = extract(content, kind, 1_000_000)
    assert told["state"] == "read", told
    return [(kind, told["text"][start:end]) for start, end, kind in told["blocks"]]


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (
            pdf_bytes([PAGE]),
            "pdf",
            [
                ("heading", "Pool rules"),
                ("paragraph", f"{WIDE} swimmers of all ages. Dogs are not allowed on the lawn."),
            ],
        ),
        (
            docx_bytes(),
            "docx",
            [
                ("heading", "Pool rules"),
                ("paragraph", "The pool opened in 1974."),
                ("item", "No running"),
                ("header", "ticket | price"),
                ("row", "day | 6 euros"),
            ],
        ),
        (
            HTML,
            "html",
            [
                ("heading", "Rules"),
                ("paragraph", "The pool opened in 1974. It is deep."),
                ("item", "No dogs"),
                ("header", "ticket | price"),
                ("row", "day | 6 euros"),
                ("code", "code  here"),
            ],
        ),
        (
            MARKDOWN.encode(),
            "markdown",
            [
                ("heading", "Pool"),
                ("paragraph", "The pool opened in 1974."),
                ("item", "No dogs"),
                ("header", "ticket | price"),
                ("row", "day | 6 euros"),
                ("code", "code"),
            ],
        ),
        (
            b"POOL RULES\r\n\r\nThe pool opened\r\nin 1974.\r\n\r\n- No dogs\r\n- No glass\r\n",
            "text",
            [
                ("heading", "POOL RULES"),
                ("paragraph", "The pool opened\nin 1974."),
                ("item", "- No dogs"),
                ("item", "- No glass"),
            ],
        ),
    ],
    ids=["pdf", "docx", "html", "markdown", "text"],
)
def test_a_document_becomes_blocks(
    content: bytes, kind: str, expected: list[tuple[str, str]]
) -> None:
    """Scripts, navigation and marks are gone; tables keep their headers; lines are joined."""
    assert blocks(content, kind) == expected


@pytest.mark.parametrize(
    ("name", "content", "state", "reason"),
    [
        ("locked.pdf", encrypted_pdf("x"), "encrypted", "password"),
        ("scan.pdf", pdf_bytes([[], []]), "no_text", "pages without text: 1-2 (scanned?)"),
        ("broken.pdf", b"%PDF-1.4\ngarbage", "corrupt", "no PDF"),
        ("cut.docx", docx_bytes()[:900], "corrupt", "no DOCX"),
        ("bomb.docx", zip_bomb(60), "too_large", "200 times"),
        ("old.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "unknown_kind", ".docx"),
        ("empty.txt", b"", "no_text", "empty"),
        ("binary.txt", b"a\0b" * 40, "corrupt", "zero bytes"),
        ("picture.png", b"\x89PNG", "unknown_kind", ".pdf"),
        ("empty.html", b"<html><body></body></html>", "no_text", "text"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else "",
)
def test_what_cannot_be_read_has_a_state_and_a_reason(
    tmp_path: Path, name: str, content: bytes, state: str, reason: str
) -> None:
    """The other documents are read all the same."""
    write(tmp_path, name, content)
    (found,) = read_documents([tmp_path])
    assert (found.state, reason in found.reason) == (state, True), found.reason
    assert found.bytes == len(content)
    assert len(found.sha256) == 64
    assert chunks_of([found]) == []


def test_a_bomb_ends_its_process_only(tmp_path: Path) -> None:
    """Memory is limited in the process that unpacks; the next document is read."""
    write(tmp_path, "a.pdf", pdf_bomb(100))
    write(tmp_path, "b.txt", "The pool opened in 1974.")
    limits = ReadLimits(memory_bytes=300 * 2**20, cpu_seconds=20)
    bomb, text = read_documents([tmp_path], limits)
    assert bomb.state in ("too_much_memory", "corrupt"), bomb.reason
    assert bomb.reason
    assert text.state == "read"


def test_a_slow_document_is_ended(tmp_path: Path) -> None:
    """By the clock, whatever its process does."""
    path = write(tmp_path, "a.txt", "The pool opened in 1974.")
    (found,) = read_documents([path], ReadLimits(seconds=0.001))
    assert (found.state, found.reason) == ("too_slow", "it took over 0.001 seconds")


def test_limits_on_files_and_texts(tmp_path: Path) -> None:
    """Nothing is cut: a document that is too long is refused whole."""
    path = write(tmp_path, "a.txt", "word " * 500)
    assert read_documents([path], ReadLimits(file_bytes=100))[0].state == "too_large"
    assert read_documents([path], ReadLimits(text_chars=100))[0].state == "too_large"


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("Die Türen öffnen um zehn Uhr.".encode(), "utf-8"),
        ("Die Türen öffnen um zehn Uhr.".encode("utf-8-sig"), "utf-8-sig"),
        ("Die Türen öffnen um zehn Uhr.".encode("utf-16"), "utf-16"),
    ],
)
def test_the_encoding_is_found_and_told(data: bytes, encoding: str) -> None:
    """A mark comes first, then UTF-8."""
    told = extract(data, "text", 1000)
    assert (told["text"], told["encoding"]) == ("Die Türen öffnen um zehn Uhr.", encoding)


def test_other_encodings_are_declared_or_guessed() -> None:
    """HTML says its own; a text in another one is read as the likeliest."""
    page = '<meta charset="iso-8859-2"><p>Zażółć gęślą jaźń.</p>'.encode("iso-8859-2")
    assert extract(page, "html", 1000)["text"] == "Zażółć gęślą jaźń."
    text = ("Die Türen öffnen täglich um zehn Uhr, außer für Gäste mit Schlüssel. " * 5).strip()
    assert extract(text.encode("cp1252"), "text", 1000)["text"] == text


def test_names_stay_apart_and_pages_are_kept(tmp_path: Path) -> None:
    """Two files of one name are two documents; chunks know their page and their place."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, "rules.txt", f"The pool {folder} opened in 1974.")
    paths = [tmp_path / "a" / "rules.txt", tmp_path / "b" / "rules.txt"]
    assert [one.id for one in read_documents(paths)] == ["rules.txt", "rules.txt (2)"]
    pages = [["The first page tells of the pool."], [], ["The third page tells of the lawn."]]
    book = write(tmp_path, "book.pdf", pdf_bytes(pages))
    (found,) = read_documents([book])
    assert found.notes == ("pages without text: 2",)
    chunks = chunks_of([found], chars=40)
    assert [chunk.page for chunk in chunks] == [1, 3]
    assert all(found.text[c.start : c.end] == c.text for c in chunks)


def test_links_that_lead_out_and_odd_files_are_told(tmp_path: Path) -> None:
    """Somebody else's folder cannot have the reader's own files read; links inside of it may."""
    secret = write(tmp_path, "secret.txt", "The code of the safe is 1234.")
    docs = tmp_path / "docs"
    docs.mkdir()
    write(docs, "rules.txt", "The pool opened in 1974.")
    (docs / "again.txt").symlink_to("rules.txt")
    (docs / "loop.txt").symlink_to("loop.txt")
    (docs / "out.txt").symlink_to(secret)
    (docs / "up").symlink_to(tmp_path)
    os.mkfifo(docs / "pipe.txt")
    found = {one.id: (one.state, one.reason) for one in read_documents([docs])}
    assert found == {
        "again.txt": ("read", ""),
        "loop.txt": ("no_access", "it is no ordinary file"),
        "out.txt": ("no_access", "it is a link that leads out of its folder"),
        "pipe.txt": ("no_access", "it is no ordinary file"),
        "rules.txt": ("read", ""),
    }


def test_a_name_that_is_no_text_is_shown_as_one(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, and signs that steer a terminal: the id can be written anywhere."""
    for name in (b"\xff.txt", b"\xfe.txt", "a\n\x1b[2J\u202e.txt".encode()):
        write(tmp_path, os.fsdecode(name), "The pool opened in 1974.")
    ids = [one.id for one in read_documents([tmp_path])]
    assert ids == ["a\ufffd\ufffd[2J\ufffd.txt", "\ufffd.txt", "\ufffd.txt (2)"]


@pytest.mark.parametrize(
    ("kind", "text", "note"),
    [
        ("html", "<p>Before.</p>" + "<div>" * 1500 + "Inside.", None),
        ("html", "<p>Before.</p>" + "<div>" * 3000 + "Inside.", "nested elements"),
        ("markdown", "Before.\n\n" + ">" * 60 + " Inside.", None),
        ("markdown", "Before.\n\n" + ">" * 3000 + " Inside.", "nested over 100 deep"),
    ],
    ids=["html", "deeper html", "markdown", "deeper markdown"],
)
def test_what_is_nested_too_deep_is_not_left_out_silently(
    kind: str, text: str, note: str | None
) -> None:
    """It is read, or a note says that it is not."""
    told = extract(text.encode(), kind, 100_000)
    assert "Before." in told["text"]
    assert ("Inside." in told["text"]) is (note is None)
    assert (note in told["notes"][0]) if note else told["notes"] == []


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """It is a mistake of the caller, not a state of a document."""
    with pytest.raises(ConfigurationError, match="no file"):
        read_documents([tmp_path / "nothing"])


def test_long_blocks_are_cut_between_sentences(tmp_path: Path) -> None:
    """Every sentence is in one chunk, none is lost."""
    sentences = [f"Sentence number {n} tells of the pool." for n in range(40)]
    path = write(tmp_path, "long.txt", " ".join(sentences))
    (found,) = read_documents([path])
    chunks = chunks_of([found], chars=200)
    assert len(chunks) > 5
    assert " ".join(chunk.text for chunk in chunks) == found.text
    assert all(len(chunk.text) <= 200 for chunk in chunks)


def test_short_lines_of_a_page_are_no_part_of_a_sentence() -> None:
    """A heading above a paragraph would make a nonsense of its first sentence."""
    text = "\n".join(["Opening hours", WIDE, WIDE, "all."])
    assert [kind for _, kind in joined_lines(text)] == ["heading", "paragraph"]

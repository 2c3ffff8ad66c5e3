"""Files of labelled records: their lines, and what is no file of that kind."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from guardrail_bench.labelled_file import lines
from guardrail_service.errors import InputError

LINES = b'{"a": "x\xe2\x80\xa8y"}\n\n{"b": 1}'


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_lines_have_their_numbers_and_end_at_line_feeds_only(name: str, tmp_path: Path) -> None:
    """Blank ones are counted and left out."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(LINES) if path.suffix == ".gz" else LINES)
    first, _, last = LINES.split(b"\n")
    assert list(lines(path)) == [(1, first + b"\n"), (3, last)]


@pytest.mark.parametrize(
    "data", [LINES, gzip.compress(LINES)[:-9], gzip.compress(LINES)[:14] + b"\x00" * 30]
)
def test_what_is_no_gzip_is_named(data: bytes, tmp_path: Path) -> None:
    """Plain, cut off or damaged: one line with the file's name, no traceback."""
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"x\.jsonl\.gz: found \w+; expected gzip"):
        list(lines(path))

"""Reads files of labelled records: JSON lines, gzip or not."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from guardrail_service.errors import InputError


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1.

    A line ends at a line feed only: text may hold other separators.

    Raises:
        InputError: If the file is named .gz and is none, is cut off or damaged.
    """
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        found = type(error).__name__
        raise InputError(f"{path.name}: found {found}; expected gzip, or another ending") from error

"""A file that takes decisions while their database is away. One process at a time uses it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from guardrail_decisions.rows import Row
from guardrail_decisions.texts import KeptText
from guardrail_service.errors import ConfigurationError
from guardrail_service.posix import lock

WHERE = "GUARDRAIL_DECISIONS_SPOOL"


class Prepared(NamedTuple):
    """A decision as it is written: texts are protected already."""

    row: Row
    texts: KeptText


class Spool:
    """Decisions in a file, in order, synchronised with the disk.

    Args:
        path: The file.
        limit: Bytes it may have.

    Raises:
        ConfigurationError: If it cannot be opened, or another process uses it.
    """

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self._limit = limit
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            lock(self._file, WHERE, is_patient=False)
        except BlockingIOError as error:
            found = "a file that another process uses"
            raise ConfigurationError(WHERE, found, "a file of its own") from error
        except OSError as error:
            raise ConfigurationError(WHERE, error.strerror or "no file", "a file") from error
        self.size = os.fstat(self._file).st_size

    def add(self, decisions: Sequence[Prepared]) -> bool:
        """Return whether decisions are on the disk now; none of them is if not all are."""
        lines = [json.dumps([found.row, list(_plain(found.texts))]) + "\n" for found in decisions]
        data = "".join(lines).encode()
        if self.size + len(data) > self._limit:
            return False
        try:
            written = 0
            while written < len(data):
                written += os.write(self._file, data[written:])
            os.fsync(self._file)
        except OSError:
            self._cut(self.size)
            return False
        self.size += len(data)
        return True

    def read(self) -> Iterator[Prepared | None]:
        """Yield what is in the file; None for a line that was not written to its end."""
        with self._path.open("rb") as file:
            for line in file:
                try:
                    row, texts = json.loads(line)
                    yield Prepared(row, KeptText(*texts))
                except (ValueError, TypeError):
                    yield None

    def clear(self) -> None:
        """Forget everything."""
        self._cut(0)
        self.size = 0

    def close(self) -> None:
        """Let another process use the file."""
        os.close(self._file)

    def _cut(self, size: int) -> None:
        os.ftruncate(self._file, size)


def _plain(texts: KeptText) -> tuple[Any, ...]:
    return texts.mode, texts.body, texts.wrapped

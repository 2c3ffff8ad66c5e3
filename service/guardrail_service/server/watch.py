"""Tells when files have changed that a running service reads: policies and keys."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from guardrail_service.errors import raised_at

_LOG = logging.getLogger(__name__)
LOOK_S = 1.0
"""Seconds between two looks, and for which a file that was changed may be half written."""
MOST_BYTES = 64 * 2**20
"""Bytes of one file that are compared; no file that we read is as large."""


class _Seen(NamedTuple):
    """A file as the system describes it. A volume of Kubernetes is switched by a link: `real`."""

    path: str
    real: str
    modified_ns: int
    size: int
    node: int


class FileWatch:
    """Compares files with what they were: first place, time and size, then content.

    A file that was changed a moment ago may be half written: it counts at the next look.

    Args:
        files: Returns those to look at, asked for at every look; missing ones count as well.
    """

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._seen = self._last = self._state()
        self._content = self._digests()

    def changed(self) -> bool:
        """Return whether the files differ from those at the last time that this was true."""
        last, state = self._last, self._state()
        self._last = state
        if state == self._seen or (state != last and _is_young(state)):
            return False
        content = self._digests()
        has_changed = content != self._content
        self._seen, self._content = state, content
        return has_changed

    def _state(self) -> tuple[_Seen, ...]:
        return tuple(_seen(path) for path in self._files())

    def _digests(self) -> tuple[tuple[str, str], ...]:
        return tuple((str(path), _digest(path)) for path in self._files())


def _seen(path: Path) -> _Seen:
    try:
        found = path.stat()
        return _Seen(
            str(path), os.path.realpath(path), found.st_mtime_ns, found.st_size, found.st_ino
        )
    except OSError:
        return _Seen(str(path), "", 0, -1, 0)


def _digest(path: Path) -> str:
    try:
        if not path.is_file():  # a pipe may never answer
            return ""
        with path.open("rb") as file:
            return hashlib.sha256(file.read(MOST_BYTES)).hexdigest()
    except OSError:
        return ""


def _is_young(state: tuple[_Seen, ...]) -> bool:
    now = time.time()
    return any(0 <= now - seen.modified_ns / 1e9 < LOOK_S for seen in state)


class Watcher:
    """Calls what reads files again when they have changed, on a thread of its own.

    Args:
        watch: The files.
        then: Called after a change; what it raises is logged and ends nothing.
        every_s: Seconds between two looks.
    """

    def __init__(
        self, watch: FileWatch, then: Callable[[], object], every_s: float = LOOK_S
    ) -> None:
        self._watch = watch
        self._then = then
        self._every_s = every_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._end.set()
        self._thread.join(5 * LOOK_S)  # a reload that waits for a busy service is left behind

    def _run(self) -> None:
        while not self._end.wait(self._every_s):
            try:
                if self._watch.changed():
                    self._then()
            except Exception as error:  # noqa: BLE001 - a look that fails must not be the last one
                _LOG.error("watch failed: %s at %s", type(error).__name__, raised_at(error))

"""A forked process among several: its settings, its turn to accept, its word to the first one."""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import signal
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from guardrail_service.settings import Limits, Settings

READY = b"ready"
DIVIDED = (
    "concurrent_requests", "requests_per_key", "requests_per_address", "concurrent_streams",
    "streams_per_caller", "connections", "connections_per_caller", "queued_rows",
)  # fmt: skip
"""Limits of the whole service; each process has its part."""


def part_of(settings: Settings, folder: Path, place: int = 0) -> Settings:
    """Return the settings of one process of several: its part of workers, memory and limits.

    Args:
        settings: Of the whole service.
        folder: Has what all share where the settings name no other place: outputs of models, so
            that a passage which one process has read costs the others nothing, and the counts of
            each key's requests.
        place: Of the process: no two may use one spool.
    """
    count = settings.processes
    limits = {name: _part(getattr(settings.limits, name), count) for name in DIVIDED}
    cache = {name: value // count for name, value in settings.cache.model_dump().items()}
    changed = {
        "workers": _part(settings.workers, count),
        "limits": Limits.model_validate(settings.limits.model_dump() | limits),
        "cache": settings.cache.model_copy(update=cache),
        "store": settings.store or folder / "store.db",
    }
    if (spool := spool_of(settings, place)) is not None:
        changed["decisions"] = settings.decisions.model_copy(update={"spool": spool})
    if settings.counters == "memory":
        changed["counters"] = f"file:{folder / 'counters'}"
    return settings.model_copy(update=changed)


def spool_of(settings: Settings, place: int) -> Path | None:
    """Return the spool of the process with a place; the first has the one that is named."""
    named = settings.decisions.spool
    return named.with_name(f"{named.name}.{place}") if named is not None and place else named


def _part(value: int, count: int) -> int:
    return max(1, value // count) if value else 0


class AcceptTurns:
    """The open connections of each process, in memory that all share: who has most accepts last.

    Without it the process that wakes first takes all who wait, and callers who keep their
    connections stay with it.
    """

    _ABSENT = -1

    def __init__(self, places: int) -> None:
        self._counts = mmap.mmap(-1, 4 * places)
        self._mine = 0
        for place in range(places):
            self.leave(place)

    def enter(self, place: int) -> None:
        """Say which place this process has."""
        self._mine = place
        self.note(0)

    def note(self, connections: int) -> None:
        """Say how many connections this process has."""
        struct.pack_into("i", self._counts, 4 * self._mine, connections)

    def leave(self, place: int) -> None:
        """Say that nobody has a place, so that nobody waits for its process."""
        struct.pack_into("i", self._counts, 4 * place, self._ABSENT)

    def is_anothers(self) -> bool:
        """Return whether another process has fewer connections and should take the next."""
        counts = [count for (count,) in struct.iter_unpack("i", self._counts[:])]
        return any(self._ABSENT < count < counts[self._mine] for count in counts)


class ProcessPlace:
    """A forked process's side: its place among the others, and how it talks to the first one."""

    def __init__(
        self, folder: Path, turns: AcceptTurns, number: int, told: int, alive: int
    ) -> None:
        self.turns = turns
        self._folder, self._told = folder, told
        self._metrics: Callable[[], bytes] = bytes
        self._first = os.getppid()
        turns.enter(number)
        threading.Thread(target=_end_with, args=(alive,), name="alive", daemon=True).start()

    def ready(self) -> None:
        """Tell the first process that requests are accepted now."""
        os.write(self._told, READY)

    def say_metrics(self, own: Callable[[], bytes]) -> None:
        """Answer the first process, whenever it asks, with this process's metrics."""
        self._metrics = own
        listening = listen_at(self._folder / str(os.getpid()))
        threading.Thread(
            target=self._answer, args=(listening,), name="metrics", daemon=True
        ).start()

    def _answer(self, listening: socket.socket) -> None:
        while True:
            with contextlib.suppress(OSError):
                asking, _ = listening.accept()
                with asking:
                    asking.sendall(self._metrics())

    def all_metrics(self) -> bytes:
        """Return the metrics of all processes together.

        Raises:
            OSError: If the first process does not answer.
        """
        return read_from(self._folder / "all", 10.0)

    def reload_all(self) -> None:
        """Let every process read the configurations again."""
        if os.getppid() == self._first:  # once that is gone, its number is another's
            os.kill(self._first, signal.SIGHUP)

    def close(self) -> None:
        """Leave the last metrics behind, whole or not at all: what was counted stays counted.

        Nobody reads them when the first process is gone; the last one then takes the folder away.
        """
        with contextlib.suppress(OSError):
            if os.getppid() != self._first:
                self._leave_folder()
                return
            last = self._folder / f"{os.getpid()}.last"
            written = last.with_suffix(".new")
            written.write_bytes(self._metrics())
            written.replace(last)

    def _leave_folder(self) -> None:
        (self._folder / str(os.getpid())).unlink(missing_ok=True)
        left = [int(path.name) for path in self._folder.iterdir() if path.name.isdigit()]
        if not any(map(_is_there, left)):
            shutil.rmtree(self._folder, ignore_errors=True)


def _end_with(alive: int) -> None:
    """Drain and end when the first process is gone: nobody would start or stop this one."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def listen_at(path: Path) -> socket.socket:
    """Return a Unix socket that listens at a path."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen(16)
    return listening


def read_from(path: Path, patience_s: float) -> bytes:
    """Return everything that a Unix socket says until it closes.

    Raises:
        OSError: If it says nothing for so many seconds, or nobody listens there.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(patience_s)
        asking.connect(str(path))
        found = []
        while part := asking.recv(65_536):
            found.append(part)
        return b"".join(found)

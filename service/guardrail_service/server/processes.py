"""Several processes behind one socket: loaded once, forked, watched, replaced, counted together.

The first process loads everything and forks the others, so that the weights of models and the
compiled patterns are in memory once. It serves nothing itself: it starts anew what died, replaces
one after the other when asked (SIGUSR1), adds up metrics, and ends with the last of them. It has
one thread, because a lock that another thread held at a fork would never be released.
"""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import selectors
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from guardrail_service.errors import ServiceError
from guardrail_service.server.metric_totals import Totals
from guardrail_service.settings import Limits, Settings

_LOG = logging.getLogger("guardrail.processes")
READY = b"ready"
LOOK_S = 10.0
"""Seconds between two looks at everybody's metrics, which stand for a process that is killed."""
ASKED_S = 0.5
"""Seconds that a process has to say its metrics."""
PAUSES_S = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Before a process is started anew, by how many died one after the other before they were ready
or within ten seconds."""
SHORT_LIFE_S = 10.0
DIVIDED = (
    "concurrent_requests", "requests_per_key", "requests_per_address", "concurrent_streams",
    "streams_per_caller", "connections", "connections_per_caller", "queued_rows",
)  # fmt: skip
"""Limits of the whole service; each process has its part."""


def part_of(settings: Settings, folder: Path) -> Settings:
    """Return the settings of one process of several: its part of workers, memory and limits.

    Args:
        settings: Of the whole service.
        folder: Has what all share where the settings name no other place: outputs of models, so
            that a passage which one process has read costs the others nothing, and the counts of
            each key's requests.
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
    if settings.counters == "memory":
        changed["counters"] = f"file:{folder / 'counters'}"
    return settings.model_copy(update=changed)


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
        turns.enter(number)
        threading.Thread(target=_end_with, args=(alive,), name="alive", daemon=True).start()

    def ready(self) -> None:
        """Tell the first process that requests are accepted now."""
        os.write(self._told, READY)

    def say_metrics(self, own: Callable[[], bytes]) -> None:
        """Answer the first process, whenever it asks, with this process's metrics."""
        self._metrics = own
        listening = _listen_at(self._folder / str(os.getpid()))
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
        return _read_from(self._folder / "all", 10.0)

    def reload_all(self) -> None:
        """Let every process read the configurations again."""
        os.kill(os.getppid(), signal.SIGHUP)

    def close(self) -> None:
        """Leave the last metrics behind: what was counted stays counted."""
        with contextlib.suppress(OSError):
            (self._folder / f"{os.getpid()}.last").write_bytes(self._metrics())


def _end_with(alive: int) -> None:
    """Drain and end when the first process is gone: nobody would start or stop this one."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)


@dataclass
class _Child:
    pid: int
    place: int
    told: int
    """The end of a pipe that says when it is ready, or why it never will be."""
    began: float
    replaces: int | None
    is_ready: bool = False
    end_by: float | None = None
    """When it is killed, once it was told to end."""
    metrics: str = ""


class Supervisor:
    """The first process: starts, watches, replaces and ends the others.

    Args:
        settings: Of the whole service.
        serve: Serves in a forked process until that is told to end; gets its settings and place.
        on_ready: Called once, when all are ready.
        reload: Reads the configurations again, so that later processes begin with them.
    """

    def __init__(
        self,
        settings: Settings,
        serve: Callable[[Settings, ProcessPlace], None],
        on_ready: Callable[[], None],
        reload: Callable[[], object],
    ) -> None:
        self._settings, self._serve, self._reload = settings, serve, reload
        self._on_ready: Callable[[], None] | None = on_ready
        self._turns = AcceptTurns(2 * settings.processes)
        self._children: dict[int, _Child] = {}
        self._ended = ""
        self._restarts = self._failures = 0
        self._due: list[float] = []
        self._to_replace: list[int] = []
        self._error: str | None = None
        self._kill_at: float | None = None
        self._looked = self._reread = time.monotonic()
        self._came: deque[int] = deque()
        self._on_signal: dict[int, Callable[[], None]] = {
            signal.SIGTERM: self._end,
            signal.SIGINT: self._end,
            signal.SIGHUP: self._read_again,
            signal.SIGUSR1: self._replace_all,
        }

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT.

        Raises:
            ServiceError: If a process cannot begin to serve at the first start.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="rag-guardrail-"))
        self._alive, self._held = os.pipe()
        with selectors.DefaultSelector() as self._selector, self._signals():
            self._asked = _listen_at(self._folder / "all")
            self._selector.register(self._asked, selectors.EVENT_READ, self._say_all)
            try:
                for _ in range(self._settings.processes):
                    self._start()
                while self._children or self._due:
                    for key, _ in self._selector.select(self._patience()):
                        key.data()
                    self._look_after()
            finally:
                self._asked.close()
                shutil.rmtree(self._folder, ignore_errors=True)
        if self._error is not None:
            raise ServiceError(self._error)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        woken, self._wake = os.pipe()
        for end in (woken, self._wake):
            os.set_blocking(end, False)
        self._selector.register(woken, selectors.EVENT_READ, lambda: os.read(woken, 4096))
        before = {
            number: signal.signal(number, lambda came, _: self._came.append(came))
            for number in (*self._on_signal, signal.SIGCHLD)
        }
        woken_before = signal.set_wakeup_fd(self._wake)
        try:
            yield
        finally:
            signal.set_wakeup_fd(woken_before)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(woken)
            os.close(self._wake)

    def _start(self, replaces: int | None = None) -> None:
        taken = {child.place for child in self._children.values()}
        place = next(n for n in range(2 * self._settings.processes) if n not in taken)
        told, tell = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            os.close(told)
            self._become(place, tell)
        os.close(tell)
        child = _Child(pid, place, told, time.monotonic(), replaces)
        self._children[pid] = child
        self._selector.register(told, selectors.EVENT_READ, lambda: self._hear(child))

    def _become(self, place: int, tell: int) -> NoReturn:
        """Serve, in the forked process, and end it: nothing of the first process runs here."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            for number in (signal.SIGHUP, signal.SIGUSR1):  # the service handles SIGHUP later on
                signal.signal(number, signal.SIG_IGN)
            self._selector.close()
            self._asked.close()
            os.close(self._held)
            for child in self._children.values():
                if child.told >= 0:
                    os.close(child.told)
            own = ProcessPlace(self._folder, self._turns, place, tell, self._alive)
            self._serve(part_of(self._settings, self._folder), own)
            own.close()
            status = 0
        except ServiceError as error:
            with contextlib.suppress(OSError):
                os.write(tell, str(error).encode()[:4096])
        except BaseException:  # noqa: BLE001 - whatever it is, the fork must not go on as its parent
            _LOG.exception("a process ended by a fault")
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def _hear(self, child: _Child) -> None:
        said = os.read(child.told, 4096)
        self._selector.unregister(child.told)
        os.close(child.told)
        child.told = -1
        if said != READY:
            if said and self._on_ready is not None and self._error is None:
                self._error = said.decode()
            elif said:
                _LOG.error("a process cannot serve: %s", said.decode())
            return
        child.is_ready = True
        if self._reread > child.began:
            os.kill(child.pid, signal.SIGHUP)
        if child.replaces in self._children:
            self._stop(self._children[child.replaces])
        child.replaces = None
        if self._on_ready is not None and all(c.is_ready for c in self._children.values()):
            self._on_ready()
            self._on_ready = None

    def _look_after(self) -> None:
        """Do what is due: heed signals, bury, start anew, replace, look at metrics, kill."""
        while self._came:
            self._on_signal.get(self._came.popleft(), lambda: None)()
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                self._bury(self._children.pop(found[0], None), found[1])
        now = time.monotonic()
        if self._error is not None and self._kill_at is None:
            self._end()
        for due in [due for due in self._due if due <= now]:
            self._due.remove(due)
            self._start()
        if self._to_replace and not any(c.replaces or c.end_by for c in self._children.values()):
            pid = self._to_replace.pop(0)
            if pid in self._children:
                self._start(replaces=pid)
        if now - self._looked > LOOK_S:
            self._looked = now
            for child in self._children.values():
                self._ask(child)
        for child in self._children.values():
            if min(child.end_by or now, self._kill_at or now) < now:
                os.kill(child.pid, signal.SIGKILL)

    def _patience(self) -> float:
        due = [LOOK_S, *(due - time.monotonic() for due in self._due)]
        if self._kill_at is not None:
            due.append(self._kill_at - time.monotonic())
        return max(0.0, min(due))

    def _bury(self, child: _Child | None, status: int) -> None:
        if child is None:
            return
        if child.told >= 0:
            self._hear(child)
        self._turns.leave(child.place)
        last = self._folder / f"{child.pid}.last"
        with contextlib.suppress(OSError):
            child.metrics = last.read_text("utf-8")
            last.unlink()
        (self._folder / str(child.pid)).unlink(missing_ok=True)
        if child.metrics:
            self._ended = Totals([], [self._ended, child.metrics]).text()
        if self._kill_at is not None or child.end_by is not None:
            return
        code = os.waitstatus_to_exitcode(status)
        if self._on_ready is not None and not child.is_ready:
            self._error = self._error or f"a process ended with {code} before it was ready"
            return
        _LOG.error("process %d ended with %d and is started anew", child.pid, code)
        if child.replaces is not None and not child.is_ready:
            self._to_replace.clear()  # the one it was to replace goes on
            return
        if heir := next((c for c in self._children.values() if c.replaces == child.pid), None):
            heir.replaces = None  # one that starts already takes its place
            return
        is_short = not child.is_ready or time.monotonic() - child.began < SHORT_LIFE_S
        self._failures = self._failures + 1 if is_short else 0
        self._restarts += 1
        pause = PAUSES_S[min(self._failures, len(PAUSES_S) - 1)]
        self._due.append(time.monotonic() + pause)

    def _stop(self, child: _Child) -> None:
        """Let a process that another one replaces finish what has reached it."""
        child.end_by = time.monotonic() + self._settings.drain_s + 5.0
        self._ask(child)
        os.kill(child.pid, signal.SIGUSR2)

    def _end(self) -> None:
        """Let all finish what they are doing; asked a second time, wait for nobody."""
        self._due.clear()
        self._to_replace.clear()
        is_first = self._kill_at is None
        self._kill_at = time.monotonic() + (self._settings.drain_s + 5.0 if is_first else 1.0)
        self._signal_all(signal.SIGTERM if is_first else signal.SIGINT)

    def _read_again(self) -> None:
        self._reread = time.monotonic()
        self._reload()
        self._signal_all(signal.SIGHUP)

    def _signal_all(self, number: int) -> None:
        for child in self._children.values():
            os.kill(child.pid, number)

    def _replace_all(self) -> None:
        self._to_replace = [pid for pid, c in self._children.items() if c.end_by is None]

    def _ask(self, child: _Child) -> None:
        with contextlib.suppress(OSError):
            child.metrics = _read_from(self._folder / str(child.pid), ASKED_S).decode()

    def _say_all(self) -> None:
        """Answer one process that asks for the metrics of all."""
        with contextlib.suppress(OSError):
            asking, _ = self._asked.accept()
            with asking:
                asking.settimeout(ASKED_S)
                asking.sendall(self._totals().encode())

    def _totals(self) -> str:
        for child in self._children.values():
            self._ask(child)
        serving = sum(child.is_ready for child in self._children.values())
        own = (
            "# HELP guardrail_processes Processes that serve.\n"
            f"# TYPE guardrail_processes gauge\nguardrail_processes {serving}\n"
            "# HELP guardrail_process_restarts_total Processes started anew because one died.\n"
            "# TYPE guardrail_process_restarts_total counter\n"
            f"guardrail_process_restarts_total {self._restarts}\n"
        )
        living = [child.metrics for child in self._children.values() if child.metrics]
        return Totals([*living, own], [self._ended]).text()


def _listen_at(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen(16)
    return listening


def _read_from(path: Path, patience_s: float) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(patience_s)
        asking.connect(str(path))
        found = []
        while part := asking.recv(65_536):
            found.append(part)
        return b"".join(found)

"""Several processes behind one socket: loaded once, forked, watched, replaced, counted together.

The first process loads everything and forks the others, so that the weights of models and the
compiled patterns are in memory once. It serves nothing itself: it starts anew what died, replaces
one after the other when asked (SIGUSR1), adds up metrics, and ends with the last of them. It has
one thread, because a lock that another thread held at a fork would never be released.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import selectors
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from guardrail_service.errors import ServiceError
from guardrail_service.server.metric_totals import Totals
from guardrail_service.server.process_place import (
    READY,
    AcceptTurns,
    ProcessPlace,
    listen_at,
    part_of,
    read_from,
    spool_of,
)
from guardrail_service.settings import Settings

_LOG = logging.getLogger("guardrail.processes")
LOOK_S = 10.0
"""Seconds between two looks at everybody's metrics, which stand for a process that is killed."""
ASKED_S = 0.5
"""Seconds that a process has to say its metrics."""
PAUSES_S = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Before a process is started anew, by how many died one after the other before they were ready
or within ten seconds."""
SHORT_LIFE_S = 10.0
GRACE_S = 5.0
"""Seconds after the time to drain in which a process has to end; then it is killed."""
START_S = 60.0
"""Seconds that a process has to get ready, once the service serves; then it is killed. Models and
patterns are loaded by then: what takes long is a lock, a pipe or a database that does not answer.
"""


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
    is_killed: bool = False
    metrics: str = ""


class Supervisor:
    """The first process: starts, watches, replaces and ends the others.

    Args:
        settings: Of the whole service.
        serve: Serves in a forked process until that is told to end; gets its settings and place.
        on_ready: Called once, when all are ready.
        reload: Reads the configurations again, so that later processes begin with them.
        renew: The same, if their files are watched and have changed.
    """

    def __init__(
        self,
        settings: Settings,
        serve: Callable[[Settings, ProcessPlace], None],
        on_ready: Callable[[], None],
        reload: Callable[[], object],
        renew: Callable[[], object],
    ) -> None:
        self._settings, self._serve = settings, serve
        self._reload, self._renew = reload, renew
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
        self._came: set[int] = set()
        self._on_signal: dict[int, Callable[[], None]] = {  # the first goes first
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
            self._asked = listen_at(self._folder / "all")
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
            number: signal.signal(number, lambda came, _: self._came.add(came))
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
        place = self._free_place()
        if self._on_ready is None:
            self._renew()
        told = tell = -1
        pid: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        held = signal.pthread_sigmask(signal.SIG_BLOCK, self._on_signal)
        try:
            told, tell = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(told)
                self._become(place, tell, held)
        except OSError as error:
            self._could_not_start(error, replaces)
            return
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
            for end in (tell, told) if pid is None else (tell,):
                if end >= 0:
                    os.close(end)
        child = _Child(pid, place, told, time.monotonic(), replaces)
        self._children[pid] = child
        self._selector.register(told, selectors.EVENT_READ, lambda: self._hear(child))

    def _free_place(self) -> int:
        """Return a place that nobody has, first one whose spool still has decisions."""
        taken = {child.place for child in self._children.values()}
        free = [n for n in range(2 * self._settings.processes) if n not in taken]
        return next(filter(self._has_spooled, free), free[0])

    def _has_spooled(self, place: int) -> bool:
        spool = spool_of(self._settings, place)
        with contextlib.suppress(OSError):
            return spool is not None and spool.stat().st_size > 0
        return False

    def _could_not_start(self, error: OSError, replaces: int | None) -> None:
        """Go on with those that serve; at the first start there is nothing to go on with."""
        found = error.strerror or type(error).__name__
        if self._on_ready is not None:
            self._error = f"a process cannot be started: {found}"
        elif replaces is not None:
            self._to_replace.clear()
            _LOG.error("a process cannot be started (%s); those that serve go on", found)
        else:
            self._due.append(time.monotonic() + PAUSES_S[-1])
            _LOG.error("a process cannot be started (%s); the next try is in 30 s", found)

    def _become(self, place: int, tell: int, mask: Collection[int]) -> NoReturn:
        """Serve, in the forked process, and end it: nothing of the first process runs here."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            for number in (signal.SIGHUP, signal.SIGUSR1):  # the service handles SIGHUP later on
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._selector.close()
            self._asked.close()
            os.close(self._held)
            for child in self._children.values():
                if child.told >= 0:
                    os.close(child.told)
            own = ProcessPlace(self._folder, self._turns, place, tell, self._alive)
            self._serve(part_of(self._settings, self._folder, place), own)
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
        for number, heed in self._on_signal.items():
            if number in self._came:  # many of a kind that came meanwhile are one
                self._came.discard(number)
                heed()
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
            if self._last_moment(child) <= now and not child.is_killed:
                self._kill(child)

    def _last_moment(self, child: _Child) -> float:
        """Return when a process is killed if it still runs; for ever ahead where it may go on."""
        ends = [end for end in (child.end_by, self._kill_at) if end is not None]
        if not child.is_ready and self._on_ready is None:
            ends.append(child.began + START_S)
        return min(ends, default=math.inf)

    def _kill(self, child: _Child) -> None:
        child.is_killed = True
        if child.end_by is None and self._kill_at is None:
            _LOG.error("process %d was not ready in %d s and is killed", child.pid, START_S)
        os.kill(child.pid, signal.SIGKILL)

    def _patience(self) -> float:
        """Return the seconds until something is due."""
        living = [c for c in self._children.values() if not c.is_killed]
        due = min([*self._due, *map(self._last_moment, living)], default=math.inf)
        return max(0.0, min(LOOK_S, due - time.monotonic()))

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
        if child.replaces is not None and not child.is_ready:
            self._to_replace.clear()
            found = "process %d ended with %d before it was ready; those it should replace go on"
            _LOG.error(found, child.pid, code)
            return
        _LOG.error("process %d ended with %d and is started anew", child.pid, code)
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
        child.end_by = time.monotonic() + self._settings.drain_s + GRACE_S
        self._ask(child)
        os.kill(child.pid, signal.SIGUSR2)

    def _end(self) -> None:
        """Let all finish what they are doing; asked a second time, wait for nobody."""
        self._due.clear()
        self._to_replace.clear()
        is_first = self._kill_at is None
        latest = time.monotonic() + (self._settings.drain_s + GRACE_S if is_first else 1.0)
        self._kill_at = min(self._kill_at or latest, latest)
        self._signal_all(signal.SIGTERM if is_first else signal.SIGINT)

    def _read_again(self) -> None:
        if self._kill_at is not None:
            return
        self._reread = time.monotonic()
        self._reload()
        self._signal_all(signal.SIGHUP)

    def _signal_all(self, number: int) -> None:
        for child in self._children.values():
            os.kill(child.pid, number)

    def _replace_all(self) -> None:
        if self._kill_at is not None:
            return
        self._read_again()
        self._to_replace = [pid for pid, c in self._children.items() if c.end_by is None]

    def _ask(self, child: _Child) -> None:
        with contextlib.suppress(OSError):
            said = read_from(self._folder / str(child.pid), ASKED_S).decode()
            if said.endswith("\n"):  # it may have been killed in the middle
                child.metrics = said

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

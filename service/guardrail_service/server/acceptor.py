"""Accepts connections: all that wait at once, those that ask for health first, the rest in turn.

libuv accepts one connection in each round of the event loop. A probe behind five hundred requests
waited for five hundred rounds, each of which read and answered requests of others.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable

from guardrail_service.server.connections import Places

AT_ONCE = 64
"""Connections accepted in one round: about a millisecond."""
IN_A_ROUND = 4
"""Those that have sent a request and may begin in one round: as many are read in each round."""
YIELD_S = 0.005
"""For so long another process may take who waits, where there are several and it has fewer."""
LEAST_WAITING = 64
"""So many may wait even when all connections are taken: some may ask for health."""
PAUSE_S = 0.1
"""Until the next try, when the system lets nobody in."""
_HEALTH = tuple(
    f"{method} {path}".encode() for method in ("GET", "HEAD") for path in ("/healthz", "/readyz")
)


class Acceptor:
    """Takes what a socket listens for; uvicorn closes it like a server. Needs a running loop.

    Args:
        listening: A socket that listens.
        protocol: Makes the protocol of one connection.
        tls: How connections are encrypted; None: they are not. Then nobody can be told apart here.
        places: Those of the process; no more wait than there are places left.
        is_anothers: Says whether another process should accept; None: there is no other.
    """

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
        places: Places,
        is_anothers: Callable[[], bool] | None = None,
    ) -> None:
        self._listening = listening
        self._protocol = protocol
        self._tls = tls
        self._places = places
        self._is_anothers = is_anothers
        self._at_once = AT_ONCE if is_anothers is None else IN_A_ROUND
        self._loop = asyncio.get_running_loop()
        self._waiting = deque[socket.socket]()
        self._beginning = set[asyncio.Task[None]]()
        self._spare: int | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._has_yielded = False
        listening.setblocking(False)
        self._go_on()

    def leave_to_others(self) -> None:
        """Accept nobody any more; those who have been accepted begin in their turn."""
        self._stop()

    def close(self) -> None:
        """Accept nobody any more, and drop those who wait."""
        self._stop()
        while self._waiting:
            self._waiting.popleft().close()
        if self._spare is not None:
            os.close(self._spare)

    async def wait_closed(self) -> None:
        """Return at once: connections that have begun are the server's."""

    def _go_on(self) -> None:
        if self._spare is None:
            try:
                self._spare = os.open(os.devnull, os.O_RDONLY)
            except OSError:
                self._rest()
                return
        self._loop.add_reader(self._listening, self._accept)

    def _stop(self) -> None:
        self._loop.remove_reader(self._listening)
        if self._pause is not None:
            self._pause.cancel()

    def _rest(self, seconds: float = PAUSE_S) -> None:
        self._stop()
        self._pause = self._loop.call_later(seconds, self._go_on)

    def _accept(self) -> None:
        """Accept who waits, and let some begin; those who have sent nothing yet cost nothing."""
        if self._is_anothers is not None and self._is_anothers() and not self._has_yielded:
            self._has_yielded = True
            self._rest(YIELD_S)
            return
        self._has_yielded = False
        is_begun = bool(self._waiting)
        most = max(LEAST_WAITING, self._places.left())
        try:
            for _ in range(min(self._at_once, most - len(self._waiting))):
                connection, _ = self._listening.accept()
                if self._is_urgent(connection):
                    self._begin(connection)
                else:
                    self._waiting.append(connection)
        except (BlockingIOError, ConnectionAbortedError, InterruptedError):
            pass
        except OSError:
            self._places.note("open_files")
            self._shed()
        if not is_begun:
            self._in_turn()

    def _is_urgent(self, connection: socket.socket) -> bool:
        """Return whether a connection asks for health, or does not yet say for what."""
        connection.setblocking(False)
        if self._tls is not None:
            return False
        try:
            return connection.recv(16, socket.MSG_PEEK).startswith(_HEALTH)
        except OSError:  # nothing has come, or its client has left
            return True

    def _in_turn(self) -> None:
        for _ in range(min(IN_A_ROUND, len(self._waiting))):
            self._begin(self._waiting.popleft())
        if self._waiting:
            self._loop.call_soon(self._in_turn)

    def _begin(self, connection: socket.socket) -> None:
        task = self._loop.create_task(self._connect(connection))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection, ssl=self._tls)
        except OSError:  # it has left, or does not speak TLS
            connection.close()

    def _shed(self) -> None:
        """Close who waits behind the last open file, or the loop would be woken for ever."""
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        try:
            for _ in range(AT_ONCE):
                self._listening.accept()[0].close()
        except OSError:
            pass
        self._rest()

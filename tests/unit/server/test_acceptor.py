"""Who is let in first, and what happens when nobody can be, over real sockets and both loops."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from guardrail_service.server import acceptor
from guardrail_service.server.acceptor import IN_A_ROUND, LEAST_WAITING, Acceptor
from guardrail_service.server.connections import Places
from guardrail_service.server.refusals import refusals
from guardrail_service.settings import Limits

PATIENCE_S = 60.0
HEALTH = b"GET /healthz HTTP/1.1\r\n\r\n"
CHECK = b"POST /v1/check HTTP/1.1\r\n\r\n"
Listen = Callable[[], socket.socket]


class Noted(asyncio.Protocol):
    """Notes what is received by whom, in order, and whether small parts leave at once."""

    def __init__(self, received: list[bytes], options: list[int]) -> None:
        self._received = received
        self._options = options

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Look at the socket."""
        own = transport.get_extra_info("socket")
        self._options.append(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Note it, and end."""
        self._received.append(data)
        self._transport.close()


class Scene:
    """An acceptor at work, with those who came before it began."""

    def __init__(self, limits: Limits) -> None:
        self.refused = refusals()
        self.received: list[bytes] = []
        self.options: list[int] = []
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.clients: list[socket.socket] = []
        self._places = Places(limits, self.refused)

    def comes(self, sent: bytes) -> socket.socket:
        """Let a client connect and send something."""
        client = socket.create_connection(self.listening.getsockname(), PATIENCE_S)
        client.sendall(sent)
        self.clients.append(client)
        return client

    def accept(self) -> Acceptor:
        """Begin to accept."""
        return Acceptor(self.listening, self._noted, None, self._places)

    def _noted(self) -> Noted:
        return Noted(self.received, self.options)

    async def until(self, count: int) -> None:
        """Return when so many have been heard."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.received) < count:  # noqa: ASYNC110 - nothing else happens meanwhile
                await asyncio.sleep(0.001)

    def close(self) -> None:
        """Close every socket."""
        for each in (self.listening, *self.clients):
            each.close()


Run = Callable[[Callable[[Scene], Awaitable[None]]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a scene in a loop of either kind."""

    def runs(play: Callable[[Scene], Awaitable[None]], limits: Limits | None = None) -> None:
        scene = Scene(limits or Limits())

        async def whole() -> None:
            await play(scene)

        try:
            with asyncio.Runner(loop_factory=request.param) as runner:
                runner.run(whole())
        finally:
            scene.close()

    return runs


def test_health_comes_before_those_who_came_earlier(run: Run) -> None:
    """Behind a crowd that has sent requests it is among the first that are heard."""

    async def play(scene: Scene) -> None:
        for _ in range(50):
            scene.comes(CHECK)
        scene.comes(HEALTH)
        scene.comes(HEALTH.replace(b"GET", b"HEAD"))
        accepting = scene.accept()
        await scene.until(52)
        accepting.close()
        first = scene.received[: 4 * IN_A_ROUND]
        assert sum(b"/healthz" in data for data in first) == 2
        if isinstance(asyncio.get_running_loop(), uvloop.Loop):
            assert scene.options == [1] * 52

    run(play)


def test_who_sends_late_is_heard_late(run: Run) -> None:
    """A connection on which nothing has come stands in nobody's way."""

    async def play(scene: Scene) -> None:
        silent = scene.comes(b"")
        scene.comes(CHECK)
        accepting = scene.accept()
        await scene.until(1)
        silent.sendall(HEALTH)
        await scene.until(2)
        accepting.close()
        assert scene.received == [CHECK, HEALTH]

    run(play)


def test_no_more_wait_than_there_are_places(run: Run) -> None:
    """The others stay with the system until somebody begins; nobody is lost."""
    most = 0

    async def play(scene: Scene) -> None:
        nonlocal most
        for _ in range(3 * LEAST_WAITING):
            scene.comes(CHECK)
        accepting = scene.accept()
        while len(scene.received) < 3 * LEAST_WAITING:
            most = max(most, len(accepting._waiting))
            await asyncio.sleep(0)
        accepting.close()

    run(play, Limits(connections=1, connections_per_caller=1))  # type: ignore[call-arg]
    assert 0 < most <= LEAST_WAITING


def test_without_open_files_those_who_wait_are_closed_and_later_ones_served(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted, and the loop is not woken again and again meanwhile."""

    async def play(scene: Scene) -> None:
        monkeypatch.setattr(acceptor, "PAUSE_S", 0.02)
        scene.comes(CHECK)
        accepting = scene.accept()
        await scene.until(1)
        real, calls = scene.listening, 0

        class Full:
            def accept(self) -> Any:
                nonlocal calls
                calls += 1
                if calls == 1:
                    raise OSError(errno.EMFILE, "Too many open files")
                return real.accept()

            def fileno(self) -> int:
                return real.fileno()

        accepting._listening = Full()  # type: ignore[assignment]
        shed = scene.comes(CHECK)
        assert await asyncio.to_thread(_reads, shed) == b""
        scene.comes(HEALTH)
        await scene.until(2)
        accepting.close()
        (counted,) = [
            sample.value
            for metric in scene.refused.collect()
            for sample in metric.samples
            if sample.labels.get("reason") == "open_files" and sample.name.endswith("_total")
        ]
        assert counted == 1

    run(play)


def _reads(client: socket.socket) -> bytes:
    try:
        return client.recv(1)
    except ConnectionResetError:
        return b""


def test_closing_drops_those_who_wait(run: Run) -> None:
    """They are told at once, instead of at their own time-out."""

    async def play(scene: Scene) -> None:
        clients = [scene.comes(CHECK) for _ in range(3 * IN_A_ROUND)]
        accepting = scene.accept()
        accepting._accept()
        accepting.close()
        await accepting.wait_closed()
        ends = [await asyncio.to_thread(_reads, client) for client in clients]
        assert ends == [b""] * len(clients)

    run(play)

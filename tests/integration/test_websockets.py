"""WebSockets of a real host, read by a real client: uvicorn, `websockets`, a real guard."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Close as CloseFrame
from websockets.sync.client import ClientConnection, connect

import guardrail_client as gc
from guardrail_client.middleware import FALLBACK, OUTAGE, GuardrailMiddleware, Route
from tests.integration.conftest import PATIENCE_S, Served, running
from tests.integration.hosts import CLEAN, PASSAGES, SAYS, SECRET, SEEN, closing, pieces_of, serving
from tests.integration.test_middleware import REDACTED, policy


async def chat(socket: WebSocket) -> None:
    """Answer one question after the other, piece by piece, until the reader leaves."""
    await socket.accept("chat" if "chat" in socket.scope["subprotocols"] else None)
    async for message in socket.iter_json():
        socket.scope["guardrail"]["contexts"] = PASSAGES
        if message["say"] == "bytes":
            await socket.send_bytes(SECRET.encode())
        for piece in pieces_of(SAYS.get(message["say"], "")):
            await socket.send_json({"type": "token", "delta": piece})
        await socket.send_json({"type": "end"})


async def plain(socket: WebSocket) -> None:
    """Answer one question in plain text and leave."""
    await socket.accept()
    for piece in pieces_of(SAYS[await socket.receive_text()]):
        await socket.send_text(piece)


async def paced(socket: WebSocket) -> None:
    """Write the second half when the reader has seen something of the first."""
    await socket.accept()
    await socket.send_text(CLEAN + " ")
    assert await asyncio.to_thread(SEEN.wait, PATIENCE_S)
    await socket.send_text(CLEAN)
    await socket.close(3000)


@pytest.fixture(scope="module")
def service(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One guard for all."""
    config = policy(tmp_path_factory.mktemp("policy"))
    with running("--port", "0", "--pack", tiny, "--config", config) as served, served.client():
        yield served


@contextmanager
def hosted(guard: str, **settings: Any) -> Iterator[str]:
    """Serve the guarded host and yield its address."""
    client = gc.AsyncGuardrailClient(guard, max_retries=0)
    settings = {"timeout": PATIENCE_S, "question": None, **settings}
    sockets = [WebSocketRoute(f"/{f.__name__}", f) for f in (chat, plain, paced)]
    app = Starlette(routes=sockets, lifespan=closing(client.close))
    routes = [
        Route("/chat", **{"websocket": "json:/delta", **settings}),
        Route("/*", **{"websocket": "text", **settings}),
    ]
    with serving(GuardrailMiddleware(app, client, routes)) as url:
        yield url.replace("http", "ws")


@pytest.fixture(scope="module")
def host(service: Served) -> Iterator[str]:
    """The host with default settings."""
    with hosted(service.address) as url:
        yield url


def opened(url: str, **more: Any) -> ClientConnection:
    """Return a connection."""
    return connect(url, open_timeout=PATIENCE_S, close_timeout=PATIENCE_S, **more)


def answer(socket: ClientConnection, say: str) -> list[dict[str, Any]]:
    """Return the frames that answer a question, up to the last."""
    socket.send(json.dumps({"say": say}))
    frames: list[dict[str, Any]] = []
    while not frames or (frames[-1].get("type") != "end" and "guardrail" not in frames[-1]):
        frames.append(json.loads(socket.recv(PATIENCE_S)))
    return frames


def text_of(frames: list[dict[str, Any]]) -> str:
    """Return what a reader shows."""
    return "".join(frame.get("delta", "") for frame in frames)


def rest_of(socket: ClientConnection) -> tuple[str, int, str]:
    """Return the frames up to the end, joined, and how the socket was closed."""
    frames = []
    while True:
        try:
            frames.append(str(socket.recv(PATIENCE_S)))
        except ConnectionClosed as error:
            said = error.rcvd or CloseFrame(1006, "")
            return "".join(frames), said.code, said.reason


def test_a_chat_goes_on_until_an_answer_is_stopped(host: str) -> None:
    """Answers as they were written, redacted, and stopped; each whole before the next question."""
    with opened(f"{host}/chat", subprotocols=["chat"]) as socket:
        assert socket.response
        assert socket.response.headers["x-guardrail-decision"] == "streaming"
        assert socket.subprotocol == "chat"
        assert text_of(answer(socket, "clean")) == CLEAN
        assert text_of(answer(socket, "leak")) == REDACTED
        *_, fallback, last = answer(socket, "secret")
        assert fallback["delta"] == FALLBACK
        assert last["guardrail"]["reason"] == "blocked"
        _, code, reason = rest_of(socket)
        assert (code, json.loads(reason)) == (1008, last["guardrail"])


def test_a_binary_frame_ends_the_socket(host: str) -> None:
    """Nobody reads it."""
    with opened(f"{host}/chat") as socket:
        *_, fallback, last = answer(socket, "bytes")
        assert (fallback["delta"], last["guardrail"]["reason"]) == (OUTAGE, "outage")
        assert rest_of(socket)[1] == 1013


@pytest.mark.parametrize(
    ("say", "text", "code"),
    [("clean", CLEAN, 1006), ("leak", REDACTED, 1006), ("secret", FALLBACK, 1008)],
)
def test_plain_text_is_sent_to_its_end_when_the_application_returns(
    say: str, text: str, code: int, host: str
) -> None:
    """The server drops the connection then; what was held has left before."""
    with opened(f"{host}/plain") as socket:
        socket.send(say)
        found, how, _ = rest_of(socket)
    assert (found[-len(text) :], how) == (text, code)
    assert "AKIA" not in found


def test_a_socket_stays_a_stream(host: str) -> None:
    """The beginning arrives before the rest of the answer is written."""
    SEEN.clear()
    with opened(f"{host}/paced") as socket:
        first = str(socket.recv(PATIENCE_S))
        SEEN.set()
        rest, code, _ = rest_of(socket)
    assert (first + rest, code) == (f"{CLEAN} {CLEAN}", 3000)


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_a_guard_that_is_down(mode: Any) -> None:
    """Closed replaces; shadow changes nothing."""
    with hosted("http://127.0.0.1:1", mode=mode) as url, opened(f"{url}/plain") as socket:
        socket.send("clean")
        found, code, _ = rest_of(socket)
    assert (found, code) == ((OUTAGE, 1013) if mode == "enforce" else (CLEAN, 1006))


def test_what_nobody_reads_is_refused_or_passes(service: Served) -> None:
    """Before it is opened; or as it is."""
    refused = hosted(service.address, websocket=None)
    with refused as url, pytest.raises(InvalidStatus, match="403"):
        opened(f"{url}/plain")
    with hosted(service.address, websocket="unchecked") as url, opened(f"{url}/plain") as socket:
        socket.send("secret")
        assert rest_of(socket)[:2] == (SECRET, 1006)

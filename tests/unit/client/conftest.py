"""A scripted HTTP server with real sockets, a clock that nobody waits for, and one valid reply."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import guardrail_client as gc

Step = Callable[["Handler"], None]
PATIENCE_S = 60
"""Budget of calls over real sockets that must not run out of it, however busy the machine is."""


@pytest.fixture
def anyio_backend() -> str:
    """Run coroutine tests on asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GUARDRAIL_URL", raising=False)
    monkeypatch.delenv("GUARDRAIL_API_KEY", raising=False)


def make_verdict() -> dict[str, Any]:
    """Return a reply with one of everything the contract names."""
    return {
        "request_id": "r-1",
        "decision": "flag",
        "action": "redact",
        "summary": "Not shown as it is: hallucination, pii.",
        "flagged": ["pii", "hallucination"],
        "status": "partial",
        "calibrated": True,
        "policy": {"name": "default", "version": "3", "sha256": "ab12"},
        "detectors": {
            "hallucination": {
                "state": "evaluated",
                "reason": None,
                "flagged": True,
                "action": "redact",
                "explanation": "Characters 0 to 41 ...",
                "metrics": {
                    "hallucination": {
                        "score": 0.12,
                        "threshold": 0.5,
                        "direction": "higher_is_better",
                        "flagged": True,
                        "calibrated": True,
                    }
                },
                "spans": [
                    {
                        "start": 0,
                        "end": 41,
                        "label": "not_mentioned",
                        "score": 0.12,
                        "metric": "hallucination",
                        "evidence": [{"context": 1, "start": 10, "end": 80, "score": 0.12}],
                        "attributes": {"windows": 3},
                    }
                ],
                "coverage": {"answer_chars": [812, 812], "context_chars": [5120, 6000]},
                "latency_ms": 21.4,
            },
            "toxicity": {
                "state": "not_evaluated",
                "reason": "deadline",
                "flagged": False,
                "metrics": {},
            },
        },
        "redacted_answer": "[redacted]",
        "timings_ms": {"queue": 0.4, "tokenize": 0.9, "inference": 24.0, "total": 27.1},
    }


@pytest.fixture
def verdict() -> dict[str, Any]:
    """Return a fresh valid reply that a test may damage."""
    return make_verdict()


@dataclass
class FakeClock:
    """A monotonic clock that moves when told, and by `step` each time it is read."""

    now: float = 1000.0
    step: float = 0.0
    sleeps: list[float] = field(default_factory=list)
    on_read: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        """Return the time."""
        self.now += self.step
        self.on_read()
        return self.now

    def sleep(self, seconds: float) -> None:
        """Pretend to wait."""
        self.sleeps.append(seconds)
        self.now += seconds

    async def async_sleep(self, seconds: float) -> None:
        """Pretend to wait in a coroutine."""
        self.sleep(seconds)


@pytest.fixture
def clock() -> FakeClock:
    """Return a clock at rest."""
    return FakeClock()


@pytest.fixture
def use_clock() -> Callable[..., Any]:
    """Return a function that puts a fake clock, no sleeping and no jitter into a client."""

    def put(client: Any, clock: FakeClock) -> Any:
        asynchronous = isinstance(client, gc.AsyncGuardrailClient)
        client._clock = clock
        client._sleep = clock.async_sleep if asynchronous else clock.sleep
        client._jitter = lambda: 1.0
        return client

    return put


class Handler(BaseHTTPRequestHandler):
    """Plays the next step of the server's script for each request."""

    server: ScriptedServer

    def handle_any(self) -> None:
        """Record the request, then play a step."""
        length = int(self.headers.get("Content-Length") or 0)
        self.server.seen.append((self.path, dict(self.headers), self.rfile.read(length)))
        self.server.script.pop(0)(self)

    do_GET = do_POST = handle_any  # noqa: N815 - names http.server looks for

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send a whole reply."""
        self.begin(status, len(body), **headers)
        self.wfile.write(body)

    def begin(self, status: int, length: int, **headers: str) -> None:
        """Send a status and headers that promise `length` bytes."""
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def finish(self) -> None:
        """Read what still comes before hanging up.

        The body of a stream has no length and is not read. The kernel resets a connection that is
        closed with unread bytes, and the reply may be lost with it.
        """
        super().finish()
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(0.5)
            while self.connection.recv(2**16):
                pass

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test output quiet."""


class ScriptedServer(ThreadingHTTPServer):
    """A server on a free port of this machine that plays a script."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Step] = []
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.turn = threading.Semaphore(0)
        """A trickling step sends one byte per turn."""

    @property
    def url(self) -> str:
        """Return the address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """Return a running scripted server."""
    with ScriptedServer() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def refused_url() -> Iterator[str]:
    """Return an address where nothing listens, and nothing can begin to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def good(handler: Handler) -> None:
    """Answer with a valid verdict."""
    handler.answer(200, json.dumps(make_verdict()).encode())


def overloaded(handler: Handler) -> None:
    """Refuse, and ask for two seconds."""
    body = {"error": {"code": "overloaded", "message": "queue full", "request_id": "r-9"}}
    handler.answer(429, json.dumps(body).encode(), Retry_After="2")


def loading(handler: Handler) -> None:
    """Refuse without a body."""
    handler.answer(503)


def truncated(handler: Handler) -> None:
    """Promise more than is sent, and hang up."""
    handler.begin(200, 1000)
    handler.wfile.write(b'{"request_id":')


def reset(handler: Handler) -> None:
    """Reset the connection in the middle of the body."""
    truncated(handler)
    now = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
    os.close(handler.connection.detach())


def silent(handler: Handler) -> None:
    """Hang up without a word."""


def trickling(handler: Handler) -> None:
    """Send one byte per turn until nobody listens."""
    handler.begin(200, 1000)
    try:
        for _ in range(1000):
            handler.server.turn.acquire(timeout=30)
            handler.wfile.write(b" ")
    except OSError:
        return


def huge(handler: Handler) -> None:
    """Send more than any verdict can be."""
    block = b" " * 2**20
    handler.begin(200, 65 * 2**20)
    try:
        for _ in range(65):
            handler.wfile.write(block)
    except OSError:
        return


def not_json(handler: Handler) -> None:
    """Answer like the log-in page of a hotel network."""
    handler.answer(200, b"<html>Welcome</html>")


def moved(handler: Handler) -> None:
    """Send the caller elsewhere."""
    handler.answer(307, Location="http://127.0.0.1:1/")


def failing(handler: Handler) -> None:
    """Fail without a body."""
    handler.answer(500)


def bad_gzip(handler: Handler) -> None:
    """Claim a compression that the body does not have."""
    handler.answer(200, b"{}", Content_Encoding="gzip")


STEPS = {
    step.__name__: step
    for step in (
        good,
        overloaded,
        loading,
        truncated,
        reset,
        silent,
        trickling,
        huge,
        not_json,
        moved,
        failing,
        bad_gzip,
    )
}


@pytest.fixture
def steps() -> dict[str, Step]:
    """Return every step a server can be told to play, by name."""
    return STEPS


FAULTS: dict[str, tuple[list[str], type[gc.GuardrailError] | None]] = {
    "429 with Retry-After, then fine": (["overloaded", "good"], None),
    "503 twice, then fine": (["loading", "loading", "good"], None),
    "503 three times": (["loading"] * 3, gc.NotReady),
    "429 three times": (["overloaded"] * 3, gc.Overloaded),
    "cut off in the body": (["truncated"], gc.ConnectionFailed),
    "reset in the body": (["reset"], gc.ConnectionFailed),
    "no reply at all": (["silent"], gc.ConnectionFailed),
    "200 that is not JSON": (["not_json"], gc.UnexpectedReply),
    "a body of 65 MiB": (["huge"], gc.UnexpectedReply),
    "a redirect": (["moved"], gc.UnexpectedReply),
    "500 without a body": (["failing"], gc.ServerError),
    "broken compression": (["bad_gzip"], gc.UnexpectedReply),
}


@pytest.fixture(params=FAULTS.values(), ids=FAULTS.keys())
def fault(request: pytest.FixtureRequest) -> tuple[list[Step], type[gc.GuardrailError] | None]:
    """Return a script and the error it must lead to (None: a verdict after all)."""
    names, expected = request.param
    return [STEPS[name] for name in names], expected

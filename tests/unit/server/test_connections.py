"""Bytes, time and places of clients that nobody knows yet, over real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from guardrail_service.server import connections
from guardrail_service.server.connections import HEALTH_CONNECTIONS, Places, protocol_of
from guardrail_service.server.refusals import refusals
from guardrail_service.settings import Limits, Settings, Timeouts

PATIENCE_S = 60.0
CERTIFICATES = Path(__file__).resolve().parents[1] / "client" / "certificates"
GET = b"GET /v1/info HTTP/1.1\r\nHost: x\r\n\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
Start = Callable[..., "Served"]


class Application:
    """Replies with 200, to /waiting when it is told to; notes callers that left."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.asked = threading.Event()
        self.left = threading.Event()
        self.large_is_done = threading.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        while (await receive()).get("more_body"):
            pass
        if scope["path"] == "/waiting":
            self.asked.set()
            await self._wait(receive)
        if scope["path"] == "/large":
            await self._large(send)
            return
        body = b"done"
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _large(self, send: Send) -> None:
        """Send what no buffer holds; returns when it was read, or nobody reads any more."""
        await send({"type": "http.response.start", "status": 200, "headers": []})
        part = {"type": "http.response.body", "body": b"x" * 10_000_000, "more_body": True}
        await send(part)
        await send({**part, "more_body": False})
        self.large_is_done.set()

    async def _wait(self, receive: Receive) -> None:
        leaves = asyncio.ensure_future(receive())
        while not self.go_on.is_set():
            await asyncio.wait({leaves}, timeout=0.005)
            if leaves.done():
                self.left.set()
                return
        leaves.cancel()


class Served:
    """The application behind our connections, on a free port."""

    def __init__(self, settings: Settings, operations: socket.socket | None = None) -> None:
        self.application = Application()
        self.operations = operations
        self.refused = refusals()
        port = None if operations is None else operations.getsockname()[1]
        places = Places(settings.limits, self.refused)
        config = uvicorn.Config(
            self.application, http=protocol_of(settings, port, places), ws="none",
            lifespan="off", ssl_certfile=settings.tls_certificate,
            log_config=None, access_log=False, timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._bound = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(config)
        sockets = [self._bound, *([operations] if operations else [])]
        self._thread = threading.Thread(target=self._server.run, args=(sockets,), daemon=True)
        self._thread.start()

    def counted(self) -> dict[str, float]:
        """Return the refusals so far by reason."""
        samples = [sample for metric in self.refused.collect() for sample in metric.samples]
        return {
            sample.labels["reason"]: sample.value
            for sample in samples
            if sample.name == "guardrail_connections_refused_total" and sample.value
        }

    def connect(self, to: socket.socket | None = None) -> socket.socket:
        """Return a connection."""
        return socket.create_connection((to or self._bound).getsockname(), PATIENCE_S)

    def end(self) -> None:
        """Stop."""
        self.application.go_on.set()
        self._server.should_exit = True
        self._thread.join(PATIENCE_S)


@pytest.fixture
def start() -> Iterator[Start]:
    """Start servers that end with the test."""
    with ExitStack() as stack:

        def started(operations: socket.socket | None = None, **changes: Any) -> Served:
            limits = {k: v for k, v in changes.items() if k in Limits.model_fields}
            times = {k: v for k, v in changes.items() if k in Timeouts.model_fields}
            settings = Settings(
                limits=Limits(**limits),
                timeouts=Timeouts(**times),
                tls_certificate=changes.get("certificate"),
            )
            served = Served(settings, operations)
            stack.callback(served.end)
            return served

        yield started


def everything(caller: socket.socket) -> bytes:
    """Return what comes until the service closes."""
    found = b""
    while data := caller.recv(65_536):
        found += data
    return found


def told(caller: socket.socket) -> tuple[int, str]:
    """Return status and code of an error that ends a connection; it has the shape of all errors."""
    head, _, body = everything(caller).partition(b"\r\n\r\n")
    error = json.loads(body)["error"]
    assert error.keys() == {"code", "message", "request_id"}
    assert f"x-request-id: {error['request_id']}".encode() in head
    assert b"connection: close" in head
    return int(head.split()[1]), error["code"]


def status(caller: socket.socket, request: bytes) -> int:
    """Return the status of a reply, and keep the connection."""
    caller.sendall(request)
    head = caller.recv(65_536)
    while b"\r\n\r\n" not in head:
        head += caller.recv(65_536)
    return int(head.split()[1])


def with_head_of(size: int) -> bytes:
    """Return a request whose line and headers count as so many bytes."""
    path, host = b"/v1/info", b"Host: x\r\n"
    filler = b"a" * (size - len(path) - len(host) - len(b"X: \r\n"))
    return b"GET " + path + b" HTTP/1.1\r\n" + host + b"X: " + filler + b"\r\n\r\n"


def test_a_head_at_the_limit_is_read_and_one_byte_more_is_not(start: Start) -> None:
    """The documented limit can be reached."""
    served = start(header_bytes=20_000)
    with served.connect() as caller:
        assert status(caller, with_head_of(20_000)) == 200
    with served.connect() as caller:
        caller.sendall(with_head_of(20_001))
        assert told(caller) == (431, "headers_too_large")
    assert served.counted() == {"header_bytes": 1}


def test_a_header_that_never_ends_is_refused_before_it_is_joined(start: Start) -> None:
    """120 MB in one header stopped the event loop for seconds."""
    with start(header_bytes=20_000).connect() as caller:
        caller.sendall(b"GET / HTTP/1.1\r\nX: ")
        try:
            for _ in range(1_000):
                caller.sendall(b"a" * 65_536)
        except OSError:
            return  # closed on a caller that did not stop
        assert told(caller)[0] == 431


def test_what_is_not_http_gets_the_shape_of_all_errors(start: Start) -> None:
    """Not uvicorn's plain text."""
    served = start()
    with served.connect() as caller:
        caller.sendall(b"nonsense\r\n\r\n")
        assert told(caller) == (400, "malformed_http")
    assert served.counted() == {"malformed": 1}


def test_a_head_that_does_not_end_in_time_is_told_so(start: Start) -> None:
    """A byte now and then does not prolong it."""
    served = start(header_s=0.2)
    with served.connect() as caller:
        caller.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert told(caller) == (408, "request_timeout")
    assert served.counted() == {"header_time": 1}


def test_a_connection_on_which_nothing_comes_is_closed(start: Start) -> None:
    """300 half-open ones took the port away."""
    served = start(header_s=0.2)
    with served.connect() as caller:
        assert everything(caller) == b""
    assert served.counted() == {"idle": 1}


def test_a_client_that_does_not_read_is_dropped(start: Start) -> None:
    """Its reply fills memory until then."""
    served = start(unread_s=0.2)
    with served.connect() as caller:
        caller.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert served.application.large_is_done.wait(PATIENCE_S)
    assert served.counted() == {"unread": 1}


def test_a_client_that_has_said_all_still_gets_its_reply(start: Start) -> None:
    """It closes its half of the connection; the other half is open."""
    with start().connect() as caller:
        caller.sendall(GET)
        caller.shutdown(socket.SHUT_WR)
        assert everything(caller).startswith(b"HTTP/1.1 200")


def test_a_half_closed_client_gets_a_reply_that_takes_long(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interim replies, which every client reads over, find out that it still listens."""
    monkeypatch.setattr(connections, "PROBE_S", 0.01)
    served = start()
    with served.connect() as caller:
        caller.sendall(GET.replace(b"/v1/info", b"/waiting"))
        caller.shutdown(socket.SHUT_WR)
        assert caller.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        served.application.go_on.set()
        rest = everything(caller).replace(b"HTTP/1.1 100 Continue\r\n\r\n", b"")
        assert rest.startswith(b"HTTP/1.1 200")
        assert rest.endswith(b"done")


def test_over_tls_a_client_that_ends_its_half_gets_no_reply_but_a_log_line(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither asyncio nor uvloop keeps a TLS connection of which one half has ended."""
    served = start(certificate=CERTIFICATES / "server.pem")
    trusted = ssl.create_default_context(cafile=CERTIFICATES / "authority.pem")
    with served.connect() as plain:
        caller = trusted.wrap_socket(plain, server_hostname="127.0.0.1")
        caller.sendall(GET.replace(b"/v1/info", b"/waiting"))
        assert served.application.asked.wait(PATIENCE_S)
        with caller.unwrap() as ended:
            assert ended.recv(1) == b""
    assert served.application.left.wait(PATIENCE_S)
    served.end()
    assert served.counted() == {"tls_ended": 1}
    assert "over TLS left or ended its half" in caplog.text


def test_a_client_that_has_left_is_noticed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows would be computed for nobody."""
    monkeypatch.setattr(connections, "PROBE_S", 0.01)
    served = start()
    with served.connect() as caller:
        caller.sendall(GET.replace(b"/v1/info", b"/waiting"))
        assert served.application.asked.wait(PATIENCE_S)
    assert served.application.left.wait(PATIENCE_S)


def test_health_answers_when_all_connections_are_taken(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """Half-open ones keep neither a probe out nor, once they end, anybody else."""
    served = start(connections=3)
    with ExitStack() as stack:
        for _ in range(3):
            assert status(stack.enter_context(served.connect()), GET) == 200
        half_open = [stack.enter_context(served.connect()) for _ in range(HEALTH_CONNECTIONS + 5)]
        probe = stack.enter_context(served.connect())
        assert status(probe, HEALTH) == 200
        with served.connect() as caller:
            caller.sendall(GET)
            assert told(caller) == (503, "too_many_connections")
        assert half_open[0].recv(1) == b""
    assert "too many in all" in caplog.text
    counted = served.counted()
    assert counted["connections"] == HEALTH_CONNECTIONS + 5 + 2
    assert counted["health_connections"] >= 6


def test_one_address_does_not_take_all_connections(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """Its further ones may ask for health only."""
    served = start(connections_per_caller=1)
    with served.connect() as first, served.connect() as second:
        assert status(first, GET) == 200
        second.sendall(GET)
        assert told(second) == (503, "too_many_connections")
    assert "too many of one address" in caplog.text
    assert served.counted() == {"connections_per_caller": 1}


def test_the_port_for_operations_serves_nothing_else(start: Start) -> None:
    """And has places of its own."""
    served = start(operations=socket.create_server(("127.0.0.1", 0)), connections=1)
    with served.connect() as first, served.connect(served.operations) as probe:
        assert status(first, GET) == 200
        assert status(probe, HEALTH) == 200
        probe.sendall(GET)
        assert told(probe) == (404, "not_found")

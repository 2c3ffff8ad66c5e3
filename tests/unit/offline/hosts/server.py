"""A server on a port of its own that replies as it is told, well or badly."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from guardrail_offline.hosts.endpoint import Endpoint, Patience


@dataclass
class Reply:
    """One reply: its status, headers and body; the body may be longer in word than in deed."""

    value: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None
    claimed: int | None = None
    drops: float | None = None

    @property
    def body(self) -> bytes:
        """Return what is sent."""
        return json.dumps(self.value).encode() if self.content is None else self.content


@dataclass
class Server:
    """What was asked, and what is replied: by a function, else the replies one after the other."""

    replies: list[Reply] = field(default_factory=list)
    answer: Callable[[dict[str, Any]], Reply] | None = None
    route: Callable[[str, str, dict[str, Any]], Reply] | None = None
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, method: str, path: str, body: dict[str, Any]) -> Reply:
        """Return the reply to one request; the last one stays."""
        with self.lock:
            self.bodies.append(body)
            if self.route is not None:
                return self.route(method, path, body)
            if self.answer is not None:
                return self.answer(body)
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def do_GET(self) -> None:
        """Reply as the server is told."""
        self.do_POST()

    def do_DELETE(self) -> None:
        """Reply as the server is told."""
        self.do_POST()

    def do_POST(self) -> None:
        """Reply as the server is told."""
        told: Server = self.server.told
        told.headers.append(dict(self.headers))
        told.paths.append(self.path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        reply = told.reply(self.command, self.path, body)
        self.send_response(reply.status)
        size = len(reply.body) if reply.claimed is None else reply.claimed
        for name, value in {**reply.headers, "Content-Length": str(size)}.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.drops is None:
            self.wfile.write(reply.body)
            return
        for byte in reply.body:  # one after the other, for as long as somebody listens
            if told.closing.wait(reply.drops):
                return
            self.wfile.write(bytes([byte]))
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(
    *replies: Reply,
    answer: Callable[[dict[str, Any]], Reply] | None = None,
    route: Callable[[str, str, dict[str, Any]], Reply] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Any:
    """Yield a server that is told what to reply."""
    told = Server(list(replies), answer, route)
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # a client that left
    server.told = told
    told.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield told
    finally:
        told.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def waits() -> list[float]:
    """How long was waited, where nobody waits."""
    return []


@contextmanager
def asked(url: str, waits: list[float] | None = None, **options: Any) -> Iterator[Endpoint]:
    """Yield an endpoint that notes its waits instead of waiting."""
    noted = [] if waits is None else waits
    limits = options.pop("limits", Patience())
    endpoint = Endpoint(url, limits=limits, sleep=noted.append, **options)
    try:
        yield endpoint
    finally:
        endpoint.close()

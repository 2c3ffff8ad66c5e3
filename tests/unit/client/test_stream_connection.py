"""Streams over real connections: private authorities, proxies, headers, clients of one's own."""

from __future__ import annotations

import json
import socket
import socketserver
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import h11
import httpx
import pytest

import guardrail_client as gc
from tests.unit.client.conftest import PATIENCE_S, make_verdict

CERTIFICATES = Path(__file__).with_name("certificates")
AUTHORITY = str(CERTIFICATES / "authority.pem")
Clients = Callable[..., "Twin"]


class LineGuard(socketserver.ThreadingTCPServer):
    """Answers streams line by line while they arrive, and any other request with a verdict."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, encrypted: bool) -> None:
        super().__init__(("127.0.0.1", 0), _LineHandler)
        self.scheme = "https" if encrypted else "http"
        self.headers: list[dict[str, str]] = []
        if encrypted:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATES / "server.pem")
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    @property
    def url(self) -> str:
        """Return the address."""
        return f"{self.scheme}://localhost:{self.server_address[1]}"


class _LineHandler(socketserver.BaseRequestHandler):
    server: LineGuard

    def handle(self) -> None:
        """Answer requests until the other side has enough."""
        try:
            if isinstance(self.request, ssl.SSLSocket):
                self.request.do_handshake()
            self._http = h11.Connection(h11.SERVER)
            while self._one():
                self._http.start_next_cycle()
        except (OSError, h11.RemoteProtocolError):
            return

    def _event(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(self.request.recv(65536))
        return event

    def _say(self, record: Any) -> None:
        data = json.dumps(record).encode() + b"\n"
        self.request.sendall(self._http.send(h11.Data(data)) or b"")

    def _one(self) -> bool:
        request = self._event()
        if not isinstance(request, h11.Request):
            return False
        fields = {k.decode(): v.decode() for k, v in request.headers}
        self.server.headers.append(fields)
        head = h11.Response(status_code=200, headers=[("Transfer-Encoding", "chunked")])
        self.request.sendall(self._http.send(head) or b"")
        streamed = request.target.endswith(b"/stream")
        length, rest = 0, b""
        while isinstance(event := self._event(), h11.Data):
            *lines, rest = (rest + bytes(event.data)).split(b"\n")
            for line in filter(None, lines if streamed else []):
                text = json.loads(line).get("text", "")
                length += len(text)
                if text:
                    self._say({"type": "release", "text": text, "processed_index": length})
        final = {"type": "final", "reason": "complete", "processed_index": length}
        checked = {"checked": [0, length], "result": make_verdict()}
        self._say({**final, **checked} if streamed else make_verdict())
        self.request.sendall(self._http.send(h11.EndOfMessage()) or b"")
        return True


class Proxy(socketserver.ThreadingTCPServer):
    """A proxy for plain and for encrypted requests, which remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _ProxyHandler)
        self.asked: list[bytes] = []

    @property
    def url(self) -> str:
        """Return the address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _ProxyHandler(socketserver.BaseRequestHandler):
    server: Proxy

    def handle(self) -> None:
        """Pass everything on."""
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.request.recv(65536)
        method, target, _ = head.split(b"\r\n")[0].split(b" ")
        self.server.asked.append(method)
        url = httpx.URL(target.decode() if method != b"CONNECT" else f"http://{target.decode()}")
        with socket.create_connection((url.host, url.port or 80)) as away:
            if method == b"CONNECT":
                self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                away.sendall(head)
            back = threading.Thread(target=_pumped, args=(away, self.request))
            back.start()
            _pumped(self.request, away)
            back.join()


def _pumped(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return


@contextmanager
def serving(server: Any) -> Iterator[Any]:
    """Run a server until the end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(params=[False, True], ids=["http", "https"])
def guard(request: pytest.FixtureRequest) -> Iterator[LineGuard]:
    """Return a running guard."""
    with serving(LineGuard(request.param)) as running:
        yield running


class Twin:
    """Either client, driven in the same way."""

    def __init__(self, asynchronous: bool) -> None:
        self.http = httpx.AsyncClient if asynchronous else httpx.Client
        self.network = httpx.AsyncHTTPTransport if asynchronous else httpx.HTTPTransport
        self._client = gc.AsyncGuardrailClient if asynchronous else gc.GuardrailClient

    def stream(self, checks: int, **arguments: Any) -> list[str]:
        """Return what a stream shows whose second token is written when the first is shown.

        Args:
            checks: How many answers are checked before, on connections that stay open.
            **arguments: Of the client.
        """
        arguments = {"timeout": PATIENCE_S, **arguments}
        if issubclass(self._client, gc.AsyncGuardrailClient):
            return anyio.run(self._awaited, checks, arguments)
        seen = threading.Event()
        with self._client(**arguments) as client:
            for _ in range(checks):
                client.check("Dogs bite.")
            shown = []
            for text in client.check_stream(_tokens(seen)):
                shown.append(text)
                seen.set()
        return shown

    async def _awaited(self, checks: int, arguments: Any) -> list[str]:
        seen = anyio.Event()

        async def tokens() -> AsyncIterator[str]:
            yield "Dogs "
            with anyio.fail_after(PATIENCE_S):
                await seen.wait()
            yield "bite."

        async with self._client(**arguments) as client:
            for _ in range(checks):
                await client.check("Dogs bite.")
            shown = []
            async for text in client.check_stream(tokens()):
                shown.append(text)
                seen.set()
        if "http_client" in arguments:
            await arguments["http_client"].aclose()
        return shown


def _tokens(seen: threading.Event) -> Iterator[str]:
    """Write a token, empty ones until it is shown, and another one."""
    yield "Dogs "
    for _ in range(100_000):
        if seen.is_set():
            break
        yield ""
    assert seen.is_set()
    yield "bite."


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def twin(request: pytest.FixtureRequest) -> Twin:
    """Return one of the clients."""
    return Twin(request.param)


def test_a_private_authority_and_headers_of_ones_own(guard: LineGuard, twin: Twin) -> None:
    """Both reach the service, and the first part is shown before the model goes on."""
    headers = {"X-Tenant": "blue", "User-Agent": "ours"}
    shown = twin.stream(1, base_url=guard.url, verify=AUTHORITY, headers=headers, api_key="k")
    assert shown == ["Dogs ", "bite."]
    checked, streamed = guard.headers
    for fields in (checked, streamed):
        assert (fields["x-tenant"], fields["user-agent"]) == ("blue", "ours")
        assert fields["authorization"] == "Bearer k"
    assert streamed["content-type"] == "application/x-ndjson"


def test_an_authority_that_is_not_trusted_is_an_error_of_both(twin: Twin) -> None:
    """A stream is not more trusting than a call."""
    with serving(LineGuard(True)) as guard, pytest.raises(gc.ConnectionFailed, match="CERTIF"):
        twin.stream(0, base_url=guard.url)


def test_a_proxy(guard: LineGuard, twin: Twin) -> None:
    """Encrypted streams go through a tunnel of it, others are passed on by it."""
    with serving(Proxy()) as proxy:
        shown = twin.stream(1, base_url=guard.url, verify=AUTHORITY, proxy=proxy.url)
    assert shown == ["Dogs ", "bite."]
    assert proxy.asked == [b"CONNECT" if guard.scheme == "https" else b"POST"] * 2


def test_a_transport_of_ones_own(guard: LineGuard, twin: Twin) -> None:
    """The usual way to a private authority."""
    context = ssl.create_default_context(cafile=AUTHORITY)
    shown = twin.stream(1, base_url=guard.url, transport=twin.network(verify=context))
    assert shown == ["Dogs ", "bite."]


def test_a_client_of_ones_own(guard: LineGuard, twin: Twin) -> None:
    """Its address, headers, authorities and proxy count; connections it kept open do not matter."""
    context = ssl.create_default_context(cafile=AUTHORITY)
    with serving(Proxy()) as proxy:
        http = twin.http(
            base_url=guard.url, verify=context, proxy=proxy.url, headers={"X-Tenant": "blue"}
        )
        shown = twin.stream(2, http_client=http)
        if isinstance(http, httpx.Client):
            assert not http.is_closed
            http.close()
    assert shown == ["Dogs ", "bite."]
    assert proxy.asked
    assert [fields["x-tenant"] for fields in guard.headers] == ["blue"] * 3


def test_a_refused_connection_is_an_error(refused_url: str, twin: Twin) -> None:
    """As for a call."""
    with pytest.raises(gc.ConnectionFailed, match="cannot connect"):
        twin.stream(0, base_url=refused_url)


def whole(_request: httpx.Request) -> httpx.Response:
    """Answer a whole request."""
    return httpx.Response(200, json={})


@pytest.mark.parametrize("kind", ["transport", "http_client"])
@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_a_transport_that_cannot_stream_says_so(kind: str, on_error: Any) -> None:
    """Instead of showing everything at the end; failing open does not hide it."""
    mock = httpx.MockTransport(whole)
    given = mock if kind == "transport" else httpx.Client(transport=mock)
    with gc.GuardrailClient(**{kind: given}) as client:
        stream = client.check_stream(iter(["Dogs "]), on_error=on_error)
        with pytest.raises(gc.StreamingNotSupported, match="buffer_streams"):
            list(stream)
    assert stream.text == ""


@pytest.mark.parametrize("kind", ["transport", "http_client"])
def test_so_does_that_of_the_asynchronous_client(kind: str) -> None:
    """The same error at the first step."""

    async def run() -> None:
        mock = httpx.MockTransport(whole)
        given = mock if kind == "transport" else httpx.AsyncClient(transport=mock)
        async with gc.AsyncGuardrailClient(**{kind: given}) as client:
            with pytest.raises(gc.StreamingNotSupported, match="buffer_streams"):
                await anext(client.check_stream(iter(["Dogs "])))

    anyio.run(run)


@pytest.mark.parametrize(
    "arguments",
    [
        {"transport": httpx.MockTransport(whole), "uds": "/x"},
        {"transport": httpx.MockTransport(whole), "verify": False},
        {"transport": httpx.MockTransport(whole), "proxy": "http://p"},
        {"uds": "/x", "proxy": "http://p"},
        {"http_client": httpx.Client(), "verify": False},
    ],
    ids=lambda arguments: "+".join(arguments),
)
@pytest.mark.parametrize("client", [gc.GuardrailClient, gc.AsyncGuardrailClient])
def test_settings_that_exclude_each_other_are_refused(client: Any, arguments: Any) -> None:
    """One of them would be ignored without a word."""
    with pytest.raises(ValueError, match="found both, expected at most one"):
        client(**arguments)


def test_headers_must_fit_into_a_request() -> None:
    """A line end in one would begin another header; the value is not repeated."""
    with pytest.raises(ValueError, match="headers: found characters"):
        gc.GuardrailClient(headers={"X-Tenant": "a\r\nX-Other: b"})


def test_many_streams_of_one_client_at_once() -> None:
    """Each has a connection and a thread of its own."""
    with serving(LineGuard(False)) as guard, ExitStack() as stack:
        client = stack.enter_context(gc.GuardrailClient(guard.url, timeout=PATIENCE_S))
        streams = [client.check_stream(iter(["Dogs ", "bite."])) for _ in range(20)]
        firsts = [next(stream) for stream in streams]
        assert firsts == ["Dogs "] * 20
        assert ["".join(stream) for stream in streams] == ["bite."] * 20

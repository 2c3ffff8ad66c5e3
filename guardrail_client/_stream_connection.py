"""Borrows a connection from httpx for a stream, opened as its client was told to.

httpx has no call for that. It does tell its `trace` extension of every connection it opens, behind
proxies and encryption, and waits for the callback before it sends. The callback keeps it waiting
while we talk on the connection, and then lets httpx close it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import httpcore
import httpx

from guardrail_client._options import ClientOptions, checked_timeout
from guardrail_client._stream_session import PATH, StreamSession
from guardrail_client._two_way_request import (
    BufferedRequest,
    ByteStream,
    HTTPTwoWayRequest,
    TwoWayRequest,
    TwoWayTransport,
)
from guardrail_client.errors import StreamingNotSupported

Post = Callable[[httpx.Request], Awaitable[httpx.Response]]
Connect = Callable[[str, Mapping[str, str], float], Awaitable[TwoWayRequest]]
"""Begins a request to an address, with headers, within seconds."""
BEFORE_THE_REQUEST = "http11.send_request_headers.started"
ADVICE = (
    "use a client whose connections are HTTP/1.1, or buffer_streams=True in a test, "
    "which shows nothing before the model is done"
)


class _UsedBefore(Exception):
    """The connection is one that httpx kept open, of which the trace has not told us."""


class _GivenBack(Exception):
    """We are done with the connection."""


class _Unsendable:
    """A body that is never sent: whoever reads it would send it before it reads the reply."""

    def __iter__(self) -> Iterator[bytes]:
        raise _not_supported()


class _AsyncUnsendable:
    """The same for an `httpx.AsyncClient`."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise _not_supported()


class _Loan(ABC):
    """One connection of an httpx client, from its opening until it is given back.

    Args:
        http: Opens it.
        url: Where to.
        headers: Of the request.
        seconds: For connecting.
    """

    def __init__(
        self,
        http: httpx.Client | httpx.AsyncClient,
        url: str,
        headers: Mapping[str, str],
        seconds: float,
    ) -> None:
        self._http: Any = http
        self._url = url
        self._headers = headers
        self._seconds = seconds
        self._stream: httpcore.AsyncNetworkStream | httpcore.NetworkStream | None = None
        self._lent: asyncio.Future[tuple[ByteStream, httpcore.Request]] = asyncio.Future()

    async def take(self) -> HTTPTwoWayRequest:
        """Return a request whose head has been sent.

        Raises:
            httpx.TransportError: If there is no connection.
            StreamingNotSupported: If the client's transport has none to lend.
        """
        self.start()
        try:
            stream, request = await asyncio.shield(self._lent)
            two_way = HTTPTwoWayRequest(stream, request, self.give_back)
            await two_way.begin()
        except BaseException:
            await self.give_back()
            raise
        return two_way

    @abstractmethod
    def start(self) -> None:
        """Let httpx open a connection, beside us."""

    @abstractmethod
    async def give_back(self) -> None:
        """Let httpx close the connection."""

    def request(self, content: Any, trace: Any) -> httpx.Request:
        """Return the request for which httpx opens a connection."""
        self._stream = None
        extensions = {"trace": trace}
        built: httpx.Request = self._http.build_request(
            "POST",
            self._url,
            content=content,
            headers=self._headers,
            timeout=self._seconds,
            extensions=extensions,
        )
        return built

    def told(self, event: str, info: Mapping[str, Any]) -> httpcore.Request | None:
        """Take note of what httpx does; return the request that it is about to send.

        Raises:
            _UsedBefore: If it would send it on a connection that is not new.
            StreamingNotSupported: If it would speak another protocol.
        """
        found = info.get("return_value")
        if isinstance(found, httpcore.AsyncNetworkStream | httpcore.NetworkStream):
            self._stream = found
        if event.startswith("http2."):
            raise StreamingNotSupported(f"a stream cannot use HTTP/2; {ADVICE}")
        request = info.get("request")
        # A proxy is asked with CONNECT first.
        if event != BEFORE_THE_REQUEST or request is None or request.method != b"POST":
            return None
        if self._stream is None:
            raise _UsedBefore
        sent: httpcore.Request = request
        return sent


class AsyncLoan(_Loan):
    """A connection of an `httpx.AsyncClient`."""

    def start(self) -> None:
        """Let httpx open a connection in a task."""
        self._returned = asyncio.Event()
        self._task = asyncio.ensure_future(self._send())

    async def give_back(self) -> None:
        """Let httpx close the connection."""
        self._returned.set()
        if not self._lent.done():
            self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._lent.done() and not self._lent.cancelled():
            self._lent.exception()  # was raised where it was awaited, or nobody waits any more

    async def _send(self) -> None:
        try:
            with suppress(_GivenBack):
                while True:
                    with suppress(_UsedBefore):
                        request = self.request(_AsyncUnsendable(), self._trace)
                        response = await self._http.send(request, stream=True)
                        await response.aclose()
                        raise _not_supported()
        except Exception as error:  # noqa: BLE001 - raised where the connection is awaited
            if not self._lent.done():
                self._lent.set_exception(error)

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        request = None if self._lent.done() else self.told(event, info)
        if request is not None and isinstance(self._stream, httpcore.AsyncNetworkStream):
            self._lent.set_result((self._stream, request))
            await self._returned.wait()
            raise _GivenBack


class SyncLoan(_Loan):
    """A connection of an `httpx.Client`, used from an event loop while a thread keeps it open."""

    def start(self) -> None:
        """Let httpx open a connection in a thread."""
        self._returned = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        threading.Thread(target=self._send, name="rag-guardrail-stream", daemon=True).start()

    async def give_back(self) -> None:
        """Let httpx close the connection; one that is still being opened is closed then."""
        self._returned.set()
        if self._lent.done():
            await self._over.wait()
            self._lent.exception()

    def _send(self) -> None:
        try:
            with suppress(_GivenBack):
                while True:
                    with suppress(_UsedBefore):
                        request = self.request(_Unsendable(), self._trace)
                        self._http.send(request, stream=True).close()
                        raise _not_supported()
        except Exception as error:  # noqa: BLE001 - raised where the connection is awaited
            self._tell(self._fail, error)
        finally:
            self._tell(self._over.set)

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if self._returned.is_set():
            return
        request = self.told(event, info)
        if request is not None and isinstance(self._stream, httpcore.NetworkStream):
            self._tell(self._succeed, SocketStream.of(self._stream), request)
            self._returned.wait()
            raise _GivenBack

    def _tell(self, call: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it whoever would be told
            self._loop.call_soon_threadsafe(call, *arguments)

    def _succeed(self, stream: ByteStream, request: httpcore.Request) -> None:
        if not self._lent.done():
            self._lent.set_result((stream, request))

    def _fail(self, error: Exception) -> None:
        if not self._lent.done() and not self._returned.is_set():
            self._lent.set_exception(error)


class SocketStream:
    """A blocking socket used from an event loop, encrypted or not."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.setblocking(False)

    @classmethod
    def of(cls, stream: httpcore.NetworkStream) -> SocketStream:
        """Return the socket of a connection of httpx.

        Raises:
            StreamingNotSupported: If it encrypts twice, to a proxy and through it.
        """
        connection = stream.get_extra_info("socket")
        twice = isinstance(stream.get_extra_info("ssl_object"), ssl.SSLObject)
        if twice or not isinstance(connection, socket.socket):
            found = "an https:// proxy in front of an https:// service needs AsyncGuardrailClient"
            raise StreamingNotSupported(found)
        return cls(connection)

    async def read(self, max_bytes: int) -> bytes:
        """Return bytes that have arrived; nothing at the end."""
        data: bytes = await self._done(
            lambda: self._connection.recv(max_bytes), anyio.wait_readable
        )
        return data

    async def write(self, buffer: bytes) -> None:
        """Send bytes."""
        rest = memoryview(buffer)
        while rest:
            sending = partial(self._connection.send, rest)
            rest = rest[await self._done(sending, anyio.wait_writable) :]

    async def _done(
        self, attempt: Callable[[], Any], ready: Callable[[socket.socket], Awaitable[None]]
    ) -> Any:
        while True:
            try:
                return attempt()
            except ssl.SSLWantReadError:
                await anyio.wait_readable(self._connection)
            except ssl.SSLWantWriteError:
                await anyio.wait_writable(self._connection)
            except BlockingIOError:
                await ready(self._connection)


def _not_supported() -> StreamingNotSupported:
    found = "this client's transport answers only whole requests, so it cannot stream; "
    return StreamingNotSupported(found + ADVICE)


def connector(
    http: httpx.Client | httpx.AsyncClient, transport: object, post: Post | None
) -> Connect:
    """Return how a client's streams connect.

    Args:
        http: Opens connections.
        transport: The one that was given to the client; None: httpx's own.
        post: Sends whole requests, where the caller allows that; None: streams are two-way.
    """
    if isinstance(transport, TwoWayTransport):

        async def two_way(url: str, headers: Mapping[str, str], _seconds: float) -> TwoWayRequest:
            return await transport.open_two_way(http.build_request("POST", url, headers=headers))

        return two_way
    if post is not None:

        async def whole(url: str, headers: Mapping[str, str], _seconds: float) -> TwoWayRequest:
            return BufferedRequest(
                lambda body: post(http.build_request("POST", url, content=body, headers=headers))
            )

        return whole
    loan = SyncLoan if isinstance(http, httpx.Client) else AsyncLoan

    async def lent(url: str, headers: Mapping[str, str], seconds: float) -> TwoWayRequest:
        return await loan(http, url, headers, seconds).take()

    return lent


def stream_session(
    options: ClientOptions, connect: Connect, about: Mapping[str, Any], timeout: float | None
) -> StreamSession:
    """Return a session that is not open yet.

    Args:
        options: The client's.
        connect: From `connector`.
        about: The first line.
        timeout: Seconds to wait for the guard in all; None takes the client's.
    """
    request_id = uuid.uuid4().hex
    own = {"Content-Type": "application/x-ndjson", "X-Request-Id": request_id}
    headers = {**options.headers, **own}
    budget = options.timeout if timeout is None else checked_timeout(timeout)
    return StreamSession(
        lambda seconds: connect(options.address(PATH), headers, seconds),
        about,
        options.place,
        request_id,
        budget,
    )

"""A request whose body is still being sent while its reply arrives, which httpx cannot do.

httpx sends a whole body before it reads; a stream needs both at once. So this frames HTTP/1.1 with
h11, as httpx does, on a connection that `_stream_connection` got from httpx. asyncio only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, runtime_checkable

import h11
import httpcore
import httpx

READ_BYTES = 65_536
MAX_EVENT_BYTES = 256 * 1024
"""Of the reply's headers; more comes only from something that is not our service."""


class TwoWayRequest(Protocol):
    """One request in both directions."""

    async def send(self, data: bytes) -> None:
        """Send a part of the body; returns when there is room for more."""

    async def finish(self) -> None:
        """Send the end of the body."""

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """Return the reply's status and headers, names in lower case."""

    async def receive(self) -> bytes:
        """Return a part of the reply's body; nothing at its end."""

    async def aclose(self) -> None:
        """Hang up."""


@runtime_checkable
class TwoWayTransport(Protocol):
    """A transport that can send a request while its reply arrives."""

    async def open_two_way(self, request: httpx.Request) -> TwoWayRequest:
        """Return a request that has been begun."""


class ByteStream(Protocol):
    """A connection: bytes in both directions."""

    async def read(self, max_bytes: int) -> bytes:
        """Return bytes that have arrived; nothing at the end."""

    async def write(self, buffer: bytes) -> None:
        """Send bytes."""


class HTTPTwoWayRequest:
    """A request on a connection that nobody else uses.

    Args:
        stream: The connection, encrypted where the address says so.
        request: The request's head, as httpx would have sent it.
        give_back: Closes the connection.

    Raises:
        httpx.TransportError: From every method, as httpx names what went wrong.
    """

    def __init__(
        self,
        stream: ByteStream,
        request: httpcore.Request,
        give_back: Callable[[], Awaitable[None]],
    ) -> None:
        self._stream = stream
        self._request = request
        self._give_back = give_back
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_EVENT_BYTES)

    async def begin(self) -> None:
        """Send the request's head."""
        request = self._request
        target, fields = request.url.target, request.headers
        head = h11.Request(method=request.method, target=target, headers=fields)
        await self._write(self._http.send(head))

    async def send(self, data: bytes) -> None:
        """Send a part of the body."""
        await self._write(self._http.send(h11.Data(data)))

    async def finish(self) -> None:
        """Send the end of the body."""
        await self._write(self._http.send(h11.EndOfMessage()))

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """Return the reply's status and headers."""
        event = await self._event()
        while isinstance(event, h11.InformationalResponse):
            event = await self._event()
        if not isinstance(event, h11.Response):
            raise httpx.RemoteProtocolError("no reply")
        fields = {k.decode("latin-1"): v.decode("latin-1") for k, v in event.headers}
        return event.status_code, fields

    async def receive(self) -> bytes:
        """Return a part of the reply's body."""
        event = await self._event()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def aclose(self) -> None:
        """Hang up."""
        await self._give_back()

    async def _write(self, data: bytes | None) -> None:
        try:
            await self._stream.write(data or b"")
        except (httpcore.NetworkError, OSError) as error:
            raise httpx.WriteError(str(error)) from error

    async def _event(self) -> object:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                self._http.receive_data(await self._stream.read(READ_BYTES))
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except (httpcore.NetworkError, OSError) as error:
            raise httpx.ReadError(str(error)) from error
        return event


class BufferedRequest:
    """The same over a transport that answers only whole requests, where the caller asked for it.

    The reply is read once the whole body has been sent.
    """

    def __init__(self, post: Callable[[bytes], Awaitable[httpx.Response]]) -> None:
        self._post = post
        self._sent: list[bytes] = []
        self._answered = asyncio.Event()
        self._response: httpx.Response | None = None
        self._error: httpx.HTTPError | None = None
        self._unread: list[bytes] = []

    async def send(self, data: bytes) -> None:
        """Keep a part of the body."""
        self._sent.append(data)

    async def finish(self) -> None:
        """Send the body."""
        try:
            self._response = await self._post(b"".join(self._sent))
            self._unread = [self._response.content]
        except httpx.HTTPError as error:
            self._error = error
        self._answered.set()

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """Return the reply's status and headers, once the body has been sent."""
        await self._answered.wait()
        if self._response is None:
            raise self._error or httpx.RemoteProtocolError("no reply")
        return self._response.status_code, self._response.headers

    async def receive(self) -> bytes:
        """Return the reply's body."""
        return self._unread.pop() if self._unread else b""

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""

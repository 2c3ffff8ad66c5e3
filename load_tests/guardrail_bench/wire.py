"""HTTP/1.1 over one kept connection: a generator must cost far less than what it measures."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit


class HttpReply(NamedTuple):
    """One response; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """One connection to a service, opened on first use and again after it broke.

    Args:
        address: `http://host:port`, as the service prints it.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._host = parts.hostname or "127.0.0.1"
        self._port = parts.port or 80
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes) -> HttpReply:
        """Send a JSON body and return the reply.

        Raises:
            OSError: If the connection cannot be opened or breaks.
            asyncio.IncompleteReadError: If the service closes it before the reply is complete.
        """
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        try:
            return await self._exchange(*self._streams, head.encode() + body)
        except BaseException:
            self.close()  # what is left of the reply must not be read as the next one
            raise

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
    ) -> HttpReply:
        writer.write(request)
        status, headers = parse_head(await reader.readuntil(b"\r\n\r\n"))
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection") == "close":
            self.close()
        return HttpReply(status, headers, body)

    def close(self) -> None:
        """Drop the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    """Return a response's status and headers."""
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return int(first.split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in pairs}

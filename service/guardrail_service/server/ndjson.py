"""JSON lines from a request body that is still arriving, each line bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from guardrail_service.errors import BodyTooLarge, ServiceError
from guardrail_service.server.translate import decode, validation_error

M = TypeVar("M", bound=BaseModel)
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
WAITING_LINES = 16
"""Lines read ahead of the one being judged; beyond, the sender's connection fills up."""


def parse(line: bytes, kind: type[M]) -> M:
    """Return a line as an object of one kind.

    Raises:
        InputError: If it is not JSON or does not fit.
    """
    try:
        return kind.model_validate(decode(line, "line"))
    except ValidationError as error:
        raise validation_error(dict(error.errors()[0])) from None


class Lines:
    """Reads ahead a little, so that a caller's leaving is noticed while its text is judged.

    Args:
        receive: The ASGI receiver.
        limit: Bytes that one line may have.
    """

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._queue: asyncio.Queue[bytes | ServiceError | None] = asyncio.Queue(WAITING_LINES)
        self._task: asyncio.Task[None] | None = None
        self.left = asyncio.Event()
        """Set when the caller has closed the connection."""

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> bytes:
        """Return the next line, without its end.

        Raises:
            BodyTooLarge: If it has too many bytes.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._read())
        line = await self._queue.get()
        if isinstance(line, ServiceError):
            raise line
        if line is None:
            raise StopAsyncIteration
        return line

    def waiting(self) -> int:
        """Return how many lines can be had without waiting."""
        return self._queue.qsize()

    async def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _read(self) -> None:
        rest = b""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self.left.set()
                break
            more = message.get("more_body", False)
            *lines, rest = (rest + message.get("body", b"")).split(b"\n")
            for line in lines:
                await self._put(line)
            if len(rest) > self._limit:
                await self._put(rest)
                return
        if rest.strip() and not self.left.is_set():
            await self._put(rest)
        await self._queue.put(None)
        if not self.left.is_set():
            await self._until_left()

    async def _put(self, line: bytes) -> None:
        if len(line) > self._limit:
            found = f"found more than {self._limit} bytes in one line"
            await self._queue.put(BodyTooLarge(found, "body"))
        elif line.strip():
            await self._queue.put(line)

    async def _until_left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.left.set()

"""One open stream: text goes out, parts that may be shown come in, within one time budget.

asyncio only. `stream.py` puts iterators around it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import httpx

from guardrail_client._two_way_request import TwoWayRequest
from guardrail_client._typed_errors import connection_error, refusal
from guardrail_client.errors import (
    BY_CODE,
    ConnectionFailed,
    GuardrailError,
    InvalidRequest,
    TimeoutExceeded,
    UnexpectedReply,
)
from guardrail_client.types import StreamFinal, StreamPart

PATH = "/v1/check/stream"
MAX_RECORD_BYTES = 64 * 1024 * 1024
T = TypeVar("T")
Record = StreamPart | StreamFinal


class WaitingBudget:
    """Seconds that one stream may spend waiting for the guard; the model's own time is free."""

    def __init__(self, seconds: float, request_id: str) -> None:
        self._seconds = self._left = seconds
        self._request_id = request_id

    @property
    def left(self) -> float:
        """Return the seconds left, at least a moment."""
        return max(self._left, 0.001)

    @property
    def spent(self) -> float:
        """Return the seconds that were waited."""
        return self._seconds - self._left

    async def wait(self, work: Awaitable[T]) -> T:
        """Return what the work gives.

        Raises:
            TimeoutExceeded: If it takes more than what is left.
        """
        started = time.monotonic()
        try:
            async with asyncio.timeout(self.left):
                return await work
        except TimeoutError:
            found = f"the guard kept the stream waiting for {self._seconds:g} s"
            raise TimeoutExceeded(found, request_id=self._request_id) from None
        finally:
            self._left -= time.monotonic() - started


class StreamSession:
    """One stream to the service.

    Args:
        connect: Opens the channel.
        first: The first line: everything about the answer but its text.
        place: Where the service is, for messages.
        request_id: Ours, for errors that carry none.
        budget: Seconds to wait for the guard in all.
    """

    def __init__(
        self,
        connect: Callable[[float], Awaitable[TwoWayRequest]],
        first: Mapping[str, Any],
        place: str,
        request_id: str,
        budget: float,
    ) -> None:
        self._connect = connect
        self._first = first
        self._place = place
        self._request_id = request_id
        self.budget = WaitingBudget(budget, request_id)
        self._records: asyncio.Queue[Record | GuardrailError] = asyncio.Queue()
        self._reader: asyncio.Task[None] | None = None
        self._channel: TwoWayRequest | None = None

    async def open(self) -> None:
        """Connect and say what the answer is about.

        Raises:
            GuardrailError: If there is no connection.
        """
        self._channel = await self.budget.wait(self._typed(self._connect(self.budget.left)))
        self._reader = asyncio.create_task(self._read(self._channel))
        await self._write(self._first)

    async def send(self, text: str) -> None:
        """Send text as the model wrote it; waits while the guard has too much."""
        if text:
            await self._write({"text": text})

    async def end(self) -> None:
        """Say that the answer is whole."""
        await self._write({"end": True})
        if self._channel is not None:
            await self._sent(self._channel.finish())

    def ready(self) -> list[Record]:
        """Return the records that are there, without waiting.

        Raises:
            GuardrailError: If there is an error and nothing before it.
        """
        found: list[Record] = []
        while not self._records.empty():
            record = self._records.get_nowait()
            if isinstance(record, GuardrailError):
                self._records.put_nowait(record)
                if found:
                    return found
                raise record
            found.append(record)
        return found

    async def next(self) -> Record:
        """Return the next record.

        Raises:
            GuardrailError: If there will be none.
        """
        record = await self._records.get()
        if isinstance(record, GuardrailError):
            self._records.put_nowait(record)
            raise record
        return record

    async def last(self) -> Record:
        """Return the next record of a stream that has ended, within the budget."""
        return await self.budget.wait(self.next())

    async def close(self) -> None:
        """Hang up; a service that still works on it stops."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)
        if self._channel is not None:
            await self._channel.aclose()

    async def _write(self, line: Mapping[str, Any]) -> None:
        if self._channel is None:
            raise ConnectionFailed("the stream is not open", request_id=self._request_id)
        data = json.dumps(line, ensure_ascii=True, allow_nan=False).encode() + b"\n"
        await self._sent(self._channel.send(data))

    async def _sent(self, work: Awaitable[None]) -> None:
        """Wait until something is sent; if it fails, what the service said is the better error."""
        try:
            await self.budget.wait(self._typed(work))
        except ConnectionFailed:
            if self._reader is None:
                raise
            await self.budget.wait(asyncio.wait({self._reader}))
            if self._records.empty():
                raise

    async def _typed(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except httpx.TimeoutException:
            raise TimeoutError from None
        except httpx.HTTPError as error:
            raise connection_error(error, self._place, self._request_id) from error

    async def _read(self, channel: TwoWayRequest) -> None:
        try:
            await self._typed(self._read_all(channel))
        except GuardrailError as error:
            self._records.put_nowait(error)
        except TimeoutError:
            self._records.put_nowait(self._broken("no reply"))

    async def _read_all(self, channel: TwoWayRequest) -> None:
        status, headers = await channel.head()
        if status != 200:
            raise await self._refused(channel, status, headers)
        rest = b""
        while data := await channel.receive():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._keep(line)
            if len(rest) > MAX_RECORD_BYTES:
                raise UnexpectedReply("a record is too large", request_id=self._request_id)
        if rest.strip() and not rest.lstrip().startswith(b"{"):
            self._keep(rest)  # no beginning of a record
        raise self._broken("the stream ended without a final record")

    async def _refused(
        self, channel: TwoWayRequest, status: int, headers: Mapping[str, str]
    ) -> GuardrailError:
        content = b""
        while (data := await channel.receive()) and len(content) < MAX_RECORD_BYTES:
            content += data
        return refusal(
            status, headers, _decoded(content), sent=self._sent_texts(), request_id=self._request_id
        )

    def _sent_texts(self) -> dict[str, Any]:
        return {"answer": None, "contexts": [], **self._first}

    def _keep(self, line: bytes) -> None:
        raw = _decoded(line)
        kind = raw.get("type") if isinstance(raw, dict) else None
        if kind == "release":
            self._records.put_nowait(StreamPart.from_json(raw))
        elif kind == "final":
            self._records.put_nowait(StreamFinal.from_json(raw))
        elif kind == "error":
            raise self._failed(raw)
        elif kind != "start":
            raise UnexpectedReply("a record of an unknown kind", request_id=self._request_id)

    def _failed(self, raw: Mapping[str, Any]) -> GuardrailError:
        """Return the typed form of an error record."""
        detail = raw.get("error")
        code = detail.get("code") if isinstance(detail, dict) else None
        status = {"internal": 500, "not_ready": 503, "not_recorded": 503, "overloaded": 429}.get(
            str(code), 422
        )
        error = refusal(status, {}, raw, sent=self._sent_texts(), request_id=self._request_id)
        kind = BY_CODE.get(str(code), InvalidRequest)
        return error if isinstance(error, kind) else InvalidRequest(str(error), status=status)

    def _broken(self, message: str) -> ConnectionFailed:
        return ConnectionFailed(message, request_id=self._request_id)


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content

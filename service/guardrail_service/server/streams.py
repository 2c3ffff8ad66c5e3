"""`POST /v1/check/stream`: text comes in while what has been judged goes out. HTTP and time only.

`guardrail_service.streaming` decides which text may leave. Lines are read no faster than they are
judged and records written no faster than they are read, so a slow reader slows its own model.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from guardrail_service.errors import (
    Cancelled,
    LimitExceeded,
    MalformedInput,
    NotReady,
    Overloaded,
    ServiceError,
    StreamIncomplete,
    raised_at,
)
from guardrail_service.guard.waiting import Cancellation
from guardrail_service.server.error_replies import error_reply
from guardrail_service.server.ndjson import Lines, parse
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.schemas import (
    CheckRequest,
    PolicyOut,
    StreamError,
    StreamFinal,
    StreamPiece,
    StreamRelease,
    StreamRequest,
    StreamStart,
)
from guardrail_service.server.telemetry import Telemetry, summary
from guardrail_service.server.translate import (
    SMALL_BODY,
    check_characters,
    parse_check,
    request_size,
    to_overrides,
    to_reply,
    to_sample,
)
from guardrail_service.streaming.guarded import Ended, Release, StreamedCheck
from guardrail_service.types import CALLER, Sample, Verdict

_LOG = logging.getLogger(__name__)
NDJSON = "application/x-ndjson"
_PLACEHOLDER = "-"
"""Stands for the answer while the first line is checked; never judged."""
T = TypeVar("T")
Keep = Callable[[Verdict, Sample, CheckRequest, str], object]


class Streams:
    """The streams of one process.

    Args:
        runtime: The loaded service.
        telemetry: Counts their verdicts.
        threads: Judge; a stream holds one only while a part of it is judged.
        keep: Called with each last verdict, its sample, its request and the request's id.
    """

    def __init__(
        self,
        runtime: Runtime,
        telemetry: Telemetry,
        threads: Executor,
        keep: Keep,
    ) -> None:
        self.keep = keep
        self._runtime = runtime
        self._telemetry = telemetry
        self._threads = threads
        self._places = runtime.settings.limits.concurrent_requests
        self._judging = asyncio.Semaphore(self._places)
        self._judging_of: dict[str, asyncio.Semaphore] = {}
        self.running = 0
        self._of: Counter[str] = Counter()

    async def open(self, request: Request) -> Response:
        """Return the reply to a stream whose first line has been read and fits.

        Raises:
            ServiceError: If it cannot be judged; the reply is then an ordinary error.
        """
        if (reason := self._runtime.scheduler.not_ready()) is not None:
            raise NotReady(reason)
        allowed = self._runtime.settings.limits.concurrent_streams
        if self.running >= allowed:
            found = f"{self.running} streams are open, the limit; try again later"
            raise Overloaded(found, retry_after_s=1.0)
        caller = request.state.caller
        if self._of[caller] >= self._runtime.settings.limits.streams_per_caller:
            found = f"{self._of[caller]} streams of this caller are open, the limit"
            raise Overloaded(f"{found}; try again later", retry_after_s=1.0)
        self.running += 1
        self._of[caller] += 1
        lines = Lines(request.receive, self._runtime.settings.limits.body_bytes)
        try:
            return _Records(await self._begun(request, lines), self._closed(lines, caller))
        except BaseException:
            await self._closed(lines, caller)()
            raise

    async def _begun(self, request: Request, lines: Lines) -> AsyncIterator[bytes]:
        first = await self.next_line(lines)
        if first is None:
            raise MalformedInput("expected JSON lines; the first one says what the answer is about")
        asked, whole, check = await _read(lambda: self._opened(first), first)
        self._admit(asked, whole)
        return _Stream(self, request, lines, asked, whole, check).records()

    def _opened(self, line: bytes) -> tuple[StreamRequest, CheckRequest, StreamedCheck]:
        asked = parse(line, StreamRequest)
        whole = parse_check(asked.whole(_PLACEHOLDER))
        guard = self._runtime.guard
        served = guard.served
        check = StreamedCheck(
            guard,
            guard.policy_for(asked.policy, to_overrides(whole), served),
            to_sample(whole, self._runtime.settings.limits),
            mode=asked.mode,
            stop_on=asked.stop_on,
            deadline_ms=asked.deadline_ms,
            sentence_ms=asked.sentence_deadline_ms,
            served=served,
        )
        return asked, whole, check

    def _admit(self, asked: StreamRequest, whole: CheckRequest) -> None:
        """Refuse a stream whose first part could not be judged in time behind others' work.

        The passages alone are counted, since nothing is written yet. Nor does the stream count
        for others: nobody knows when its text comes.

        Raises:
            Overloaded: If it could be judged in time on an idle service.
        """
        stream = object()
        size, deadline = request_size(whole), asked.sentence_deadline_ms
        self._runtime.guard.expect(size, asked.policy, deadline, time.monotonic(), stream)
        self._runtime.scheduler.forget(stream)

    def _closed(self, lines: Lines, caller: str) -> Callable[[], Awaitable[None]]:
        async def close() -> None:
            self.running -= 1
            self._of[caller] -= 1
            if not self._of[caller]:
                del self._of[caller]
                self._judging_of.pop(caller, None)
            await lines.close()

        return close

    async def next_line(self, lines: Lines) -> bytes | None:
        """Return the next line; None if the body is at its end.

        Raises:
            StreamIncomplete: If nothing comes for too long.
        """
        allowed = self._runtime.settings.timeouts.stream_idle_s
        try:
            async with asyncio.timeout(allowed):
                return await anext(lines, None)
        except TimeoutError:
            raise StreamIncomplete(f"nothing came for {allowed:g} s") from None

    async def judged(self, work: Callable[[], T]) -> T:
        """Return what `work` gives, on a thread; streams take turns, those of a caller too.

        One caller never has all places: a stream of another one need not wait for its parts.
        """
        own = self._judging_of.setdefault(
            CALLER.get(), asyncio.Semaphore(max(1, self._places * 3 // 4))
        )
        async with own, self._judging:
            loop, run = asyncio.get_running_loop(), copy_context().run
            return await loop.run_in_executor(self._threads, lambda: run(work))

    def count(self, final: StreamFinal, request: Request) -> None:
        """Count a verdict and put it into the log line."""
        self._telemetry.check(final.result)
        request.state.log.update(summary(final.result), stream=final.reason)

    def check_size(self, characters: int) -> None:
        """Raise LimitExceeded if an answer has become longer than one may be."""
        allowed = self._runtime.settings.limits.answer_chars
        if characters > allowed:
            raise LimitExceeded(f"found more than {allowed} characters", "answer")


class _Stream:
    """One stream: lines in, records out."""

    def __init__(
        self,
        streams: Streams,
        request: Request,
        lines: Lines,
        asked: StreamRequest,
        whole: CheckRequest,
        check: StreamedCheck,
    ) -> None:
        self._streams = streams
        self._request = request
        self._request_id: str = request.state.request_id
        self._lines = lines
        self._asked = asked
        self._whole = whole
        self._check = check

    async def records(self) -> AsyncIterator[bytes]:
        """Yield the lines of a start record, releases, and one final or error record."""
        yield _line(self._start())
        try:
            async for line in self._judged():
                yield line
        except Cancelled:
            self._request.state.log["error"] = Cancelled.code
        except ServiceError as error:
            yield _line(self._error(error))
        except Exception as error:  # noqa: BLE001 - the reply has begun: no other handler can speak
            _LOG.error("stream failed: %s at %s", type(error).__name__, raised_at(error))
            yield _line(self._error(ServiceError("internal error")))

    async def _judged(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            more = await self._take()
            while more and self._check.due():
                found = await self._in_thread(self._check.step)
                if found is None:
                    break
                if isinstance(found, Ended):
                    yield await self._final(found)
                    return
                yield _line(_release(found))
        ended = await self._in_thread(self._finish)
        if ended.release is not None:
            yield _line(_release(ended.release))
        yield await self._final(ended)

    def _finish(self, cancellation: Cancellation) -> Ended:
        parse_check(self._asked.whole(self._check.state.text))  # refuses what `/v1/check` would
        return self._check.finish(cancellation)

    async def _take(self) -> bool:
        """Feed what has arrived; return whether more is to come.

        Raises:
            StreamIncomplete: If the body ends, or nothing comes, before the line that says so.
        """
        while True:
            line = await self._streams.next_line(self._lines)
            if line is None:
                if self._lines.left.is_set():
                    raise Cancelled("the caller left")
                raise StreamIncomplete('the body ended without {"end": true}')
            piece = await _read(partial(parse, line, StreamPiece), line)
            check_characters("text", piece.text)
            self._check.feed(piece.text)
            self._streams.check_size(self._check.state.size)
            if piece.end:
                return False
            if not self._lines.waiting():
                return True

    async def _in_thread(self, work: Callable[[Cancellation], T]) -> T:
        """Run work that a leaving caller cancels."""
        cancellation = Cancellation()
        leaving = asyncio.ensure_future(self._lines.left.wait())
        leaving.add_done_callback(lambda _: cancellation.cancel())
        try:
            return await self._streams.judged(lambda: work(cancellation))
        finally:
            leaving.cancel()

    def _start(self) -> StreamStart:
        policy = self._check.policy.ref
        return StreamStart(
            request_id=self._request_id,
            policy=PolicyOut(name=policy.name, version=policy.version, sha256=policy.sha256),
            in_flight=list(self._check.in_flight),
            at_end=list(self._check.at_end),
        )

    async def _final(self, ended: Ended) -> bytes:
        """Count the last word and return its line, which may be long."""

        def work() -> tuple[StreamFinal, bytes]:
            self._streams.keep(ended.verdict, self._check.sample, self._whole, self._request_id)
            final = StreamFinal(
                reason=ended.reason,
                processed_index=self._check.state.released,
                checked=ended.checked,
                result=to_reply(ended.verdict, self._whole, self._request_id),
            )
            return final, _line(final)

        final, line = await self._streams.judged(work)
        self._streams.count(final, self._request)
        return line

    def _error(self, error: ServiceError) -> StreamError:
        self._request.state.log["error"] = error.code
        body = error_reply(error, self._request_id).error
        return StreamError(processed_index=self._check.state.released, error=body)


def _line(record: BaseModel) -> bytes:
    return record.model_dump_json().encode() + b"\n"


async def _read(work: Callable[[], T], line: bytes) -> T:
    """Return what is made of a line; a long one is read on a thread."""
    return work() if len(line) <= SMALL_BODY else await run_in_threadpool(work)


def _release(found: Release) -> StreamRelease:
    return StreamRelease(
        text=found.text,
        start=found.start,
        processed_index=found.end,
        flagged=list(found.flagged),
        judged_ms=found.timings.total,
    )


class _Records(Response):
    """Sends each record as soon as it is there, and cleans up whatever happens."""

    media_type = NDJSON

    def __init__(self, records: AsyncIterator[bytes], close: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self.headers["Cache-Control"] = "no-store"
        self.headers["X-Accel-Buffering"] = "no"  # nginx would collect the records
        self._records = records
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            async for line in self._records:
                await send({"type": "http.response.body", "body": line, "more_body": True})
            with suppress(OSError):
                await send({"type": "http.response.body", "body": b""})
        finally:
            await self._close()

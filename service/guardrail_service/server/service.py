"""Carries blocking checks off the event loop, and drops them when their caller leaves."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fastapi import HTTPException

from guardrail_service.errors import (
    Cancelled,
    ConfigurationError,
    LimitExceeded,
    NotReady,
    Overloaded,
    ServiceError,
)
from guardrail_service.guard.guard import Warmed
from guardrail_service.guard.waiting import Cancellation
from guardrail_service.policy.served import PolicySet
from guardrail_service.server.error_replies import error_reply
from guardrail_service.server.keys import KEY
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.schemas import (
    CheckReply,
    CheckRequest,
    ContextsReply,
    ContextsRequest,
    ErrorReply,
    FeedbackRequest,
)
from guardrail_service.server.shadows import Shadows
from guardrail_service.server.streams import Streams
from guardrail_service.server.telemetry import Telemetry
from guardrail_service.server.translate import (
    parse_check,
    request_size,
    to_overrides,
    to_passages,
    to_reply,
    to_sample,
)
from guardrail_service.types import Sample, Verdict

if TYPE_CHECKING:
    from guardrail_service.server.decisions import FeedbackState, Recorder

T = TypeVar("T")
STARTED = 256
"""Threads that run before the first request; of more, the others start when they are needed."""
CHECKS_BEHIND, ROWS_BEHIND = 2, 5
"""Steps of priority by which the threads of checks, and those that run models, stand behind the
event loop. A model run holds a core without the interpreter, which a check on that core would wait
for, and the loop with it."""
HELD_PER_FREE = 3
"""Places that one caller may hold for each that is free, while others hold some: one beside little
else has three quarters of all, two that want everything three sevenths each."""
FEEDBACK_THREADS, MOST_FEEDBACK = 4, 32
"""Threads that wait until a word is durable, and words at a time; further ones are refused."""
OTHERS_S = 1.0
"""Seconds after which an unknown decision is looked for again: another process, which judged it,
lets decisions gather for half of that before it writes them."""
Caller = str
"""`key` and its id, or an address where there are no keys."""
Gone = Callable[[], Awaitable[None]]
"""Returns when the caller has left."""


class RecordPlace(NamedTuple):
    """The origin that a record of a check names: `check`, `batch` or a dialect, and the item."""

    route: str
    item: int = 0


CHECK_ROUTE, STREAM = RecordPlace("check"), RecordPlace("stream")


class Rendered(NamedTuple):
    """A reply and its JSON, which was written on a thread: it may be long."""

    reply: CheckReply
    json: str


class Service:
    """The loaded service as the routes see it. One per process."""

    def __init__(self, runtime: Runtime, decisions: Recorder | None = None) -> None:
        self.runtime = runtime
        self.decisions = decisions
        self.telemetry = Telemetry(runtime)
        if decisions is not None:
            self.telemetry.registry.register(decisions)
        self._limits = runtime.settings.limits
        self._running = 0
        self._of: Counter[Caller] = Counter()
        for thread in runtime.scheduler.threads:
            _stand_behind(ROWS_BEHIND, thread.native_id)
        self._threads = _started(self._limits.concurrent_requests)
        self._feedback_threads = ThreadPoolExecutor(FEEDBACK_THREADS, "feedback")
        self._words = threading.BoundedSemaphore(MOST_FEEDBACK)
        self.shadows = Shadows(runtime.guard)
        self.telemetry.registry.register(self.shadows)
        self.streams = Streams(runtime, self.telemetry, self._threads, self._keep_stream)

    async def check(
        self,
        request: CheckRequest,
        request_id: str,
        gone: Gone,
        arrived: float,
        caller: Caller,
        place: RecordPlace = CHECK_ROUTE,
    ) -> Rendered:
        """Return the reply to one request.

        Args:
            request: What to judge.
            request_id: Goes into the reply.
            gone: Returns when the caller has left.
            arrived: Monotonic second from which the deadline counts.
            caller: Whose request it is.
            place: What a record of it says about where it came from.

        Raises:
            ServiceError: If it cannot be judged; never a verdict.
        """
        cancellation = Cancellation()
        with self._places(1, caller), self._expected(request, arrived, cancellation):
            deadline = request.deadline_ms
            return await self._run(
                request, request_id, deadline, gone, cancellation, arrived, place
            )

    async def warm(
        self, request: ContextsRequest, request_id: str, gone: Gone, caller: Caller
    ) -> ContextsReply:
        """Compute ahead what models need of passages.

        Raises:
            ServiceError: If they are too large, or the service too busy.
        """
        cancellation = Cancellation()

        def work() -> Warmed:
            passages = to_passages(request.contexts, self._limits)
            return self.runtime.guard.warm(passages, cancellation)

        with self._places(1, caller):
            done = await self._in_thread(work, gone, cancellation)
        return ContextsReply(request_id=request_id, sentences=sum(done), failed=done.failed)

    async def check_batch(
        self, items: list[object], request_id: str, gone: Gone, caller: Caller
    ) -> list[CheckReply | ErrorReply]:
        """Return a reply or an error per item, in order.

        No deadline applies, or verdicts would depend on the machine. As many items run at a time
        as there are workers, so that a batch does not crowd out single requests.
        """
        if len(items) > self._limits.batch_items:
            raise LimitExceeded(
                f"found {len(items)} items; expected at most {self._limits.batch_items}", "items"
            )
        at_once = min(self.runtime.settings.workers, len(items))
        places = asyncio.Semaphore(at_once)
        departed = asyncio.Event()
        batch = object()
        served = self.runtime.guard.served  # a reload changes no batch that has begun

        async def one(number: int, item: object) -> CheckReply | ErrorReply:
            place = RecordPlace("batch", number)
            async with places:
                if departed.is_set():
                    raise Cancelled("the caller left")
                cancellation = Cancellation(batch)
                return await self._item(item, request_id, departed, cancellation, place, served)

        watcher = asyncio.ensure_future(_set_when(gone, departed))
        try:
            with self._places(at_once, caller):
                return await asyncio.gather(*map(one, count(), items))
        finally:
            departed.set()
            watcher.cancel()

    async def feedback(self, word: FeedbackRequest) -> FeedbackState:
        """Store a person's word and return what became of it.

        Raises:
            HTTPException: If this service has no store (404).
            NotRecorded: If the store cannot be reached.
            Overloaded: If too many words wait for it already.
        """
        if self.decisions is None:
            raise HTTPException(404, "this service keeps no decisions")
        state = await self._said(self.decisions, word)
        if state != "unknown":
            return state
        await asyncio.sleep(OTHERS_S)
        return await self._said(self.decisions, word)

    async def _said(self, decisions: Recorder, word: FeedbackRequest) -> FeedbackState:
        if not self._words.acquire(blocking=False):
            raise Overloaded(
                f"{MOST_FEEDBACK} words of feedback wait to be stored; try again later",
                retry_after_s=self.runtime.settings.decisions.wait_s,
            )
        say = partial(copy_context().run, decisions.say, word)
        saying = self._feedback_threads.submit(say)
        saying.add_done_callback(lambda _: self._words.release())  # also when its caller has left
        return await asyncio.wrap_future(saying)

    @property
    def is_idle(self) -> bool:
        """Return whether no answer is being judged; streams are judged part by part."""
        return not self._running

    def close(self) -> None:
        """Drain, then stop the threads."""
        self.runtime.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._feedback_threads.shutdown(wait=False, cancel_futures=True)
        self.shadows.close(self.runtime.settings.drain_s)
        if self.decisions is not None:
            self.decisions.store.close(self.runtime.settings.drain_s)

    @contextmanager
    def _places(self, count: int, caller: Caller) -> Iterator[None]:
        """Hold places among the answers judged at the same time; alone, a batch always fits.

        Raises:
            NotReady: If nothing can be judged right now.
            Overloaded: If other requests, or other ones of this caller, hold too many places.
        """
        if (reason := self.runtime.scheduler.not_ready()) is not None:
            raise NotReady(reason)
        allowed = self._limits.concurrent_requests
        if self._running and self._running + count > allowed:
            raise Overloaded(
                f"{self._running} answers are being judged and {count} more would pass the limit "
                f"of {allowed}; try again later",
                retry_after_s=self.runtime.scheduler.backlog_s(),
            )
        self._limit_caller(count, caller)
        self._running += count
        self._of[caller] += count
        try:
            yield
        finally:
            self._running -= count
            self._of[caller] -= count
            if not self._of[caller]:
                del self._of[caller]

    def _limit_caller(self, count: int, caller: Caller) -> None:
        """Refuse a caller beyond its limit, or its part of the places while others hold some.

        That part is so many times the places that would be left, so there are always some left.
        """
        held = self._of[caller]
        if caller.startswith(KEY):
            kind, allowed = "key", self._limits.requests_per_key
        else:
            kind, allowed = "address", self._limits.requests_per_address
        left = self._limits.concurrent_requests - self._running - count
        found = f"{held} answers of this {kind} are being judged and {count} more would pass its"
        if allowed and held and held + count > allowed:
            reason = f"{found} limit of {allowed}"
        elif held and self._running > held and held + count > HELD_PER_FREE * left:
            reason = f"{found} part of {self._limits.concurrent_requests} beside other callers"
        else:
            return
        raise Overloaded(f"{reason}; try again later", self.runtime.scheduler.backlog_s())

    @contextmanager
    def _expected(
        self, request: CheckRequest, arrived: float, cancellation: Cancellation
    ) -> Iterator[None]:
        """Count a check as coming, so that those behind it know; refuse what cannot be in time."""
        guard, deadline = self.runtime.guard, request.deadline_ms
        size, owner = request_size(request), cancellation.owner
        guard.expect(size, request.policy, deadline, arrived, owner)
        try:
            yield
        finally:
            self.runtime.scheduler.forget(owner)

    async def _item(
        self,
        item: object,
        request_id: str,
        departed: asyncio.Event,
        cancellation: Cancellation,
        place: RecordPlace,
        served: PolicySet,
    ) -> CheckReply | ErrorReply:
        async def gone() -> None:
            await departed.wait()

        try:
            now = time.monotonic()
            done = await self._run(
                item, request_id, math.inf, gone, cancellation, now, place, served
            )
            return done.reply
        except Cancelled:
            raise
        except ServiceError as error:
            return error_reply(error, request_id)

    async def _run(
        self,
        body: object,
        request_id: str,
        deadline_ms: float | None,
        gone: Gone,
        cancellation: Cancellation,
        arrived: float,
        place: RecordPlace,
        served: PolicySet | None = None,
    ) -> Rendered:
        def work() -> Rendered:
            request = body if isinstance(body, CheckRequest) else parse_check(body)
            sample = to_sample(request, self._limits)
            verdict = self.runtime.guard.check(
                sample,
                request.policy,
                to_overrides(request),
                deadline_ms,
                request.mode,
                cancellation,
                arrived,
                served,
            )
            if self.decisions is not None or verdict.judged is not None:
                self._keep(verdict, sample, request, request_id, place)
            reply = to_reply(verdict, request, request_id)
            return Rendered(reply, reply.model_dump_json())

        done = await self._in_thread(work, gone, cancellation)
        self.telemetry.check(done.reply)
        return done

    def _keep_stream(
        self, verdict: Verdict, sample: Sample, request: CheckRequest, request_id: str
    ) -> None:
        self._keep(verdict, sample, request, request_id, STREAM)

    def _keep(
        self,
        verdict: Verdict,
        sample: Sample,
        request: CheckRequest,
        request_id: str,
        place: RecordPlace,
    ) -> None:
        """Have a verdict recorded, and the policies in the shadow of its own asked.

        Their word is in the record, unless the record has to be durable before the reply: no
        reply waits for them.

        Raises:
            NotRecorded: If a record is required and cannot be kept.
        """
        then = None
        if self.decisions is not None:
            given = (verdict, sample, request, request_id, *place)
            if verdict.judged is None or self.decisions.store.required:
                self.decisions.keep(*given)
            else:
                then = partial(self.decisions.keep, *given)
        if verdict.judged is not None:
            self.shadows.offer(verdict.judged, verdict.decision, then)

    async def _in_thread(self, work: Callable[[], T], gone: Gone, cancellation: Cancellation) -> T:
        """Return what `work` gives; it is cancelled when the caller leaves."""
        loop, run = asyncio.get_running_loop(), copy_context().run
        running = loop.run_in_executor(self._threads, lambda: run(work))
        watcher = asyncio.ensure_future(gone())
        waited: set[asyncio.Future[Any]] = {running, watcher}
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                cancellation.cancel()
            return await running
        finally:
            cancellation.cancel()  # nobody waits any more, whether or not it is done
            running.cancel()
            watcher.cancel()


def _started(count: int) -> ThreadPoolExecutor:
    """Return a pool whose threads run already: to start one, the event loop would wait for it.

    Raises:
        ConfigurationError: If the system has no thread left.
    """
    pool = ThreadPoolExecutor(count, "check", _stand_behind, (CHECKS_BEHIND,))
    together = threading.Barrier(min(count, STARTED))
    try:
        wait([pool.submit(together.wait) for _ in range(together.parties)])
    except RuntimeError as error:
        together.abort()  # those that did start must not wait for ever
        pool.shutdown()
        found = f"{count}, and this machine starts no further thread"
        raise ConfigurationError(
            "GUARDRAIL_MAX_CONCURRENT_REQUESTS", found, "fewer, or a higher limit of threads"
        ) from error
    return pool


def _stand_behind(steps: int, thread: int | None = None) -> None:
    """Lower the priority of a thread (None: the one that asks), where threads have their own."""
    if sys.platform == "linux":
        thread = threading.get_native_id() if thread is None else thread
        with suppress(OSError):  # it has ended, or a sandbox forbids it: then all are equal
            was = os.getpriority(os.PRIO_PROCESS, thread)
            os.setpriority(os.PRIO_PROCESS, thread, was + steps)


async def _set_when(gone: Gone, event: asyncio.Event) -> None:
    await gone()
    event.set()

"""The texts of one streamed response on their way through the guard, each at its own pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.errors import GuardrailError
from guardrail_client.middleware import replies
from guardrail_client.middleware.exchange import Exchange
from guardrail_client.middleware.outcome import AnswerOutcome, unchecked
from guardrail_client.middleware.repeats import Repeats
from guardrail_client.middleware.route_options import Route
from guardrail_client.middleware.stream_documents import WHOLE, Key, Lane

QUEUED = 64
"""Tokens of a lane that wait for the guard; beyond, the application waits."""
MAX_LANES = 16
"""Choices times fields; a response with more is not one that a reader is shown."""


class Lanes:
    """Guards every text of one response.

    Args:
        client: Asks the guard.
        route: How.
        exchange: What the texts are about; read when the first of them arrives.
        show: Sends a text of a lane to the reader.
        stop: Called when a lane must not go on: ends the response.
        done: Called when a lane has been sent to its end.
    """

    def __init__(
        self,
        client: AsyncGuardrailClient,
        route: Route,
        exchange: Exchange,
        show: Callable[[Lane, str], Awaitable[None]],
        stop: Callable[[Lane, AnswerOutcome], Awaitable[None]],
        done: Callable[[AnswerOutcome], Awaitable[None]],
    ) -> None:
        self._client = client
        self._route = route
        self._exchange = exchange
        self._show = show
        self._stop = stop
        self._done = done
        self._queues: dict[Lane, asyncio.Queue[str | None]] = {}
        self._tasks: dict[Lane, asyncio.Task[None]] = {}
        self._ended: set[Lane] = set()
        self.repeats = Repeats()

    def has_ended(self, lane: Lane) -> bool:
        """Return whether a lane takes no more text."""
        return lane in self._ended

    async def put(self, lane: Lane, text: str) -> None:
        """Give a lane more text; waits while it has too much."""
        self.repeats.wrote(lane, text)
        if lane not in self._queues:
            if len(self._queues) >= MAX_LANES:
                outcome = unchecked(self._route, self._exchange.path, "too_many_choices")
                await self._stop(lane, AnswerOutcome(outcome.path, "replaced", None, outcome.error))
                return
            self._queues[lane] = asyncio.Queue(QUEUED)
            self._tasks[lane] = asyncio.create_task(self._run(lane))
        await self._push(lane, text)

    async def _push(self, lane: Lane, item: str | None) -> None:
        """Queue an item; a lane that has failed raises here instead of never taking it."""
        task = self._tasks[lane]
        putting = asyncio.ensure_future(self._queues[lane].put(item))
        await asyncio.wait({putting, task}, return_when=asyncio.FIRST_COMPLETED)
        if not putting.done():
            putting.cancel()
        if task.done():
            task.result()

    @property
    def open(self) -> bool:
        """Return whether something is still held."""
        return bool(self._tasks)

    async def end(self, choices: Iterable[Key] | None = None) -> None:
        """Finish the lanes of some choices, or all, and wait until they have been sent."""
        wanted = None if choices is None else set(choices)
        ending = [lane for lane in self._tasks if wanted is None or lane[0] in wanted]
        for lane in ending:
            if not self._tasks[lane].done():
                await self._push(lane, None)
        await asyncio.gather(*(self._tasks[lane] for lane in ending))
        for lane in ending:
            del self._queues[lane], self._tasks[lane]
        self._ended |= {lane for lane in ending if not lane[1].startswith(WHOLE)}

    async def cancel(self) -> None:
        """Drop whatever is still held."""
        tasks = [task for task in self._tasks.values() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, lane: Lane) -> None:
        queue = self._queues[lane]
        blank = await _first_ink(queue)
        if blank.isspace() or not blank:  # there is nothing to judge
            await self._say(lane, blank)
            return
        try:
            outcome = await self._guarded(lane, blank, queue)
        except (GuardrailError, TypeError) as error:
            outcome = unchecked(self._route, self._exchange.path, error)
            outcome = AnswerOutcome(outcome.path, "replaced", None, outcome.error)
        if outcome.shown == "replaced":
            await self._stop(lane, outcome)
            return
        self._route.report(outcome)
        await self._done(outcome)

    async def _guarded(
        self, lane: Lane, first: str, queue: asyncio.Queue[str | None]
    ) -> AnswerOutcome:
        route = self._route
        if route.hold == "all":
            return await self._held(lane, first, queue)
        stream = self._client.check_stream(
            _tokens(first, queue),
            **route.about(self._exchange),
            sentence_deadline_ms=route.sentence_deadline_ms,
            stop_on=route.stop_on,
            on_error=route.on_error,
            timeout=route.timeout,
        )
        times = route.begun()
        try:
            async with stream:
                async for text in stream:
                    times.shown()
                    await self._say(lane, text, None if stream.error else stream.processed)
        finally:
            times.ended(stream.waited)
        return replies.ended(self._exchange.path, stream)

    async def _held(
        self, lane: Lane, first: str, queue: asyncio.Queue[str | None]
    ) -> AnswerOutcome:
        """Judge a text when it is whole, and show it then."""
        text = "".join([token async for token in _tokens(first, queue)])
        asked: Any = {**self._route.about(self._exchange), "include": replies.INCLUDE}
        verdict: replies.Verdict
        try:
            with self._route.timed():
                verdict = await self._client.check(text, timeout=self._route.timeout, **asked)
        except (GuardrailError, ValueError) as error:
            verdict = error
        outcome, shown = replies.treated(self._route, self._exchange.path, text, verdict)
        if outcome.shown != "replaced":
            await self._say(lane, shown, len(text))
        return outcome

    async def _say(self, lane: Lane, text: str, upto: int | None = None) -> None:
        await self._show(lane, text)
        self.repeats.showed(lane, text, upto)


async def _first_ink(queue: asyncio.Queue[str | None]) -> str:
    """Return the text up to the first token that shows something, or all of it."""
    text = ""
    while not text.strip() and (token := await queue.get()) is not None:
        text += token
    return text


async def _tokens(first: str, queue: asyncio.Queue[str | None]) -> AsyncIterator[str]:
    yield first
    while (token := await queue.get()) is not None:
        yield token

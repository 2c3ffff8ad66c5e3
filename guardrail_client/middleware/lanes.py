"""The texts of one streamed response on their way through the guard, each at its own pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import Any

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.errors import GuardrailError
from guardrail_client.middleware import replies
from guardrail_client.middleware.bodies import UnreadableBody
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

    A text that goes on behind its declared end is judged again from its beginning, as its halves
    could say what it may not; from then on no declared end of it is believed.

    Args:
        client: Asks the guard.
        route: How.
        exchange: What the texts are about; read when the first of them arrives.
        show: Sends a text of a lane to the reader.
        stop: Called when a lane must not go on: ends the response.
        done: Called when a lane has been sent to its end.
        noted: Called when `repeats` knows more of what has been shown.
    """

    def __init__(
        self,
        client: AsyncGuardrailClient,
        route: Route,
        exchange: Exchange,
        show: Callable[[Lane, str], Awaitable[None]],
        stop: Callable[[Lane, AnswerOutcome], Awaitable[None]],
        done: Callable[[AnswerOutcome], Awaitable[None]],
        noted: Callable[[], Awaitable[None]],
    ) -> None:
        self._client = client
        self._route = route
        self._exchange = exchange
        self._show = show
        self._stop = stop
        self._done = done
        self._noted = noted
        self._queues: dict[Lane, asyncio.Queue[str | None]] = {}
        self._tasks: dict[Lane, asyncio.Task[None]] = {}
        self._ended: set[Lane] = set()
        self._late: set[Lane] = set()
        self.repeats = Repeats(is_text=route.sse == "text")

    async def put(self, lane: Lane, text: str) -> None:
        """Give a lane more text; waits while it has too much."""
        before = ""
        if lane in self._ended:
            self._ended.remove(lane)
            self._late.add(lane)
            before = self.repeats.written[lane]
        self.repeats.wrote(lane, text)
        if lane not in self._queues:
            if len(self._queues) >= MAX_LANES:
                outcome = unchecked(self._route, self._exchange.path, "too_many_choices")
                await self._stop(lane, AnswerOutcome(outcome.path, "replaced", None, outcome.error))
                return
            self._queues[lane] = asyncio.Queue(QUEUED)
            self._tasks[lane] = asyncio.create_task(self._run(lane, before))
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

    async def end(self) -> None:
        """Finish all lanes and wait until they have been sent."""
        await self._finish([*self._tasks])

    async def declared(self, choices: Collection[Key] | None) -> bool:
        """Finish the lanes of which the application says that they have ended.

        Returns whether one goes on, as its end is not believed.

        Args:
            choices: Keys of the lanes; None: all.
        """
        wanted = [lane for lane in self._tasks if choices is None or lane[0] in choices]
        await self._finish([lane for lane in wanted if lane not in self._late])
        return any(lane in self._late for lane in wanted)

    async def finish(self, lane: Lane) -> None:
        """Finish one lane, if it is open; the next text of it is another."""
        await self._finish([lane for lane in [lane] if lane in self._tasks])
        self._ended.discard(lane)
        self._late.discard(lane)

    async def _finish(self, ending: Sequence[Lane]) -> None:
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

    async def _run(self, lane: Lane, before: str) -> None:
        queue = self._queues[lane]
        blank = await _first_ink(queue)
        if blank.isspace() or not blank:  # there is nothing to judge
            await self._say(lane, blank)
            return
        try:
            outcome = await self._guarded(lane, before + blank, queue)
        except (GuardrailError, TypeError, UnreadableBody) as error:
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
        behind = _Behind(self.repeats.shown.get(lane, ""))
        try:
            async with stream:
                async for text in stream:
                    times.shown()
                    upto = None if stream.error else stream.processed
                    await self._say(lane, behind.rest(text), upto)
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
            behind = _Behind(self.repeats.shown.get(lane, ""))
            await self._say(lane, behind.rest(shown), len(text))
        return outcome

    async def _say(self, lane: Lane, text: str, upto: int | None = None) -> None:
        await self._show(lane, text)
        self.repeats.showed(lane, text, upto)
        await self._noted()


class _Behind:
    """Leaves away what has been shown of a text that is judged again from its beginning."""

    def __init__(self, shown: str) -> None:
        self._left = shown

    def rest(self, text: str) -> str:
        """Return what is new of the next piece to show.

        Raises:
            UnreadableBody: If it is no longer what has been shown: nothing can take that back.
        """
        size = min(len(text), len(self._left))
        if text[:size] != self._left[:size]:
            raise UnreadableBody("text_after_end")
        self._left = self._left[size:]
        return text[size:]


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

"""Guards a stream of tokens: iterate over what may be shown while the model is still writing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, closing, suppress
from functools import partial
from typing import Any, Literal, Self, TypeVar

from guardrail_client._stream_session import Record, StreamSession
from guardrail_client.circuit import Attempt, Circuit
from guardrail_client.errors import UNAVAILABLE, GuardrailError
from guardrail_client.types import StreamFinal, StreamPart

OnError = Literal["closed", "open"]
Tokens = Iterable[str] | AsyncIterable[str]
T = TypeVar("T")


class _Story:
    """The state of a stream: text seen and shown; shared by both kinds of iterator.

    Attributes:
        final: The service's last word; None before the end, and after an error.
        error: Why the rest was shown unchecked, where the caller chose to fail open.
        text: What has been shown so far.
    """

    def __init__(
        self, on_error: OnError, fallback: str | None, circuit: Circuit | None = None
    ) -> None:
        self._attempt = Attempt(circuit)
        self.final: StreamFinal | None = None
        self.error: GuardrailError | None = None
        self._on_error = on_error
        self._fallback = fallback
        self._shown: list[str] = []
        self._held = ""
        self._arrived = 0
        self._session: StreamSession | None = None

    @property
    def text(self) -> str:
        """Return what has been shown."""
        return "".join(self._shown)

    @property
    def waited(self) -> float:
        """Return the seconds spent waiting for the guard; the model's own do not count."""
        return self._session.budget.spent if self._session is not None else 0.0

    @property
    def processed(self) -> int:
        """Return the code points of the answer, as it was written, that have been decided."""
        return self._arrived - len(self._held)

    @property
    def blocked(self) -> bool:
        """Return whether the stream was stopped."""
        return self.final is not None and self.final.reason == "blocked"

    def wrote(self, token: str) -> str:
        """Keep what the model wrote until it is decided."""
        if not isinstance(token, str):
            raise TypeError(f"tokens: found {type(token).__name__}, expected str")
        self._held += token
        self._arrived += len(token)
        return token

    def decided(self, record: Record) -> str:
        """Return what to show for a record; nothing, or the fallback, at the end."""
        if isinstance(record, StreamPart):
            self._attempt.lives()
            self._held = self._held[len(self._held) - (self._arrived - record.processed_index) :]
            return self.shown(record.text)
        self._attempt.end()
        self.final = record
        return self.shown(self._fallback or "") if self.blocked else ""

    def shown(self, text: str) -> str:
        """Note that a text is shown."""
        if text:
            self._shown.append(text)
        return text

    def opened(self, error: GuardrailError) -> str:
        """Return the held text if the rest may be shown unchecked; else raise the error."""
        self._attempt.end(error)
        if self._on_error != "open" or not isinstance(error, UNAVAILABLE):
            raise error
        self.error = error
        held, self._held = self._held, ""
        return self.shown(held)


class AsyncCheckStream(_Story):
    """Yields the parts of an answer that may be shown, in order. asyncio only.

    Closing it, or leaving `async with`, hangs up; the model's iterator is closed with it.
    """

    def __init__(
        self,
        session: StreamSession,
        tokens: Tokens,
        on_error: OnError,
        fallback: str | None,
        circuit: Circuit | None = None,
    ) -> None:
        super().__init__(on_error, fallback, circuit)
        self._session: StreamSession = session
        self._tokens = _pulled(tokens)
        self._pull: asyncio.Future[str] | None = None
        self._texts = self._all()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        """Return the next text to show."""
        return await anext(self._texts)

    async def aclose(self) -> None:
        """Hang up."""
        await self._texts.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def _all(self) -> Any:
        async with aclosing(self._tokens) as tokens:
            try:
                async with aclosing(self._guarded(tokens)) as texts:
                    async for text in texts:
                        yield text
            except GuardrailError as error:
                if held := self.opened(error):
                    yield held
                async for token in self._rest(tokens):
                    yield self.shown(token)
            finally:
                self._attempt.end(GeneratorExit())
                await _dropped(self._pull)

    async def _guarded(self, tokens: Any) -> Any:
        take: asyncio.Future[Record] | None = None
        self._attempt.begin()
        try:
            await self._session.open()
            self._pull = asyncio.ensure_future(anext(tokens))
            take = asyncio.ensure_future(self._session.next())
            while self.final is None:
                if self._pull is None:
                    await self._session.budget.wait(asyncio.wait({take}))
                else:
                    await asyncio.wait({self._pull, take}, return_when=asyncio.FIRST_COMPLETED)
                if take.done():
                    if text := self.decided(take.result()):
                        yield text
                    take = asyncio.ensure_future(self._session.next())
                elif self._pull is not None:
                    self._pull = await self._pushed(self._pull, tokens)
        finally:
            await _dropped(take)
            await self._session.close()

    async def _rest(self, tokens: Any) -> Any:
        """Yield what the model writes from here on, the token asked for already included."""
        if self._pull is not None:
            pull, self._pull = self._pull, None
            with suppress(StopAsyncIteration):
                yield self.wrote(await pull)
        async for token in tokens:
            yield token

    async def _pushed(self, pull: asyncio.Future[str], tokens: Any) -> asyncio.Future[str] | None:
        """Send a token and ask for the next; None behind the last."""
        self._pull = None
        try:
            token = pull.result()
        except StopAsyncIteration:
            await self._session.end()
            return None
        await self._session.send(self.wrote(token))
        pulled: asyncio.Future[str] = asyncio.ensure_future(anext(tokens))
        return pulled


class CheckStream(_Story):
    """Yields the parts of an answer that may be shown, in order.

    The model's iterator runs in the caller's thread; what may be shown comes out between tokens.
    Closing it, or leaving `with`, hangs up.
    """

    def __init__(
        self,
        session: Callable[[], StreamSession],
        run: Callable[[Callable[[], Awaitable[Any]]], Any],
        tokens: Tokens,
        on_error: OnError,
        fallback: str | None,
        circuit: Circuit | None = None,
    ) -> None:
        super().__init__(on_error, fallback, circuit)
        if not isinstance(tokens, Iterable):
            raise TypeError("tokens: found an async iterator; use AsyncGuardrailClient")
        self._open = session
        self._run = run
        self._tokens = tokens
        self._texts = self._all()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the next text to show."""
        text: str = next(self._texts)
        return text

    def close(self) -> None:
        """Hang up."""
        self._texts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _all(self) -> Any:
        tokens = iter(self._tokens)
        try:
            with closing(self._guarded(tokens)) as texts:
                yield from texts
        except GuardrailError as error:
            if held := self.opened(error):
                yield held
            for token in tokens:
                yield self.shown(token)
        finally:
            self._attempt.end(GeneratorExit())
            if inspect.isgenerator(tokens):
                tokens.close()

    def _guarded(self, tokens: Iterator[str]) -> Any:
        self._attempt.begin()
        session = self._session = self._run(self._made)
        try:
            self._run(session.open)
            for token in tokens:
                text = self.wrote(token)
                yield from self._now(self._run(partial(_told, session, text)))
                if self.final is not None:
                    return
            self._run(session.end)
            while self.final is None:
                yield from self._now([self._run(session.last)])
        finally:
            self._run(session.close)

    async def _made(self) -> StreamSession:
        return self._open()

    def _now(self, records: list[Record]) -> Iterator[str]:
        for record in records:
            if text := self.decided(record):
                yield text


async def _told(session: StreamSession, text: str) -> list[Record]:
    """Send a token and return what has come back in the meantime."""
    await session.send(text)
    return session.ready()


async def _pulled(tokens: Tokens) -> Any:
    """Yield from either kind of iterable and close it at the end."""
    if isinstance(tokens, AsyncIterable):
        iterator = aiter(tokens)
        try:
            async for token in iterator:
                yield token
        finally:
            if hasattr(iterator, "aclose"):
                await iterator.aclose()
    else:
        for token in tokens:
            yield token
            await asyncio.sleep(0)  # a list would otherwise never let the guard's reply in


async def _dropped(*futures: asyncio.Future[Any] | None) -> None:
    started = [future for future in futures if future is not None]
    for future in started:
        future.cancel()
    await asyncio.gather(*started, return_exceptions=True)

"""What becomes of a guarded response's body: passed on, a JSON document, or a stream.

Nothing of an answer is sent before it has been decided.
"""

from __future__ import annotations

import asyncio
import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from guardrail_client.middleware import bodies, sse
from guardrail_client.middleware.asgi_request import LOG, Guarded, judged
from guardrail_client.middleware.bodies import Header, UnreadableBody
from guardrail_client.middleware.exchange import replaced
from guardrail_client.middleware.lanes import Lanes
from guardrail_client.middleware.outcome import AnswerOutcome, unchecked
from guardrail_client.middleware.routes import TEXT_TYPES
from guardrail_client.middleware.sse import Events, Lane

TEXT_LANE: Lane = (0, "text")


class Body:
    """A body that holds no answer: an error, a redirect, a page, a file. Passes as it is."""

    def __init__(self, guarded: Guarded, end_application: Callable[[], None]) -> None:
        self.guarded = guarded
        self.end_application = end_application
        self.route = guarded.route
        self.exchange = guarded.exchange
        self.stopped = False

    async def begin(self) -> None:
        """Take the start of the response."""
        await self.guarded.downstream(self.guarded.start)

    async def feed(self, data: bytes, more: bool) -> None:
        """Take a part of the body."""
        await self.send(data, more)

    async def send(self, data: bytes, more: bool) -> None:
        """Send a part of the body."""
        await self.guarded.downstream(
            {"type": "http.response.body", "body": data, "more_body": more}
        )

    async def close(self) -> None:
        """Drop what is held."""


class JSONBody(Body):
    """A JSON document with the answer in it, collected up to a limit."""

    async def begin(self) -> None:
        """Wait for the body: the headers depend on the verdict."""
        self._data = bytearray()
        self._passing = False

    async def feed(self, data: bytes, more: bool) -> None:
        """Collect; at the end check and send."""
        if self.stopped:
            return
        if self._passing:
            await self.send(data, more)
            return
        self._data += data
        if len(self._data) > self.route.max_bytes:
            await self._without_verdict("too_large", more)
        elif not more:
            try:
                await self._checked(bytes(self._data))
            except UnreadableBody as error:
                await self._without_verdict(error.code, more)

    async def _checked(self, data: bytes) -> None:
        encoding = bodies.value(self.guarded.headers, b"content-encoding")
        document = bodies.parsed(bodies.decoded(data, encoding, self.route.max_bytes))
        exchange = self.guarded.know_the_question()
        exchange.response = document
        answer = self.route.find_answer(exchange)
        if not isinstance(answer, str) or not answer.strip():
            await self._sent(AnswerOutcome(exchange.path, "as_is", None, "no_answer_found"), data)
            return
        outcome, text = await judged(self.guarded, answer)
        if text == answer:
            await self._sent(outcome, data)
            return
        changed = replaced(document, answer, text)
        if changed is None:  # the finder made the answer up from several parts
            raise UnreadableBody("answer_not_in_document")
        await self._sent(outcome, bodies.dumped(changed), changed=True)

    async def _sent(self, outcome: AnswerOutcome, data: bytes, *, changed: bool = False) -> None:
        headers = self.guarded.headers
        if changed:
            headers = bodies.rewritten(headers, len(data))
        await self._start(outcome, headers)
        await self.send(data, more=False)
        self.route.report(outcome)

    async def _start(self, outcome: AnswerOutcome, headers: Sequence[Header]) -> None:
        started = {**self.guarded.start, "headers": bodies.added(headers, outcome.headers())}
        await self.guarded.downstream(started)

    async def _without_verdict(self, code: str, more: bool) -> None:
        """Send what cannot be checked, or an error in its place."""
        outcome = unchecked(self.route, self.exchange.path, code)
        LOG.warning("answer not checked, %s: %s", outcome.shown, code)
        if outcome.shown == "as_is":
            self._passing = True
            await self._start(outcome, self.guarded.headers)
            await self.send(bytes(self._data), more)
            self.route.report(outcome)
            return
        error = {"error": {"code": "guardrail_unchecked", "message": self.route.fallback}}
        data = bodies.dumped(error)
        headers = bodies.rewritten(self.guarded.headers, len(data))
        self.guarded.start = {**self.guarded.start, "status": 502}
        await self._start(outcome, bodies.added(headers, [("content-type", "application/json")]))
        await self.send(data, more=False)
        self.route.report(outcome)
        if more:
            self.stopped = True
            self.end_application()


class StreamBody(Body, ABC):
    """A body that is sent while it is written."""

    async def begin(self) -> None:
        """Send the headers; the verdict comes later."""
        self._whole = False  # the application has written everything
        self._lock = asyncio.Lock()
        self._lanes = Lanes(
            self.guarded.client, self.route, self.exchange, self.show, self._stop, self.done
        )
        headers = bodies.rewritten(self.guarded.headers, None)
        headers = bodies.added(headers, [("X-Guardrail-Decision", "streaming")])
        await self.guarded.downstream({**self.guarded.start, "headers": headers})

    async def feed(self, data: bytes, more: bool) -> None:
        """Take a part of the body."""
        if self.stopped:
            return
        self._whole = not more
        self.guarded.know_the_question()
        try:
            encoding = bodies.value(self.guarded.headers, b"content-encoding")
            if encoding not in ("", "identity"):
                raise UnreadableBody("encoded_stream")
            await self.take(data, more)
        except UnreadableBody as error:
            outcome = unchecked(self.route, self.exchange.path, error.code)
            await self._stop(TEXT_LANE, AnswerOutcome(outcome.path, "replaced", None, error.code))
            return
        if not more and not self.stopped:
            await self._lanes.end()
        if not more and not self.stopped:
            await self.send(self.tail(), more=False)

    @abstractmethod
    async def take(self, data: bytes, more: bool) -> None:
        """Give the texts in a part of the body to their lanes."""

    async def show(self, lane: Lane, text: str) -> None:
        """Send a text that has been decided."""
        if text and not self.stopped:
            await self.emit(self.shown(lane, text))

    async def emit(self, data: bytes) -> None:
        """Send bytes; lanes take turns."""
        async with self._lock:
            if data and not self.stopped:
                await self.send(data, more=True)

    @abstractmethod
    def shown(self, lane: Lane, text: str) -> bytes:
        """Return a text as it is sent."""

    def ending(self, lane: Lane) -> bytes:
        """Return what tells a reader that the answer was stopped."""
        return b""

    def tail(self) -> bytes:
        """Return what the charset still has to say when everything has been sent."""
        return b""

    async def done(self, outcome: AnswerOutcome) -> None:
        """Tell a reader the verdict, where the format has room for it."""

    async def close(self) -> None:
        """Drop what is held."""
        await self._lanes.cancel()

    async def _stop(self, lane: Lane, outcome: AnswerOutcome) -> None:
        """End the response with the fallback."""
        async with self._lock:
            if self.stopped:
                return
            self.stopped = True
            last = self.shown(lane, self.route.fallback) + self.ending(lane)
            await self.send(last + self.tail(), more=False)
        if outcome.error is not None:
            LOG.warning("stream not checked to its end: %s", outcome.error)
        self.route.report(outcome)
        if not self._whole:
            self.end_application()


class TextBody(StreamBody):
    """Plain text, in pieces of any size."""

    async def begin(self) -> None:
        """Send the headers; the verdict comes later."""
        charset = bodies.charset(self.guarded.headers)
        self._decoder = codecs.getincrementaldecoder(charset)("replace")
        self._encoder = bodies.encoder(charset)
        await super().begin()

    async def take(self, data: bytes, more: bool) -> None:
        """Give the text to its lane."""
        if text := self._decoder.decode(data, final=not more):
            await self._lanes.put(TEXT_LANE, text)

    def shown(self, lane: Lane, text: str) -> bytes:
        """Return a text as it is sent."""
        return self._encoder.encode(text)

    def tail(self) -> bytes:
        """Return a character that was held back, or the way back to ASCII."""
        return self._encoder.encode("", final=True)


class EventBody(StreamBody):
    """Server-sent events with texts in them."""

    async def begin(self) -> None:
        """Send the headers; the verdict comes later."""
        self._events = Events()
        self._templates: dict[Lane, bytes] = {}
        await super().begin()

    async def take(self, data: bytes, more: bool) -> None:
        """Give the texts of complete events to their lanes; what has none passes in its turn."""
        await self._each(self._events.feed(data))
        if not more:
            await self._each(self._events.end())

    async def _each(self, events: Iterable[bytes]) -> None:
        for event in events:
            found = sse.find(event, self.route.sse)
            for lane, text in found.texts.items():
                self._templates[lane] = found.template
                if text:
                    await self._lanes.put(lane, text)
            if found.is_last or found.ends:
                await self._lanes.end(None if found.is_last else found.ends)
            if found.rest is not None:
                await self.emit(found.rest)

    def shown(self, lane: Lane, text: str) -> bytes:
        """Return a text as it is sent."""
        return sse.fill(self._template(lane), self.route.sse, lane, text)

    def ending(self, lane: Lane) -> bytes:
        """Return the event that says that a filter ended the answer."""
        return sse.stopped(self._template(lane), self.route.sse, lane)

    async def done(self, outcome: AnswerOutcome) -> None:
        """Tell a reader the verdict in a comment, which readers of events skip."""
        said = " ".join(f"{name.lower()}={text}" for name, text in outcome.headers())
        await self.emit(sse.comment(said))

    def _template(self, lane: Lane) -> bytes:
        return self._templates.get(lane) or sse.blank(self.route.sse)


def body_kind(status: int, headers: Sequence[Header]) -> type[Body]:
    """Return how a response's body is treated."""
    kind = bodies.media_type(headers)
    if not 200 <= status < 300 or status == 204:
        return Body
    if bodies.is_json(kind):
        return JSONBody
    if kind == "text/event-stream":
        return EventBody
    return TextBody if kind in TEXT_TYPES else Body

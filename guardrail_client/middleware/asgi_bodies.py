"""Guards a response's body: a JSON document, a stream, or a body that nobody can read.

Nothing of an answer is sent before it has been decided.
"""

from __future__ import annotations

import asyncio
import codecs
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence

from guardrail_client.middleware import bodies, event_reader, event_writer, replies, sse
from guardrail_client.middleware.asgi_request import Guarded, verdicts
from guardrail_client.middleware.bodies import Header, UnreadableBody
from guardrail_client.middleware.lanes import Lanes
from guardrail_client.middleware.outcome import NO_ANSWER, AnswerOutcome, unchecked
from guardrail_client.middleware.replies import LOG
from guardrail_client.middleware.shapes import Framing
from guardrail_client.middleware.stream_documents import Lane

MAX_HELD = 4096
"""Events that wait for the texts before them."""
TEXT_LANE: Lane = (0, "text")


class Body:
    """A body that holds no answer, or one that the route lets pass. Passes as it is."""

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

    async def start(self, outcome: AnswerOutcome, headers: Sequence[Header]) -> None:
        """Send the start of the response."""
        started = {**self.guarded.start, "headers": bodies.added(headers, outcome.headers())}
        await self.guarded.downstream(started)

    async def close(self) -> None:
        """Drop what is held."""


class EmptiedBody(Body):
    """A redirect: its reader is led on and shown nothing."""

    async def begin(self) -> None:
        """Send the headers of an empty body."""
        headers = bodies.rewritten(self.guarded.headers, 0)
        await self.guarded.downstream({**self.guarded.start, "headers": headers})

    async def feed(self, data: bytes, more: bool) -> None:
        """Send the end."""
        if not more:
            await self.send(b"", more=False)


class CollectedBody(Body, ABC):
    """A body that is collected up to a limit, because its headers depend on it."""

    async def begin(self) -> None:
        """Wait for the body."""
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
        try:
            if len(self._data) > self.route.max_bytes:
                raise UnreadableBody("too_large")
            if not more:
                await self.sent(*await self.checked(bytes(self._data)))
        except UnreadableBody as error:
            await self.without_verdict(error.code, more)

    @abstractmethod
    async def checked(self, data: bytes) -> tuple[AnswerOutcome, bytes | None]:
        """Return what happened to the body, and what to send if it is another.

        Raises:
            UnreadableBody: If it cannot be checked.
        """

    async def sent(self, outcome: AnswerOutcome, changed: bytes | None) -> None:
        """Send the body, or another."""
        headers = self.guarded.headers
        if changed is not None:
            headers = bodies.rewritten(headers, len(changed))
        await self.start(outcome, headers)
        await self.send(bytes(self._data) if changed is None else changed, more=False)
        self.route.report(outcome)

    async def without_verdict(self, code: str, more: bool) -> None:
        """Send what cannot be checked, or an error in its place."""
        outcome, error = replies.without_verdict(self.route, self.exchange.path, code)
        if outcome.shown == "as_is":
            self._passing = True
            await self.start(outcome, self.guarded.headers)
            await self.send(bytes(self._data), more)
            self.route.report(outcome)
            return
        status = self.guarded.start["status"]
        self.guarded.start = {**self.guarded.start, "status": status if status >= 400 else 502}
        await self.start(outcome, replies.refusing(self.guarded.headers, error))
        await self.send(error, more=False)
        self.route.report(outcome)
        self.stopped = True
        if more:
            self.end_application()


class JSONBody(CollectedBody):
    """A JSON document with answers in it."""

    async def checked(self, data: bytes) -> tuple[AnswerOutcome, bytes | None]:
        """Check every text of the document."""
        exchange = self.guarded.know_the_question()
        document = replies.read_reply(self.route, self.guarded.headers, data, exchange)
        said = await verdicts(self.guarded, document) if document.texts else []
        return replies.answered(self.route, exchange.path, document, said)


class FailureBody(CollectedBody):
    """A framework's document about a failed request; no other kind can be checked."""

    async def checked(self, data: bytes) -> tuple[AnswerOutcome, bytes | None]:
        """Let the ways pass in which frameworks say it."""
        status = self.guarded.start["status"]
        return replies.failed(self.route, self.exchange.path, status, self.guarded.headers, data)


class UnreadBody(CollectedBody):
    """A body of a kind that cannot be checked."""

    code = "unread_media_type"

    async def feed(self, data: bytes, more: bool) -> None:
        """Let the route decide as soon as something is there."""
        if self.stopped or self._passing:
            await super().feed(data, more)
        elif not data and not more:
            outcome = AnswerOutcome(self.exchange.path, "as_is", None, NO_ANSWER)
            await self.sent(outcome, None)
        elif data:
            self._data += data
            await self.without_verdict(self.code, more)

    async def checked(self, data: bytes) -> tuple[AnswerOutcome, bytes | None]:
        """Never."""
        raise UnreadableBody(self.code)


class AmbiguousBody(UnreadBody):
    """A body about whose kind its headers say two things."""

    code = "ambiguous_headers"


class EncodedStream(UnreadBody):
    """A compressed stream."""

    code = "encoded_stream"


class LetPassBody(Body):
    """A body of a kind that the route lets pass unchecked."""

    async def begin(self) -> None:
        """Say that nothing is checked."""
        outcome = AnswerOutcome(self.exchange.path, "as_is", None, "unchecked_type")
        LOG.warning("answer not checked, as_is: %s", outcome.error)
        await self.start(outcome, self.guarded.headers)
        self.route.report(outcome)


class StreamBody(Body, ABC):
    """A body that is sent while it is written."""

    async def begin(self) -> None:
        """Send the headers; the verdict comes later."""
        self._passing = False  # nothing is read any more
        self._whole = False  # the application has written everything
        self._lock = asyncio.Lock()
        self._lanes = Lanes(
            self.guarded.client, self.route, self.exchange, self.show, self._stop, self.done
        )
        await self.announce()

    async def announce(self) -> None:
        """Send the headers."""
        headers = bodies.rewritten(self.guarded.headers, None)
        headers = bodies.added(headers, [("X-Guardrail-Decision", "streaming")])
        await self.guarded.downstream({**self.guarded.start, "headers": headers})

    async def feed(self, data: bytes, more: bool) -> None:
        """Take a part of the body."""
        if self.stopped:
            return
        self._whole = not more
        if self._passing:
            await self.send(data, more)
            return
        self.guarded.know_the_question()
        try:
            await self.take(data, more)
        except UnreadableBody as error:
            await self._unreadable(error.code, more)
            return
        if not more and not self.stopped:
            await self._ended()

    async def _ended(self) -> None:
        await self._lanes.end()
        try:
            await self.before_the_end()
        except UnreadableBody as error:
            await self._stop(TEXT_LANE, self._replaced(error.code))
        if not self.stopped:
            await self.send(self.tail(), more=False)

    async def _unreadable(self, code: str, more: bool) -> None:
        """Pass on what cannot be read from here on, behind what could, or stop."""
        outcome = unchecked(self.route, self.exchange.path, code)
        if outcome.shown == "replaced":
            await self._stop(TEXT_LANE, self._replaced(code))
            return
        LOG.warning("stream not checked to its end, as_is: %s", code)
        await self._lanes.end()
        if self.stopped:
            return
        await self.before_the_end()
        self._passing = True
        self.route.report(outcome)
        await self.send(self.unread(), more)

    def unread(self) -> bytes:
        """Return what has arrived and could not be read."""
        return b""

    def _replaced(self, code: str) -> AnswerOutcome:
        return AnswerOutcome(self.exchange.path, "replaced", None, code)

    async def before_the_end(self) -> None:
        """Send what waited for the texts."""

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

    def ending(self, lane: Lane, text: str, outcome: AnswerOutcome) -> bytes:
        """Return the fallback, and what tells a reader that the answer was stopped."""
        return self.shown(lane, text)

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
            last = self.ending(lane, self.route.fallback_for(outcome), outcome)
            await self.send(last + self.tail(), more=False)
        if outcome.error is not None:
            LOG.warning("stream not checked to its end, replaced: %s", outcome.error)
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

    framing: Framing = "events"

    async def begin(self) -> None:
        """Send the headers; the verdict comes later."""
        self._events = self.cutter()
        self._shape = event_reader.first_shape(self.framing, self.route.sse)
        self._templates: dict[Lane, bytes] = {}
        self._held: list[tuple[bytes, tuple[str, ...]]] = []
        self._unsent = b""
        await super().begin()

    def cutter(self) -> sse.Cutter:
        """Return what cuts bytes into events."""
        return sse.CUTTERS[self.framing]()

    def found(self, event: bytes) -> event_reader.Found:
        """Return what an event holds.

        Raises:
            UnreadableBody: If the route refuses it.
        """
        route = self.route
        return event_reader.find(
            event, route.sse, route.tool_calls, route.unchecked_events, route.errors
        )

    async def before_the_end(self) -> None:
        """Send what waited for the texts."""
        await self._pass_on()

    async def take(self, data: bytes, more: bool) -> None:
        """Give the texts of complete events to their lanes; what has none passes in its turn."""
        await self._each(self._events.feed(data))
        if not more:
            await self._each(self._events.end())

    async def _each(self, events: Iterable[bytes]) -> None:
        lanes = self._lanes
        for event in events:
            try:
                found = self.found(event)
            except UnreadableBody as error:
                self._let_pass(error)
                self._held.append((event + b"\n\n", ()))
                continue
            self._shape = found.shape or self._shape
            if any(text and lanes.has_ended(lane) for lane, text in found.texts.items()):
                self._unsent = event + b"\n\n"
                raise UnreadableBody("text_after_end")  # its halves could say what it may not
            for lane, text in found.texts.items():
                if found.template is not None:
                    self._templates[lane] = found.template
                if text:
                    await lanes.put(lane, text)
            if found.is_last or found.ends:
                await lanes.end(None if found.is_last else found.ends)
            if found.rest is not None:
                self._held.append((found.rest, found.others))
            if len(self._held) > MAX_HELD:
                raise UnreadableBody("too_many_events")
            await self._pass_on()

    async def _pass_on(self) -> None:
        """Send what is not text, in its order, up to what says more than is decided."""
        while self._held and not self.stopped:
            rest, others = self._held[0]
            if self._lanes.open and self.waits(others):
                return
            del self._held[0]
            try:
                rest = self._lanes.repeats.passed(rest, others)
            except UnreadableBody as error:
                self._let_pass(error)
            await self.emit(rest)

    def waits(self, others: tuple[str, ...]) -> bool:
        """Return whether what is not text waits: for all that it repeats to be shown."""
        return not self._lanes.repeats.can_say(others)

    def _let_pass(self, error: UnreadableBody) -> None:
        """Raise the error unless the route lets pass what cannot be checked."""
        if unchecked(self.route, self.exchange.path, error.code).shown == "replaced":
            raise error
        LOG.warning("event not checked, as_is: %s", error.code)

    def unread(self) -> bytes:
        """Return what has arrived and could not be read."""
        return self._unsent + self._events.unread()

    def shown(self, lane: Lane, text: str) -> bytes:
        """Return a text as it is sent."""
        return event_writer.fill(self._template(lane), self.route.sse, lane, text)

    def ending(self, lane: Lane, text: str, outcome: AnswerOutcome) -> bytes:
        """Return the fallback and the events that say that a filter ended the answer."""
        lane = event_writer.lane_to_tell(lane, self._templates)
        return event_writer.ending(self._template(lane), self.route.sse, lane, text, outcome.told())

    async def done(self, outcome: AnswerOutcome) -> None:
        """Tell a reader the verdict, where its readers do not stumble over it."""
        await self.emit(event_writer.verdict(self._shape, outcome))

    def _template(self, lane: Lane) -> bytes:
        return self._templates.get(lane) or event_reader.blank(self._shape)


class LineBody(EventBody):
    """Lines of JSON with texts in them."""

    framing: Framing = "lines"

    def unread(self) -> bytes:
        """Return what has arrived and could not be read."""
        if isinstance(self._events, sse.JsonLines):
            self._unsent = self._events.sent(self._unsent)
        return super().unread()

    async def send(self, data: bytes, more: bool) -> None:
        """Send events as lines."""
        if not self._passing and isinstance(self._events, sse.JsonLines):
            data = self._events.sent(data)
        await super().send(data, more)


class PartBody(LineBody):
    """Lines of Vercel's older protocol."""

    framing: Framing = "parts"


KINDS: Mapping[Framing, type[Body]] = {
    "json": JSONBody,
    "events": EventBody,
    "lines": LineBody,
    "parts": PartBody,
    "text": TextBody,
    "unchecked": LetPassBody,
}


def body_kind(guarded: Guarded) -> type[Body]:
    """Return how a response's body is treated."""
    status = guarded.start["status"]
    if replies.bodiless(guarded.scope["method"], status):
        return Body
    if status < 400:
        return EmptiedBody if status >= 300 else _readable_kind(guarded)
    return FailureBody


def _readable_kind(guarded: Guarded) -> type[Body]:
    try:
        framing = bodies.framing(guarded.headers, guarded.route.types)
    except UnreadableBody as error:
        return AmbiguousBody if error.code == AmbiguousBody.code else UnreadBody
    if bodies.is_encoded_stream(framing, guarded.headers):
        return EncodedStream
    return KINDS.get(framing, UnreadBody)

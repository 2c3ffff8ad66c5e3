"""Guards a response's body that is sent while it is written: text, events, lines of JSON.

Nothing of an answer is sent before it has been decided.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from guardrail_client.middleware import bodies, event_reader, event_writer, replies, sse
from guardrail_client.middleware.asgi_bodies import (
    Body,
    EmptiedBody,
    FailureBody,
    JSONBody,
    LetPassBody,
    NoBody,
    UnreadBody,
)
from guardrail_client.middleware.asgi_request import Guarded
from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.codes import Codes
from guardrail_client.middleware.lanes import Lanes
from guardrail_client.middleware.outcome import AnswerOutcome, unchecked
from guardrail_client.middleware.replies import LOG
from guardrail_client.middleware.shapes import Framing
from guardrail_client.middleware.stream_documents import Lane

MAX_HELD = 4096
"""Events that wait for the texts before them."""
TEXT_LANE: Lane = (0, "text")


class WaitingEvent(NamedTuple):
    """An event that waits for its turn.

    Attributes:
        event: Without its texts.
        others: Strings in it that have to be known to repeat what may be shown.
        is_early: Whether its reader may take it for the end of a text that goes on.
        snapshots: Lanes of which it says all that was written so far.
        codes: Names and numbers in it, which may not say what is held.
    """

    event: bytes
    others: tuple[str, ...] = ()
    is_early: bool = False
    snapshots: frozenset[Lane] = frozenset()
    codes: Codes = Codes()


class StreamBody(Body, ABC):
    """A body that is sent while it is written."""

    async def begin(self) -> None:
        """Send the headers; the verdict comes later."""
        self._passing = False  # nothing is read any more
        self._whole = False  # the application has written everything
        self._lock = asyncio.Lock()
        self._lanes = Lanes(
            self.guarded.client,
            self.route,
            self.exchange,
            self.show,
            self._stop,
            self.done,
            self.noted,
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

    async def noted(self) -> None:
        """Send what waited for a text to be shown."""

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
        self._reader = sse.PlainText(charset)
        self._encoder = bodies.encoder(charset)
        await super().begin()

    async def take(self, data: bytes, more: bool) -> None:
        """Give the text to its lane."""
        if text := self._reader.feed(data, final=not more):
            await self._lanes.put(TEXT_LANE, text)

    def unread(self) -> bytes:
        """Return what has arrived and could not be read."""
        return self._reader.unread

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
        self._templates: dict[Lane, tuple[bytes, Codes]] = {}
        self._is_over = False  # nothing that is still to come has text
        self._held: list[WaitingEvent] = []
        self._snapshots: set[Lane] = set()
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
        return self.route.found(event)

    async def before_the_end(self) -> None:
        """Send what waited for the texts."""
        self._is_over = True
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
                self._held.append(WaitingEvent(event + b"\n\n"))
                continue
            self._shape = found.shape or self._shape
            for lane, text in found.texts.items():
                if found.template is not None:
                    self._templates[lane] = found.template, found.codes
                if found.is_snapshot:
                    self._unsent = event + b"\n\n"
                    text = await self._news(lane, text)
                    self._unsent = b""
                if text:
                    await lanes.put(lane, text)
            is_early = False
            if found.is_last or found.ends:
                is_early = await lanes.declared(None if found.is_last else found.ends)
            self._is_over = found.is_last and not is_early
            if found.rest is not None:
                wholes = frozenset(found.texts if found.is_snapshot else ())
                waiting = WaitingEvent(found.rest, found.others, is_early, wholes, found.codes)
                if not (found.codes.is_unread and waiting in self._held):
                    self._held.append(waiting)
            if len(self._held) > MAX_HELD:
                raise UnreadableBody("too_many_events")
            await self._pass_on()

    async def _news(self, lane: Lane, text: str) -> str:
        """Return what a snapshot adds to its lane: everything, if it says something else.

        Raises:
            UnreadableBody: If that has happened too often.
        """
        self._snapshots.add(lane)
        news = self._lanes.repeats.news(lane, text)
        if news is not None:
            return news
        self._lanes.repeats.begins_anew(lane)
        await self._lanes.finish(lane)
        if self.stopped:
            return ""
        await self._pass_on()
        self._held = [held for held in self._held if lane not in held.snapshots]
        self._lanes.repeats.forget(lane)
        return text

    async def noted(self) -> None:
        """Send the snapshots that say no more than what may be shown by now."""
        if self._snapshots and not self.stopped:
            try:
                await self._pass_on()
            except UnreadableBody as error:
                await self._stop(TEXT_LANE, self._replaced(error.code))

    async def show(self, lane: Lane, text: str) -> None:
        """Send a text that has been decided; snapshots say theirs themselves."""
        if lane not in self._snapshots:
            await super().show(lane, text)

    async def _pass_on(self) -> None:
        """Send what is not text, in its order, up to what says more than is decided."""
        while self._held and not self.stopped:
            held = self._held[0]
            if self.is_unread(held) or (self._lanes.open and self.waits(held)):
                return
            del self._held[0]
            rest = held.event
            try:
                rest = self._lanes.repeats.passed(rest, held.others, held.codes)
            except UnreadableBody as error:
                self._let_pass(error)
            await self.emit(rest or b"".join(map(self._so_far, held.snapshots)))

    def _so_far(self, lane: Lane) -> bytes:
        """Return what stands in for a snapshot that cannot say otherwise what was shown of it."""
        return self.shown(lane, self._lanes.repeats.shown.get(lane, ""))

    def waits(self, held: WaitingEvent) -> bool:
        """Return whether what is not text waits: for all that it repeats, or ends, to be shown."""
        repeats = self._lanes.repeats
        if (held.is_early and repeats.is_pending) or repeats.hidden(held.codes, held.others):
            return True
        return not repeats.can_say(held.others)

    def is_unread(self, held: WaitingEvent) -> bool:
        """Return whether it may say what a text that is still to come says."""
        return held.codes.is_unread and not self._is_over

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
        template, shape = self._template(lane), self.route.sse
        if lane in self._snapshots and event_writer.to_tell(template, shape, lane)[1] == lane:
            text = self._lanes.repeats.standing(lane, outcome.retract_from) + text
        return event_writer.ending(template, shape, lane, text, outcome.told())

    async def done(self, outcome: AnswerOutcome) -> None:
        """Tell a reader the verdict, where its readers do not stumble over it."""
        await self.emit(event_writer.verdict(self._shape, outcome))

    def _template(self, lane: Lane) -> bytes:
        if lane not in self._templates:
            return event_reader.blank(self._shape)
        return self._lanes.repeats.template(*self._templates[lane])


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


def body_kind(guarded: Guarded) -> Callable[[Guarded, Callable[[], None]], Body]:
    """Return how a response's body is treated."""
    status = guarded.start["status"]
    if replies.bodiless(guarded.scope["method"], status):
        return NoBody
    if 300 <= status < 400:
        return EmptiedBody
    try:
        if status >= 400:
            return FailureBody if bodies.own(guarded.headers) == guarded.headers else _elsewhere
        framing = bodies.framing(guarded.headers, guarded.route.types)
    except UnreadableBody as error:
        return partial(UnreadBody, code=error.code)
    if bodies.is_encoded_stream(framing, guarded.headers):
        return partial(UnreadBody, code="encoded_stream")
    return KINDS[framing]


_elsewhere = partial(UnreadBody, code=bodies.ELSEWHERE)

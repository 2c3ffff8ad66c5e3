"""WebSockets of guarded ASGI applications: their frames are checked as a stream, or one by one.

Inside, every frame is an event of a stream, so that texts are held, redacted and stopped there.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.middleware import bodies, event_reader, event_writer, replies, sse
from guardrail_client.middleware.asgi_request import App, Guarded, Message, Receive, Send, verdicts
from guardrail_client.middleware.asgi_streams import TEXT_LANE, EventBody, WaitingEvent
from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.codes import without
from guardrail_client.middleware.documents import Document, FoundText, is_name, strict_json
from guardrail_client.middleware.encodings import hides_a_sentence, is_slug
from guardrail_client.middleware.event_reader import Found
from guardrail_client.middleware.exchange import Exchange
from guardrail_client.middleware.frames import BINARY, Frames, ends_answer, event_of, frames_of
from guardrail_client.middleware.outcome import AnswerOutcome, unchecked
from guardrail_client.middleware.replies import LOG
from guardrail_client.middleware.route_checks import FRAME, RECEIVE
from guardrail_client.middleware.route_options import Route
from guardrail_client.middleware.stream_documents import Lane
from guardrail_client.middleware.withheld import Withheld

BLOCKED, OUTAGE = 1008, 1013
"""How a socket is closed whose answer was stopped: for its verdict (RFC 6455), or for want of one
("try again later" of IANA's registry)."""
GONE = 1001
MAX_ALONE = 16
"""Frames that are whole answers of which it is remembered what was withheld."""


class SocketBody(EventBody):
    """One answer of a socket, in frames."""

    guarded: Socket
    _told: AnswerOutcome

    def cutter(self) -> sse.Cutter:
        """Return what hands on frames."""
        return Frames()

    async def announce(self) -> None:
        """Send nothing: the socket is open. Values redacted in earlier answers stay withheld."""
        self._lanes.repeats.withheld = self.guarded.withheld

    async def before_the_end(self) -> None:
        """Send what waited for the texts, and keep what was redacted."""
        await super().before_the_end()
        self.guarded.withheld = self._lanes.repeats.withheld

    def found(self, event: bytes) -> Found:
        """Return what a frame holds.

        Raises:
            UnreadableBody: If nobody can say of which answer its text is.
        """
        found = _read(event, self.route)
        if found.texts and (self.guarded.awaits or self.guarded.cut):
            raise UnreadableBody("answer_end_unknown")
        if not self._whole:
            return found
        value = self.guarded.end.partition("=")[2]
        others = tuple(other for other in found.others if other != value)
        rest = found.rest
        if found.texts and rest is None and not self._is_text:
            rest = event_writer.fill(event, self.route.sse, next(iter(found.texts)), "")
        texts = {} if self._is_text else found.texts
        rest = event + b"\n\n" if self._is_text else rest
        return replace(found, texts=texts, rest=rest, template=None, is_last=True, others=others)

    def waits(self, held: WaitingEvent) -> bool:
        """Return whether a frame waits: for all text before it, which it may say the end of."""
        return super().waits(held) or (not held.snapshots and self._lanes.repeats.is_pending)

    def is_unread(self, held: WaitingEvent) -> bool:
        """Return the same; what stands ahead of an answer may be what its reader waits for."""
        return super().is_unread(held) and bool(self._lanes.repeats.written)

    async def binary(self, content: bytes) -> None:
        """Take a frame that nobody can read.

        Raises:
            UnreadableBody: If the route does not let it pass.
        """
        self._let_pass(UnreadableBody("binary_frame"))
        self._held.append(WaitingEvent(BINARY + base64.b64encode(content) + b"\n\n"))
        await self._pass_on()

    async def refuse(self, code: str) -> None:
        """Stop for what cannot be read."""
        await self._unreadable(code, more=True)

    async def send(self, data: bytes, more: bool) -> None:
        """Send events as frames; close the socket behind a stopped answer."""
        for frame in frames_of(data):
            await self.guarded.downstream(frame)
        if self.stopped:
            await self.guarded.hang_up(self._told)

    def ending(self, lane: Lane, text: str, outcome: AnswerOutcome) -> bytes:
        """Return the fallback, and the frame that says it to a program."""
        self._told = outcome
        return self.shown(lane, text) if self._is_text else super().ending(lane, text, outcome)

    async def done(self, outcome: AnswerOutcome) -> None:
        """Tell a reader of JSON that the answer is marked."""
        if outcome.result is not None and outcome.result.action == "mark" and not self._is_text:
            await self.emit(event_writer.told(outcome.told()))

    @property
    def has_text(self) -> bool:
        """Return whether a piece of the answer was written."""
        return bool(self._lanes.repeats.written)

    @property
    def _is_text(self) -> bool:
        return self.route.sse == "text"


class Socket(Guarded):
    """Sends no text of a frame that has not been decided.

    Attributes:
        awaits: How many calls of the application wait for the reader's next message, where those
            end an answer.
        cut: Whether the last answer was ended by a call that has not brought a message.
        withheld: Values that were redacted in the answers so far.
        stopped: Whether the socket was closed for an answer.
    """

    def __init__(
        self,
        client: AsyncGuardrailClient,
        route: Route,
        scope: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
        background: Callable[[Awaitable[None]], bool],
    ) -> None:
        super().__init__(client, _for_frames(route), scope, receive, send, background)
        self.scope["extensions"].pop("websocket.http.response", None)
        self.end = route.websocket_end
        self.awaits = 0
        self.cut = False
        self.stopped = False
        self.withheld = Withheld()
        self._alone: deque[Withheld] = deque(maxlen=MAX_ALONE)
        self._ends = ends_answer(route.websocket_end)
        self._body: SocketBody | None = None
        self._turn = asyncio.Lock()

    async def run(self, app: App) -> None:
        """Serve the socket; an answer that is stopped stops the application, too."""
        task = asyncio.ensure_future(app(self.scope, self.receive, self._on_message))
        self._task = task
        try:
            await task
            await self._end()
        except asyncio.CancelledError:
            if not self.stopped or not task.cancelled():
                raise
        finally:
            if self._body is not None:
                await self._body.close()

    async def receive(self) -> Message:
        """Return the reader's next message; where the route says so, an answer ends before it."""
        if self.end == RECEIVE:
            self.cut = self.cut or (self._body is not None and self._body.has_text)
            await self._end()
        if self.stopped:
            return {"type": "websocket.disconnect", "code": GONE}
        self.awaits += self.end == RECEIVE
        try:
            message = await self._receive()
        finally:
            self.awaits -= self.end == RECEIVE
        self.cut = False
        if message["type"] == "websocket.receive":
            _note_question(self, message)
        return message

    def know_the_question(self) -> Exchange:
        """Return the exchange with the last message that asked something."""
        return self.exchange

    async def hang_up(self, outcome: AnswerOutcome) -> None:
        """Close the socket behind a stopped answer, and stop the application."""
        self.stopped = True
        code = BLOCKED if outcome.reason == "blocked" else OUTAGE
        reason = json.dumps(outcome.told(), separators=(",", ":"))
        await self.downstream({"type": "websocket.close", "code": code, "reason": reason})
        self.end_application()

    def end_application(self) -> None:
        """Stop the application: nobody will read what it still writes."""
        self._task.cancel()

    async def _on_message(self, message: Message) -> None:
        kind = message["type"]
        if kind == "websocket.send":
            async with self._turn:
                if not self.stopped:
                    await self._sent(message)
        elif kind == "websocket.close":
            await self._end()
            if not self.stopped:
                await self.downstream(self._without_sentence(message))
        elif kind == "websocket.accept":
            decision = ("X-Guardrail-Decision", "streaming")
            headers = bodies.added(list(message.get("headers") or ()), [decision])
            await self.downstream({**message, "headers": headers})
        else:
            raise RuntimeError(f"found {kind}, expected what the scope's extensions offer")

    async def _sent(self, message: Message) -> None:
        text = message.get("text")
        if self.end == FRAME:
            await self._sent_alone(text, message.get("bytes") or b"")
            return
        if self._body is None:
            self._body = SocketBody(self, self.end_application)
            await self._body.begin()
        body = self._body
        if text is None:
            try:
                await body.binary(message.get("bytes") or b"")
            except UnreadableBody as error:
                await body.refuse(error.code)
        elif self._ends(text):
            await body.feed(event_of(text), more=False)
            self._body = None
        else:
            await body.feed(event_of(text), more=True)

    async def _end(self) -> None:
        """End the answer that was written last, and send what is held of it."""
        async with self._turn:
            if self._body is not None and not self.stopped:
                await self._body.feed(b"", more=False)
                self._body = None

    async def _sent_alone(self, text: str | None, content: bytes) -> None:
        """Judge a frame that is a whole answer, and send it as its verdict says."""
        try:
            if text is None:
                raise UnreadableBody("binary_frame")
            if len(text) > self.route.max_bytes:
                raise UnreadableBody("too_large")
            events = await self._judged(text)
        except UnreadableBody as error:
            outcome = unchecked(self.route, self.exchange.path, error.code)
            LOG.warning("answer not checked, %s: %s", outcome.shown, error.code)
            self.route.report(outcome)
            if outcome.shown == "as_is":
                kept = event_of(text) if text is not None else BINARY + base64.b64encode(content)
                await self._pass(kept)
                return
            await self._pass(self._instead(outcome))
            await self.hang_up(outcome)
            return
        await self._pass(events)

    async def _judged(self, text: str) -> bytes:
        """Return what is sent for a frame.

        Raises:
            UnreadableBody: If it cannot be checked.
        """
        route, exchange = self.route, self.exchange
        if route.sse == "text":
            document = Document(None, [FoundText(text, ())] if text.strip() else [])
            if not document.texts:
                return event_of(text)
            (verdict,) = await verdicts(self, document)
            outcome, shown = replies.treated(route, exchange.path, text, verdict)
            route.report(outcome)
            return event_of(shown)
        found = _read(event_of(text), route)
        if not found.texts:
            if found.others:
                raise UnreadableBody("unknown_event")
            return without(found.rest or b"", self._is_withheld)
        exchange.response = strict_json(text.encode("utf-8", "replace"))
        document = route.read(exchange)
        said = await verdicts(self, document) if document.texts else []
        outcome, changed = replies.answered(route, exchange.path, document, said)
        stopped = [one.text for one in document.texts if outcome.shown == "replaced"]
        self._alone.append(Withheld(stopped, replies.redacted(document, said)))
        route.report(outcome)
        sent = event_of(text if changed is None else changed.decode()) + b"\n\n"
        marked = outcome.result is not None and outcome.result.action == "mark"
        tells = outcome.shown == "replaced" or marked
        return sent + event_writer.told(outcome.told()) if tells else sent

    def _is_withheld(self, said: str | float) -> bool:
        """Return whether a name or a number says what was withheld from one of the last answers."""
        return any(withheld.says(said) for withheld in self._alone)

    def _without_sentence(self, message: Message) -> Message:
        """Return how the socket is closed, without a reason that nobody has read."""
        reason = message.get("reason") or ""
        is_code = is_name(reason) and not (is_slug(reason) or hides_a_sentence(reason))
        says = self.withheld.says(reason) or self._is_withheld(reason)
        return message if not reason or (is_code and not says) else {**message, "reason": ""}

    def _instead(self, outcome: AnswerOutcome) -> bytes:
        """Return the frames that stand in for one that cannot be checked."""
        shape, text = self.route.sse, self.route.fallback_for(outcome)
        frame = event_writer.fill(event_reader.blank(shape), shape, (0, shape), text)
        return frame if shape == "text" else frame + event_writer.told(outcome.told())

    async def _pass(self, events: bytes) -> None:
        for frame in frames_of(events):
            await self.downstream(frame)


def _note_question(guarded: Guarded, message: Message) -> None:
    """Keep a reader's message if it asks something."""
    asked = message.get("text")
    data = message.get("bytes") or b"" if asked is None else asked.encode("utf-8", "replace")
    if len(data) > guarded.route.max_bytes:
        return
    try:
        asked = strict_json(data)
    except UnreadableBody:
        asked = asked or data.decode("utf-8", "replace")
    trial = replace(guarded.exchange, request=asked)
    if guarded.exchange.request is None or guarded.route.asked(trial) is not None:
        guarded.exchange.request = asked


class ObservedSocket(Guarded):
    """Passes every frame at once; answers are judged afterwards, beside the next."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.end = self.route.websocket_end
        self.route = _for_frames(self.route)
        self._ends = ends_answer(self.end)
        self._text = ""

    async def run(self, app: App) -> None:
        """Serve the socket."""
        await app(self.scope, self.receive, self._on_message)
        await self._answered()

    async def receive(self) -> Message:
        """Return the reader's next message."""
        if self.end == RECEIVE:
            await self._answered()
        message = await self._receive()
        if message["type"] == "websocket.receive":
            _note_question(self, message)
        return message

    def know_the_question(self) -> Exchange:
        """Return the exchange with the last message that asked something."""
        return self.exchange

    async def _on_message(self, message: Message) -> None:
        await self.downstream(message)
        frame = message.get("text")
        if message["type"] != "websocket.send":
            return
        if frame is None:
            self.report_unchecked("binary_frame")
            return
        found = _read(event_of(frame), self.route)
        room = self.route.max_bytes + 1 - len(self._text)
        said = "".join(found.texts.values())
        self._text = (
            said[: self.route.max_bytes + 1] if found.is_snapshot else self._text + said[:room]
        )
        if self.end == FRAME:
            with suppress(UnreadableBody):
                self.exchange.response = strict_json(frame.encode("utf-8", "replace"))
        if self.end == FRAME or self._ends(frame):
            await self._answered()

    async def _answered(self) -> None:
        text, self._text = self._text, ""
        if len(text) > self.route.max_bytes:
            self.report_unchecked("too_large")
        elif text.strip():
            self.judge_later(Document(None, [FoundText(text, ())]))
            await asyncio.sleep(0)  # it reads its passages before the application puts others there


def _read(event: bytes, route: Route) -> Found:
    """Return what a frame holds; an empty one holds nothing."""
    text = sse.data_of(event)
    if not text:
        return Found({}, event + b"\n\n", None)
    if route.sse == "text":  # whatever it is: no word of a model ends its answer
        found = Found({TEXT_LANE: text}, None, event)
        return event_reader.snapshot(found, event + b"\n\n") if route.snapshots else found
    return route.found(event)


def _for_frames(route: Route) -> Route:
    """Return a route that reads frames as it would read events and replies."""
    shape = (route.websocket or "").removeprefix("json:")
    return replace(route, sse=shape, answer=None if shape == "text" else shape)

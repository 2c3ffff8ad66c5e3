"""The texts of a streamed WSGI response, one after the other."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress

from guardrail_client.middleware import bodies, event_reader, event_writer, sse
from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.codes import Codes
from guardrail_client.middleware.outcome import AnswerOutcome, unchecked
from guardrail_client.middleware.repeats import Repeats
from guardrail_client.middleware.replies import LOG
from guardrail_client.middleware.route_options import Route
from guardrail_client.middleware.shapes import Framing
from guardrail_client.middleware.stream_documents import Lane

ANEW = None
"""Stands in for a piece where a text begins anew, in the place of the one before."""


class StreamedTexts:
    """The texts of a streamed body, one after the other, and how to send text in their place."""

    def __init__(
        self, chunks: Iterator[bytes], framing: Framing, charset: str, route: Route
    ) -> None:
        self._route = route
        self._repeats = Repeats(is_text=route.sse == "text")
        self._chunks = chunks
        self._events = sse.CUTTERS[framing]() if framing in sse.CUTTERS else None
        self._charset = charset
        self._encoder = bodies.encoder(charset)
        self._shape = event_reader.first_shape(framing, route.sse)
        self._lane: Lane = (0, "text")
        self._templates: dict[Lane, tuple[bytes, Codes]] = {}
        self._waiting: list[tuple[bytes, tuple[str, ...], tuple[Lane, ...], Codes]] = []
        self._is_over = False  # nothing that is still to come has text
        self._pieces = self._raw()
        self._ahead: tuple[Lane, str | None] | None = None
        self._judged: set[Lane] = set()
        self._snapshots: set[Lane] = set()
        self._unread = self._unsent = b""
        self.seen = ""

    def begins(self) -> bool:
        """Return whether there is another text.

        Raises:
            UnreadableBody: If it is one that has been judged already.
        """
        self._ahead = self._ahead or next(self._pieces, None)
        if self._ahead is None:
            return False
        if self._ahead[1] is ANEW:
            self._repeats.forget(self._ahead[0])
            self._judged.discard(self._ahead[0])
            self._ahead = None
            return self.begins()
        self._lane = self._ahead[0]
        if self._lane in self._judged:
            raise UnreadableBody("several_texts")
        return True

    def tokens(self) -> Generator[str, None, None]:
        """Yield the text; blank text only together with what follows it."""
        blank = ""
        while self._ahead is not None and self._ahead[0] == self._lane and self._ahead[1]:
            blank += self._ahead[1]
            if blank.strip():
                yield blank
                blank = ""
            self._ahead = next(self._pieces, None)
        self._judged.add(self._lane)
        if blank:
            yield blank

    def passed(self, *, decided: bool = False) -> Iterator[bytes]:
        """Yield events without text whose turn has come.

        Args:
            decided: Whether every text that was read has been decided.

        Raises:
            UnreadableBody: If one says what was never checked.
        """
        while self._waiting and self._is_next(self._waiting[0][1], self._waiting[0][3], decided):
            rest, others, snapshots, codes = self._waiting.pop(0)
            try:
                rest = self._repeats.passed(rest, others, codes)
            except UnreadableBody as error:
                self._let_pass(error)
            yield self._sent(rest or b"".join(map(self._so_far, snapshots)))

    def _is_next(self, others: tuple[str, ...], codes: Codes, decided: bool) -> bool:
        """Return whether what an event says is known, now or when everything has been read."""
        if codes.is_unread and not self._is_over:
            return False
        known = not self._repeats.hidden(codes, others) and self._repeats.can_say(others)
        return decided or known

    def _so_far(self, lane: Lane) -> bytes:
        """Return what stands in for a snapshot that cannot say otherwise what was shown of it."""
        text = self._repeats.shown.get(lane, "")
        return event_writer.fill(self._template(lane), self._route.sse, lane, text)

    def _let_pass(self, error: UnreadableBody) -> None:
        """Raise the error unless the route lets pass what cannot be checked."""
        if unchecked(self._route, "", error.code).shown == "replaced":
            raise error
        LOG.warning("event not checked, as_is: %s", error.code)

    def repeated(self) -> Iterator[bytes]:
        """Yield the snapshots of the text that say no more than what may be shown by now."""
        if self._lane in self._snapshots:
            yield from self.passed()

    def copied(self) -> Iterator[bytes]:
        """Yield everything as it is, and see what it says."""
        chunks: list[bytes] = []
        for chunk in self._chunks:
            chunks.append(chunk)
            yield chunk
        self._chunks = iter(chunks)
        with suppress(UnreadableBody):
            self.seen = "".join(text or "" for _, text in self._raw())

    def left(self) -> Iterator[bytes]:
        """Yield what nobody could read, or what the charset still has to say."""
        if self._unread:
            yield self._unread
            yield from self._chunks
        elif tail := self.tail():
            yield tail

    @property
    def size(self) -> int:
        """Return the code points of the text that were written."""
        return len(self._repeats.written.get(self._lane, ""))

    def shown(self, text: str, upto: int | None = None) -> bytes:
        """Return a text as it is sent, up to a code point of what was written."""
        self._repeats.showed(self._lane, text, upto)
        return b"" if self._lane in self._snapshots else self._filled(text)

    def stopped(self, text: str, outcome: AnswerOutcome) -> bytes:
        """Return what a stopped stream ends with."""
        if self._events is None:
            return self._encoder.encode(text)
        lane = self._lane = event_writer.lane_to_tell(self._lane, self._templates)
        template, shape = self._template(), self._route.sse
        if lane in self._snapshots and event_writer.to_tell(template, shape, lane)[1] == lane:
            text = self._repeats.standing(lane, outcome.retract_from) + text
        return self._sent(event_writer.ending(template, shape, lane, text, outcome.told()))

    def done(self, outcome: AnswerOutcome) -> bytes:
        """Return what says that a text was marked, where the format has room for it."""
        if self._events is None or outcome.result is None or outcome.result.action != "mark":
            return b""
        return self._sent(event_writer.marked(self._shape, outcome.told()))

    def tail(self) -> bytes:
        """Return what the charset still has to say: a character held back, the way to ASCII."""
        return self._encoder.encode("", final=True) if self._events is None else b""

    def _filled(self, text: str) -> bytes:
        if self._events is None:
            return self._encoder.encode(text)
        return self._sent(event_writer.fill(self._template(), self._route.sse, self._lane, text))

    def _sent(self, events: bytes) -> bytes:
        return self._events.sent(events) if isinstance(self._events, sse.JsonLines) else events

    def _template(self, lane: Lane | None = None) -> bytes:
        lane = lane or self._lane
        if lane not in self._templates:
            return event_reader.blank(self._shape)
        return self._repeats.template(*self._templates[lane])

    def _raw(self) -> Iterator[tuple[Lane, str | None]]:
        yield from self._plain() if self._events is None else self._cut(self._events)
        self._is_over = True

    def _cut(self, cutter: sse.Cutter) -> Iterator[tuple[Lane, str | None]]:
        try:
            for chunk in self._chunks:
                for event in cutter.feed(chunk):
                    yield from self._event(event)
        except UnreadableBody as error:
            self._let_pass(error)
            self._unread = self._sent(self._unsent) + cutter.unread()
            return
        for event in cutter.end():
            yield from self._event(event)

    def _plain(self) -> Iterator[tuple[Lane, str | None]]:
        reader = sse.PlainText(self._charset)
        try:
            for chunk in self._chunks:
                if text := reader.feed(chunk, final=False):
                    yield (0, "text"), text
            if text := reader.feed(b"", final=True):
                yield (0, "text"), text
        except UnreadableBody as error:
            self._let_pass(error)
            self._unread = reader.unread

    def _event(self, event: bytes) -> Iterator[tuple[Lane, str | None]]:
        try:
            found = self._route.found(event)
        except UnreadableBody as error:
            self._let_pass(error)
            self._waiting.append((event + b"\n\n", (), (), Codes()))
            return
        self._shape = found.shape or self._shape
        for lane, text in found.texts.items():
            if found.template is not None:
                self._templates[lane] = found.template, found.codes
            if found.is_snapshot:
                self._unsent = event + b"\n\n"
                yield from self._news(lane, text)
                self._unsent = b""
            elif text:
                self._repeats.wrote(lane, text)
                yield lane, text
        if found.rest is not None:
            snapshots = tuple(found.texts) if found.is_snapshot else ()
            waiting = found.rest, found.others, snapshots, found.codes
            if not (found.codes.is_unread and waiting in self._waiting):
                self._waiting.append(waiting)
        self._is_over = found.is_last

    def _news(self, lane: Lane, text: str) -> Iterator[tuple[Lane, str | None]]:
        """Yield what a snapshot adds to its text: everything, if it says something else."""
        self._snapshots.add(lane)
        if (news := self._repeats.news(lane, text)) is None:
            self._repeats.begins_anew(lane)
            yield lane, ANEW
            news = text
        if news:
            self._repeats.wrote(lane, news)
            yield lane, news

"""Guards a response's body that is sent when it is whole, or that nobody can read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from guardrail_client.middleware import bodies, replies
from guardrail_client.middleware.asgi_request import Guarded, verdicts
from guardrail_client.middleware.bodies import Header, UnreadableBody
from guardrail_client.middleware.outcome import NO_ANSWER, AnswerOutcome
from guardrail_client.middleware.replies import LOG


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


class NoBody(Body):
    """Of a response that has none: not every server drops what an application says in it."""

    async def begin(self) -> None:
        """Send the headers, without those at which a server sends a body nevertheless."""
        headers = bodies.own(self.guarded.headers)
        await self.guarded.downstream({**self.guarded.start, "headers": headers})

    async def feed(self, data: bytes, more: bool) -> None:
        """Drop it."""
        await self.send(b"", more)


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

    def __init__(self, guarded: Guarded, end_application: Callable[[], None], code: str) -> None:
        super().__init__(guarded, end_application)
        self.code = code

    async def feed(self, data: bytes, more: bool) -> None:
        """Let the route decide as soon as something is there."""
        if self.stopped or self._passing:
            await super().feed(data, more)
        elif self.code == bodies.ELSEWHERE:
            self._data += data
            await self.without_verdict(self.code, more)
        elif not data and not more:
            outcome = AnswerOutcome(self.exchange.path, "as_is", None, NO_ANSWER)
            await self.sent(outcome, None)
        elif data:
            self._data += data
            await self.without_verdict(self.code, more)

    async def checked(self, data: bytes) -> tuple[AnswerOutcome, bytes | None]:
        """Never."""
        raise UnreadableBody(self.code)


class LetPassBody(Body):
    """A body of a kind that the route lets pass unchecked."""

    async def begin(self) -> None:
        """Say that nothing is checked."""
        outcome = AnswerOutcome(self.exchange.path, "as_is", None, "unchecked_type")
        LOG.warning("answer not checked, as_is: %s", outcome.error)
        await self.start(outcome, self.guarded.headers)
        self.route.report(outcome)

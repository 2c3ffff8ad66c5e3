"""One guarded ASGI request: what was asked, and how its answer is judged."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.errors import GuardrailError
from guardrail_client.middleware import bodies
from guardrail_client.middleware.bodies import Header
from guardrail_client.middleware.exchange import Exchange, queried
from guardrail_client.middleware.outcome import AnswerOutcome, decided, unchecked
from guardrail_client.middleware.routes import Route

LOG = logging.getLogger("guardrail_client.middleware")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
UNSEEN = frozenset({"http.response.pathsend", "http.response.zerocopysend"})
"""Extensions, and messages of theirs, by which the server reads a body that we would not see."""


class Guarded(ABC):
    """One request: what was asked, and what becomes of the messages of its response."""

    def __init__(
        self,
        client: AsyncGuardrailClient,
        route: Route,
        scope: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
        background: Callable[[Awaitable[None]], bool],
    ) -> None:
        self.client = client
        self.route = route
        self.scope = {**scope, "headers": bodies.asked(scope["headers"])}
        self.scope.setdefault("guardrail", {})
        offered = scope.get("extensions") or {}
        self.scope["extensions"] = {k: v for k, v in offered.items() if k not in UNSEEN}
        self.exchange = Exchange(
            scope["path"],
            queried(scope.get("query_string", b"").decode("latin-1")),
            own=self.scope["guardrail"],
        )
        self.downstream = send
        self.background = background
        self.start: Message = {}
        self._receive = receive
        self._asked = bytearray()

    async def receive(self) -> Message:
        """Pass a message of the request on, and keep what it says."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._asked += message.get("body", b"")[: self.route.max_bytes - len(self._asked)]
        return message

    def refuse_unseen(self, message: Message) -> None:
        """Raise for a body that would leave without being read here."""
        if message["type"] in UNSEEN:
            raise RuntimeError(
                f"found {message['type']}, expected what the scope's extensions offer"
            )

    def know_the_question(self) -> Exchange:
        """Return the exchange with the request's JSON, as far as the application has read it."""
        if self.exchange.request is None:
            self.exchange.request = bodies.parsed(bytes(self._asked))
        return self.exchange

    @property
    def headers(self) -> list[Header]:
        """Return the response's headers."""
        return [(bytes(k), bytes(v)) for k, v in self.start.get("headers", [])]

    @abstractmethod
    async def run(self, app: App) -> None:
        """Serve the request."""


async def judged(guarded: Guarded, answer: str) -> tuple[AnswerOutcome, str]:
    """Return what happens to an answer, and the text to send."""
    route, path = guarded.route, guarded.exchange.path
    try:
        about = route.about(guarded.exchange)
        include = ("spans", "redacted_answer")
        result = await guarded.client.check(answer, **about, include=include, timeout=route.timeout)
    except (GuardrailError, TypeError, ValueError) as error:
        outcome = unchecked(route, path, error)
        LOG.warning("answer not checked, %s: %s", outcome.shown, outcome.error)
        return outcome, answer if outcome.shown == "as_is" else route.fallback
    return decided(route, path, answer, result)

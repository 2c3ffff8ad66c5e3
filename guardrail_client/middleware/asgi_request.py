"""One guarded ASGI request: what was asked, and how its answer is judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.errors import GuardrailError
from guardrail_client.middleware import bodies, documents, replies
from guardrail_client.middleware.bodies import Header, UnreadableBody
from guardrail_client.middleware.documents import Document
from guardrail_client.middleware.exchange import Exchange, queried
from guardrail_client.middleware.outcome import unchecked
from guardrail_client.middleware.replies import Verdict
from guardrail_client.middleware.route_options import Route

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
UNSEEN = "http.response."
"""Beginning of the names of extensions by which something leaves that we would not see."""
SEEN = ("http.response.start", "http.response.body")


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
        self.scope = {**scope, "headers": bodies.asked(scope["headers"])}
        self.scope.setdefault("guardrail", {})
        offered = scope.get("extensions") or {}
        self.scope["extensions"] = {k: v for k, v in offered.items() if not k.startswith(UNSEEN)}
        self.exchange = Exchange(
            scope["path"],
            queried(scope.get("query_string", b"").decode("latin-1")),
            own=self.scope["guardrail"],
            accepted=bodies.value(scope["headers"], b"accept-language"),
        )
        self.route = route.for_reader(self.exchange)
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
        if message["type"].startswith(UNSEEN) and message["type"] not in SEEN:
            raise RuntimeError(
                f"found {message['type']}, expected what the scope's extensions offer"
            )

    def know_the_question(self) -> Exchange:
        """Return the exchange with the request's JSON, as far as the application has read it."""
        if self.exchange.request is None:
            with suppress(UnreadableBody):
                self.exchange.request = documents.strict_json(bytes(self._asked))
        return self.exchange

    @property
    def headers(self) -> list[Header]:
        """Return the response's headers."""
        return [(bytes(k), bytes(v)) for k, v in self.start.get("headers", [])]

    def judge_later(self, document: Document) -> None:
        """Judge the answers of a document that was sent, beside the next requests."""
        if not self.background(self._judge(document)):
            self.report_unchecked("too_many_in_shadow")

    def report_unchecked(self, code: str) -> None:
        """Say why nothing was judged."""
        self.route.report(unchecked(self.route, self.exchange.path, code))

    async def _judge(self, document: Document) -> None:
        said = await verdicts(self, document)
        outcome, _ = replies.answered(self.route, self.exchange.path, document, said)
        self.route.report(outcome)

    @abstractmethod
    async def run(self, app: App) -> None:
        """Serve the request."""


async def verdicts(guarded: Guarded, document: Document) -> list[Verdict]:
    """Return what the guard says about each text of a document, or why it says nothing."""
    client, timeout = guarded.client, guarded.route.timeout
    try:
        asked = replies.items(guarded.route, guarded.exchange, document)
        with guarded.route.timed():
            if len(asked) == 1:
                options: Any = dict(asked[0])
                return [await client.check(options.pop("answer"), timeout=timeout, **options)]
            return [*await client.check_many(asked, timeout=timeout)]
    except (GuardrailError, TypeError, ValueError) as error:
        return [error] * len(document.texts)

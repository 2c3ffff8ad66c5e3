"""ASGI middleware: guards JSON answers and streams of an application that knows nothing of it.

A pure ASGI class: it sees each message as the application sends it, so a stream stays a stream.
asyncio only, like the servers it runs in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, MutableMapping, Sequence
from typing import Any

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.circuit import with_circuit
from guardrail_client.middleware import bodies, replies, sse
from guardrail_client.middleware.asgi_bodies import Body
from guardrail_client.middleware.asgi_request import App, Guarded, Message, Receive, Send
from guardrail_client.middleware.asgi_sockets import ObservedSocket, Socket
from guardrail_client.middleware.asgi_streams import body_kind
from guardrail_client.middleware.bodies import UnreadableBody
from guardrail_client.middleware.documents import Document, FoundText
from guardrail_client.middleware.outcome import AnswerOutcome, Shown
from guardrail_client.middleware.repeats import texts_of
from guardrail_client.middleware.replies import LOG
from guardrail_client.middleware.route_options import Route, counted, matching, paths
from guardrail_client.middleware.sse import Cutter

POLICY_VIOLATION = 1008
"""How a WebSocket is closed that nobody reads, RFC 6455."""
SHADOWS = 64
"""Answers judged in the background at the same time; more are reported as not checked."""


class GuardrailMiddleware:
    """Checks the answers of some endpoints before they are sent.

    Args:
        app: The application.
        client: Asks the guard, over HTTP, a unix socket, or in process. The caller closes it.
        routes: Which endpoints, and how; the first that matches counts.
        metrics: A registry of prometheus_client, or a function of name, labels and value, that
            counts what happens on routes without metrics of their own.
    """

    def __init__(
        self,
        app: App,
        client: AsyncGuardrailClient,
        routes: Sequence[Route],
        *,
        metrics: Any = None,
    ) -> None:
        self._app = app
        self._client = with_circuit(client)
        self.routes = counted(routes, metrics)
        self._shadows: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        route = None
        if scope["type"] in ("http", "websocket"):
            route = matching(self.routes, *paths(scope["path"], scope.get("root_path", "")))
        if route is None:
            await self._app(scope, receive, send)
            return
        is_socket = scope["type"] == "websocket"
        if is_socket and route.websocket in (None, "unchecked"):
            await self._connected(route, scope, receive, send)
            return
        kind: type[Guarded]
        if route.mode == "shadow":
            kind = ObservedSocket if is_socket else _Shadowed
        else:
            kind = Socket if is_socket else _Enforced
        await kind(self._client, route, scope, receive, send, self._background).run(self._app)

    async def _connected(
        self, route: Route, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        """Let a WebSocket pass unread where the route says so; else refuse it."""
        code = "unchecked_websocket" if route.websocket == "unchecked" else "websocket"
        shown: Shown = "as_is" if route.websocket == "unchecked" else "replaced"
        outcome = AnswerOutcome(scope["path"], shown, None, code)
        LOG.warning("answer not checked, %s: %s", shown, code)
        route.report(outcome)
        if shown == "as_is":
            await self._app(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.close", "code": POLICY_VIOLATION})

    def _background(self, work: Awaitable[None]) -> bool:
        """Start work that no response waits for; return whether there was room."""
        if len(self._shadows) >= SHADOWS:
            return False
        task = asyncio.ensure_future(work)
        self._shadows.add(task)
        task.add_done_callback(self._shadows.discard)
        return True


class _Enforced(Guarded):
    """Sends nothing of an answer that has not been decided."""

    _body: Body | None = None

    async def run(self, app: App) -> None:
        """Serve the request; an answer that is stopped stops the application, too."""
        task = asyncio.ensure_future(app(self.scope, self.receive, self._on_message))
        self._task = task
        try:
            await task
        except asyncio.CancelledError:
            if self._body is None or not self._body.stopped or not task.cancelled():
                raise
        finally:
            if self._body is not None:
                await self._body.close()

    def end_application(self) -> None:
        """Stop the application: nobody will read what it still writes."""
        self._task.cancel()

    async def _on_message(self, message: Message) -> None:
        self.refuse_unseen(message)
        if message["type"] == "http.response.start":
            self.start = dict(message)
            self._body = body_kind(self)(self, self.end_application)
            await self._body.begin()
        elif message["type"] == "http.response.body" and self._body is not None:
            more = bool(message.get("more_body", False))
            await self._body.feed(bytes(message.get("body", b"")), more)
        else:
            await self.downstream(message)


class _Shadowed(Guarded):
    """Passes everything at once; the answer is judged afterwards, beside the next requests."""

    async def run(self, app: App) -> None:
        """Serve the request."""
        self._data = bytearray()
        await app(self.scope, self.receive, self._on_message)

    async def _on_message(self, message: Message) -> None:
        await self.downstream(message)
        if message["type"] == "http.response.start":
            self.start = dict(message)
        elif message["type"] == "http.response.body":
            room = self.route.max_bytes + 1 - len(self._data)
            self._data += bytes(message.get("body", b""))[:room]
            if not message.get("more_body", False) and 200 <= self.start["status"] < 300:
                self._report_later()

    def _report_later(self) -> None:
        try:
            document = self._document()
        except UnreadableBody as error:
            self.report_unchecked(error.code)
            return
        if document.texts:
            self.judge_later(document)

    def _document(self) -> Document:
        """Return the answers of the response."""
        if len(self._data) > self.route.max_bytes:
            raise UnreadableBody("too_large")
        framing = bodies.framing(self.headers, self.route.types)
        exchange = self.know_the_question()
        if framing == "json":
            return replies.read_reply(self.route, self.headers, bytes(self._data), exchange)
        encoding = bodies.single(self.headers, b"content-encoding")
        data = bodies.decoded(bytes(self._data), encoding, self.route.max_bytes)
        if framing in sse.CUTTERS:
            return _texts(_streamed_texts(sse.CUTTERS[framing](), data, self.route))
        if framing == "text":
            return _texts([data.decode(bodies.charset(self.headers), "replace")])
        raise UnreadableBody("unread_media_type")


def _texts(texts: Sequence[str]) -> Document:
    return Document(None, [FoundText(text, ()) for text in texts if text.strip()])


def _streamed_texts(cutter: Cutter, data: bytes, route: Route) -> list[str]:
    events = (*cutter.feed(data), *cutter.end())
    return texts_of(map(route.found, events))

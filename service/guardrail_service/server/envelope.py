"""Surrounds every request: id, key, body limit, headers, metrics, log line, last handler."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute, Match

from guardrail_service.errors import (
    BodyTooLarge,
    InputError,
    MalformedInput,
    RequestTimeout,
    ServiceError,
    Unauthorized,
    raised_at,
)
from guardrail_service.server.error_replies import error_response
from guardrail_service.server.keys import KEY, require
from guardrail_service.server.telemetry import log_request
from guardrail_service.types import CALLER, IDENTITY, TENANT, Caller

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from guardrail_service.server.keys import Keys
    from guardrail_service.server.limiter import Limiter
    from guardrail_service.server.telemetry import Telemetry

_LOG = logging.getLogger(__name__)
OPEN_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Probes and scrapers carry no key; none of these routes shows or takes submitted text."""
ADMIN_ROUTES = "/v1/admin/"
OTHER_RIGHTS = (ADMIN_ROUTES, "/v1/feedback", "/v1/decisions")
"""Routes that ask for a right of their own (`keys.needs`); to post elsewhere is to check."""
STREAM_ROUTE = "/v1/check/stream"
"""Its body arrives while the reply leaves; `stream.py` bounds every line and their sum."""
_ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def request_id_from(header: str | None) -> str:
    """Return the caller's request id if it is short and plain, else a new one."""
    if header and len(header) <= 64 and _ID_CHARACTERS.issuperset(header):
        return header
    return uuid.uuid4().hex


ROUNDS = 4
"""Rounds of the event loop between two bodies that are parsed, at most, while requests come in."""


class Envelope:
    """Pure ASGI middleware. Reads the whole body first, so that a limit cannot be outrun, except a
    stream's.

    Args:
        app: What is surrounded.
        max_body_bytes: Bytes of a body.
        body_s: Seconds for it.
        keys: Who may ask; None: everybody.
        limiter: Keeps keys within their limits; None: none of them has any.
        is_apart: Whether the outputs of models are kept apart for each key.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_body_bytes: int,
        body_s: float,
        keys: Keys | None = None,
        *,
        limiter: Limiter | None = None,
        is_apart: bool = False,
    ) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._body_s = body_s
        self._keys = keys
        self._limiter = limiter
        self._is_apart = is_apart
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next = asyncio.Lock()
        self._begun = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._begun += 1
        await _Exchange(scope, receive, send).run(self)

    async def serve(self, exchange: _Exchange) -> None:
        """Check key and body, then hand on."""
        caller = None if self._keys is None else self._identify(exchange, self._keys)
        if caller is None:
            exchange.scope["state"]["caller"] = address = _address(exchange.scope)
            CALLER.set(address)
        elif self._limiter is not None and (caller.rate or caller.concurrency):
            async with self._limiter.within(caller):
                await self._pass_on(exchange)
            return
        await self._pass_on(exchange)

    async def _pass_on(self, exchange: _Exchange) -> None:
        scope = exchange.scope
        if scope["path"] == STREAM_ROUTE:
            await self._app(scope, exchange.receive, exchange.send)
            return
        try:
            async with asyncio.timeout(self._body_s):
                body = await _read(scope, exchange.receive, self._max_body_bytes)
        except TimeoutError:
            _LOG.warning("a request's body took too long")
            raise RequestTimeout(f"expected all within {self._body_s:g} seconds", "body") from None
        scope["state"]["arrived"] = time.monotonic()
        if scope["path"] not in OPEN_ROUTES:
            await self._one_by_one()
        await self._app(scope, _replay(body, exchange.receive), exchange.send)

    async def _one_by_one(self) -> None:
        """Let the event loop go round before the next request is parsed, however many there are.

        A probe takes some rounds from its connection to its reply: were a body parsed in each, it
        would wait for as many bodies, and with several in each for all of them.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # a lock belongs to the loop that first had to wait for it
            self._loop, self._next = loop, asyncio.Lock()
        await self._next.acquire()
        loop.call_soon(self._release, loop, ROUNDS, self._begun)

    def _release(self, loop: asyncio.AbstractEventLoop, rounds: int, begun: int) -> None:
        """Let the next request be parsed when a round brought none, or after so many rounds.

        Beside threads that compute, each round waits for the interpreter.
        """
        if rounds > 1 and self._begun != begun:
            loop.call_soon(self._release, loop, rounds - 1, self._begun)
        else:
            self._next.release()

    def _identify(self, exchange: _Exchange, keys: Keys) -> Caller | None:
        """Return whose key a request carries; None where it needs none.

        Raises:
            Unauthorized: If it carries none, or one that opens nothing.
            Forbidden: If the key lacks the right to ask for checks, and this is one.
        """
        scope = exchange.scope
        if scope["path"] in OPEN_ROUTES:
            return None
        given = Headers(scope=scope).get("authorization", "")
        kind, _, key = given.partition(" ")
        sent = key.strip().encode("latin-1")  # what ASGI decoded headers with: the sent bytes
        found = keys.find(sent)
        if kind.lower() != "bearer" or found is None:
            raise Unauthorized("no valid key; expected the header 'Authorization: Bearer <key>'")
        caller = found.caller
        exchange.log["key"] = caller.label
        if (refusal := found.refusal()) is not None:
            raise refusal
        IDENTITY.set(caller)
        scope["state"]["caller"] = KEY + caller.label
        CALLER.set(KEY + caller.label)
        if self._is_apart:
            TENANT.set(caller.label)
        if scope["method"] == "POST" and not scope["path"].startswith(OTHER_RIGHTS):
            require("check")
        return caller


def _address(scope: Scope) -> str:
    return str((scope.get("client") or ("unix",))[0])


class _Exchange:
    """One request and what is known about its response so far."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self._send = send
        self._started = time.perf_counter()
        self._status = 0
        self.request_id = request_id_from(Headers(scope=scope).get("x-request-id"))
        state = scope.setdefault("state", {})
        state["request_id"] = self.request_id
        self.log: dict[str, Any] = {}
        state["log"] = self.log

    async def run(self, envelope: Envelope) -> None:
        """Serve, turn what is raised into an error reply, then count and log."""
        try:
            await envelope.serve(self)
        except ServiceError as error:
            await self._fail(error)
        except Exception as error:  # noqa: BLE001 - the last handler: a bug is a 500, logged
            _LOG.error("unhandled %s at %s", type(error).__name__, raised_at(error))
            await self._fail(ServiceError("internal error"))
        finally:
            self._record()

    async def send(self, message: Message) -> None:
        """Pass a message on, adding the headers of every response."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.request_id
            headers["X-Total-Time"] = f"{self._elapsed_ms():.2f}"
        await self._send(message)

    async def _fail(self, error: ServiceError) -> None:
        if self._status:
            return  # the response has begun; the server closes the connection
        self.log["error"] = error.code
        shape = self.scope["state"].get("error_shape")
        response = error_response(error, self.request_id, shape)
        await response(self.scope, self.receive, self.send)

    def _elapsed_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1e3

    def _record(self) -> None:
        route = getattr(self.scope.get("route"), "path", None) or _meant(self.scope)
        telemetry: Telemetry | None = getattr(self.scope["app"].state, "telemetry", None)
        if telemetry is not None:
            telemetry.request(route, self._status, str(self.log.get("decision", "none")))
            if (key := self.log.get("key")) is not None:
                telemetry.of_key(key, self._status)
        fields: dict[str, Any] = {
            "request_id": self.request_id,
            "method": self.scope["method"] if self.scope["method"] in _METHODS else "other",
            "route": route,
            "status": self._status,
            "duration_ms": round(self._elapsed_ms(), 2),
        }
        log_request({**fields, **self.log})


def _meant(scope: Scope) -> str:
    """Return the template of the route that a refused request would have had; no path itself.

    Refusals before a route is chosen (401, 413, 429) are counted under it all the same.
    """
    found = (one for one in _routes(getattr(scope["app"], "router", None)) if _fits(one, scope))
    return getattr(next(found, None), "path", UNMATCHED)


def _routes(router: Any) -> Iterator[BaseRoute]:
    """Yield the routes of a router, and of those that it includes."""
    for route in getattr(router, "routes", ()):
        inner = getattr(route, "original_router", None)
        yield from (route,) if inner is None else _routes(inner)


def _fits(route: BaseRoute, scope: Scope) -> bool:
    return route.matches(scope)[0] is not Match.NONE


UNMATCHED = "unmatched"
_METHODS = frozenset({"GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH"})


_LONGEST_LENGTH = 18  # digits; more bytes than any machine holds


async def _read(scope: Scope, receive: Receive, limit: int) -> bytes:
    """Return the request body.

    Raises:
        BodyTooLarge: If it is, or says it is, longer than `limit` bytes.
    """
    stated = Headers(scope=scope).get("content-length", "0")
    if not (stated.isdecimal() and len(stated) <= _LONGEST_LENGTH):
        raise MalformedInput("found a Content-Length that is no length in bytes")
    if int(stated) > limit:
        raise BodyTooLarge(f"found {int(stated)} bytes; expected at most {limit}", "body")
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise InputError("the connection closed before the body was complete", "body")
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise BodyTooLarge(f"found more than {limit} bytes", "body")
        if not message.get("more_body", False):
            return b"".join(chunks)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that hands out the body once, then what the server says next."""
    pending = [body]

    async def replay() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return replay

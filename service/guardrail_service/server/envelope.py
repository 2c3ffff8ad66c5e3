"""Surrounds every request: id, key, body limit, headers, metrics, log line, last handler."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders

from guardrail_service.errors import (
    BodyTooLarge,
    ConfigurationError,
    InputError,
    MalformedInput,
    RequestTimeout,
    ServiceError,
    Unauthorized,
    raised_at,
)
from guardrail_service.server.error_replies import error_response
from guardrail_service.server.telemetry import log_request
from guardrail_service.types import CALLER, TENANT

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from guardrail_service.server.telemetry import Telemetry

_LOG = logging.getLogger(__name__)
OPEN_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Probes and scrapers carry no key; none of these routes shows or takes submitted text."""
STREAM_ROUTE = "/v1/check/stream"
"""Its body arrives while the reply leaves; `stream.py` bounds every line and their sum."""
_ID_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def request_id_from(header: str | None) -> str:
    """Return the caller's request id if it is short and plain, else a new one."""
    if header and len(header) <= 64 and _ID_CHARACTERS.issuperset(header):
        return header
    return uuid.uuid4().hex


class Keys:
    """The accepted keys; those of a file as it is now, looked at once a second.

    Args:
        given: The keys at the start.
        file: Where further ones are; None: nowhere.
        read: Reads all of them again.
    """

    def __init__(
        self,
        given: Iterable[bytes],
        file: Path | None = None,
        read: Callable[[], Iterable[bytes]] = tuple,
    ) -> None:
        self._known = {key_id(key): key for key in given}
        self._file = file
        self._read = read
        self._seen = self._last = self._state()
        self._next_look = time.monotonic() + KEYS_EVERY_S

    def __bool__(self) -> bool:
        """Return whether there is any key: without, everybody may ask."""
        return bool(self._known)

    def find(self, sent: bytes) -> str | None:
        """Return the id of a key that somebody sent, or None if it is none."""
        if self._file is not None and time.monotonic() >= self._next_look:
            self.renew()
        matches = [(hmac.compare_digest(sent, key), name) for name, key in self._known.items()]
        return next((name for is_it, name in matches if is_it), None)

    def renew(self) -> None:
        """Read the file if it has changed; one that cannot be used leaves the keys as they are.

        A file that was changed a moment ago may be half written: it is read at the next look.
        """
        self._next_look = time.monotonic() + KEYS_EVERY_S
        last, state = self._last, self._state()
        self._last = state
        if state == self._seen or (state != last and _is_young(state)):
            return
        self._seen = state
        try:
            self._known = {key_id(key): key for key in self._read()}
        except ConfigurationError:
            _LOG.error("the file of keys cannot be used; the last good keys stay in force")
            return
        _LOG.warning("the file of keys has changed and is in force")

    def _state(self) -> tuple[int, ...] | None:
        try:
            found = None if self._file is None else self._file.stat()
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


def _is_young(state: tuple[int, ...] | None) -> bool:
    return state is not None and time.time() - state[0] / 1e9 < KEYS_EVERY_S


KEYS_EVERY_S = 1.0
KEY = "key "
"""Before the id of a key where callers are told apart; an address never begins so."""


def key_id(key: bytes) -> str:
    """Return what logs and metrics call a key: the start of its hash, the same after a restart."""
    return hashlib.sha256(key).hexdigest()[:8]


ROUNDS = 4
"""Rounds of the event loop between two bodies that are parsed, at most, while requests come in."""


class Envelope:
    """Pure ASGI middleware. Reads the whole body first, so that a limit cannot be outrun, except a
    stream's."""

    def __init__(
        self,
        app: ASGIApp,
        max_body_bytes: int,
        body_s: float,
        keys: Keys | Iterable[bytes],
        *,
        is_apart: bool = False,
    ) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._body_s = body_s
        self._keys = keys if isinstance(keys, Keys) else Keys(keys)
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
        scope = exchange.scope
        scope["state"]["caller"] = caller = self._authorize(exchange)
        CALLER.set(caller)
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

    def _authorize(self, exchange: _Exchange) -> str:
        """Return whose request it is: the id of its key, or its address without keys."""
        scope = exchange.scope
        if not self._keys or scope["path"] in OPEN_ROUTES:
            return str((scope.get("client") or ("unix",))[0])
        given = Headers(scope=scope).get("authorization", "")
        kind, _, key = given.partition(" ")
        sent = key.strip().encode("latin-1")  # what ASGI decoded headers with: the sent bytes
        found = self._keys.find(sent)
        if kind.lower() != "bearer" or found is None:
            raise Unauthorized("no valid key; expected the header 'Authorization: Bearer <key>'")
        exchange.log["key"] = found
        if self._is_apart:
            TENANT.set(found)
        return KEY + found


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
        route = getattr(self.scope.get("route"), "path", "unmatched")
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

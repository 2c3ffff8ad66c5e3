"""Bounds bytes, time and places of connections before anybody has said who it is.

The only file that knows uvicorn's HTTP protocol class. Every refusal has the shape of all errors.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import httptools
import uvicorn
from prometheus_client import Counter as Refusals
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from guardrail_service.posix import raise_open_files
from guardrail_service.server.envelope import ADMIN_ROUTES, OPEN_ROUTES
from guardrail_service.server.refusals import REFUSALS
from guardrail_service.server.schemas import ErrorBody, ErrorReply
from guardrail_service.settings import Limits, Settings, Timeouts

_LOG = logging.getLogger(__name__)
HEALTH_CONNECTIONS = 32
"""Connections beyond the limit that may ask for health only. When they are used up, the one that
has been open longest makes room, so half-open ones cannot keep a probe out."""
LINGER_S = 1.0
"""Seconds a refused caller may go on sending: its system would throw the reply away otherwise."""
PROBE_S = 0.5
"""Seconds between two looks whether a caller that sends no more still listens."""
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Places:
    """The open connections, in all and by caller. One per process.

    Args:
        limits: Of this process.
        refused: Counts refusals by reason.
        note: Told how many connections may ask anything, whenever that changes.
    """

    def __init__(
        self, limits: Limits, refused: Refusals, note: Callable[[int], None] = lambda _: None
    ) -> None:
        self._limits = limits
        self._note = note
        self._refused = refused
        self._by_caller: Counter[str] = Counter()
        self._for_health: dict[Connection, None] = {}
        self._last_file = (raise_open_files(0) or 0) - 1

    def take(self, connection: Connection) -> bool:
        """Return whether a connection may ask anything; if not, it may ask for health."""
        caller = connection.caller
        if connection.is_operations:
            pass
        elif self._by_caller.total() >= self._limits.connections:
            self.note("connections")
        elif self._by_caller[caller] >= self._limits.connections_per_caller:
            self.note("connections_per_caller")
        else:
            self._by_caller[caller] += 1
            self._note(self._by_caller.total())
            return True
        self._for_health[connection] = None
        if len(self._for_health) > HEALTH_CONNECTIONS:
            oldest = next(iter(self._for_health))
            del self._for_health[oldest]
            self.note("health_connections")
            oldest.drop()
        return False

    def left(self) -> int:
        """Return how many more connections may ask anything."""
        return self._limits.connections - self._by_caller.total()

    def note(self, reason: str) -> None:
        """Count a refusal and log it; `reason` is one of REFUSALS."""
        self._refused.labels(reason).inc()
        _LOG.warning(REFUSALS[reason])

    def look_at(self, transport: asyncio.Transport) -> None:
        """Note if a connection has the last open file; libuv tells nobody of those behind it.

        The system gives each file the lowest free number.
        """
        own = transport.get_extra_info("socket")
        if own is not None and own.fileno() == self._last_file:
            self.note("open_files")

    def give(self, connection: Connection) -> None:
        """Give a place back."""
        if not connection.may_ask_all:
            self._for_health.pop(connection, None)
            return
        self._by_caller[connection.caller] -= 1
        if not self._by_caller[connection.caller]:
            del self._by_caller[connection.caller]
        self._note(self._by_caller.total())


def protocol_of(
    settings: Settings, operations_port: int | None, places: Places
) -> type[asyncio.Protocol]:
    """Return what uvicorn calls for each connection.

    Args:
        settings: Limits and time-outs.
        operations_port: Port that serves health and metrics only, besides the service's own.
        places: Those of the process.
    """
    made = partial(Connection, places, operations_port, settings.limits, settings.timeouts)
    return cast("type[asyncio.Protocol]", made)  # uvicorn only calls it


class Connection(HttpToolsProtocol):
    """One client's connection.

    Args:
        places: Those of the process.
        operations_port: Port whose connections may ask for health and metrics only.
        limits: Bytes of a request's head.
        timeouts: Seconds for it, and for a client that does not read.
    """

    def __init__(
        self,
        places: Places,
        operations_port: int | None,
        limits: Limits,
        timeouts: Timeouts,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._places = places
        self._operations_port = operations_port
        self.is_operations = False
        self._limits = limits
        self._timeouts = timeouts
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.may_ask_all = True
        self._is_refused = False
        self._is_in_head = False
        self._head_bytes = 0
        self._waiting_bytes = 0

    @property
    def caller(self) -> str:
        """Return the client's address; all clients of a Unix socket are one."""
        return self.client[0] if self.client else "unix"

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, and give the client time for its first request."""
        super().connection_made(transport)
        port = None if self.server is None else self.server[1]
        self.is_operations = port is not None and port == self._operations_port
        self._places.look_at(transport)
        self.may_ask_all = self._places.take(self)
        self._in("head", self._timeouts.header_s, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._places.give(self)
        if self.scheme == "https" and self._waits() and not self.cycle.response_started:
            self._places.note("tls_ended")
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close a connection that nobody can be told anything on."""
        if not self.transport.is_closing():
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read, unless this client was refused. A head that never ends is not joined."""
        if self._is_refused:
            return
        was_in_head = self._is_in_head
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return  # served as plain HTTP
        except httptools.HttpParserError:
            if self._head_bytes > self._limits.header_bytes:
                self._refuse_head()
            else:
                self._places.note("malformed")
                self._refuse(400, "malformed_http", "expected an HTTP/1.1 request")
            return
        self._waiting_bytes += len(data) if was_in_head and self._is_in_head else 0
        if self._waiting_bytes > self._limits.header_bytes:
            self._refuse_head()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Return whether the reply may still be written: its client has only said all it has.

        The system does not tell a client that is done sending from one that has left. To write
        tells: an interim reply, which every HTTP/1.1 client reads over, fails if it has left.
        """
        if self._is_refused or not self._waits() or self.scheme == "https":
            return None  # asyncio ends a TLS connection of which one half has ended
        self.cycle.keep_alive = False
        if self.scope["http_version"] == "1.1":
            self._in("probe", PROBE_S, self._probe)
        return True

    def on_message_begin(self) -> None:
        """Begin to count a request's head, and give it time."""
        super().on_message_begin()
        self.scope["state"]["is_operations"] = self.is_operations
        self._is_in_head = True
        self._head_bytes = self._waiting_bytes = 0
        self._in("head", self._timeouts.header_s, self._head_is_late)

    def on_url(self, url: bytes) -> None:
        """Count it."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count it with its colon, space and line end."""
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Serve the request; who has no place of its own is served its health or nothing."""
        self._is_in_head = False
        self._waiting_bytes = 0
        self._cancel("head")
        if not self.may_ask_all and not self._is_served(self.url.partition(b"?")[0].decode()):
            self._refuse_path()
            return
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, of a request that is served."""
        if not self._is_refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Note the end of a request that is served."""
        if not self._is_refused:
            super().on_message_complete()

    def pause_writing(self) -> None:
        """Wait for a client that does not read, but not for ever."""
        super().pause_writing()
        self._in("unread", self._timeouts.unread_s, self._is_unread)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        self._cancel("unread")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, in the shape of every error."""
        self._refuse(400, "malformed_http", msg)

    def _waits(self) -> bool:
        """Return whether a whole request has come, and its reply has not all left."""
        cycle = self.cycle
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._limits.header_bytes:
            raise ValueError  # ends the parser; see data_received

    def _refuse_head(self) -> None:
        self._places.note("header_bytes")
        most = self._limits.header_bytes
        self._refuse(431, "headers_too_large", f"headers: expected at most {most} bytes")

    def _is_served(self, path: str) -> bool:
        is_admin = self.is_operations and path.startswith(ADMIN_ROUTES)
        return path in OPEN_ROUTES or is_admin

    def _refuse_path(self) -> None:
        if self.is_operations:
            self._refuse(404, "not_found", "this port serves /healthz, /readyz and /metrics only")
        else:
            message = "all connections are taken; try again later"
            self._refuse(503, "too_many_connections", message)

    def _head_is_late(self) -> None:
        if not self._is_in_head:
            self._places.note("idle")
            self.transport.close()
            return
        self._places.note("header_time")
        allowed = f"{self._timeouts.header_s:g}"
        self._refuse(408, "request_timeout", f"headers: expected all within {allowed} seconds")

    def _is_unread(self) -> None:
        self._places.note("unread")
        self.drop()

    def _probe(self) -> None:
        """Find out whether the client still listens; a write fails after one that it rejected."""
        if self.cycle.response_started or self.transport.is_closing():
            return
        self.transport.write(_CONTINUE)
        self._in("probe", PROBE_S, self._probe)

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer outside any request, and read no more of this client."""
        self._is_refused = True
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()  # another reply is on its way: nothing may be written into it
            return
        self.transport.write(_error(status, code, message))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._in("linger", LINGER_S, self.transport.close)

    def _in(self, name: str, seconds: float, then: Callable[[], None]) -> None:
        self._cancel(name)
        self._timers[name] = self.loop.call_later(seconds, then)

    def _cancel(self, name: str) -> None:
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()


def _error(status: int, code: str, message: str) -> bytes:
    request_id = uuid.uuid4().hex
    reply = ErrorReply(error=ErrorBody(code=code, message=message, request_id=request_id))
    body = json.dumps(reply.model_dump()).encode()
    head = (
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        f"x-request-id: {request_id}\r\nconnection: close\r\n"
    )
    if status == 503:
        head += "retry-after: 1\r\n"
    return STATUS_LINE[status] + head.encode() + b"\r\n" + body

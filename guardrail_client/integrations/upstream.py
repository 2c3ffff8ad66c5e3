"""A model's server as an application that the middleware can stand around."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from typing import Any

from guardrail_client.integrations.chat_sources import CONTEXTS_HEADER
from guardrail_client.middleware.route_options import Route

ANSWERING = {
    "/chat/completions": "/v1/chat/completions",
    "/completions": "/v1/completions",
    "/responses": "/v1/responses",
}
"""Ends of paths whose replies hold answers, and the routes that guard them."""
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
_UNSENT = _HOP_BY_HOP | {
    b"host",
    b"content-length",
    b"accept-encoding",
    CONTEXTS_HEADER.encode(),
}
Headers = Iterable[tuple[bytes, bytes]]
Sender = Callable[[str, Any, list[tuple[bytes, bytes]], bytes], Any]
"""Sends method, target, headers and body; returns httpx' open response, or an awaitable of it."""


def answering_routes(**settings: Any) -> list[Route]:
    """Return the routes of everything that holds answers."""
    return [
        Route.openai(**settings),
        Route.openai("/v1/completions", **settings),
        Route.responses(**settings),
    ]


def route_of(path: str) -> str | None:
    """Return the path under which an answer is guarded; None if a path leads to no answer."""
    plain = path.rstrip("/")
    return next((route for end, route in ANSWERING.items() if plain.endswith(end)), None)


def sent_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return a request's headers as they go on: keys do, what is between two hosts does not."""
    kept = [(k, v) for k, v in headers if k.lower() not in _UNSENT]
    return [*kept, (b"accept-encoding", b"identity")]


def returned_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return a response's headers as they come back."""
    return [(k.lower(), v) for k, v in headers if k.lower() not in _HOP_BY_HOP]


def refusal(message: str, code: str) -> bytes:
    """Return an error as clients of OpenAI parse it."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return json.dumps({"error": error}).encode()


class UpstreamASGI:
    """Passes requests on to a model's server, and its replies back as they come.

    Args:
        send: Sends a request; a coroutine function.
    """

    def __init__(self, send: Sender) -> None:
        self._send = send

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Serve one request, whose body comes in one message."""
        body = (await receive())["body"]
        target = scope["upstream_target"]
        response = await self._send(scope["method"], target, sent_headers(scope["headers"]), body)
        try:
            returned = returned_headers(response.headers.raw)
            start = {"status": response.status_code, "headers": returned}
            await send({"type": "http.response.start", **start})
            async for part in response.aiter_raw():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await response.aclose()


class UpstreamWSGI:
    """The same for WSGI.

    Args:
        send: Sends a request; a function.
    """

    def __init__(self, send: Sender) -> None:
        self._send = send

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Serve one request."""
        body = environ["wsgi.input"].read()
        headers = sent_headers(environ["upstream_headers"])
        method, target = environ["REQUEST_METHOD"], environ["upstream_target"]
        response = self._send(method, target, headers, body)
        returned = returned_headers(response.headers.raw)
        plain = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in returned]
        start(f"{response.status_code} {response.reason_phrase or 'Unknown'}", plain)
        return _parts(response)


def _parts(response: Any) -> Iterator[bytes]:
    try:
        yield from response.iter_raw()
    finally:
        response.close()

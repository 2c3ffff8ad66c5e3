"""`guardrail proxy`: an OpenAI-compatible server before another one, whose answers are checked."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Annotated, Any
from urllib.parse import quote

import httpx
import typer

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.integrations.chat_sources import (
    CONTEXTS_HEADER,
    ROLES,
    TAGS,
    ChatRule,
    WrongPassages,
    chat_sources,
)
from guardrail_client.integrations.upstream import (
    UpstreamASGI,
    answering_routes,
    refusal,
    route_of,
)
from guardrail_client.middleware.asgi import GuardrailMiddleware

_LOG = logging.getLogger(__name__)
_PASSED = {("GET", "/v1/models"), ("POST", "/v1/embeddings")}
"""What holds no answer and is passed on unread; models by their names, too."""
MOST_BYTES = 32 * 1024 * 1024
"""Of a request's body."""
_WAIT = httpx.Timeout(600.0, connect=10.0)
Send = Callable[[Any], Awaitable[None]]


class GuardProxy:
    """Serves chat completions, completions and responses of an upstream, guarded; nothing else.

    Args:
        upstream: Its address, with or without `/v1` at its end.
        client: Asks the guard.
        rule: Where passages stand in requests.
        transport: Reaches the upstream.
        **settings: Those of `Route`.
    """

    def __init__(
        self,
        upstream: str,
        client: AsyncGuardrailClient,
        rule: ChatRule | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        **settings: Any,
    ) -> None:
        self._base = checked_upstream(upstream)
        self._client = client
        self._http = httpx.AsyncClient(timeout=_WAIT, transport=transport)
        self._rule = rule or ChatRule()
        app = UpstreamASGI(self._forward)
        self._guarded = GuardrailMiddleware(app, client, answering_routes(**settings))
        self._plain = app

    async def _forward(
        self, method: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> httpx.Response:
        request = self._http.build_request(method, target, headers=headers, content=body)
        return await self._http.send(request, stream=True)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        if scope["type"] != "http":
            return
        path, method = scope["path"].rstrip("/"), scope["method"]
        is_answer = method == "POST" and path in (route_of(path),)
        is_model = method == "GET" and path.startswith("/v1/models/") and ".." not in path
        is_passed = is_model or (method, path) in _PASSED
        if (method, path) == ("GET", "/healthz"):
            await _said(send, 200, b'{"status": "alive"}')
        elif not is_answer and not is_passed:
            told = "this proxy serves chat completions, completions and responses"
            await _said(send, 404, refusal(told, "not_served"))
        else:
            await self._passed(scope, receive, send, self._guarded if is_answer else self._plain)

    async def _passed(
        self, scope: MutableMapping[str, Any], receive: Any, send: Send, app: Any
    ) -> None:
        query = scope.get("query_string", b"").decode("latin-1")
        path = quote(scope["path"].rstrip("/").removeprefix("/v1"))
        target = self._base + path + (f"?{query}" if query else "")
        header = dict(scope["headers"]).get(CONTEXTS_HEADER.encode())
        body = await _body(receive)
        if body is None:
            told = f"found more than {MOST_BYTES} bytes"
            await _said(send, 413, refusal(told, "body_too_large"))
            return
        try:
            named = header.decode("latin-1") if header else None
            known = chat_sources(body, named, self._rule)
        except WrongPassages as error:
            await _said(send, 400, refusal(str(error), "invalid_passages"))
            return
        begun: list[bool] = []
        messages = iter([{"type": "http.request", "body": known.body}])

        async def replayed() -> Any:
            return next(messages, None) or await receive()

        async def sending(message: Any) -> None:
            begun.append(True)
            await send(message)

        try:
            own = {"guardrail": {"contexts": known.contexts}, "upstream_target": target}
            await app({**scope, **own}, replayed, sending)
        except httpx.HTTPError as error:
            _LOG.warning("the upstream cannot be reached: %s", type(error).__name__)
            if begun:
                raise
            await _said(send, 502, refusal("the model's server cannot be reached", "upstream"))

    async def _live(self, receive: Any, send: Send) -> None:
        async with self._open():
            for phase in ("startup", "shutdown"):
                await receive()
                if phase == "startup":
                    await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._http.aclose()
            await self._client.close()


def checked_upstream(upstream: str) -> str:
    """Return an upstream's address with `/v1` at its end.

    Raises:
        ValueError: If it is no address; the message holds no key that stands in it.
    """
    try:
        url = httpx.URL(upstream)
    except httpx.InvalidURL:
        raise ValueError("found no address, expected http:// or https://") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("found no address, expected http:// or https://")
    if url.userinfo or url.query:
        raise ValueError("found a user or a query, expected an address alone")
    plain = str(url).rstrip("/")
    return plain if plain.endswith("/v1") else f"{plain}/v1"


async def _body(receive: Any) -> bytes | None:
    """Return a request's body; None if it is too large, or its sender left."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if message["type"] != "http.request" or sum(map(len, parts)) > MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


async def _said(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def proxy(
    upstream: Annotated[str, typer.Option(help="Address of an OpenAI-compatible server.")],
    guard: Annotated[
        str, typer.Option(help="Address of the guard's service.", envvar="GUARDRAIL_URL")
    ] = "http://127.0.0.1:8080",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8081,
    policy: Annotated[str | None, typer.Option(help="Policy that decides.")] = None,
    role: Annotated[
        list[str] | None, typer.Option(help="Role whose messages hold passages; may be repeated.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Tag between which passages stand; may be repeated.")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds the guard may add to a reply.")] = 5.0,
) -> None:
    """Serve the answers of an OpenAI-compatible server, checked; keys are passed on.

    The key of the guard's service comes from GUARDRAIL_API_KEY.
    """
    import uvicorn

    try:
        app = GuardProxy(
            upstream,
            AsyncGuardrailClient(guard),
            ChatRule(role or ROLES, tag or TAGS),
            policy=policy,
            timeout=timeout,
        )
    except ValueError as error:
        raise typer.BadParameter(
            str(error), param_hint="--upstream, --guard, --role, --tag or --timeout"
        ) from None
    uvicorn.run(app, host=host, port=port, access_log=False, ws="none", log_level="warning")

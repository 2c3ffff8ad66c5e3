"""OpenAI's SDK: a client whose answers are checked between the network and the SDK's own parser."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import unquote

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.client import GuardrailClient
from guardrail_client.integrations.chat_sources import (
    CONTEXTS_HEADER,
    ROLES,
    TAGS,
    ChatRule,
    ChatSources,
    chat_sources,
)
from guardrail_client.integrations.upstream import (
    UpstreamASGI,
    UpstreamWSGI,
    answering_routes,
    route_of,
)
from guardrail_client.middleware.asgi import GuardrailMiddleware
from guardrail_client.middleware.wsgi import GuardrailWSGI

Client = TypeVar("Client")


def guarded(
    client: Client,
    url: str | None = None,
    *,
    api_key: str | None = None,
    roles: Sequence[str] = ROLES,
    tags: Sequence[str] = TAGS,
    **settings: Any,
) -> Client:
    """Return a copy of OpenAI's client that shows what the guard allows.

    Guarded are chat completions, completions and responses, streamed or not. Passages are
    `extra_body={"guardrail": {"contexts": [...]}}`, or stand in the messages.

    Args:
        client: `OpenAI`, `AsyncOpenAI` or one of their like.
        url: Address of the guard's service; None takes GUARDRAIL_URL.
        api_key: The key of that service; None takes GUARDRAIL_API_KEY.
        roles: Roles whose messages hold passages.
        tags: Names of the tags between which they stand; a message without tags is one passage.
        **settings: Those of `Route`, such as `policy` and `timeout`.

    Raises:
        TypeError: If it is no client of OpenAI's.
    """
    inner: Any = getattr(client, "_client", None)
    copied: Any = getattr(client, "copy", None)
    module = _httpx_of(inner)
    if module is None or copied is None:
        found = type(client).__name__
        raise TypeError(f"client: found {found}, expected OpenAI or AsyncOpenAI")
    routes, rule = answering_routes(**settings), ChatRule(roles, tags)
    if isinstance(inner, module.AsyncClient):
        asking = AsyncGuardrailClient(url, api_key=api_key)
        app = GuardrailMiddleware(UpstreamASGI(_asender(inner, module)), asking, routes)
        transport = _async_transport(module, inner, app, rule)
        changed = module.AsyncClient(transport=transport, timeout=inner.timeout)
    else:
        asked = GuardrailClient(url, api_key=api_key)
        wsgi = GuardrailWSGI(UpstreamWSGI(_sender(inner, module)), asked, routes)
        changed = module.Client(
            transport=_transport(module, inner, wsgi, rule), timeout=inner.timeout
        )
    found_client: Client = copied(http_client=changed)
    return found_client


def _httpx_of(inner: Any) -> Any:
    """Return the module of a client of httpx, or of its successor, that the SDK was built on."""
    for cls in type(inner).__mro__:
        name = cls.__module__.partition(".")[0]
        if cls.__name__ in ("Client", "AsyncClient") and name in ("httpx", "httpx2"):
            return import_module(name)
    return None


def _sender(inner: Any, module: Any) -> Callable[..., Any]:
    def send(method: str, request: Any, headers: list[tuple[bytes, bytes]], body: bytes) -> Any:
        return inner.send(_again(module, method, request, headers, body), stream=True)

    return send


def _asender(inner: Any, module: Any) -> Callable[..., Any]:
    async def send(
        method: str, request: Any, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> Any:
        return await inner.send(_again(module, method, request, headers, body), stream=True)

    return send


def _again(
    module: Any, method: str, request: Any, headers: list[tuple[bytes, bytes]], body: bytes
) -> Any:
    timeout = {"timeout": request.extensions.get("timeout")}
    return module.Request(method, request.url, headers=headers, content=body, extensions=timeout)


def _transport(module: Any, inner: Any, app: GuardrailWSGI, rule: ChatRule) -> Any:
    class Answer(module.SyncByteStream):
        def __init__(self, parts: Iterator[bytes]) -> None:
            self._parts = parts

        def __iter__(self) -> Iterator[bytes]:
            return self._parts

        def close(self) -> None:
            getattr(self._parts, "close", lambda: None)()

    class Transport(module.BaseTransport):
        def handle_request(self, request: Any) -> Any:
            request.read()
            path = route_of(request.url.path)
            if path is None or request.method != "POST":
                return inner.send(request, stream=True)
            told: list[Any] = []
            environ = _environ(request, path, _known(request, rule))
            parts = iter(app(environ, lambda *start: told.append(start)))
            first = next(parts, b"")
            status, headers = told[-1][0], told[-1][1]
            raw = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers]
            stream = Answer(_chained(first, parts))
            return module.Response(int(status[:3]), headers=raw, stream=stream)

        def close(self) -> None:
            inner.close()

    return Transport()


def _chained(first: bytes, parts: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield first
        yield from parts
    finally:
        getattr(parts, "close", lambda: None)()


def _known(request: Any, rule: ChatRule) -> ChatSources:
    return chat_sources(request.content, request.headers.get(CONTEXTS_HEADER), rule)


def _environ(request: Any, path: str, known: ChatSources) -> dict[str, Any]:
    named = {f"HTTP_{k.upper().replace('-', '_')}": v for k, v in request.headers.items()}
    return {
        **named,
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": request.url.query.decode("ascii"),
        "CONTENT_TYPE": request.headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(known.body)),
        "wsgi.input": io.BytesIO(known.body),
        "guardrail": {"contexts": known.contexts},
        "upstream_target": request,
        "upstream_headers": request.headers.raw,
    }


def _async_transport(module: Any, inner: Any, app: GuardrailMiddleware, rule: ChatRule) -> Any:
    class Answer(module.AsyncByteStream):
        def __init__(self, parts: AsyncIterator[bytes]) -> None:
            self._parts = parts

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self._parts:
                yield part

        async def aclose(self) -> None:
            closing: Any = self._parts
            await closing.aclose()

    class Transport(module.AsyncBaseTransport):
        async def handle_async_request(self, request: Any) -> Any:
            await request.aread()
            path = route_of(request.url.path)
            if path is None or request.method != "POST":
                return await inner.send(request, stream=True)
            known = _known(request, rule)
            call = _Served(app, _scope(request, path, known), known.body)
            start = await call.message()
            headers = [(bytes(k), bytes(v)) for k, v in start["headers"]]
            return module.Response(start["status"], headers=headers, stream=Answer(call.parts()))

        async def aclose(self) -> None:
            await inner.aclose()

    return Transport()


def _scope(request: Any, path: str, known: ChatSources) -> dict[str, Any]:
    return {
        "type": "http",
        "method": request.method,
        "path": unquote(path),
        "query_string": request.url.query,
        "headers": [(k.lower(), v) for k, v in request.headers.raw],
        "guardrail": {"contexts": known.contexts},
        "upstream_target": request,
    }


class _Served:
    """One call of an ASGI application whose messages are read one by one."""

    def __init__(self, app: GuardrailMiddleware, scope: dict[str, Any], body: bytes) -> None:
        self._messages: asyncio.Queue[Any] = asyncio.Queue(1)
        self._asked: Iterable[Any] = iter([{"type": "http.request", "body": body}])
        self._task = asyncio.ensure_future(self._run(app, scope))

    async def _run(self, app: GuardrailMiddleware, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self._receive, self._messages.put)
        except Exception as error:  # noqa: BLE001 - raised where the reply is read
            await self._messages.put(error)

    async def _receive(self) -> Any:
        message = next(iter(self._asked), None)
        if message is None:
            await asyncio.Event().wait()  # the caller is there until it closes the reply
        return message

    async def message(self) -> Any:
        """Return the next message; raise what the application raised."""
        message = await self._messages.get()
        if isinstance(message, Exception):
            raise message
        return message

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the body; whoever stops reading ends the call."""
        try:
            more = True
            while more:
                message = await self.message()
                yield bytes(message.get("body", b""))
                more = bool(message.get("more_body", False))
        finally:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

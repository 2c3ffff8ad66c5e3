"""Runs the service inside the caller's process. The only file that imports the service, lazily.

The service lives on an event loop of its own in a thread of its own, for both clients: its lifespan
begins and ends in one task, and its work does not hold up the application's loop.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, ExitStack
from typing import Any, Protocol, Self

import anyio.from_thread
import anyio.to_thread
import httpx
from anyio.from_thread import BlockingPortal

from guardrail_client.errors import ServiceNotInstalled

QUEUED = 16
"""Messages between the two loops in either direction."""
URL = "http://127.0.0.1"  # never connected to; only the Host header shows it

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Router(Protocol):
    """The part of an application that starts and stops it."""

    def lifespan_context(self, app: Any, /) -> AbstractAsyncContextManager[Any]:
        """Return what start-up enters and shut-down leaves."""


class App(Protocol):
    """An ASGI application with a router, as FastAPI and Starlette make them."""

    @property
    def router(self) -> Router:
        """The application's router."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""


def load_app(settings: Mapping[str, Any]) -> App:
    """Return the service's application.

    Raises:
        ServiceNotInstalled: If the distribution `rag-guardrail` is not installed.
    """
    try:
        api = importlib.import_module("guardrail_service.server.app")
        configuration = importlib.import_module("guardrail_service.settings")
    except ModuleNotFoundError as error:
        if error.name != "guardrail_service":
            raise
        raise ServiceNotInstalled(
            "in-process mode needs the service: pip install rag-guardrail"
        ) from error
    app: App = api.create_app(configuration.Settings(**settings))
    return app


class Host:
    """A started application on its own thread, until `close()` or the end of the main thread."""

    def __init__(self, app: App) -> None:
        with ExitStack() as stack:  # a start-up that fails must not leave the thread behind
            self._portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
            self._portal.call(_name_thread)
            lifespan = app.router.lifespan_context(app)
            state = stack.enter_context(self._portal.wrap_async_context_manager(lifespan))
            # Like a server: a crash in the application is a 500, not the caller's exception.
            self._app = _with_state(app, state)
            self._asgi = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            self._stack = stack.pop_all()
        _OPEN.add(self)

    def submit(self, request: httpx.Request) -> Future[httpx.Response]:
        """Start answering a request; cancelling the future cancels the work."""
        return self._portal.start_task_soon(self._answer, request)

    def open(self, request: httpx.Request) -> InProcessTwoWayRequest:
        """Return a request whose body is sent while its reply arrives."""
        return InProcessTwoWayRequest(self._portal, self._app, request)

    def close(self) -> None:
        """Shut the application down and end the thread; later calls do nothing."""
        _OPEN.discard(self)
        self._stack.close()

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        seconds = request.extensions["timeout"]["read"]
        with anyio.move_on_after(seconds):
            response = await self._asgi.handle_async_request(request)
            content = b"".join([chunk async for chunk in response.aiter_raw()])
            return httpx.Response(
                response.status_code, headers=response.headers, stream=httpx.ByteStream(content)
            )
        raise httpx.ReadTimeout(f"no reply within {seconds:g} s", request=request)


class _OpenHosts:
    """Closes the hosts that are still open when the main thread ends.

    Their threads would keep a program alive for good that never calls `close()`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: set[Host] = set()
        self._waits = False

    def add(self, host: Host) -> None:
        """Close a host with the main thread."""
        with self._lock:
            self._hosts.add(host)
            if self._waits:
                return
            self._waits = True
        threading.Thread(target=self._wait, name="rag-guardrail-end", daemon=True).start()

    def discard(self, host: Host) -> None:
        """Forget a host that its owner closes."""
        with self._lock:
            self._hosts.discard(host)

    def _wait(self) -> None:
        threading.main_thread().join()
        for host in tuple(self._hosts):
            host.close()


_OPEN = _OpenHosts()


class InProcessTwoWayRequest:
    """One request to the application on its own loop, used from a caller's asyncio loop."""

    def __init__(self, portal: BlockingPortal, app: Any, request: httpx.Request) -> None:
        self._portal = portal
        self._app = app
        self._request = request
        self._task: Future[None] | None = None

    async def open(self) -> Self:
        """Start answering."""
        await self._there(self._prepare)
        self._task = self._portal.start_task_soon(self._serve)
        return self

    async def send(self, data: bytes) -> None:
        """Send a part of the body; waits while the application has too many."""
        await self._put({"type": "http.request", "body": data, "more_body": True})

    async def finish(self) -> None:
        """Send the end of the body."""
        await self._put({"type": "http.request", "body": b"", "more_body": False})

    async def head(self) -> tuple[int, Mapping[str, str]]:
        """Return the reply's status and headers."""
        message = await self._there(self._replies.get)
        if message is None:
            raise httpx.RemoteProtocolError("no reply")
        fields = {k.decode("latin-1"): v.decode("latin-1") for k, v in message["headers"]}
        return message["status"], fields

    async def receive(self) -> bytes:
        """Return a part of the reply's body."""
        while (message := await self._there(self._replies.get)) is not None:
            if body := bytes(message.get("body", b"")):
                return body
        return b""

    async def aclose(self) -> None:
        """Hang up, and wait until the application has stopped."""
        if self._task is not None:
            self._task.cancel()
            await self._there(self._done.wait)

    async def _there(self, work: Callable[[], Awaitable[Any]]) -> Any:
        return await asyncio.wrap_future(self._portal.start_task_soon(work))

    async def _put(self, message: Message) -> None:
        async def put() -> None:
            await self._messages.put(message)

        if self._task is not None and self._task.done():
            raise httpx.WriteError("the reply has ended")
        await self._there(put)

    async def _prepare(self) -> None:
        self._messages: asyncio.Queue[Message] = asyncio.Queue(QUEUED)
        self._replies: asyncio.Queue[Message | None] = asyncio.Queue(QUEUED)
        self._done = asyncio.Event()

    async def _serve(self) -> None:
        url = self._request.url
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "path": url.path,
            "raw_path": url.raw_path,
            "query_string": b"",
            "root_path": "",
            "scheme": url.scheme,
            "headers": [(k.lower(), v) for k, v in self._request.headers.raw],
            "client": None,
            "server": None,
        }
        try:
            await self._app(scope, self._messages.get, self._replies.put)
        except Exception:  # noqa: BLE001 - as from a server: the reply ends, the caller goes on
            logging.getLogger(__name__).error("the service failed in a stream")
        finally:
            self._done.set()
        await self._replies.put(None)


def _name_thread() -> None:
    threading.current_thread().name = "rag-guardrail"


def _with_state(app: App, state: Mapping[str, Any] | None) -> Any:
    # What the lifespan yields reaches handlers through the scope, which httpx leaves out.
    async def call(scope: Message, receive: Receive, send: Send) -> None:
        await app({**scope, "state": dict(state or {})}, receive, send)

    return call


def host(settings: Mapping[str, Any]) -> Host:
    """Return the started service."""
    return Host(load_app(settings))


class InProcessTransport(httpx.BaseTransport):
    """Gives requests of a synchronous client to a `Host`, which it owns."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the application's reply."""
        request.read()
        return self.host.submit(request).result()

    async def open_two_way(self, request: httpx.Request) -> InProcessTwoWayRequest:
        """Return a request whose body is sent while its reply arrives."""
        return await self.host.open(request).open()

    def close(self) -> None:
        """Shut the application down."""
        self.host.close()


class AsyncInProcessTransport(httpx.AsyncBaseTransport):
    """Gives requests of an asynchronous client to a `Host`, which it owns. asyncio only."""

    def __init__(self, host: Host) -> None:
        self.host = host

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the application's reply."""
        await request.aread()
        return await asyncio.wrap_future(self.host.submit(request))

    async def open_two_way(self, request: httpx.Request) -> InProcessTwoWayRequest:
        """Return a request whose body is sent while its reply arrives."""
        return await self.host.open(request).open()

    async def aclose(self) -> None:
        """Shut the application down without holding up the caller's loop."""
        await anyio.to_thread.run_sync(self.host.close)

"""Builds the FastAPI application: routes, envelope, error handlers, lifespan."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import generate_latest
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from guardrail_service import __version__
from guardrail_service.errors import MalformedInput, ServiceError
from guardrail_service.server import api_page
from guardrail_service.server.collecting import collect_when_idle
from guardrail_service.server.envelope import Envelope
from guardrail_service.server.error_replies import ErrorShape, error_response, shaped
from guardrail_service.server.keys import Keys
from guardrail_service.server.limiter import Limiter
from guardrail_service.server.routes import router
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.schemas import ErrorBody
from guardrail_service.server.service import Service
from guardrail_service.server.translate import validation_error
from guardrail_service.server.watch import Watcher
from guardrail_service.settings import Settings

if TYPE_CHECKING:
    from guardrail_service.server.decisions import Recorder
    from guardrail_service.server.process_place import ProcessPlace

DESCRIPTION = """Says in milliseconds whether a RAG answer may be shown: is every sentence supported
by the passages, is it on topic, is it degenerate? Every verdict is a score beside a threshold."""


def create_app(
    settings: Settings | None = None,
    runtime: Runtime | None = None,
    decisions: Recorder | None = None,
    place: ProcessPlace | None = None,
) -> FastAPI:
    """Return the application.

    Args:
        settings: How it runs; read from the environment if unset.
        runtime: An already loaded runtime; loaded at start-up if unset.
        decisions: Keeps decisions; opened at start-up, where the settings name a store, if unset.
        place: The process's place among several that serve together, if there are several.
    """
    if runtime is not None:
        settings = runtime.settings
    settings = settings or Settings()
    app = FastAPI(
        title="rag-guardrail",
        version=__version__,
        summary="Real-time guardrail for RAG answers",
        description=DESCRIPTION,
        lifespan=_lifespan(settings, runtime, decisions, place),
        docs_url=None,  # FastAPI's page loads scripts from another host; `api_page` has ours
        redoc_url=None,
        redirect_slashes=False,
    )
    app.include_router(router)
    app.include_router(api_page.router)
    app.state.place = place
    keys = Keys.of(settings)
    app.state.limiter = None if settings.api_keys_file is None else Limiter.of(settings)
    app.add_middleware(
        Envelope,
        max_body_bytes=settings.limits.body_bytes,
        body_s=settings.timeouts.body_s,
        keys=keys,
        limiter=app.state.limiter,
        is_apart=settings.tenant_cache,
    )
    if settings.dialects:
        from guardrail_service.server.dialects import add_dialects

        add_dialects(app, settings.dialects)
    app.add_exception_handler(ServiceError, _on_guardrail_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    return app


def _lifespan(
    settings: Settings, loaded: Runtime | None, given: Recorder | None, place: ProcessPlace | None
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        """Load everything before the port opens; drain when it closes."""
        runtime = loaded if loaded is not None else await run_in_threadpool(Runtime, settings)
        decisions = given if given is not None else await run_in_threadpool(recorder, runtime)
        service = Service(runtime, decisions)
        app.state.service = service
        app.state.telemetry = service.telemetry
        limiter: Limiter | None = app.state.limiter
        if limiter is not None:
            service.telemetry.registry.register(limiter.uncounted)
        if place is not None:
            place.say_metrics(lambda: generate_latest(service.telemetry.registry))
        lag = asyncio.ensure_future(service.telemetry.lag.measure())
        collecting = asyncio.ensure_future(collect_when_idle(lambda: service.is_idle))
        service.telemetry.registry.register(runtime.reloads)
        with _reload_on_hangup(runtime), _reload_on_change(runtime):
            yield
        lag.cancel()
        collecting.cancel()
        await run_in_threadpool(service.close)
        if limiter is not None:
            limiter.close()

    return lifespan


def recorder(runtime: Runtime) -> Recorder | None:
    """Return what keeps decisions; None where the settings name no store.

    Raises:
        ConfigurationError: If the store cannot be used.
    """
    if runtime.settings.decisions.url is None:
        return None
    from guardrail_service.server.decisions import recorder_for

    return recorder_for(runtime.settings, runtime.serving.fingerprints, runtime.guard.in_force)


@contextmanager
def _reload_on_hangup(runtime: Runtime) -> Iterator[None]:
    """Reload the configurations on SIGHUP, where the main thread serves."""

    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGHUP"):
        yield
        return
    before = signal.signal(signal.SIGHUP, runtime.reloads.soon)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


@contextmanager
def _reload_on_change(runtime: Runtime) -> Iterator[None]:
    """Reload the policies when their files change, where that is asked for."""
    if runtime.watch is None:
        yield
        return
    watcher = Watcher(runtime.watch, runtime.reloads.tried, runtime.settings.watch_s)
    try:
        yield
    finally:
        watcher.close()


async def _on_guardrail_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ServiceError)  # noqa: S101 - narrows what the handler table says
    request.state.log["error"] = error.code
    return error_response(error, request.state.request_id, _shape_of(request))


async def _on_invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - narrows, as above
    first = dict(error.errors()[0])
    first["loc"] = first["loc"][1:] if first["loc"][:1] == ("body",) else first["loc"]
    if not first["loc"] and first["type"] not in ("string_unicode", "value_error"):
        expected = "expected a JSON object, sent with 'Content-Type: application/json'"
        return await _on_guardrail_error(request, MalformedInput(expected, "body"))
    return await _on_guardrail_error(request, validation_error(first))


async def _on_http(request: Request, error: Exception) -> JSONResponse:
    """Give the framework's own refusals (404, 405, unparsable bodies) our reply shape."""
    assert isinstance(error, HTTPException)  # noqa: S101 - narrows, as above
    codes = {400: MalformedInput.code, 404: "not_found", 405: "method_not_allowed"}
    code = codes.get(error.status_code, "http_error")
    request.state.log["error"] = code
    found = ErrorBody(code=code, message=str(error.detail), request_id=request.state.request_id)
    status, body, headers = shaped(error.status_code, found, _shape_of(request))
    return JSONResponse(body, status, headers={**(error.headers or {}), **headers})


def _shape_of(request: Request) -> ErrorShape | None:
    """Return the form of errors where a path is another protocol's."""
    return getattr(request.state, "error_shape", None)

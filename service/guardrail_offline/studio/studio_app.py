"""Puts the pages of the studio together behind their door."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from guardrail_offline.studio import (
    calibrate_pages,
    compare_pages,
    decision_pages,
    label_pages,
    policy_pages,
    promise_pages,
    studio_pages,
    try_pages,
)
from guardrail_offline.studio.access import Door
from guardrail_offline.studio.studio_pages import Studio, page

ROUTERS = (
    studio_pages.router,
    decision_pages.router,
    label_pages.router,
    calibrate_pages.router,
    policy_pages.router,
    promise_pages.router,
    compare_pages.router,
    try_pages.router,
)


def studio_app(studio: Studio, hosts: frozenset[str]) -> ASGIApp:
    """Return the application.

    Args:
        studio: What the pages are made of.
        hosts: Values of the Host header that mean it.
    """
    app = FastAPI(title="guardrail studio", openapi_url=None, docs_url=None, redoc_url=None)
    app.state.studio = studio
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(HTTPException, _shown)
    return Door(app, studio.access, hosts, secure=studio.secure)


def _shown(request: Request, error: Exception) -> Response:
    """Return an error as a page to a browser, as a line to a script."""
    assert isinstance(error, HTTPException)  # noqa: S101 - what the handler is registered for
    if "text/html" not in request.headers.get("accept", "") or error.status_code < 400:
        return Response(
            error.detail, error.status_code, dict(error.headers or {}), media_type="text/plain"
        )
    return page(request, "error.html.j2", error.status_code, detail=error.detail)

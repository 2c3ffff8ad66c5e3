"""Trying an answer: texts in, the verdict with its marks out, and the same as a command."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse

from guardrail_offline.studio.studio_pages import Person, StudioIn, page
from guardrail_service.errors import ServiceError

router = APIRouter(prefix="/try")
KNOWN = {"question", "contexts", "answer", "policy"}


@router.get("")
def try_page(request: Request, studio: StudioIn, person: Person) -> Response:
    """Show the form."""
    return page(request, "try.html.j2", service=studio.judge.service)


@router.get("/policies")
def try_policies(studio: StudioIn, person: Person) -> list[dict[str, Any]]:
    """Return the policies that can be tried; loads the models the first time."""
    try:
        found = studio.judge.policies().values()
    except ServiceError as error:
        raise HTTPException(503, str(error)) from None
    return [
        {"name": p.name, "version": p.version, "calibrated": bool(p.calibration)} for p in found
    ]


@router.post("/check")
async def try_check(request: Request, studio: StudioIn, person: Person) -> Response:
    """Return the reply that the service gives to these texts."""
    from starlette.concurrency import run_in_threadpool

    try:
        body = json.loads(await request.body())
        if not isinstance(body, dict) or body.keys() - KNOWN:
            raise ValueError
    except (ValueError, RecursionError):
        raise HTTPException(422, "question, contexts, answer and policy") from None
    try:
        reply = await run_in_threadpool(studio.judge.check, body)
    except ServiceError as error:
        raise HTTPException(503, str(error)) from None
    return JSONResponse(reply.model_dump(mode="json"))

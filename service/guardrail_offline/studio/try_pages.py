"""Trying an answer: texts in, the verdict with its marks out, and the same as a command."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse

from guardrail_offline.studio.studio_pages import Person, StudioIn, page
from guardrail_service.errors import InputError, ServiceError

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
        found = {name: studio.judge.policy(file) for name, file in studio.bases().items()}
    except ServiceError as error:
        raise HTTPException(503, str(error)) from None
    return [
        {"name": name, "version": policy.version, "calibrated": bool(policy.calibration)}
        for name, policy in found.items()
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
    bases = studio.bases()
    name = str(body.pop("policy", "") or next(iter(bases)))
    if name not in bases:
        raise HTTPException(422, "policy: one of the list")
    try:
        reply = await run_in_threadpool(studio.judge.check, body, bases[name])
    except InputError as error:
        raise HTTPException(422, str(error)) from None
    except ServiceError as error:
        raise HTTPException(503, str(error)) from None
    return JSONResponse(reply.model_dump(mode="json"))

"""HTTP requests to checks and back. The first of the six files an answer passes."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from guardrail_service import __version__
from guardrail_service.detectors.registry import REGISTRY, DetectorSpec
from guardrail_service.errors import InputError, MalformedInput
from guardrail_service.inference.models.session import library_version
from guardrail_service.inference.pack import Pack
from guardrail_service.policy.decide import describe
from guardrail_service.server.keys import needs
from guardrail_service.server.schemas import (
    BatchReply,
    BatchRequest,
    CheckReply,
    CheckRequest,
    ContextsReply,
    ContextsRequest,
    DetectorsReply,
    ErrorReply,
    FeedbackReply,
    FeedbackRequest,
    InfoReply,
    PoliciesReply,
    PolicyInForce,
    ReadyReply,
    ReloadReply,
)
from guardrail_service.server.service import Gone, Service
from guardrail_service.server.streams import NDJSON
from guardrail_service.server.telemetry import summary
from guardrail_service.server.translate import SMALL_BODY, check_charset, decode


class _StrictRequest(Request):
    """Reads JSON as the command line does, so that both refuse the same bodies."""

    kind: type[BaseModel] | None = None
    """The model of a large body, which is parsed at once on the thread that reads it."""
    invalid: ValidationError | None = None
    """Why it does not describe one."""

    async def json(self) -> Any:
        """Return the body's value; of a large body, the object that it describes.

        Raises:
            HTTPException: If it is no JSON, or a large body that is `invalid`.
        """
        body = await self.body()
        try:
            check_charset(self.headers.get("content-type", ""))
            if len(body) <= SMALL_BODY:
                return decode(body)
            return await run_in_threadpool(_read, body, self.kind)
        except MalformedInput as error:
            raise HTTPException(400, str(error)) from error
        except ValidationError as error:
            self.invalid = error  # the framework lets nothing else than HTTPException through
            raise HTTPException(422) from error


def _read(body: bytes, kind: type[BaseModel] | None) -> Any:
    value = decode(body)
    return value if kind is None else kind.model_validate(value)


class _StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        annotation: Any = self.body_field.field_info.annotation if self.body_field else None
        kind: type[BaseModel] | None = annotation

        async def handle(request: Request) -> Response:
            strict = _StrictRequest(request.scope, request.receive)
            strict.kind = kind
            try:
                return await handler(strict)
            except HTTPException:
                if strict.invalid is None:
                    raise
                raise RequestValidationError(strict.invalid.errors()[:1]) from None

        return handle


router = APIRouter(route_class=_StrictRoute)
_JSON = "application/json"
_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorReply, "description": "The body is not JSON."},
    401: {"model": ErrorReply, "description": "No or wrong key."},
    403: {"model": ErrorReply, "description": "The key may not do this."},
    413: {"model": ErrorReply, "description": "More bytes than this service accepts."},
    422: {"model": ErrorReply, "description": "A field that does not fit; the message names it."},
    429: {"model": ErrorReply, "description": "Other callers' work leaves no room in time."},
    503: {"model": ErrorReply, "description": "Still loading, or shutting down."},
}
_STALE = "New policies cannot be served; those of before stay in force."
_UNKNOWN: dict[str, Any] = {
    "model": ErrorReply,
    "description": "No such decision is stored, or this service keeps none.",
}
_KEYED: dict[int | str, dict[str, Any]] = {401: _ERRORS[401]}


async def _service(request: Request) -> Service:
    # Not a plain function: those wait for a thread, and work that is slow may hold all of them.
    service: Service = request.app.state.service
    return service


def leaving(request: Request) -> Gone:
    """Return what ends when the sender of a request has left."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return gone


ServiceIn = Annotated[Service, Depends(_service)]


@router.post("/v1/check", responses={200: {"model": CheckReply}, **_ERRORS}, tags=["checking"])
async def check(body: CheckRequest, request: Request, service: ServiceIn) -> Response:
    """Judge one answer against the passages it came from."""
    state = request.state
    reply, text = await service.check(
        body, state.request_id, leaving(request), state.arrived, state.caller
    )
    request.state.log.update(summary(reply))
    headers = {
        "X-Guardrail-Decision": reply.decision,
        "X-Guardrail-Action": reply.action,
        "X-Queue-Time": f"{reply.timings_ms.queue:.2f}",
        "X-Inference-Time": f"{reply.timings_ms.inference:.2f}",
    }
    return Response(text, headers=headers, media_type=_JSON)


@router.post(
    "/v1/check/batch", responses={200: {"model": BatchReply}, **_ERRORS}, tags=["checking"]
)
async def check_batch(body: BatchRequest, request: Request, service: ServiceIn) -> Response:
    """Judge several answers; an item that cannot be judged gets an error of its own."""
    state = request.state
    results = await service.check_batch(
        body.items, state.request_id, leaving(request), state.caller
    )
    flagged = sum(isinstance(r, CheckReply) and r.decision == "flag" for r in results)
    failed = sum(isinstance(r, ErrorReply) for r in results)
    request.state.log.update(items=len(results), flagged_items=flagged, failed_items=failed)
    text = await run_in_threadpool(lambda: BatchReply(results=results).model_dump_json())
    return Response(text, media_type=_JSON)


@router.post("/v1/contexts", responses=_ERRORS, tags=["checking"])
async def contexts(body: ContextsRequest, request: Request, service: ServiceIn) -> ContextsReply:
    """Compute ahead what the models need of passages, before answers come from them."""
    state = request.state
    reply = await service.warm(body, state.request_id, leaving(request), state.caller)
    request.state.log.update(reply.model_dump(exclude={"request_id"}))
    return reply


@router.post(
    "/v1/feedback",
    responses={200: {"model": FeedbackReply}, 404: _UNKNOWN, **_ERRORS},
    dependencies=[Depends(needs("feedback"))],
    tags=["feedback"],
)
async def feedback(body: FeedbackRequest, request: Request, service: ServiceIn) -> FeedbackReply:
    """Store a person's word on a decision; it is durable when the reply comes."""
    state = await service.feedback(body)
    request.state.log.update(feedback=state)
    if state == "unknown":
        raise HTTPException(404, "no stored decision has this request id")
    if state == "ambiguous":
        raise InputError("several decisions have this request id; expected the place", "item")
    return FeedbackReply(request_id=body.request_id, state=state)


@router.post(
    "/v1/check/stream",
    response_class=Response,
    responses={200: {"content": {NDJSON: {}}, "description": "Records, one per line."}, **_ERRORS},
    tags=["checking"],
)
async def check_stream(request: Request, service: ServiceIn) -> Response:
    """Judge an answer while it is written: JSON lines in, JSON lines out, see docs/streaming.md."""
    return await service.streams.open(request)


@router.get("/v1/policies", responses=_KEYED, tags=["about"])
def policies(service: ServiceIn) -> PoliciesReply:
    """List the loaded policies with every threshold and whether it was calibrated."""
    guard = service.runtime.guard
    default = guard.default_policy
    shown = [policy for name, policy in guard.policies.items() if guard.is_shown(name)]
    loaded = sorted(shown, key=lambda policy: policy.name != default)
    return PoliciesReply(default=default, policies=[describe(policy) for policy in loaded])


@router.get("/v1/detectors", responses=_KEYED, tags=["about"])
def detectors(service: ServiceIn) -> DetectorsReply:
    """List every published detector and whether this service can run it."""
    pack = service.runtime.pack
    return DetectorsReply(detectors=[_describe(spec, pack) for spec in REGISTRY.specs()])


@router.get("/v1/info", responses=_KEYED, tags=["about"])
def info(service: ServiceIn) -> InfoReply:
    """Tell what runs here: versions, models, fingerprints and limits."""
    runtime = service.runtime
    manifest = runtime.pack.manifest
    models = {role: runtime.pack.model_name(role) for role in runtime.pack.roles}
    return InfoReply(
        version=__version__,
        runtime={
            "python": platform.python_version(),
            "onnxruntime": library_version(),
            "machine": platform.machine(),
        },
        pack={"name": manifest.name, "version": manifest.version, "roles": models},
        fingerprints=dict(runtime.serving.fingerprints),
        golden={role: report._asdict() for role, report in runtime.golden.items()},
        limits=runtime.settings.limits.model_dump(),
        caches={name: found._asdict() for name, found in runtime.caches.stats().items()},
        workers=runtime.settings.workers,
    )


@router.post(
    "/v1/admin/reload",
    responses={**_KEYED, 403: _ERRORS[403], 409: {"model": ErrorReply, "description": _STALE}},
    dependencies=[Depends(needs("admin"))],
    tags=["operations"],
)
async def reload(request: Request, service: ServiceIn) -> ReloadReply:
    """Read the policies again and say which are in force: the new ones, all of them, or none."""
    # Not on the threads that read large bodies: many who ask at once all wait for one reading.
    loop = asyncio.get_running_loop()
    reloads = service.runtime.reloads
    found = await loop.run_in_executor(None, reloads.now, reloads.ask())
    if request.app.state.place is not None:
        request.app.state.place.reload_all()
    canaries = [canary.policy for canary in found.canaries.values()]
    shadows = [policy for beside in found.shadows.values() for policy in beside]
    parts = (("live", found.live.values()), ("canary", canaries), ("shadow", shadows))
    return ReloadReply(
        policies=[
            PolicyInForce(name=p.name, version=p.version, sha256=p.sha256, part=part)
            for part, policies in parts
            for p in policies
        ]
    )


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", tags=["operations"])
async def healthz() -> dict[str, str]:
    """Tell that the process answers; says nothing about models."""
    return {"status": "alive"}


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses={503: {"model": ReadyReply}}, tags=["operations"])
async def readyz(service: ServiceIn) -> JSONResponse:
    """Tell whether answers can be judged right now, and what is not as it should be."""
    reason = service.runtime.scheduler.not_ready()
    detail = {} if reason is None else {"not_ready": reason}
    if service.runtime.reload_error is not None:
        detail["configuration"] = "reload failed; the last good configuration is in force"
    refused = False
    if service.decisions is not None and (found := service.decisions.store.problem()):
        detail["decisions"] = found
        refused = service.decisions.store.required
    reply = ReadyReply(ready=reason is None and not refused, detail=detail)
    return JSONResponse(reply.model_dump(), 200 if reply.ready else 503)


@router.get("/metrics", response_class=Response, tags=["operations"])
def metrics(request: Request, service: ServiceIn) -> Response:
    """Return Prometheus metrics; on the port for operations only, if there is one."""
    has_own_port = service.runtime.settings.operations_port is not None
    if has_own_port and not getattr(request.state, "is_operations", False):
        raise HTTPException(404, "Not Found")
    place = request.app.state.place  # among several processes, if there are several
    own = service.telemetry.registry
    found = generate_latest(own) if place is None else place.all_metrics()
    return Response(found, media_type=CONTENT_TYPE_LATEST)


def _describe(spec: DetectorSpec, pack: Pack) -> dict[str, Any]:
    served = [role for role in pack.roles if role in spec.roles]
    return {
        "id": spec.id,
        "h2o_id": spec.h2o_id,
        "summary": spec.summary,
        "inputs": sorted(spec.inputs),
        "roles": sorted(spec.roles),
        "served": len(served) == len(spec.roles),
        "providers": {role: pack.provider(role) for role in served},
        "metrics": [
            {
                "key": metric.key,
                "direction": metric.direction.value,
                "range": [metric.low, metric.high],
                "gating": metric.gating,
            }
            for metric in spec.metrics
        ],
    }

"""HTTP requests to checks and back. The first of the six files an answer passes."""

from __future__ import annotations

import platform
from collections.abc import Callable, Coroutine
from importlib.metadata import version as installed_version
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from guardrail_service import __version__
from guardrail_service.api.schemas import (
    BatchReply,
    BatchRequest,
    CheckReply,
    CheckRequest,
    DetectorsReply,
    ErrorReply,
    InfoReply,
    PoliciesReply,
    ReadyReply,
)
from guardrail_service.api.service import Gone, Service
from guardrail_service.api.telemetry import summary
from guardrail_service.api.translate import decode
from guardrail_service.errors import MalformedInput
from guardrail_service.policy import describe
from guardrail_service.registry import REGISTRY, DetectorSpec


class _StrictRequest(Request):
    """Reads JSON as the command line does, so that both refuse the same bodies."""

    async def json(self) -> Any:
        """Return the body's value."""
        try:
            return decode(await self.body())
        except MalformedInput as error:
            raise HTTPException(400, str(error)) from error


class _StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return handle


router = APIRouter(route_class=_StrictRoute)
_JSON = "application/json"
_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorReply, "description": "The body is not JSON."},
    401: {"model": ErrorReply, "description": "No or wrong key."},
    413: {"model": ErrorReply, "description": "More bytes than this service accepts."},
    422: {"model": ErrorReply, "description": "A field that does not fit; the message names it."},
    429: {"model": ErrorReply, "description": "Other callers' work fills the queue."},
    503: {"model": ErrorReply, "description": "Still loading, or shutting down."},
}
_KEYED: dict[int | str, dict[str, Any]] = {401: _ERRORS[401]}


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


def _gone(request: Request) -> Gone:
    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return gone


ServiceIn = Annotated[Service, Depends(_service)]


@router.post("/v1/check", responses={200: {"model": CheckReply}, **_ERRORS}, tags=["checking"])
async def check(body: CheckRequest, request: Request, service: ServiceIn) -> Response:
    """Judge one answer against the passages it came from."""
    reply = await service.check(body, request.state.request_id, _gone(request))
    request.state.log.update(summary(reply))
    headers = {
        "X-Guardrail-Decision": reply.decision,
        "X-Queue-Time": f"{reply.timings_ms.queue:.2f}",
        "X-Inference-Time": f"{reply.timings_ms.inference:.2f}",
    }
    return Response(reply.model_dump_json(), headers=headers, media_type=_JSON)


@router.post(
    "/v1/check/batch", responses={200: {"model": BatchReply}, **_ERRORS}, tags=["checking"]
)
async def check_batch(body: BatchRequest, request: Request, service: ServiceIn) -> Response:
    """Judge several answers; an item that cannot be judged gets an error of its own."""
    results = await service.check_batch(body.items, request.state.request_id, _gone(request))
    flagged = sum(isinstance(r, CheckReply) and r.decision == "flag" for r in results)
    failed = sum(isinstance(r, ErrorReply) for r in results)
    request.state.log.update(items=len(results), flagged_items=flagged, failed_items=failed)
    return Response(BatchReply(results=results).model_dump_json(), media_type=_JSON)


@router.get("/v1/policies", responses=_KEYED, tags=["about"])
async def policies(service: ServiceIn) -> PoliciesReply:
    """List the loaded policies with every threshold and whether it was calibrated."""
    guard = service.runtime.guard
    default = guard.default_policy
    loaded = sorted(guard.policies.values(), key=lambda policy: policy.name != default)
    return PoliciesReply(default=default, policies=[describe(policy) for policy in loaded])


@router.get("/v1/detectors", responses=_KEYED, tags=["about"])
async def detectors(service: ServiceIn) -> DetectorsReply:
    """List every published detector and whether this service can run it."""
    roles = service.runtime.serving.roles
    return DetectorsReply(detectors=[_describe(spec, roles) for spec in REGISTRY.specs()])


@router.get("/v1/info", responses=_KEYED, tags=["about"])
async def info(service: ServiceIn) -> InfoReply:
    """Tell what runs here: versions, models, fingerprints and limits."""
    runtime = service.runtime
    manifest = runtime.pack.manifest
    return InfoReply(
        version=__version__,
        runtime={
            "python": platform.python_version(),
            "onnxruntime": installed_version("onnxruntime"),
            "machine": platform.machine(),
        },
        pack={"name": manifest.name, "version": manifest.version, "roles": manifest.roles},
        fingerprints=dict(runtime.serving.fingerprints),
        golden={role: report._asdict() for role, report in runtime.golden.items()},
        limits=runtime.settings.limits.model_dump(),
        workers=runtime.settings.workers,
    )


@router.get("/healthz", tags=["operations"])
async def healthz() -> dict[str, str]:
    """Tell that the process answers; says nothing about models."""
    return {"status": "alive"}


@router.get("/readyz", responses={503: {"model": ReadyReply}}, tags=["operations"])
async def readyz(service: ServiceIn) -> JSONResponse:
    """Tell whether answers can be judged right now, and what is not as it should be."""
    reason = service.runtime.not_ready()
    detail = {} if reason is None else {"not_ready": reason}
    if service.runtime.reload_error is not None:
        detail["configuration"] = "reload failed; the last good configuration is in force"
    reply = ReadyReply(ready=reason is None, detail=detail)
    return JSONResponse(reply.model_dump(), 200 if reply.ready else 503)


@router.get("/metrics", response_class=Response, tags=["operations"])
async def metrics(service: ServiceIn) -> Response:
    """Return Prometheus metrics."""
    return Response(generate_latest(service.telemetry.registry), media_type=CONTENT_TYPE_LATEST)


def _describe(spec: DetectorSpec, roles: frozenset[str]) -> dict[str, Any]:
    return {
        "id": spec.id,
        "h2o_id": spec.h2o_id,
        "summary": spec.summary,
        "inputs": sorted(spec.inputs),
        "roles": sorted(spec.roles),
        "served": spec.id in REGISTRY and spec.roles <= roles,
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

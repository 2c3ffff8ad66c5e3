"""Generated requests against the application: no 5xx, and nothing that is not documented."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.service import Service

EXAMPLES = 150
NOT_PROMISED = [positive_data_acceptance]
"""A schema cannot say which policies are loaded, nor that a text is long or holds a condition."""


@pytest.fixture(scope="module")
def schema(runtime: Runtime) -> Iterator[Any]:
    """The application's own OpenAPI; one service for all requests, each with a loop of its own."""
    app = create_app(runtime=runtime)
    service = Service(runtime)
    app.state.service, app.state.telemetry = service, service.telemetry

    async def without_lifespan(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await app(scope, receive, send)
            return
        for done in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{done}.complete"})

    yield schemathesis.openapi.from_asgi("/openapi.json", without_lifespan)
    service._threads.shutdown()


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_generated_request_breaks_the_contract(mode: GenerationMode, schema: Any) -> None:
    """Valid and invalid ones: the status is documented, the reply fits its schema."""
    seen: list[SimpleNamespace] = []
    for result in schema.get_all_operations():
        operation = result.ok()
        if mode is GenerationMode.NEGATIVE and "requestBody" not in operation.definition.raw:
            continue  # nothing about them can be wrong

        @seed(20_240_607)
        @settings(
            max_examples=EXAMPLES if operation.method == "post" else 2,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: Any) -> None:
            response = case.call()
            assert response.status_code < 500
            seen.append(SimpleNamespace(path=case.operation.path, status=response.status_code))
            case.validate_response(response, excluded_checks=NOT_PROMISED)

        check()
    statuses = {s.status for s in seen if s.path == "/v1/check"}
    assert (200 if mode is GenerationMode.POSITIVE else 422) in statuses

"""WebSockets on a guarded path, which nobody reads."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import httpx
import pytest

import guardrail_client as gc
from guardrail_client.middleware import AnswerOutcome, GuardrailMiddleware, Route


def connected(route: Route, path: str) -> list[dict[str, Any]]:
    """Return what a reader is sent who connects to an application that says something bad."""
    sent: list[dict[str, Any]] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "lobster"})

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        transport = httpx.MockTransport(lambda _: httpx.Response(500))
        async with gc.AsyncGuardrailClient(transport=transport) as client:
            guarded: Any = GuardrailMiddleware(app, client, [route])
            scope = {"type": "websocket", "path": path, "headers": [], "query_string": b""}
            await guarded(scope, receive, send)

    anyio.run(run)
    return sent


@pytest.mark.parametrize("path", ["/ask", "/ask/"])
def test_a_websocket_that_nobody_reads_is_refused(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """With the code for a policy, before the application is asked."""
    seen: list[AnswerOutcome] = []
    with caplog.at_level(logging.WARNING, logger="guardrail_client.middleware"):
        assert connected(Route("/ask", on_outcome=seen.append), path) == [
            {"type": "websocket.close", "code": 1008}
        ]
    assert [(outcome.shown, outcome.error) for outcome in seen] == [("replaced", "websocket")]
    assert "websocket" in caplog.text


def test_a_route_may_let_it_pass(caplog: pytest.LogCaptureFixture) -> None:
    """With a line in the log and an outcome for the application."""
    seen: list[AnswerOutcome] = []
    route = Route("/ask", websocket="unchecked", on_outcome=seen.append)
    with caplog.at_level(logging.WARNING, logger="guardrail_client.middleware"):
        assert connected(route, "/ask")[-1]["text"] == "lobster"
    assert [(outcome.shown, outcome.error) for outcome in seen] == [
        ("as_is", "unchecked_websocket")
    ]
    assert "unchecked_websocket" in caplog.text


def test_other_paths_are_not_touched() -> None:
    """A route is for its path."""
    assert connected(Route("/ask"), "/other")[-1]["text"] == "lobster"

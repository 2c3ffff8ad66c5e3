"""An open circuit behind ASGI, WSGI and the decorator: `on_error` decides, without asking."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Literal

import anyio
import httpx
import pytest

import guardrail_client as gc
from guardrail_client import Circuit
from guardrail_client.middleware import (
    OUTAGE,
    AnswerOutcome,
    GuardrailMiddleware,
    GuardrailWSGI,
    Route,
    guarded,
)
from tests.unit.client.middleware.conftest import GOOD

FAILURES = 3
OnError = Literal["closed", "open"]
BODIES = {
    "json": ("application/json", json.dumps({"answer": GOOD})),
    "events": ("text/event-stream", f"data: {GOOD}\n\n"),
    "text": ("text/plain", GOOD),
}


class Guard:
    """Never there, and counts who asks."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Refuse."""
        self.asked += 1
        return httpx.Response(503)


def over_asgi(body: tuple[str, str], route: Route, guard: Guard, times: int) -> list[Any]:
    """Return responses of one guarded ASGI application."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        headers = [(b"content-type", body[0].encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body[1].encode()})

    async def run() -> list[Any]:
        transport = httpx.MockTransport(guard)
        async with gc.AsyncGuardrailClient(
            transport=transport, max_retries=0, buffer_streams=True, circuit=Circuit(FAILURES)
        ) as client:
            host: Any = GuardrailMiddleware(app, client, [route])
            transport = httpx.ASGITransport(host)
            async with httpx.AsyncClient(transport=transport, base_url="http://h") as reader:
                return [await reader.get("/ask") for _ in range(times)]

    return anyio.run(run)


def over_wsgi(body: tuple[str, str], route: Route, guard: Guard, times: int) -> list[Any]:
    """Return responses of one guarded WSGI application."""

    def app(_environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", body[0])])
        return [body[1].encode()]

    transport = httpx.MockTransport(guard)
    with gc.GuardrailClient(
        transport=transport, max_retries=0, buffer_streams=True, circuit=Circuit(FAILURES)
    ) as client:
        host = GuardrailWSGI(app, client, [route])
        with httpx.Client(transport=httpx.WSGITransport(host), base_url="http://h") as reader:
            return [reader.get("/ask") for _ in range(times)]


@pytest.mark.parametrize("on_error", ["closed", "open"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("over", [over_asgi, over_wsgi])
def test_an_open_circuit_is_the_outcome_of_on_error(
    over: Callable[..., list[Any]], body: tuple[str, str], on_error: OnError
) -> None:
    """At once, with its own code in header and outcome; the guard is not asked."""
    guard, seen = Guard(), list[AnswerOutcome]()
    route = Route("/ask", sse="text", on_error=on_error, on_outcome=seen.append)
    responses = over(body, route, guard, FAILURES + 2)
    assert guard.asked == FAILURES
    assert [outcome.error for outcome in seen] == ["not_ready"] * FAILURES + ["circuit_open"] * 2
    shown, other = (GOOD, OUTAGE) if on_error == "open" else (OUTAGE, GOOD)
    assert all(shown in response.text and other not in response.text for response in responses)
    if body is BODIES["json"]:
        assert responses[-1].headers["x-guardrail-error"] == "circuit_open"
        assert responses[-1].headers["x-guardrail-decision"] == "unchecked"


def test_the_middleware_brings_a_circuit() -> None:
    """A client that has one keeps it; two middlewares with one client share it."""
    own = Circuit(7)
    with gc.GuardrailClient() as client, gc.GuardrailClient(circuit=own) as other:
        assert client.circuit is None
        GuardrailWSGI(lambda *_: [], client, [])
        first = client.circuit
        GuardrailWSGI(lambda *_: [], client, [])
        GuardrailWSGI(lambda *_: [], other, [])
        assert isinstance(first, Circuit)
        assert client.circuit is first
        assert other.circuit is own


@pytest.mark.parametrize(("on_error", "shown"), [("closed", OUTAGE), ("open", GOOD)])
def test_functions_follow_it(on_error: OnError, shown: str) -> None:
    """Plain and asynchronous ones, whole answers and pieces."""
    guard = Guard()
    transport = httpx.MockTransport(guard)
    options: Any = {"on_error": on_error, "question": None, "contexts": None}

    async def asynchronous() -> None:
        async with gc.AsyncGuardrailClient(
            transport=transport, max_retries=0, buffer_streams=True, circuit=Circuit(1)
        ) as client:

            @guarded(client, **options)
            async def answer() -> str:
                return GOOD

            @guarded(client, **options)
            async def write() -> AsyncIterator[str]:
                yield GOOD

            for _ in range(3):
                assert await answer() == shown
                assert "".join([piece async for piece in write()]) == shown

    with gc.GuardrailClient(
        transport=transport, max_retries=0, buffer_streams=True, circuit=Circuit(1)
    ) as client:

        @guarded(client, **options)
        def answer() -> str:
            return GOOD

        @guarded(client, **options)
        def write() -> Iterator[str]:
            yield GOOD

        for _ in range(3):
            assert answer() == shown
            assert "".join(write()) == shown
    assert guard.asked == 1
    anyio.run(asynchronous)
    assert guard.asked == 2

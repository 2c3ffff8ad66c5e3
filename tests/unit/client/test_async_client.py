"""The asynchronous client: the same outcomes as its twin, and a budget nothing outlasts."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx
import pytest

import guardrail_client as gc
from guardrail_client.async_client import AsyncGuardrailClient
from tests.unit.client.conftest import PATIENCE_S

pytestmark = pytest.mark.anyio


def answering(*replies: httpx.Response | Exception) -> tuple[httpx.MockTransport, list[Any]]:
    """Return a transport that gives these replies in turn, and the requests it will have seen."""
    left, seen = list(replies), []

    async def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return httpx.MockTransport(answer), seen


async def test_a_check_sends_the_contract_and_returns_the_verdict(verdict: dict[str, Any]) -> None:
    """Path, headers and body are the API's; the reply is typed."""
    transport, seen = answering(httpx.Response(200, json=verdict))
    async with AsyncGuardrailClient("http://h/base", api_key="k", transport=transport) as client:
        result = await client.check("an answer", contexts=[{"id": "1", "text": "one"}])
    (request,) = seen
    assert (request.method, request.url.path) == ("POST", "/base/v1/check")
    assert request.headers["authorization"] == "Bearer k"
    assert json.loads(request.content)["contexts"] == [{"id": "1", "text": "one"}]
    assert result == gc.CheckResult.from_json(verdict)


async def test_every_other_call_has_its_path(verdict: dict[str, Any]) -> None:
    """Batch, lists, info and readiness go where the twin's go."""
    transport, seen = answering(
        httpx.Response(200, json={"results": [verdict]}),
        httpx.Response(200, json={"policies": []}),
        httpx.Response(200, json={"detectors": []}),
        httpx.Response(200, json={"version": "0.1.0"}),
        httpx.Response(200, json={"sentences": 1}),
        httpx.Response(200, json={"state": "known"}),
        httpx.Response(200, json={}),
        httpx.Response(503),
    )
    async with AsyncGuardrailClient(transport=transport) as client:
        assert [r.passed for r in await client.check_many([{"answer": "a"}])] == [False]
        assert await client.check_many([]) == []
        assert await client.policies() == await client.detectors() == []
        assert await client.info() == {"version": "0.1.0"}
        assert await client.warm(["one"]) == {"sentences": 1}
        assert await client.feedback("r1", "abstain") == {"state": "known"}
        assert [await client.ready(), await client.ready()] == [True, False]
    assert [request.url.path for request in seen] == [
        "/v1/check/batch",
        "/v1/policies",
        "/v1/detectors",
        "/v1/info",
        "/v1/contexts",
        "/v1/feedback",
        "/readyz",
        "/readyz",
    ]


async def test_ready_raises_what_waiting_cannot_cure() -> None:
    """A wrong address is not a service that is still loading."""
    transport, _ = answering(httpx.Response(404))
    async with AsyncGuardrailClient(transport=transport) as client:
        with pytest.raises(gc.APIError):
            await client.ready()


async def test_all_tries_share_their_ids_and_wait_in_between(
    verdict: dict[str, Any], clock: Any, use_clock: Any
) -> None:
    """The service can tell a repeated request from a new one."""
    transport, seen = answering(
        httpx.ConnectError("refused"), httpx.Response(502), httpx.Response(200, json=verdict)
    )
    async with use_clock(AsyncGuardrailClient(transport=transport), clock) as client:
        await client.check("a")
    assert len({request.headers["idempotency-key"] for request in seen}) == 1
    assert len({request.headers["x-request-id"] for request in seen}) == 1
    assert clock.sleeps == [0.1, 0.2]


async def test_a_transport_and_a_socket_exclude_each_other() -> None:
    """Two ways to connect at once are a mistake."""
    with pytest.raises(ValueError, match="uds"):
        AsyncGuardrailClient(transport=answering()[0], uds="x")


async def test_a_server_that_never_answers_cannot_outlast_the_budget() -> None:
    """The whole try is cancelled, whatever phase it is in."""

    async def never(request: httpx.Request) -> httpx.Response:
        await anyio.sleep_forever()
        raise AssertionError

    async with AsyncGuardrailClient(transport=httpx.MockTransport(never), timeout=0.01) as client:
        with pytest.raises(gc.TimeoutExceeded, match=r"within 0\.01 s"):
            await client.check("a")


async def test_a_trickling_server_cannot_outlast_the_budget(
    server: Any, steps: Any, clock: Any, use_clock: Any
) -> None:
    """One byte per second keeps every single read short, and still ends with the budget."""
    server.script = [steps["trickling"]]
    clock.step, clock.on_read = 1.0, server.turn.release
    async with use_clock(AsyncGuardrailClient(server.url, timeout=8), clock) as client:
        with pytest.raises(gc.TimeoutExceeded, match="within 8 s"):
            await client.check("a")


async def test_cancelling_a_call_is_not_a_timeout() -> None:
    """The caller's own cancellation goes through."""
    started = anyio.Event()
    raised: list[BaseException] = []

    async def never(request: httpx.Request) -> httpx.Response:
        started.set()
        await anyio.sleep_forever()
        raise AssertionError

    async def call(client: AsyncGuardrailClient) -> None:
        try:
            await client.check("a")
        except BaseException as error:
            raised.append(error)
            raise

    async with (
        AsyncGuardrailClient(transport=httpx.MockTransport(never)) as client,
        anyio.create_task_group() as group,
    ):
        group.start_soon(call, client)
        await started.wait()
        group.cancel_scope.cancel()
    assert [isinstance(error, anyio.get_cancelled_exc_class()) for error in raised] == [True]


async def test_a_faulty_server_leads_to_the_promised_outcome(
    fault: Any, server: Any, clock: Any, use_clock: Any
) -> None:
    """Each fault is either survived within the budget or raised as its class, never as httpx's."""
    server.script, expected = fault
    tries = len(server.script)
    async with use_clock(AsyncGuardrailClient(server.url, timeout=PATIENCE_S), clock) as client:
        if expected is None:
            assert (await client.check("a")).decision == "flag"
        else:
            with pytest.raises(expected):
                await client.check("a")
    assert len(server.seen) == tries


async def test_nobody_listening_is_a_failed_connection(
    refused_url: str, clock: Any, use_clock: Any
) -> None:
    """A refused connection is retried, then raised with the address."""
    async with use_clock(AsyncGuardrailClient(refused_url, timeout=PATIENCE_S), clock) as client:
        with pytest.raises(gc.ConnectionFailed, match=refused_url):
            await client.check("a")
    assert clock.sleeps == [0.1, 0.2]


async def test_tasks_may_share_a_client(server: Any, steps: Any) -> None:
    """Calls at the same time do not mix."""
    server.script = [steps["good"]] * 8
    done: list[str] = []

    async def call(client: AsyncGuardrailClient) -> None:
        done.append((await client.check("a")).request_id)

    async with (
        AsyncGuardrailClient(server.url, timeout=PATIENCE_S) as client,
        anyio.create_task_group() as group,
    ):
        for _ in range(8):
            group.start_soon(call, client)
    assert done == ["r-1"] * 8

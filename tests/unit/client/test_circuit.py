"""The circuit breaker: when it opens, who tries, and what each kind of call tells it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import httpx
import pytest

import guardrail_client as gc
from guardrail_client import Circuit, CircuitOpen, errors
from guardrail_client.circuit import Attempt, asking
from tests.unit.client.conftest import FakeClock, make_verdict

PAUSE = 10.0


@pytest.fixture
def circuit(clock: FakeClock) -> Circuit:
    """Return a circuit that opens after three failures."""
    return Circuit(3, PAUSE, clock=clock)


def fail(circuit: Circuit, times: int) -> None:
    """Let calls fail."""
    for _ in range(times):
        circuit.failed(circuit.begin())


def test_it_opens_after_failures_in_a_row(circuit: Circuit) -> None:
    """A success in between starts the count anew."""
    fail(circuit, 2)
    circuit.succeeded(circuit.begin())
    fail(circuit, 2)
    assert circuit.state == "closed"
    fail(circuit, 1)
    assert circuit.state == "open"
    with pytest.raises(CircuitOpen, match=r"tried again in 10\.0 s"):
        circuit.begin()


def test_after_the_pause_one_call_tries_at_a_time(circuit: Circuit, clock: FakeClock) -> None:
    """A failed try begins the pause again, a good one closes, a lost one makes room."""
    fail(circuit, 3)
    clock.now += PAUSE
    turn = circuit.begin()
    assert circuit.state == "half_open"
    with pytest.raises(CircuitOpen):
        circuit.begin()
    circuit.failed(turn)
    assert circuit.state == "open"
    clock.now += PAUSE
    lost = circuit.begin()
    clock.now += PAUSE
    turn = circuit.begin()
    circuit.failed(lost)
    assert circuit.state == "half_open"
    circuit.lives(turn)
    assert circuit.state == "closed"
    circuit.begin()


def test_a_dropped_try_lets_the_next_one_try_at_once(circuit: Circuit, clock: FakeClock) -> None:
    """A caller who hung up tells nothing."""
    fail(circuit, 3)
    clock.now += PAUSE
    circuit.dropped(circuit.begin())
    assert circuit.state == "open"
    circuit.succeeded(circuit.begin())
    assert circuit.state == "closed"


def test_calls_that_began_before_say_nothing_about_later(circuit: Circuit) -> None:
    """A slow call from before the outage neither closes nor keeps it open."""
    old = circuit.begin()
    fail(circuit, 3)
    circuit.succeeded(old)
    circuit.lives(old)
    circuit.failed(old)
    assert circuit.state == "open"


def test_it_may_be_told_never_to_open(clock: FakeClock) -> None:
    """Zero failures."""
    never = Circuit(0, clock=clock)
    fail(never, 100)
    assert never.state == "closed"


@pytest.mark.parametrize("wrong", [{"failures": -1}, {"pause": 0}, {"pause": float("inf")}])
def test_a_wrong_setting_is_named(wrong: dict[str, Any]) -> None:
    """At start-up, not at the first failure."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Circuit(**wrong)


def test_the_log_says_when_it_changes(
    circuit: Circuit, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """One line each, not one for every call."""
    with caplog.at_level(logging.WARNING, logger="guardrail_client.circuit"):
        fail(circuit, 3)
        clock.now += PAUSE
        fail(circuit, 1)
        clock.now += PAUSE
        circuit.succeeded(circuit.begin())
    assert [record.getMessage() for record in caplog.records] == [
        "circuit open: the guard failed 3 times in a row",
        "circuit closed: the guard answers again",
    ]


ENDS: dict[str, tuple[BaseException | None, str]] = {
    "a verdict": (None, "closed"),
    "no connection": (errors.ConnectionFailed("x"), "open"),
    "too slow": (errors.TimeoutExceeded("x"), "open"),
    "overloaded": (errors.Overloaded(status=429), "open"),
    "loading": (errors.NotReady(status=503), "open"),
    "a bug": (errors.ServerError(status=500), "open"),
    "a wrong key": (errors.AuthenticationFailed(status=401), "closed"),
    "a wrong request": (errors.InvalidRequest(status=422), "closed"),
    "garbage": (errors.UnexpectedReply(status=200), "open"),
    "hung up": (GeneratorExit(), "open"),
}


@pytest.mark.parametrize(("error", "state"), ENDS.values(), ids=ENDS.keys())
def test_what_a_try_tells(
    error: BaseException | None, state: str, circuit: Circuit, clock: FakeClock
) -> None:
    """Only a guard that answers closes the circuit, be it with a refusal."""
    fail(circuit, 3)
    clock.now += PAUSE
    attempt = Attempt(circuit)
    attempt.begin()
    attempt.end(error)
    attempt.end(None)
    assert circuit.state == state


@pytest.mark.parametrize(("error", "state"), ENDS.values(), ids=ENDS.keys())
def test_only_an_outage_opens(error: BaseException | None, state: str, circuit: Circuit) -> None:
    """Garbage and callers who leave never make an answer pass unchecked."""
    for _ in range(3):
        attempt = Attempt(circuit)
        attempt.begin()
        attempt.end(error)
    assert circuit.state == ("open" if isinstance(error, errors.UNAVAILABLE) else "closed")


def test_among_many_threads_one_tries(circuit: Circuit, clock: FakeClock) -> None:
    """However many come at the same time."""
    fail(circuit, 3)
    clock.now += PAUSE
    together, held, refused = threading.Barrier(32), threading.Event(), threading.Semaphore(0)

    def call() -> bool:
        together.wait(30)
        try:
            with asking(circuit):
                assert held.wait(30)
        except CircuitOpen:
            refused.release()
            return False
        return True

    with ThreadPoolExecutor(32) as pool:
        calls = [pool.submit(call) for _ in range(32)]
        for _ in range(31):
            assert refused.acquire(timeout=30)
        assert circuit.state == "half_open"
        held.set()
    assert sum(found.result() for found in calls) == 1
    assert circuit.state == "closed"


def test_failures_of_many_threads_are_counted_once_each(clock: FakeClock) -> None:
    """No failure is lost, none counts twice."""
    circuit = Circuit(200, clock=clock)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: fail(circuit, 1), range(199)))
    assert circuit.state == "closed"
    fail(circuit, 1)
    assert circuit.state == "open"


class Guard:
    """A guard that is down until it is told otherwise, and counts who asks."""

    def __init__(self) -> None:
        self.down = True
        self.asked = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a check or a stream."""
        self.asked += 1
        if self.down:
            raise httpx.ConnectError("down")
        if not request.url.path.endswith("/stream"):
            return httpx.Response(200, json=make_verdict())
        verdict = b'{"type": "release", "text": "Fine.", "processed_index": 5}\n'
        return httpx.Response(200, content=verdict + FINAL)


FINAL = httpx.Response(
    200,
    json={
        "type": "final",
        "reason": "complete",
        "processed_index": 5,
        "checked": [0, 5],
        "result": make_verdict(),
    },
).content + b"\n"  # fmt: skip


def check(client: gc.GuardrailClient) -> object:
    """Ask for a verdict."""
    return client.check("Fine.")


def stream(client: gc.GuardrailClient) -> object:
    """Guard a stream."""
    return list(client.check_stream(iter(["Fine."])))


@pytest.mark.parametrize("ask", [check, stream])
def test_a_client_stops_asking_and_tries_again(
    ask: Callable[[gc.GuardrailClient], object], circuit: Circuit, clock: FakeClock
) -> None:
    """Checks and streams share the circuit; the guard is asked once per pause."""
    guard = Guard()
    transport = httpx.MockTransport(guard)
    with gc.GuardrailClient(
        transport=transport, max_retries=0, buffer_streams=True, circuit=circuit
    ) as client:
        for _ in range(3):
            with pytest.raises(gc.ConnectionFailed):
                ask(client)
        for _ in range(20):
            with pytest.raises(CircuitOpen):
                ask(client)
        assert guard.asked == 3
        clock.now += PAUSE
        guard.down = False
        ask(client)
        assert circuit.state == "closed"
        ask(client)
    assert guard.asked == 5


@pytest.mark.anyio
async def test_among_many_tasks_one_tries(circuit: Circuit, clock: FakeClock) -> None:
    """The others are told at once; a caller that is cancelled leaves room for the next."""
    fail(circuit, 3)
    clock.now += PAUSE
    asked, gate = 0, anyio.Event()

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        await gate.wait()
        return httpx.Response(200, json=make_verdict())

    refused = 0

    async def call(client: gc.AsyncGuardrailClient) -> None:
        nonlocal refused
        try:
            await client.check("Fine.", timeout=60)
        except CircuitOpen:
            refused += 1

    transport = httpx.MockTransport(answer)
    async with gc.AsyncGuardrailClient(transport=transport, circuit=circuit) as client:
        async with anyio.create_task_group() as group:
            for _ in range(32):
                group.start_soon(call, client)
            await anyio.wait_all_tasks_blocked()
            assert (asked, refused, circuit.state) == (1, 31, "half_open")
            group.cancel_scope.cancel()
        gate.set()
        await call(client)
    assert (asked, refused, circuit.state) == (2, 31, "closed")


@pytest.mark.anyio
async def test_an_asynchronous_stream_is_told_at_once(circuit: Circuit) -> None:
    """Fail open shows the whole answer without asking; fail closed raises."""
    fail(circuit, 3)
    guard = Guard()
    async with gc.AsyncGuardrailClient(
        transport=httpx.MockTransport(guard), buffer_streams=True, circuit=circuit
    ) as client:
        opened = client.check_stream(["Fi", "ne."], on_error="open")
        assert "".join([text async for text in opened]) == "Fine."
        assert isinstance(opened.error, CircuitOpen)
        with pytest.raises(CircuitOpen):
            _ = [text async for text in client.check_stream(["Fine."])]
    assert guard.asked == 0

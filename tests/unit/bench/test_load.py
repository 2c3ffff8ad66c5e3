"""The generator against a small real server: order, counts, clocks, breakage."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from guardrail_bench.load import Generator, LoadRequest, tally

VERDICT = {"status": "complete", "timings_ms": {"queue": 0.5, "inference": 2.0, "total": 3.0}}


def response(status: int, body: dict[str, Any]) -> bytes:
    """Return an HTTP response."""
    content = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status} Words\r\nX-Total-Time: 4.25\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


class Service:
    """Answers with what the test says; remembers what it was sent."""

    def __init__(self, answer: Callable[[dict[str, Any]], bytes | None]) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.connections = 0
        self.most = 0
        self._now = 0
        self._answer = answer
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; an answer of None closes it, an empty one never comes."""
        self.connections += 1
        try:
            while not reader.at_eof():
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.split("content-length: ")[1].split("\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                self.bodies.append(body)
                self._now += 1
                self.most = max(self.most, self._now)
                await asyncio.sleep(0)
                self._now -= 1
                answer = self._answer(body)
                if answer is None:
                    return
                writer.write(answer)
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()


@asynccontextmanager
async def running(answer: Callable[[dict[str, Any]], bytes | None]) -> AsyncIterator[Service]:
    """Run a service on a free port."""
    service = Service(answer)
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        service.address = f"http://127.0.0.1:{port}"
        yield service


def body(number: int) -> bytes:
    """Return the n-th body."""
    return json.dumps({"number": number}).encode()


def sent(
    answer: Callable[[dict[str, Any]], bytes | None],
    send: Callable[[Generator], Coroutine[Any, Any, list[LoadRequest]]],
    patience_s: float = 30,
) -> tuple[list[LoadRequest], Service]:
    """Return what a generator sent to a service, and the service."""

    async def work() -> tuple[list[LoadRequest], Service]:
        async with running(answer) as service:
            generator = Generator(service.address, body, patience_s)
            try:
                return await send(generator), service
            finally:
                generator.close()

    return asyncio.run(work())


def test_callers_of_a_closed_loop_wait_for_their_reply() -> None:
    """Never more under way than callers; connections are kept; every number once, in order."""
    found, service = sent(
        lambda _: response(200, VERDICT), lambda g: g.closed_loop(3, 1e9, first=5, most=20)
    )
    assert [e.number for e in found] == list(range(5, 25))
    assert sorted(b["number"] for b in service.bodies) == list(range(5, 25))
    assert service.connections == 3
    assert service.most <= 3
    assert tally(found).complete == 20


def test_a_refused_caller_waits_as_long_as_it_is_told() -> None:
    """Or closed loops would flood a service that refuses, and measure that."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def work() -> list[LoadRequest]:
        refusal = b"HTTP/1.1 429 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
        answers = {0: refusal, 1: response(200, VERDICT)}
        async with running(lambda b: answers[b["number"]]) as service:
            generator = Generator(service.address, body, 30, sleep)
            try:
                return await generator.closed_loop(1, 1e9, first=0, most=2)
            finally:
                generator.close()

    assert [e.status for e in asyncio.run(work())] == [429, 200]
    assert waited == [7.0]


def test_a_closed_loop_that_is_over_begins_no_request() -> None:
    """The time is asked for before each request."""
    found, service = sent(lambda _: response(200, VERDICT), lambda g: g.closed_loop(2, 0, 0))
    assert found == []
    assert service.bodies == []


def test_an_open_loop_does_not_wait_for_replies_and_counts_from_the_intended_time() -> None:
    """All are under way at once; latency includes what the request waited to be sent."""
    arrivals = [0.0] * 10
    found, service = sent(
        lambda _: response(200, VERDICT), lambda g: g.open_loop(arrivals, first=2)
    )
    assert [e.number for e in found] == list(range(2, 12))
    assert service.connections > 1
    assert len({e.intended for e in found}) == 1
    for exchange in found:
        assert exchange.sent >= exchange.intended
        assert exchange.done is not None
        assert exchange.client_ms == pytest.approx((exchange.done - exchange.intended) * 1e3)


def test_what_a_reply_states_is_kept() -> None:
    """The verdict's own times, and the header's."""
    (found,), _ = sent(lambda _: response(200, VERDICT), lambda g: g.open_loop([0.0], 0))
    assert found.timings == {"queue": 0.5, "inference": 2.0, "total": 3.0, "server": 4.25}
    assert found.complete


@pytest.mark.parametrize(
    ("answer", "group", "failures"),
    [
        (response(200, {**VERDICT, "status": "partial"}), "partial", {}),
        (response(429, {"error": {}}), "refused", {}),
        (response(500, {"error": {}}), "failed", {"500": 1}),
        (response(422, {"error": {}}), "failed", {"422": 1}),
        (None, "failed", {"IncompleteReadError": 1}),
        (response(200, {"no": "verdict"}), "failed", {"KeyError": 1}),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{", "failed", {"JSONDecodeError": 1}),
    ],
)
def test_every_end_of_a_request_is_in_one_group(
    answer: bytes | None, group: str, failures: dict[str, int]
) -> None:
    """A broken connection or an unreadable reply is a failure, never a verdict, never nothing."""
    found, _ = sent(lambda _: answer, lambda g: g.open_loop([0.0], 0))
    counted = tally(found)
    assert counted.model_dump(exclude={"failures"}) == {
        "sent": 1, "complete": 0, "partial": 0, "refused": 0, "failed": 0, "hung": 0, group: 1,
    }  # fmt: skip
    assert counted.failures == failures
    assert counted.lost == 0


def test_a_request_without_a_reply_hangs_and_its_connection_is_not_used_again() -> None:
    """Or its late reply would be read as the next request's."""

    async def impatient_once(generator: Generator) -> list[LoadRequest]:
        hung = await generator.closed_loop(1, 1e9, first=0, most=1)
        generator._patience_s = 30
        return hung + await generator.closed_loop(1, 1e9, first=1, most=1)

    found, service = sent(
        lambda b: b"" if b["number"] == 0 else response(200, VERDICT),
        impatient_once,
        patience_s=0.05,
    )
    assert [e.failure for e in found] == ["hung", None]
    assert service.connections == 2
    assert tally(found).hung == 1


def test_a_service_that_is_not_there_is_a_failure_of_every_request() -> None:
    """The loop still ends."""

    async def work() -> list[LoadRequest]:
        async with running(lambda _: None) as service:
            address = service.address
        return await Generator(address, body, 5).closed_loop(2, 1e9, 0, most=4)

    found = asyncio.run(work())
    assert tally(found).failed == len(found) == 4


def test_a_request_under_way_is_in_no_group() -> None:
    """So that a generator that loses one is found out."""
    assert tally([LoadRequest(0, 0.0, 0.0)]).lost == 1

"""The generator against a small real server; percentiles and capacity against values by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_bench.load import (
    Generator,
    LoadRequest,
    Tally,
    drift,
    is_saturated,
    next_concurrency,
    parse_head,
    percentile,
    percentiles,
    poisson_arrivals,
    tally,
)

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


def test_a_head_is_its_status_and_headers_with_lower_case_names() -> None:
    """Values keep colons and lose the blanks around them."""
    status, headers = parse_head(
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\nX-At:  a:b \r\n\r\n"
    )
    assert status == 429
    assert headers == {"retry-after": "2", "x-at": "a:b"}


LADDER = (1, 8, 32)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 50.0), (0.95, 95.0), (0.99, 99.0), (1.0, 100.0), (0.001, 1.0)]
)
def test_a_percentile_is_the_nearest_rank(share: float, expected: float) -> None:
    """Of 1..100 the 99th percentile is 99, not something between two values."""
    assert percentile([float(n) for n in range(1, 101)], share) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_percentile_is_a_value_that_occurred_and_covers_its_share(
    values: list[float], share: float
) -> None:
    """At least the share lies at or below it; without it, fewer do."""
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert found in ordered
    assert sum(v <= found for v in ordered) >= share * len(ordered) - 1e-9
    assert sum(v < found for v in ordered) < share * len(ordered) + 1e-9


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 0.0), ([1.0], 1.1)])
def test_a_percentile_of_nothing_or_outside_the_range_is_an_error(
    values: list[float], share: float
) -> None:
    """Empty data raises; it is no 0."""
    with pytest.raises(ValueError, match="expected some"):
        percentile(values, share)


def test_the_p99_of_few_values_is_the_worst() -> None:
    """So a table of ten requests cannot hide its slowest one."""
    found = percentiles([5.0, 1.0, 3.0])
    assert found is not None
    assert (found.n, found.p50, found.p99, found.worst) == (3, 3.0, 5.0, 5.0)
    assert percentiles([]) is None


def test_arrivals_are_seeded_ascending_and_inside_the_interval() -> None:
    """The same seed gives the same load; another one does not."""
    times = poisson_arrivals(50, 10, "a")
    assert times == poisson_arrivals(50, 10, "a")
    assert times != poisson_arrivals(50, 10, "b")
    assert times == sorted(times)
    assert times[0] > 0
    assert times[-1] < 10


def test_arrivals_are_poisson() -> None:
    """As many as offered within four deviations; gaps vary as much as their mean."""
    times = poisson_arrivals(100, 100, "x")
    assert abs(len(times) - 10_000) < 400
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((g - mean) ** 2 for g in gaps) / len(gaps)) ** 0.5
    assert 0.95 < deviation / mean < 1.05


def test_a_slow_machine_still_gets_some_arrivals() -> None:
    """A cell without requests would have no numbers."""
    times = poisson_arrivals(0.01, 1, "a", least=5)
    assert len(times) == 5
    assert times[0] > 1
    assert poisson_arrivals(50, 10, "a", least=5) == poisson_arrivals(50, 10, "a")


@pytest.mark.parametrize(("rate", "seconds"), [(0, 1), (1, 0), (-1, 1)])
def test_arrivals_without_rate_or_time_are_refused(rate: float, seconds: float) -> None:
    """Instead of a loop without end."""
    with pytest.raises(ValueError, match="positive"):
        poisson_arrivals(rate, seconds, "a")


def search(throughput: Callable[[int], float], most: int = 64) -> dict[int, float]:
    """Return what a whole search measures."""
    measured: dict[int, float] = {}
    while (step := next_concurrency(measured, LADDER, most)) is not None:
        measured[step] = throughput(step)
    return measured


def test_the_search_measures_the_ladder_and_stops_where_nothing_is_gained() -> None:
    """A single worker is saturated by eight callers."""
    assert list(search(lambda n: min(n, 8) * 10.0)) == [1, 8, 32]


def test_the_search_doubles_while_throughput_grows_and_never_passes_the_limit() -> None:
    """Beyond the limit the service refuses, so more callers would measure refusals."""
    assert list(search(lambda n: float(n), most=200)) == [1, 8, 32, 64, 128]
    assert not is_saturated(search(lambda n: float(n), most=200))
    assert list(search(lambda n: min(n, 50) * 1.0, most=200)) == [1, 8, 32, 64, 128]


def test_five_percent_more_is_no_more_capacity() -> None:
    """It is the size of the noise between runs."""
    assert is_saturated({1: 5.0, 8: 10.0, 32: 10.4})
    assert not is_saturated({1: 5.0, 8: 10.0, 32: 10.6})
    assert not is_saturated({1: 5.0})


def test_every_request_is_accounted_for_once() -> None:
    """What no group explains is lost."""
    tally = Tally(sent=12, complete=5, partial=1, refused=3, failed=2, hung=1, failures={"500": 2})
    assert (tally.answered, tally.lost) == (6, 0)
    assert tally.share(tally.refused) == 0.25
    assert tally.model_copy(update={"sent": 13}).lost == 1
    assert Tally().share(0) is None


def test_tallies_add_up() -> None:
    """Counts and failures by kind."""
    one = Tally(sent=3, complete=1, failed=2, failures={"500": 1, "reset": 1})
    two = Tally(sent=2, complete=1, failed=1, failures={"500": 1})
    total = one + two
    assert (total.sent, total.complete, total.failed, total.lost) == (5, 2, 3, 0)
    assert total.failures == {"500": 2, "reset": 1}


def test_drift_compares_the_end_with_the_beginning_after_warming_up() -> None:
    """A cache that fills at first is no leak; growth afterwards is."""
    assert drift([50.0] * 10 + [100.0] * 90) == 0.0
    assert drift([100.0] * 90 + [110.0] * 10) == pytest.approx(0.1)
    assert drift([100.0] * 19) is None

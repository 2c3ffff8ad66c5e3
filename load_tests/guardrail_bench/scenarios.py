"""Runs callers with bad intentions beside callers without: is anybody else worse off?

Every scenario has two kinds of results: outcomes (who was answered, with which status), which must
hold everywhere, and times, which only mean something on a quiet machine. Only a service that was
started here, on 127.0.0.1, is ever sent anything; every scenario is bounded in time.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rich.table import Table

from guardrail_bench.hostile_texts import KINDS, hostile_body
from guardrail_bench.load import (
    PATH,
    Generator,
    LoadConnection,
    LoadRequest,
    parse_head,
    percentile,
    percentiles,
    tally,
)
from guardrail_bench.output import markdown_table, replace_part, verdict, write_json
from guardrail_bench.quality import exact
from guardrail_bench.samples import SCENARIOS as SAMPLES
from guardrail_bench.samples import SampleSource, default_texts_file, read_texts
from guardrail_bench.server import Server, serving
from guardrail_service.commands.console import out

PART = "bench scenarios"
PATIENCE_S = 30.0
ORDINARY_DEADLINE_MS = 1_000
HOSTILE_DEADLINE_MS = 200
ONE_KEY, CROWD_KEY = "of-an-ordinary-caller", "of-a-crowd"
"""Of the service of `callers`; elsewhere nobody has a key, and all have one address."""


class Size(NamedTuple):
    """Amounts: seconds of load, requests a second, and shares of the crowds."""

    seconds: float
    per_second: float
    crowd: float
    burst: int


FULL = Size(10.0, 6.0, 1.0, 500)
SHORT = Size(2.0, 4.0, 0.2, 100)
"""For continuous integration: the outcomes of the full size, none of its times."""


class Expectation(NamedTuple):
    """One thing a scenario found; `met` is None where nothing was expected."""

    scenario: str
    what: str
    found: str
    expected: str
    met: bool | None
    is_time: bool


class ScenariosReport(NamedTuple):
    """Results with the load average of the machine before and after, which times depend on."""

    results: list[Expectation]
    load_before: float
    load_after: float


class Bench:
    """A service of our own, its ordinary callers, and what was found so far."""

    def __init__(self, name: str, server: Server, size: Size) -> None:
        self.name = name
        self.key = ONE_KEY if name == "callers" else ""
        self.server = server
        self.size = size
        self.results: list[Expectation] = []
        texts = read_texts(default_texts_file())
        self.chat = SampleSource(texts, SAMPLES["chat"], "warm", 17)
        self._report = SampleSource(texts, SAMPLES["report"], "cold", 17)
        self._new = SampleSource(texts, SAMPLES["chat"], "cold", 17)

    def outcome(self, what: str, found: object, expected: str, *, met: bool) -> None:
        """Note who was answered, and how."""
        self.results.append(Expectation(self.name, what, str(found), expected, met, is_time=False))

    def within(self, what: str, ms: float, limit_ms: float) -> None:
        """Note a time."""
        expected = f"<= {limit_ms:.0f} ms"
        self.results.append(
            Expectation(self.name, what, f"{ms:.0f} ms", expected, ms <= limit_ms, is_time=True)
        )

    def ordinary_body(self, number: int) -> bytes:
        """Return a short chat answer over passages that are known, with a deadline."""
        body = {**self.chat.sample(number), "deadline_ms": ORDINARY_DEADLINE_MS}
        return json.dumps(body).encode()

    def chat_body(self, number: int) -> bytes:
        """Return a short chat answer over passages that are new, without a deadline."""
        return json.dumps(self._new.sample(number)).encode()

    def report_body(self, number: int) -> bytes:
        """Return a long report over passages that are new, without a deadline."""
        return json.dumps(self._report.sample(number)).encode()

    async def warm_up(self) -> None:
        """Show the service the chat's passages."""
        connection = LoadConnection(self.server.address, self.key)
        for body in self.chat.shelf():
            await connection.post(PATH, json.dumps(body).encode())
        connection.close()

    async def ordinary(self, first: int) -> list[LoadRequest]:
        """Return ordinary requests that arrive one after another, whatever becomes of them."""
        count = int(self.size.seconds * self.size.per_second)
        arrivals = [place / self.size.per_second for place in range(count)]
        generator = Generator(self.server.address, self.ordinary_body, PATIENCE_S, key=self.key)
        try:
            return await generator.open_loop(arrivals, first)
        finally:
            generator.close()

    async def callers(
        self,
        bodies: Callable[[int], bytes],
        count: int,
        most: int | None = None,
        key: str = "",
    ) -> list[LoadRequest]:
        """Return the requests of callers that come again as soon as they are answered."""
        generator = Generator(self.server.address, bodies, PATIENCE_S, key=key)
        try:
            return await generator.closed_loop(count, self.size.seconds, 0, most)
        finally:
            generator.close()

    def nobody_lost(self, who: str, requests: Sequence[LoadRequest]) -> None:
        """Note whether everybody got a verdict or was refused; 422 says that a text is too long."""
        found = tally(requests)
        long = found.failures.get("422", 0)
        lost = found.failed - long + found.hung + found.lost
        text = f"{found.answered} verdicts, {found.refused + long} refused, {lost} lost"
        self.outcome(f"{who}: answered", text, "0 lost", met=bool(requests) and lost == 0)

    def few_refused(self, requests: Sequence[LoadRequest]) -> None:
        """Note the share of ordinary requests that were refused.

        One of the short form's eight is more than 5 %, and says nothing of a busy machine: there it
        is missed where its exact 95 % interval lies above.
        """
        refused = exact(tally(requests).refused, len(requests))
        least = refused.value if self.size == FULL else refused.low
        self.outcome("ordinary refused", f"{refused.value:.1%}", "<= 5%", met=least <= 0.05)


def p95(requests: Sequence[LoadRequest]) -> float:
    """Return the milliseconds below which 95 % of verdicts came; infinity without any."""
    times = sorted(r.client_ms or 0.0 for r in requests if r.status == 200)
    return percentile(times, 0.95) if times else float("inf")


@contextmanager
def health(bench: Bench, limit_ms: float) -> Iterator[None]:
    """Ask for health twenty times a second, on new connections, as long as the block takes."""
    parts = urlsplit(bench.server.address)
    times: list[float] = []
    failed = 0
    is_over = threading.Event()

    def ask() -> None:
        nonlocal failed
        while not is_over.wait(0.05):
            started = time.perf_counter()
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
            try:
                connection.request("GET", "/healthz")
                failed += connection.getresponse().status != 200
            except OSError:
                failed += 1
            finally:
                connection.close()
            times.append((time.perf_counter() - started) * 1e3)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        is_over.set()
        asking.join()
    bench.outcome(
        "health: answered", f"{len(times) - failed} of {len(times)}", "all", met=not failed
    )
    if (found := percentiles(times)) is not None:
        bench.within("health, p95", found.p95, limit_ms)


async def hostile(bench: Bench) -> None:
    """Ten callers send hard texts of 100,000 characters, due in 200 ms, beside ordinary ones."""
    kinds = list(KINDS)
    bodies = [hostile_body(kind, HOSTILE_DEADLINE_MS) for kind in kinds]
    alone = await bench.callers(lambda n: bodies[n], 1, len(bodies) if bench.size == FULL else 3)
    quiet = await bench.ordinary(0)
    beside, ten = await asyncio.gather(
        bench.ordinary(10_000), bench.callers(lambda n: bodies[n % len(bodies)], 10)
    )
    for who, requests in (("hostile", [*alone, *ten]), ("ordinary beside", beside)):
        bench.nobody_lost(who, requests)
    bench.few_refused(beside)
    bench.within("ordinary beside, p95 (at most twice its quiet one)", p95(beside), 2 * p95(quiet))
    due = HOSTILE_DEADLINE_MS
    bench.within("hostile alone, worst", max(r.client_ms or 0 for r in alone), due + 500)
    bench.within("hostile beside nine others, worst", max(r.client_ms or 0 for r in ten), due + 2e3)


async def callers(bench: Bench) -> None:
    """Forty callers with one key send what they can, beside an ordinary caller with another key."""
    quiet = await bench.ordinary(0)
    beside, crowd = await asyncio.gather(
        bench.ordinary(10_000), bench.callers(bench.chat_body, 40, key=CROWD_KEY)
    )
    bench.nobody_lost("crowd", crowd)
    bench.nobody_lost("ordinary beside", beside)
    bench.few_refused(beside)
    bench.within("ordinary beside, p95 (at most twice its quiet one)", p95(beside), 2 * p95(quiet))


async def slow(bench: Bench) -> None:
    """Connections that say nothing, or a byte now and then; streams that wait."""
    crowd = bench.size.crowd
    head = b"POST /v1/check HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
    stream = head.replace(b"/v1/check", b"/v1/check/stream") + b"Transfer-Encoding: chunked\r\n\r\n"
    first = json.dumps({"question": "When?", "contexts": ["It is on Monday."]}).encode() + b"\n"
    opening = stream + f"{len(first):x}\r\n".encode() + first + b"\r\n"
    async with contextlib.AsyncExitStack() as stack:
        for count, sent, more in (
            (300, b"", b""),
            (100, b"POST /v1/check HTTP/1.1\r\n", b"X"),
            (100, head + b"Content-Length: 100000\r\n\r\n", b" "),
            (100, opening, b""),
        ):
            await stack.enter_async_context(
                held(bench.server.address, int(count * crowd), sent, more)
            )
        with health(bench, 100.0):
            beside = await bench.ordinary(0)
    bench.nobody_lost("ordinary beside", beside)


@asynccontextmanager
async def held(address: str, count: int, sent: bytes, more: bytes) -> AsyncIterator[None]:
    """Hold connections open that have sent something, and send a little more twice a second."""
    parts = urlsplit(address)
    opened = [await asyncio.open_connection(parts.hostname, parts.port) for _ in range(count)]
    for _, writer in opened:
        writer.write(sent)

    async def drip() -> None:
        while more:
            await asyncio.sleep(0.5)
            for _, writer in opened:
                if not writer.is_closing():
                    writer.write(more)

    dripping = asyncio.ensure_future(drip())
    try:
        yield
    finally:
        dripping.cancel()
        for _, writer in opened:
            writer.close()


async def headers(bench: Bench) -> None:
    """Headers of 8 MB, in one and in many; requests that are none."""
    long = b"GET /healthz HTTP/1.1\r\nX-Long: " + b"a" * 8_000_000
    many = b"GET /healthz HTTP/1.1\r\n" + b"X-Many: abcdefgh\r\n" * 500_000
    cases = {"one header of 8 MB": (long, 431), "500,000 headers": (many, 431)}
    cases["no HTTP"] = (b"\x16\x03\x01\x02\x00" * 100 + b"\r\n\r\n", 400)
    with health(bench, 250.0):
        for what, (sent, expected) in cases.items():
            replies = [status_of(bench.server.address, sent) for _ in range(8)]
            statuses = set(await asyncio.gather(*replies))
            bench.outcome(what, statuses, str(expected), met=statuses == {expected})
        beside = await bench.ordinary(0)
    bench.nobody_lost("ordinary beside", beside)


async def status_of(address: str, sent: bytes) -> int:
    """Return the status of the reply to some bytes; 0 without one."""
    parts = urlsplit(address)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(sent)
        async with asyncio.timeout(PATIENCE_S):
            return parse_head(await reader.readuntil(b"\r\n\r\n"))[0]
    except (OSError, asyncio.IncompleteReadError, TimeoutError):
        return 0
    finally:
        writer.close()


async def burst(bench: Bench) -> None:
    """Five hundred requests at once: each is judged or told to come again."""
    generator = Generator(bench.server.address, bench.ordinary_body, PATIENCE_S)
    with health(bench, 250.0):
        found = await generator.open_loop([0.0] * bench.size.burst, 0)
    generator.close()
    bench.nobody_lost("at once", found)


async def mixed(bench: Bench) -> None:
    """Chat answers beside two callers who send one long report after the other."""
    quiet = await bench.ordinary(0)
    beside, reports = await asyncio.gather(
        bench.ordinary(10_000), bench.callers(bench.report_body, 2)
    )
    bench.nobody_lost("chat beside reports", beside)
    bench.nobody_lost("reports", reports)
    bench.within("chat beside reports, p95 (at most twice its own)", p95(beside), 2 * p95(quiet))


async def kinds(bench: Bench) -> None:
    """Each kind of hard text alone, with no deadline, 200 ms and 50 ms; processor time of each."""
    deadlines: tuple[float | None, ...] = (50, 200, None) if bench.size == FULL else (200,)
    connection = LoadConnection(bench.server.address)
    for kind in KINDS if bench.size == FULL else list(KINDS)[:6]:
        for deadline in deadlines:
            body = hostile_body(kind, deadline)
            cpu, started = bench.server.cpu_s(), time.perf_counter()
            status = (await connection.post(PATH, body)).status
            took = (time.perf_counter() - started) * 1e3
            cpu = bench.server.cpu_s() - cpu
            what = f"{kind}, {'no deadline' if deadline is None else f'{deadline} ms'}"
            found = f"{status}, {cpu:.2f} CPU s"
            bench.outcome(what, found, "200 or 422", met=status in {200, 422})
            bench.within(what, took, float("inf") if deadline is None else deadline + 500)
    connection.close()


ENVIRONMENT = {"callers": {"GUARDRAIL_API_KEYS": f"{ONE_KEY},{CROWD_KEY}"}}
Scenario = Callable[[Bench], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {
    "hostile": hostile,
    "callers": callers,
    "slow": slow,
    "headers": headers,
    "burst": burst,
    "mixed": mixed,
    "kinds": kinds,
}


def run(names: Sequence[str], *, is_short: bool, note: Callable[[str], None]) -> ScenariosReport:
    """Return what scenarios found, each with a service of its own.

    Raises:
        GuardrailError: If the service does not start or ends.
    """
    before = os.getloadavg()[0]
    results: list[Expectation] = []
    for name in names:
        note(name)
        with serving((), None, ENVIRONMENT.get(name)) as server:
            bench = Bench(name, server, SHORT if is_short else FULL)
            asyncio.run(_run(SCENARIOS[name], bench))
        results += bench.results
    if is_short:
        results = [result for result in results if not result.is_time]
    return ScenariosReport(results, before, os.getloadavg()[0])


async def _run(scenario: Scenario, bench: Bench) -> None:
    await bench.warm_up()
    await scenario(bench)


def rows(report: ScenariosReport) -> list[list[str]]:
    """Return the report's table without its headings."""
    return [
        [found.scenario, found.what, found.expected, found.found, verdict(found.met)]
        for found in report.results
    ]


HEADINGS = ("scenario", "", "expected", "found", "")


def markdown(report: ScenariosReport) -> str:
    """Return the part of the page."""
    loads = f"{report.load_before:.1f} before and {report.load_after:.1f} after"
    about = f"One run; load average of the machine {loads}, on {os.cpu_count()} cores."
    others = report._replace(results=[r for r in report.results if r.scenario != "kinds"])
    parts = [about, markdown_table(HEADINGS, rows(others))]
    if kinds_of := kind_rows(report):
        late = sum(found.met is False for found in report.results if found.scenario == "kinds")
        parts.append(
            "Each kind of hard text alone, by its deadline: status, processor time and time to the "
            f"reply. Later than 500 ms after their deadline: {late}."
        )
        table = [(kind, *cells.values()) for kind, cells in kinds_of]
        parts.append(markdown_table(("kind", *kinds_of[0][1]), table))
    return "\n\n".join(parts)


def kind_rows(report: ScenariosReport) -> list[tuple[str, dict[str, str]]]:
    """Return each kind with status, processor time and time of its reply by deadline."""
    found: dict[str, dict[str, str]] = {}
    for result in report.results:
        if result.scenario == "kinds":
            kind, _, deadline = result.what.rpartition(", ")
            cells = found.setdefault(kind, {})
            before = cells.get(deadline)
            cells[deadline] = f"{before}, {result.found}" if before else result.found
    return list(found.items())


def as_json(report: ScenariosReport) -> dict[str, Any]:
    """Return the report as JSON values."""
    return {**report._asdict(), "results": [found._asdict() for found in report.results]}


def publish(report: ScenariosReport, json_file: Path | None, doc: Path | None) -> None:
    """Write the report as JSON, print its table, rewrite the page's part."""
    write_json(json.dumps(as_json(report)), json_file)
    if str(json_file) != "-":
        table = Table(*HEADINGS)
        for row in rows(report):
            table.add_row(*row)
        out.print(table)
    if doc is not None:
        replace_part(doc, PART, markdown(report))

"""More work than fits: deadlines, departed callers, overload and draining, with a held-up model.

The model runner waits until the test lets it go, so nothing here depends on how fast anything is.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from guardrail_service.inference.queue.scheduler import Scheduler
from guardrail_service.server.app import create_app
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Limits, Settings
from guardrail_service.types import Row, RowResult
from tests.integration.conftest import DETECTORS, PATIENCE_S, until

Message = dict[str, Any]
SENTENCES = [f"The pool {n} opens at seven in the morning for guests." for n in range(40)]
SAMPLE = {"answer": SENTENCES[0], "contexts": SENTENCES[1:21]}


def sample(n: int) -> dict[str, Any]:
    """Return a sample that shares no sentence with those of other numbers."""
    return {"answer": f"Answer {n}. {SENTENCES[0]}", "contexts": [f"{n}. {s}" for s in SENTENCES]}


class Held:
    """A runner that waits until it is released, and counts what it ran."""

    def __init__(self, run: Callable[[Row], RowResult]) -> None:
        self._run = run
        self.entered = threading.Event()
        self.released = threading.Event()
        self.ran = 0

    def __call__(self, row: Row) -> RowResult:
        """Wait, then run the row."""
        self.entered.set()
        assert self.released.wait(PATIENCE_S)
        self.ran += 1
        return self._run(row)


class Call:
    """One HTTP request to an application in process, whose caller can leave."""

    def __init__(self, app: FastAPI, path: str, body: Any = None) -> None:
        self._left = asyncio.Event()
        self._sent: list[Message] = []
        self._body: bytes | None = b"" if body is None else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("test", 80),
            "client": ("test", 1),
            "root_path": "",
        }
        served: Awaitable[None] = app(scope, self._receive, self._send)
        self.task = asyncio.ensure_future(served)

    async def _receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self._sent.append(message)

    def leave(self) -> None:
        """Close the connection, as a caller does who has waited long enough."""
        self._left.set()

    async def reply(self) -> tuple[int, dict[str, str], Any]:
        """Return status, headers and JSON (text where it is none)."""
        await asyncio.wait_for(self.task, PATIENCE_S)
        start, *rest = self._sent
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        content = b"".join(message.get("body", b"") for message in rest)
        is_json = headers["content-type"] == "application/json"
        return start["status"], headers, json.loads(content) if is_json else content.decode()


async def eventually(condition: Callable[[], Any], what: str) -> None:
    """Let other tasks and threads go on until something is true."""
    await asyncio.to_thread(until, condition, what)


class Service:
    """An application on the tiny pack whose model runs when the test says so."""

    def __init__(self, tiny: Path, config: Path, **limits: int) -> None:
        settings = Settings(
            model_pack=str(tiny),
            config=(config,),
            workers=1,
            drain_s=PATIENCE_S,
            limits=Limits(**limits),
        )
        self.runtime = Runtime(settings)
        self.runtime.scheduler.close()
        self.model = Held(self.runtime.sessions["embedding"].run)
        self.runtime.scheduler = Scheduler(
            {"embedding": self.model}, settings.workers, settings.limits.queued_rows
        )
        self.runtime.guard._scheduler = self.runtime.scheduler
        self.app = create_app(runtime=self.runtime)

    def run(self, test: Callable[[Service], Awaitable[None]]) -> None:
        """Run a coroutine inside the application's lifespan."""

        async def inside() -> None:
            async with self.app.router.lifespan_context(self.app):
                try:
                    await test(self)
                finally:
                    self.model.released.set()

        asyncio.run(inside())

    def post(self, body: Any, path: str = "/v1/check") -> Call:
        """Begin a request."""
        return Call(self.app, path, body)

    async def metric(self, name: str) -> float:
        """Return a metric without labels."""
        _, _, text = await Call(self.app, "/metrics").reply()
        found = [line for line in text.splitlines() if line.startswith(f"{name} ")]
        return float(found[0].split()[-1])


@pytest.fixture
def make(tiny: Path, write_config: Callable[..., Path]) -> Iterator[Callable[..., Service]]:
    """Make services that are closed at the end."""
    made: list[Service] = []

    def one(limits: dict[str, int] | None = None, **policy: Any) -> Service:
        config = write_config(
            calibrated_thresholds={"groundedness": {"groundedness": -1.0}},
            evaluator_ids=DETECTORS,
            policy={"name": "held", **policy},
        )
        made.append(Service(tiny, config, **(limits or {})))
        return made[-1]

    yield one
    for service in made:
        service.model.released.set()
        service.runtime.close()


@pytest.mark.parametrize(
    ("on_timeout", "decision", "action"), [("flag", "flag", "block"), ("pass", "pass", "allow")]
)
def test_a_missed_deadline_is_a_partial_reply_that_does_not_wait(
    on_timeout: str, decision: str, action: str, make: Callable[..., Service]
) -> None:
    """The reply leaves while the model is still held up; cheap detectors are evaluated."""

    async def test(service: Service) -> None:
        body = {
            **SAMPLE,
            "deadline_ms": 1,
            "detectors": {"text_matching": {"parameters": {"condition": '"pool"'}}},
        }
        status, headers, reply = await service.post(body).reply()
        assert not service.model.released.is_set()
        assert status == 200
        assert (reply["status"], reply["decision"], reply["action"]) == (
            "partial", decision, action,
        )  # fmt: skip
        assert headers["x-guardrail-decision"] == decision
        late = reply["detectors"]["groundedness"]
        assert (late["state"], late["reason"]) == ("not_evaluated", "deadline")
        assert late["metrics"] == {}
        assert late["spans"] == []
        assert late["flagged"] is (on_timeout == "flag")
        assert reply["detectors"]["text_matching"]["state"] == "evaluated"
        assert reply["detectors"]["looping"]["state"] != "not_evaluated"

    make(on_timeout={"groundedness": on_timeout}, actions={"groundedness": "block"}).run(test)


def test_a_policys_deadline_counts_where_a_request_names_none(
    make: Callable[..., Service],
) -> None:
    """And not in a batch, whose verdicts must not depend on the machine."""

    async def test(service: Service) -> None:
        _, _, reply = await service.post(SAMPLE).reply()
        assert reply["status"] == "partial"
        batch = service.post({"items": [SAMPLE, {**SAMPLE, "deadline_ms": 1}]}, "/v1/check/batch")
        await eventually(service.runtime.scheduler.depth, "the batch waits for the model")
        service.model.released.set()
        _, _, replies = await batch.reply()
        assert [result["status"] for result in replies["results"]] == ["complete", "complete"]

    make(deadline_ms=1).run(test)


def test_a_departed_callers_rows_are_dropped_not_run(make: Callable[..., Service]) -> None:
    """The queue is empty at once, long before a worker is free."""

    async def test(service: Service) -> None:
        call = service.post(SAMPLE)
        await eventually(service.model.entered.is_set, "the first row runs")
        await eventually(service.runtime.scheduler.depth, "the others wait")
        assert await service.metric("guardrail_queue_rows") > 5
        call.leave()
        await eventually(lambda: service.runtime.scheduler.depth() == 0, "nothing waits")
        assert await service.metric("guardrail_queue_rows") == 0
        service.model.released.set()
        status, _, reply = await call.reply()
        assert (status, reply["error"]["code"]) == (499, "cancelled")
        await eventually(lambda: service.model.ran == 1, "the row that ran is done")

    make().run(test)


def test_a_departed_batch_is_dropped_whole(make: Callable[..., Service]) -> None:
    """Items that have not begun do not begin."""

    async def test(service: Service) -> None:
        call = service.post({"items": [SAMPLE] * 10}, "/v1/check/batch")
        await eventually(service.model.entered.is_set, "the first row runs")
        await eventually(service.runtime.scheduler.depth, "the others wait")
        call.leave()
        await eventually(lambda: service.runtime.scheduler.depth() == 0, "nothing waits")
        service.model.released.set()
        status, _, _ = await call.reply()
        assert status == 499
        await eventually(lambda: service.model.ran == 1, "the row that ran is done")
        assert service.runtime.scheduler.depth() == 0

    make().run(test)


def test_a_cancelled_request_drops_its_rows_too(make: Callable[..., Service]) -> None:
    """In process, a caller leaves by cancelling; no disconnect message comes."""

    async def test(service: Service) -> None:
        call = service.post(SAMPLE)
        await eventually(service.runtime.scheduler.depth, "rows wait")
        call.task.cancel()
        await eventually(lambda: service.runtime.scheduler.depth() == 0, "nothing waits")

    make().run(test)


def test_too_many_requests_get_429_and_when_to_come_back(make: Callable[..., Service]) -> None:
    """Those that are running finish; afterwards there is room again."""

    async def test(service: Service) -> None:
        running = [service.post(sample(n)) for n in (1, 2)]
        await eventually(lambda: service.runtime.scheduler.depth() > 50, "both have begun")
        status, headers, reply = await service.post(SAMPLE).reply()
        assert status == 429
        assert int(headers["retry-after"]) >= 1
        assert reply["error"]["code"] == "overloaded"
        assert reply["error"]["request_id"] == headers["x-request-id"]
        batch = await service.post({"items": [SAMPLE]}, "/v1/check/batch").reply()
        assert batch[0] == 429
        service.model.released.set()
        assert [(await call.reply())[0] for call in running] == [200, 200]
        assert (await service.post(SAMPLE).reply())[0] == 200

    make(limits={"concurrent_requests": 2}).run(test)


def test_a_batch_takes_places_like_single_requests(make: Callable[..., Service]) -> None:
    """Batches must not fill the threads that single requests count on."""

    async def test(service: Service) -> None:
        batches = [service.post({"items": [sample(n)] * 3}, "/v1/check/batch") for n in (1, 2)]
        await eventually(lambda: service.runtime.scheduler.depth() > 50, "both have begun")
        status, _, _ = await service.post(SAMPLE).reply()
        assert status == 429
        service.model.released.set()
        assert [(await batch.reply())[0] for batch in batches] == [200, 200]

    make(limits={"concurrent_requests": 2}).run(test)


def test_a_full_queue_refuses_and_a_large_request_alone_does_not(
    make: Callable[..., Service],
) -> None:
    """429 is about other people's work; what is too large for the queue is accepted when idle."""

    async def test(service: Service) -> None:
        first = service.post(SAMPLE)
        await eventually(lambda: service.runtime.scheduler.depth() > 5, "it was accepted")
        status, headers, reply = await service.post({**SAMPLE, "answer": SENTENCES[30]}).reply()
        assert status == 429
        assert int(headers["retry-after"]) >= 1
        assert "zq9" not in reply["error"]["message"]
        service.model.released.set()
        assert (await first.reply())[0] == 200

    make(limits={"queued_rows": 5}).run(test)


def test_a_stream_that_others_work_makes_late_is_refused_before_it_begins(
    make: Callable[..., Service],
) -> None:
    """With the time to come back; one that may take its time begins.

    Large requests let a small stream pass, but not for ever: these have waited long enough.
    """

    async def test(service: Service) -> None:
        scheduler = service.runtime.scheduler
        waiting = [service.post(sample(n)) for n in range(8)]
        await eventually(lambda: scheduler.depth() > 250, "the others' rows wait for the model")
        await asyncio.sleep(3.0)
        opening = {"contexts": SENTENCES, "sentence_deadline_ms": 1_500}
        status, headers, reply = await service.post(opening, "/v1/check/stream").reply()
        assert status == 429
        assert reply["error"]["code"] == "overloaded"
        assert 1 <= int(headers["retry-after"]) <= math.ceil(scheduler.backlog_s())
        later = service.post({"contexts": SENTENCES}, "/v1/check/stream")
        status, _, text = await later.reply()
        assert status == 200
        assert [json.loads(line)["type"] for line in text.splitlines()] == ["start", "error"]
        assert service.app.state.service.streams.running == 0
        service.model.released.set()
        assert [(await call.reply())[0] for call in waiting] == [200] * len(waiting)

    make().run(test)


def test_draining_is_not_ready_and_refuses_new_work(make: Callable[..., Service]) -> None:
    """What was accepted is finished; the process is alive all the while."""

    async def test(service: Service) -> None:
        running = service.post(SAMPLE)
        await eventually(service.model.entered.is_set, "it runs")
        assert (await Call(service.app, "/readyz").reply())[0] == 200
        service.runtime.scheduler.draining = True
        status, _, ready = await Call(service.app, "/readyz").reply()
        assert (status, ready["ready"]) == (503, False)
        assert ready["detail"] == {"not_ready": "the service is shutting down"}
        assert await service.metric("guardrail_ready") == 0
        for path, body in (("/v1/check", SAMPLE), ("/v1/check/batch", {"items": [SAMPLE]})):
            status, _, reply = await service.post(body, path).reply()
            assert (status, reply["error"]["code"]) == (503, "not_ready")
        assert (await Call(service.app, "/healthz").reply())[0] == 200
        service.model.released.set()
        assert (await running.reply())[0] == 200

    make().run(test)


def test_a_row_that_fails_is_an_error_of_its_detector_only(make: Callable[..., Service]) -> None:
    """The reply is complete, the policy says what an error means, the next request is served."""

    async def test(service: Service) -> None:
        def broken(row: Row) -> RowResult:
            raise ValueError("zq9")

        service.model.released.set()
        service.model._run, working = broken, service.model._run
        status, _, reply = await service.post(SAMPLE).reply()
        assert (status, reply["status"], reply["decision"]) == (200, "complete", "flag")
        grounded = reply["detectors"]["groundedness"]
        assert (grounded["state"], grounded["reason"]) == ("error", "row_failed")
        assert reply["detectors"]["text_matching"]["state"] == "not_applicable"
        assert "zq9" not in json.dumps(reply)
        service.model._run = working
        _, _, reply = await service.post(SAMPLE).reply()
        assert reply["detectors"]["groundedness"]["state"] == "evaluated"

    make().run(test)

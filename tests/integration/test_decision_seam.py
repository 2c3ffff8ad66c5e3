"""Every route that judges offers one record for each judged sample to the store of decisions."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.testclient import TestClient

from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Policy
from guardrail_service.server.app import create_app
from guardrail_service.server.decisions import (
    DecisionRecord,
    Feedback,
    FeedbackState,
    Recorder,
    open_store,
)
from guardrail_service.server.dialects import add_dialects
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.schemas import FeedbackRequest
from guardrail_service.server.service import MOST_FEEDBACK
from guardrail_service.settings import DecisionSettings
from guardrail_service.types import ANONYMOUS, IDENTITY, Caller

ANSWER = "New employees get 25 days of paid leave."
PASSAGE = "Every new employee receives 25 days of paid leave per year."
SAMPLE: dict[str, Any] = {"question": "How many days?", "answer": ANSWER, "contexts": [PASSAGE]}


class ListStore:
    """Keeps records in memory; `full` refuses them."""

    def __init__(self) -> None:
        self.records: list[DecisionRecord] = []
        self.required = False
        self.full = False
        self.closed = False

    def offer(self, record: DecisionRecord) -> bool:
        """Take a record."""
        if not self.full:
            self.records.append(record)
        return not self.full

    keep = offer

    def add_feedback(self, feedback: Feedback) -> FeedbackState:
        """Know no decision."""
        return "unknown"

    def serving(self, policies: Collection[Policy]) -> None:
        """Pass them over."""

    def figures(self) -> Iterable[Any]:
        """Show nothing."""
        return ()

    def problem(self) -> str | None:
        """Say whether it is full."""
        return "full" if self.full else None

    def close(self, timeout_s: float) -> None:
        """Note that nothing more comes."""
        self.closed = True


@pytest.fixture
def store() -> ListStore:
    """Return a store for one test."""
    return ListStore()


@pytest.fixture
def http(tiny_runtime: Runtime, store: ListStore) -> Iterator[TestClient]:
    """Return a client of a service that has that store."""
    runtime = tiny_runtime
    settings = DecisionSettings()
    prints = runtime.serving.fingerprints
    recorder = Recorder(store, settings, prints, runtime.guard.in_force)
    app = create_app(runtime=runtime, decisions=recorder)
    add_dialects(app, ("openai",))
    client = TestClient(app)
    with client:
        yield client
    assert store.closed


def stream(lines: Iterable[dict[str, Any]]) -> bytes:
    """Return the body of a stream."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


BEGINNING = {key: SAMPLE[key] for key in ("question", "contexts")}
CALLS: dict[str, tuple[str, dict[str, Any], list[tuple[str, int]]]] = {
    "check": ("/v1/check", {"json": SAMPLE}, [("check", 0)]),
    "batch": (
        "/v1/check/batch",
        {"json": {"items": [SAMPLE, {"nothing": 1}, SAMPLE]}},
        [("batch", 0), ("batch", 2)],
    ),
    "stream": (
        "/v1/check/stream",
        {"content": stream([BEGINNING, {"text": ANSWER}, {"text": "", "end": True}])},
        [("stream", 0)],
    ),
    "dialect": (
        "/v1/moderations",
        {"json": {"input": [ANSWER, "Another text."]}},
        [("openai", 0), ("openai", 1)],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_route_offers_one_record_for_each_judged_sample(
    name: str, http: TestClient, store: ListStore
) -> None:
    """With the request's id, the outcomes as they were compared, and what they depend on."""
    path, body, places = CALLS[name]
    reply = http.post(path, headers={"X-Request-Id": "r-1"}, **body)
    assert reply.status_code == 200, reply.text
    assert sorted((record.route, record.item) for record in store.records) == places
    for record in store.records:
        assert record.request_id == "r-1"
        assert record.caller == "anonymous"
        assert len(record.policy_hash) == 64
        assert record.detectors.keys() == record.options.keys()
        assert record.fingerprints
    first = next(record for record in store.records if record.item == 0)
    assert first.answer == ANSWER
    if name != "dialect":
        assert first.contexts == (PASSAGE,)


@pytest.mark.parametrize("url", ["mysql://host/x", "nothing", "sqlite"])
def test_a_store_that_nothing_opens_is_refused_without_its_url(url: str) -> None:
    """It may hold a password."""
    with pytest.raises(ConfigurationError, match="GUARDRAIL_DECISIONS_URL") as raised:
        open_store(DecisionSettings(url=SecretStr(url)))
    assert "host" not in str(raised.value)


def test_the_record_has_the_scores_of_the_reply(http: TestClient, store: ListStore) -> None:
    """Unrounded, with the thresholds that they were compared with."""
    reply = http.post("/v1/check", json=SAMPLE).json()
    (record,) = store.records
    assert record.decision == reply["decision"]
    for name, detector in reply["detectors"].items():
        found = {k: (m.score, m.threshold) for k, m in record.detectors[name].metrics.items()}
        said = {k: (m["score"], m["threshold"]) for k, m in detector["metrics"].items()}
        assert found == said


def test_a_full_store_never_keeps_an_answer_back_unless_a_record_is_required(
    http: TestClient, store: ListStore
) -> None:
    """Then the answer is refused with 503, and the service says that it is not ready."""
    store.full = True
    assert http.post("/v1/check", json=SAMPLE).status_code == 200
    assert http.get("/readyz").json()["detail"]["decisions"] == "full"
    store.required = True
    refused = http.post("/v1/check", json=SAMPLE)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_recorded")
    items = http.post("/v1/check/batch", json={"items": [SAMPLE]}).json()["results"]
    assert items[0]["error"]["code"] == "not_recorded"
    body = stream([BEGINNING, {"text": ANSWER}, {"text": "", "end": True}])
    last = http.post("/v1/check/stream", content=body).text.splitlines()[-1]
    assert json.loads(last)["error"]["code"] == "not_recorded"
    assert http.get("/readyz").status_code == 503
    assert store.records == []


def test_feedback_that_waits_holds_up_nothing_else(
    http: TestClient, store: ListStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some words wait for a store that is away, more are refused; checks and probes go on."""
    away = threading.Event()

    def waits(feedback: Feedback) -> FeedbackState:
        assert away.wait(60)
        return "stored"

    def say(_: int) -> Any:
        return http.post("/v1/feedback", json={"request_id": "x", "label": "fail"})

    monkeypatch.setattr(store, "add_feedback", waits)
    with ThreadPoolExecutor(MOST_FEEDBACK + 40) as callers:
        said = [callers.submit(say, number) for number in range(MOST_FEEDBACK + 40)]
        refused = [done.result() for done in islice(as_completed(said), 40)]
        assert http.get("/readyz").status_code == 200
        assert http.post("/v1/check", json=SAMPLE).status_code == 200
        assert not all(done.done() for done in said)
        away.set()
    assert {reply.status_code for reply in refused} == {429}
    assert refused[0].json()["error"]["code"] == "overloaded"
    assert refused[0].headers["Retry-After"] == "5"
    assert sum(done.result().status_code == 200 for done in said) == MOST_FEEDBACK
    assert say(0).status_code == 200


@pytest.mark.parametrize(
    ("caller", "only_own"),
    [
        (ANONYMOUS, True),
        (Caller("app"), True),
        (Caller("reader", frozenset({"feedback", "decisions"})), False),
        (Caller("operator", frozenset({"feedback", "admin"})), False),
    ],
    ids=["no keys", "key", "decisions", "admin"],
)
def test_decisions_of_others_are_labelled_by_those_who_may_read_them(
    tiny_runtime: Runtime, store: ListStore, caller: Caller, only_own: bool
) -> None:
    """The right to give feedback alone finds what the same key asked."""
    said: list[Feedback] = []
    store.add_feedback = lambda word: said.append(word) or "stored"  # type: ignore[assignment,func-returns-value,method-assign]
    settings, find = DecisionSettings(), tiny_runtime.guard.in_force
    recorder = Recorder(store, settings, tiny_runtime.serving.fingerprints, find)
    token = IDENTITY.set(caller)
    try:
        recorder.say(FeedbackRequest(request_id="x", label="fail"))
    finally:
        IDENTITY.reset(token)
    assert [(word.caller, word.only_own) for word in said] == [(caller.id, only_own)]

"""Policies in the shadow: asked about the same rows, after the reply, and never heard in it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from guardrail_service.guard.guard import Guard
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.versions import add_version, promote, set_canary, set_shadow
from guardrail_service.server import shadows
from guardrail_service.server.app import create_app
from guardrail_service.server.decisions import DecisionRecord, Feedback, FeedbackState, Recorder
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import DecisionSettings, Settings

ASKED = {"question": "When?", "answer": "It opens at seven.", "contexts": ["It closes at nine."]}
PATIENCE_S = 60.0
THRESHOLDS = {"1": -1.0, "2": 1.0, "3": -1.0, "4": -1.0}
"""Of groundedness: nothing is below the first, and hardly anything above the second."""
DETECTORS = {"3": ["groundedness", "looping", "answer_relevancy_sentence"]}


class ListStore:
    """Keeps records in a list."""

    def __init__(self, required: bool = False) -> None:
        self.required = required
        self.records: list[DecisionRecord] = []

    def offer(self, record: DecisionRecord) -> bool:
        """Keep a record."""
        self.records.append(record)
        return True

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
        """Have none."""

    def close(self, timeout_s: float) -> None:
        """Do nothing."""


class Shadowed(NamedTuple):
    """A service whose policy has others in its shadow, and a store."""

    client: TestClient
    runtime: Runtime
    folder: Path
    store: ListStore

    def check(self, **given: Any) -> dict[str, Any]:
        """Return the reply to a check."""
        reply = self.client.post("/v1/check", json={**ASKED, **given})
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found

    def stream(self) -> None:
        """Have an answer judged that comes in one part."""
        first = {key: value for key, value in ASKED.items() if key != "answer"}
        lines = (first, {"text": ASKED["answer"]}, {"end": True})
        content = "\n".join(map(json.dumps, lines)) + "\n"
        reply = self.client.post("/v1/check/stream", content=content)
        assert '"complete"' in reply.text, reply.text

    def shadow(self, *versions: str) -> None:
        """Set the versions in the shadow."""
        set_shadow(self.folder, "support", versions)
        assert self.runtime.reload()

    def counts(self) -> dict[tuple[str, str], float]:
        """Return how often each shadow agreed."""
        service = self.client.app.state.service  # type: ignore[attr-defined]
        return dict(service.shadows._counts)

    def wait_for(self, records: int) -> None:
        """Wait until there are so many records."""
        until(lambda: len(self.store.records) == records, f"{records} records")


def until(condition: Callable[[], Any], what: str) -> None:
    """Wait until something is true; fail if it never is."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        threading.Event().wait(0.005)


@pytest.fixture
def shadowed(request: pytest.FixtureRequest, tiny: Path, tmp_path: Path) -> Iterator[Shadowed]:
    """Return a service on four versions, the first live, with a store."""
    for version, threshold in THRESHOLDS.items():
        content = {
            "evaluator_ids": DETECTORS.get(version, ["groundedness", "looping"]),
            "calibrated_thresholds": {"groundedness": {"groundedness": threshold}},
            "policy": {"allow_overrides": True, "version": version},
        }
        (tmp_path / "given.json").write_text(json.dumps(content))
        add_version(tmp_path / "policies", tmp_path / "given.json", name="support")
    promote(tmp_path / "policies", "support", "1")
    settings = Settings(
        model_pack=str(tiny), policies=tmp_path / "policies", workers=1, watch_s=3_600
    )
    runtime = Runtime(settings)
    store = ListStore(required=getattr(request, "param", False))
    prints = runtime.serving.fingerprints
    recorder = Recorder(store, DecisionSettings(), prints, runtime.guard.in_force)
    with TestClient(create_app(runtime=runtime, decisions=recorder)) as client:
        yield Shadowed(client, runtime, tmp_path / "policies", store)


def decided(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply without what differs from request to request."""
    left = {key: value for key, value in reply.items() if key not in ("request_id", "timings_ms")}
    detectors = {
        name: {k: v for k, v in found.items() if k != "latency_ms"}
        for name, found in reply["detectors"].items()
    }
    return {**left, "detectors": detectors}


def test_shadows_are_counted_and_recorded_and_change_no_reply(shadowed: Shadowed) -> None:
    """A threshold that differs, one that does not, and a further detector."""
    alone = shadowed.check()
    assert shadowed.store.records[0].shadow == ()
    shadowed.shadow("2", "4", "3")
    beside = shadowed.check()
    assert decided(beside) == decided(alone)
    shadowed.wait_for(2)
    said = {one.policy_version: one for one in shadowed.store.records[1].shadow}
    assert {number: one.decision for number, one in said.items() if number != "3"} == {
        "2": "flag",
        "4": "pass",
    }
    assert said["2"].flagged == ("groundedness",)
    counts = shadowed.counts()
    assert counts["support@2", "stricter"] == counts["support@4", "same"] == 1
    assert {policy for policy, _ in counts} == {"support@2", "support@3", "support@4"}
    line = 'guardrail_shadow_checks_total{agreement="stricter",policy="support@2"} 1.0'
    assert line in shadowed.client.get("/metrics").text.replace(
        'policy="support@2",agreement="stricter"', 'agreement="stricter",policy="support@2"'
    )
    promote(shadowed.folder, "support", "2")
    shadowed.shadow("1")
    shadowed.check()
    shadowed.wait_for(3)
    assert shadowed.counts()["support@1", "milder"] == 1


def test_an_answer_that_is_judged_during_a_reload_has_the_shadows_of_its_policy(
    shadowed: Shadowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole one and a streamed one: the policies were replaced after they had begun."""
    shadowed.shadow("2")
    guard = shadowed.runtime.guard
    whole = guard.judge

    def judge(*given: Any, **named: Any) -> Any:
        assert shadowed.runtime.reload()
        monkeypatch.setattr(guard, "judge", whole)
        return whole(*given, **named)

    for number, ask in enumerate((shadowed.check, shadowed.stream), start=1):
        monkeypatch.setattr(guard, "judge", judge)
        ask()
        shadowed.wait_for(number)
        assert [one.policy_version for one in shadowed.store.records[-1].shadow] == ["2"]


def test_no_row_is_run_again_for_a_shadow(
    shadowed: Shadowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thresholds alone need none at all; a further detector only those that are its own."""
    asked: list[tuple[Any, ...]] = []
    scheduler = shadowed.runtime.scheduler
    whole = scheduler.submit

    def submit(rows: Any, *rest: Any, **given: Any) -> Any:
        asked.append(tuple(rows))
        return whole(rows, *rest, **given)

    monkeypatch.setattr(scheduler, "submit", submit)
    shadowed.shadow("2")
    asked.clear()
    shadowed.check()
    shadowed.wait_for(1)
    assert len(asked) == 1
    shadowed.shadow("3")
    asked.clear()
    shadowed.check(answer="It opens at seven. It closes at nine.")
    shadowed.wait_for(2)
    first, second = asked
    assert first
    assert not set(first) & set(second)
    assert shadowed.store.records[1].shadow[0].policy_version == "3"


def test_an_answer_does_not_wait_for_shadows_and_a_full_queue_drops_them(
    shadowed: Shadowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each answer is recorded all the same."""
    monkeypatch.setattr(shadows, "MOST_WAITING", 2)
    service = shadowed.client.app.state.service  # type: ignore[attr-defined]
    service.shadows._waiting.maxsize = 2
    gate, whole = threading.Event(), Guard.beside
    begun = threading.Event()

    def slow(*given: Any) -> Any:
        begun.set()
        gate.wait(PATIENCE_S)
        return whole(*given)

    shadowed.shadow("2")
    monkeypatch.setattr(Guard, "beside", slow)
    shadowed.check()
    assert begun.wait(PATIENCE_S)
    for _ in range(4):
        shadowed.check()
    assert [record.shadow for record in shadowed.store.records] == [(), ()]
    assert shadowed.counts() == {("support@2", "dropped"): 2}
    gate.set()
    shadowed.wait_for(5)
    assert shadowed.counts()["support@2", "stricter"] == 3


@pytest.mark.parametrize("shadowed", [True], indirect=True)
def test_a_record_that_must_be_durable_first_has_no_shadow(shadowed: Shadowed) -> None:
    """The reply waits for the record, and the record for nobody."""
    shadowed.shadow("2")
    shadowed.check()
    assert [record.shadow for record in shadowed.store.records] == [()]
    until(lambda: shadowed.counts() == {("support@2", "stricter"): 1}, "the shadow is counted")


def test_a_shadow_that_fails_is_counted_and_the_next_is_asked(
    shadowed: Shadowed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody's answer depends on it."""
    shadowed.shadow("2", "4")
    whole = Guard.beside

    def failing(guard: Guard, policy: Policy, judged: Any) -> Any:
        if policy.version == "2":
            raise ValueError("zq9")
        return whole(guard, policy, judged)

    monkeypatch.setattr(Guard, "beside", failing)
    shadowed.check()
    shadowed.wait_for(1)
    assert [one.policy_version for one in shadowed.store.records[0].shadow] == ["4"]
    assert shadowed.counts() == {("support@2", "failed"): 1, ("support@4", "same"): 1}


def test_batches_streams_and_trials_have_shadows_and_changed_rules_have_none(
    shadowed: Shadowed,
) -> None:
    """What a request has changed says nothing about a policy."""
    shadowed.shadow("2")
    shadowed.client.post("/v1/check/batch", json={"items": [ASKED, ASKED]})
    shadowed.wait_for(2)
    lines = [{"contexts": ASKED["contexts"]}, {"text": ASKED["answer"]}, {"end": True}]
    sent = "".join(json.dumps(line) + "\n" for line in lines)
    shadowed.client.post("/v1/check/stream", content=sent)
    shadowed.wait_for(3)
    change = {"looping": {"thresholds": {"compression_ratio": 0.9}}}
    shadowed.check(detectors=change)
    shadowed.wait_for(4)
    set_canary(shadowed.folder, "support", "4", 1.0)
    assert shadowed.runtime.reload()
    assert shadowed.check()["policy"]["version"] == "4"
    shadowed.wait_for(5)
    records = sorted(shadowed.store.records, key=lambda record: record.time)
    assert [(record.route, len(record.shadow)) for record in records] == [
        ("batch", 1), ("batch", 1), ("stream", 1), ("check", 0), ("check", 1),
    ]  # fmt: skip
    assert records[-1].options  # of the version on trial, too


def test_policies_in_files_may_be_in_the_shadow(tiny: Path, configs: tuple[Path, Path]) -> None:
    """Of every other one."""
    settings = Settings(model_pack=str(tiny), config=configs, workers=1, shadow_policies=("open",))
    runtime = Runtime(settings)
    served = runtime.guard.served
    assert [policy.name for policy in served.shadows["default"]] == ["open"]
    assert "open" not in served.shadows
    with TestClient(create_app(runtime=runtime)) as client:
        client.post("/v1/check", json=ASKED)
        service = client.app.state.service  # type: ignore[attr-defined]
        until(lambda: service.shadows._counts, "the shadow is asked")
        assert set(service.shadows._counts) == {("open@1", "same")}

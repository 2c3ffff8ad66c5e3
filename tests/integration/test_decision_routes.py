"""A service with a store in SQLite: feedback over HTTP, and no text where none belongs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from guardrail_decisions.reading import open_decisions
from guardrail_service.server.app import create_app
from guardrail_service.server.decisions import recorder_for
from guardrail_service.server.log_lines import json_logging
from guardrail_service.server.runtime import Runtime
from tests.unit.decisions.made_up import settings
from tests.unit.decisions.test_texts import CANARIES, TOLD, left_in

SAMPLE: dict[str, Any] = {"question": TOLD, "answer": TOLD, "contexts": [TOLD]}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return where the store is."""
    return f"sqlite:///{tmp_path / 'decisions.db'}"


@pytest.fixture
def http(tiny_runtime: Runtime, url: str) -> Iterator[TestClient]:
    """Return a client of a service with that store."""
    runtime = tiny_runtime
    with_store = runtime.settings.model_copy(update={"decisions": settings(url)})
    prints = runtime.serving.fingerprints
    recorder = recorder_for(with_store, prints, runtime.guard.in_force)
    with TestClient(create_app(runtime=runtime, decisions=recorder)) as client:
        yield client


def test_feedback_finds_its_decision(http: TestClient, url: str) -> None:
    """It is durable when the reply comes; the decision before it, too."""
    asked = http.post("/v1/check", json=SAMPLE).json()
    body = {"request_id": asked["request_id"], "label": "fail", "comment": TOLD}
    assert http.post("/v1/feedback", json=body).json()["state"] == "stored"
    assert http.post("/v1/feedback", json=body).json()["state"] == "known"
    with open_decisions(url) as store:
        (found,) = store.decisions()
        assert found.record.decision == asked["decision"]
        assert [(w.label, w.comment) for w in found.feedback] == [("fail", None)]
        assert store.policies().keys() == {found.record.policy_hash}
        assert store.verify().intact
    shown = http.get("/metrics").text
    assert "guardrail_decisions_stored_total 1.0" in shown
    assert 'guardrail_decisions_lost_total{reason="queue"} 0.0' in shown


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"request_id": "nobody", "label": "pass"}, 404),
        ({"request_id": "nobody", "label": "good"}, 422),
        ({"label": "pass"}, 422),
        ({"request_id": "x" * 65, "label": "pass"}, 422),
        ({"request_id": "a\0", "label": "pass"}, 422),
        ({"request_id": "a b", "label": "pass"}, 422),
        ({"request_id": "x", "label": "pass", "metric": "facts\0"}, 422),
        ({"request_id": "x-1_a.B", "label": "pass", "metric": "facts.unsupported"}, 404),
    ],
    ids=["unknown", "label", "no id", "long id", "NUL", "space", "NUL in metric", "every sign"],
)
def test_feedback_that_does_not_fit_is_refused(
    http: TestClient, body: dict[str, Any], status: int
) -> None:
    """With the field, or 404."""
    assert http.post("/v1/feedback", json=body).status_code == status


def test_feedback_on_a_batch_needs_the_item(http: TestClient) -> None:
    """Every item has the request's id."""
    batch = {"items": [{**SAMPLE, "answer": f"Answer {n}."} for n in range(3)]}
    asked = http.post("/v1/check/batch", json=batch, headers={"X-Request-Id": "b-1"})
    assert asked.status_code == 200
    body = {"request_id": "b-1", "label": "pass"}
    refused = http.post("/v1/feedback", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid_input")
    assert http.post("/v1/feedback", json={**body, "item": 2}).json()["state"] == "stored"


def test_no_text_reaches_a_file_a_log_or_a_metric(
    http: TestClient, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Sent as question, passage, answer, comment, id, header, label and request id."""
    with json_logging("debug"):
        headers = {"X-Request-Id": TOLD.replace(" ", "_"), "X-Note": TOLD}
        asked = http.post("/v1/check", json={**SAMPLE, "id": TOLD}, headers=headers).json()
        said = {"request_id": asked["request_id"], "label": "pass", "comment": TOLD}
        assert http.post("/v1/feedback", json=said, headers=headers).status_code == 200
        http.post("/v1/feedback", json={**said, "label": TOLD, "request_id": TOLD[:60]})
        logging.getLogger("guardrail.test").warning("seen")
    written = "".join(capfd.readouterr())
    assert "seen" in written
    shown = http.get("/metrics").text + json.dumps(http.get("/readyz").json())
    assert not [canary for canary in CANARIES if canary in written + shown]
    assert left_in(tmp_path, CANARIES) == []


def test_a_service_without_a_store_says_so(tiny_runtime: Runtime) -> None:
    """404 on feedback, and nothing of a store in the metrics."""
    with TestClient(create_app(runtime=tiny_runtime)) as client:
        reply = client.post("/v1/feedback", json={"request_id": "x", "label": "pass"})
        assert reply.status_code == 404
        assert "guardrail_decisions" not in client.get("/metrics").text

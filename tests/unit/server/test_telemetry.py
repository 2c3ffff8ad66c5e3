"""Metrics and log lines: what they count, and that they hold names, states and numbers only."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import generate_latest

from guardrail_service.inference.memory import MemoryStats
from guardrail_service.inference.store import StoreStats
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.served import PolicySet
from guardrail_service.server.counters import MemoryCounters
from guardrail_service.server.limiter import Limiter
from guardrail_service.server.refusals import REFUSALS, refusals
from guardrail_service.server.reload import Reloads
from guardrail_service.server.schemas import CheckReply
from guardrail_service.server.shadows import Shadows
from guardrail_service.server.telemetry import Telemetry, log_request, summary


class Runtime:
    """The part of a runtime that is measured."""

    def __init__(self) -> None:
        self.scheduler = SimpleNamespace(
            depth=lambda: 7,
            running=lambda: 2,
            stuck=lambda: 1,
            backlog_s=lambda: 0.5,
            not_ready=lambda: self.reason,
        )
        stats = MemoryStats(hits=5, misses=4, restored=3, texts=2, bytes=1_000, limit_bytes=9_000)
        self.caches = SimpleNamespace(store=None, stats=lambda: {"vectors": stats})
        self.serving = SimpleNamespace(fingerprints={"embedding": "a" * 64, "segmenter": "s/1"})
        self.refused = refusals()
        self.reload_error: str | None = None
        self.reason: str | None = None


def reply(**changes: Any) -> CheckReply:
    """Return a reply with one detector that flagged and one that had nothing to judge."""
    detector = {
        "reason": None,
        "action": "allow",
        "explanation": None,
        "metrics": {},
        "spans": [],
        "coverage": None,
        "latency_ms": 2.0,
    }
    return CheckReply.model_validate(
        {
            "request_id": "id-1",
            "id": "zq9",
            "decision": "flag",
            "action": "block",
            "summary": "Not shown: risk flagged it.",
            "flagged": ["risk"],
            "status": "complete",
            "calibrated": False,
            "policy": {"name": "p", "version": "2", "sha256": "0" * 64},
            "detectors": {
                "risk": {**detector, "state": "evaluated", "flagged": True},
                "other": {**detector, "state": "not_applicable", "flagged": False},
            },
            "redacted_answer": "zq9",
            "timings_ms": {"queue": 1, "tokenize": 2, "inference": 3, "total": 4.123456},
        }
        | changes
    )


@pytest.fixture
def runtime() -> Runtime:
    """A runtime to measure."""
    return Runtime()


def shown(telemetry: Telemetry) -> set[str]:
    """Return the lines of `/metrics`."""
    return set(generate_latest(telemetry.registry).decode().splitlines())


def test_requests_are_counted_by_route_status_and_decision(runtime: Runtime) -> None:
    """Labels are templates and fixed words, so that their number is bounded."""
    telemetry = Telemetry(runtime)  # type: ignore[arg-type]
    telemetry.request("/v1/check", 200, "flag")
    telemetry.request("/v1/check", 200, "flag")
    telemetry.request("unmatched", 404, "none")
    lines = shown(telemetry)
    label = 'decision="flag",route="/v1/check",status="200"'
    assert f"guardrail_requests_total{{{label}}} 2.0" in lines
    label = 'decision="none",route="unmatched",status="404"'
    assert f"guardrail_requests_total{{{label}}} 1.0" in lines


def test_outcomes_are_counted_by_detector_state_and_flag(runtime: Runtime) -> None:
    """And timed, in seconds."""
    telemetry = Telemetry(runtime)  # type: ignore[arg-type]
    telemetry.check(reply())
    lines = shown(telemetry)
    label = 'detector="risk",flagged="true",state="evaluated"'
    assert f"guardrail_detector_outcomes_total{{{label}}} 1.0" in lines
    label = 'detector="other",flagged="false",state="not_applicable"'
    assert f"guardrail_detector_outcomes_total{{{label}}} 1.0" in lines
    assert 'guardrail_detector_seconds_sum{detector="risk"} 0.002' in lines
    assert "guardrail_check_seconds_count 1.0" in lines
    assert not any("zq9" in line for line in lines)


def test_gauges_follow_the_runtime(runtime: Runtime) -> None:
    """Read when asked, not when something happens."""
    telemetry = Telemetry(runtime)  # type: ignore[arg-type]
    good = {"guardrail_ready 1.0", "guardrail_config_reload_failed 0.0", "guardrail_queue_rows 7.0"}
    assert good <= shown(telemetry)
    runtime.reason, runtime.reload_error = "draining", "zq9"
    assert {"guardrail_ready 0.0", "guardrail_config_reload_failed 1.0"} <= shown(telemetry)
    assert not any("zq9" in line for line in shown(telemetry))


def test_the_page_lists_every_metric_and_reason(runtime: Runtime) -> None:
    """By the name that a scraper sees, without what Prometheus appends to a histogram."""
    runtime.caches.store = SimpleNamespace(stats=lambda: StoreStats(1, 2, 3, 4))
    registry = Telemetry(runtime).registry  # type: ignore[arg-type]
    registry.register(Limiter(MemoryCounters()).uncounted)
    served = SimpleNamespace(served=PolicySet({"default": Policy("default", "1", "", {})}))
    registry.register(Reloads(served, dict))  # type: ignore[arg-type]
    registry.register(Shadows(served))  # type: ignore[arg-type]
    text = generate_latest(registry).decode()
    kinds = re.findall(r"^# TYPE (\w+) \w+$", text, re.MULTILINE)
    shown_names = {name for name in kinds if not name.endswith("_created")}
    page = (Path(__file__).resolve().parents[3] / "docs" / "api.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(guardrail_\w+)`", page, re.MULTILINE)) == shown_names
    reasons = set(re.findall(r'connections_refused_total\{reason="(\w+)"\} 0.0', text))
    assert reasons == set(REFUSALS)
    assert all(f"`{reason}`" in page for reason in reasons)


def test_what_scores_depend_on_is_an_info_metric(runtime: Runtime) -> None:
    """So that two replicas can be told apart."""
    lines = shown(Telemetry(runtime))  # type: ignore[arg-type]
    label = f'embedding="{"a" * 64}",segmenter="s/1"'
    assert f"guardrail_fingerprint_info{{{label}}} 1.0" in lines


def test_two_services_of_one_process_share_no_metric(runtime: Runtime) -> None:
    """Each has a registry of its own; none is the global one."""
    one, two = (Telemetry(runtime) for _ in range(2))  # type: ignore[arg-type]
    one.request("/v1/check", 200, "pass")
    assert not any("guardrail_requests_total{" in line for line in shown(two))


def test_a_log_line_has_names_states_and_numbers() -> None:
    """Nothing the caller wrote, not even an id."""
    fields = summary(reply())
    assert "zq9" not in json.dumps(fields)
    assert fields["policy"] == "p@2"
    assert fields["flagged"] == ["risk"]
    assert fields["states"] == {"risk": "evaluated", "other": "not_applicable"}
    assert fields["timings_ms"]["total"] == 4.12
    assert (fields["decision"], fields["action"], fields["complete"]) == (
        "flag", "block", "complete",
    )  # fmt: skip


def test_a_log_line_is_one_line_of_json(caplog: pytest.LogCaptureFixture) -> None:
    """Time first, then the fields in their order, whatever is in them."""
    caplog.set_level(logging.INFO, "guardrail.access")
    log_request({"request_id": "a\nb", "status": 200})
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    fields = json.loads(record.getMessage())
    assert list(fields) == ["at", "request_id", "status"]
    assert fields["at"].endswith("+00:00")


def test_workers_memories_and_the_event_loop_are_measured() -> None:
    """What an operator looks at first when answers are late."""
    runtime = Runtime()
    runtime.caches.store = SimpleNamespace(stats=lambda: StoreStats(10, 20, 1, 0))
    telemetry = Telemetry(runtime)  # type: ignore[arg-type]
    lines = set(generate_latest(telemetry.registry).decode().splitlines())
    assert lines >= {
        "guardrail_event_loop_lag_seconds 0.0",
        "guardrail_event_loop_lag_max_seconds 0.0",
        "guardrail_running_rows 2.0",
        "guardrail_stuck_workers 1.0",
        "guardrail_backlog_seconds 0.5",
        'guardrail_cache_hits_total{cache="vectors"} 5.0',
        'guardrail_cache_misses_total{cache="vectors"} 4.0',
        'guardrail_cache_restored_total{cache="vectors"} 3.0',
        'guardrail_cache_bytes{cache="vectors"} 1000.0',
        "guardrail_store_bytes 10.0",
        "guardrail_store_damaged 1.0",
    }

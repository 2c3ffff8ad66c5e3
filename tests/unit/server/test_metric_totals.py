"""Metrics of several processes, added up."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from guardrail_service.server.metric_totals import LARGEST, LEAST, SUMMED, Totals
from guardrail_service.server.runtime import Runtime
from guardrail_service.server.telemetry import Telemetry
from guardrail_service.settings import Settings

NAMES = ("guardrail_queue_rows", "guardrail_ready", "guardrail_event_loop_lag_seconds")


def said(requests: int, seconds: float, rows: float, ready: float, lag: float) -> str:
    """Return what one process says."""
    registry = CollectorRegistry()
    counted = Counter("guardrail_requests", "Requests.", ["route"], registry=registry)
    counted.labels('/a"b\\c\n').inc(requests)
    Histogram("guardrail_check_seconds", "Time.", buckets=(1, 2), registry=registry).observe(
        seconds
    )
    for name, value in zip(NAMES, (rows, ready, lag), strict=True):
        Gauge(name, "A gauge.", registry=registry).set(value)
    return generate_latest(registry).decode()


def values(text: str) -> dict[str, float]:
    """Return every sample but the times of creation, without the label's value."""
    return {
        sample.name + sample.labels.get("le", ""): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_counters_add_up_and_gauges_by_what_they_mean() -> None:
    """Of processes that ended only what was counted stays."""
    living = [said(2, 0.5, 3, 1, 0.2), said(5, 1.5, 4, 0, 0.1)]
    found = values(Totals(living, [said(10, 3, 100, 0, 9)]).text())
    assert found == {
        "guardrail_requests_total": 17,
        "guardrail_check_seconds_bucket1.0": 1,
        "guardrail_check_seconds_bucket2.0": 2,
        "guardrail_check_seconds_bucket+Inf": 3,
        "guardrail_check_seconds_count": 3,
        "guardrail_check_seconds_sum": 5,
        "guardrail_queue_rows": 7,
        "guardrail_ready": 0,
        "guardrail_event_loop_lag_seconds": 0.2,
    }


def test_a_sum_may_be_added_to_again() -> None:
    """What ended is kept as one text, however many processes came and went."""
    one = said(2, 0.5, 3, 1, 0.2)
    twice = Totals([], [Totals([], [one]).text(), one]).text()
    assert values(twice)["guardrail_requests_total"] == 4
    assert "guardrail_queue_rows" not in values(twice)
    assert next(iter(text_string_to_metric_families(twice))).samples[0].labels == {
        "route": '/a"b\\c\n'
    }


@pytest.mark.filterwarnings("ignore")
def test_every_gauge_says_how_it_is_joined(tiny: Path, tmp_path: Path) -> None:
    """A new gauge has to be put into one of the lists."""
    settings = Settings(
        model_pack=str(tiny), config=(), workers=1, store=tmp_path / "store", store_mb=1
    )
    config = tmp_path / "p.json"
    config.write_text('{"evaluator_ids": ["groundedness"], "policy": {"name": "p"}}', "utf-8")
    runtime = Runtime(settings.model_copy(update={"config": (config,)}))
    try:
        text = generate_latest(Telemetry(runtime).registry).decode()
    finally:
        runtime.close()
    gauges = {
        family.name
        for family in text_string_to_metric_families(text)
        if family.type == "gauge" and not family.name.endswith(("_created", "_info"))
    }
    assert gauges <= SUMMED | LEAST | LARGEST
    assert not SUMMED & LEAST
    assert not (SUMMED | LEAST) & LARGEST

"""Reading what a service tells about itself; running one is tested in integration."""

from __future__ import annotations

import os

import pytest

from guardrail_bench.server import loop_lag_ms, parse_metrics, pinned
from guardrail_service.errors import InputError

METRICS = """
# HELP guardrail_requests_total Requests.
# TYPE guardrail_requests_total counter
guardrail_requests_total{decision="pass",route="/v1/check",status="200"} 7.0
guardrail_requests_total{decision="none",route="/v1/check",status="429"} 2.0
guardrail_requests_total{decision="none",route="/metrics",status="200"} 5.0
# HELP guardrail_queue_rows Model rows waiting.
# TYPE guardrail_queue_rows gauge
guardrail_queue_rows 3.0
"""
LAG = """
# TYPE guardrail_event_loop_lag_seconds gauge
guardrail_event_loop_lag_seconds 0.001
# TYPE guardrail_event_loop_lag_max_seconds gauge
guardrail_event_loop_lag_max_seconds 0.0042
"""


def test_checks_are_counted_with_every_status_and_without_other_routes() -> None:
    """The generator's count is compared with this one."""
    found = parse_metrics(METRICS)
    assert found["checks"] == 9.0
    assert found["guardrail_requests_total"] == 14.0
    assert found["guardrail_queue_rows"] == 3.0


def test_the_longest_lag_is_shown_and_a_service_without_one_shows_none() -> None:
    """A missing value is not 0."""
    assert loop_lag_ms(parse_metrics(METRICS)) is None
    assert loop_lag_ms(parse_metrics(METRICS + LAG)) == pytest.approx(4.2)


def test_pinning_ends_with_the_block() -> None:
    """What was started meanwhile keeps its cores; this process gets its own back."""
    before = os.sched_getaffinity(0)
    core = min(before)
    with pinned([core]):
        assert os.sched_getaffinity(0) == {core}
    assert os.sched_getaffinity(0) == before
    with pinned(None):
        assert os.sched_getaffinity(0) == before


def test_a_core_the_machine_does_not_have_is_refused() -> None:
    """Before anything is started."""
    with pytest.raises(InputError, match="expected some of"), pinned([100_000]):
        raise AssertionError("never here")

"""Made-up cells and reports: what the report says must follow from numbers, not from a run."""

from __future__ import annotations

from typing import Any

from guardrail_bench.latency_results import Bare, Cell, LatencyReport, LatencyRun, LatencySettings
from guardrail_bench.load import Percentiles, Tally

SETTINGS = LatencySettings(
    concurrency=(1, 8),
    loads=(70, 300),
    seconds=1,
    least_requests=1,
    workers=1,
    server_cores=(0,),
    generator_cores=(1,),
    deadline_ms=None,
    seed=17,
    texts="texts.jsonl",
    config=(),
    pack=None,
)


def flat(value: float, n: int = 10) -> Percentiles:
    """Return a distribution of equal values."""
    return Percentiles(n=n, p50=value, p95=value, p99=value, worst=value)


def tail(p50: float, p99: float) -> Percentiles:
    """Return a distribution with a tail."""
    return Percentiles(n=100, p50=p50, p95=p99, p99=p99, worst=p99)


def cell(**changes: Any) -> Cell:
    """Return a cell in which everything went well."""
    fields: dict[str, Any] = {
        "callers": 1,
        "seconds": 10.0,
        "first": 3,
        "tally": Tally(sent=100, complete=100),
        "server_counted": 100,
        "per_second": 10.0,
        "stages": {
            "queue": flat(1),
            "tokenize": flat(1),
            "inference": flat(45),
            "total": flat(50),
            "server": flat(51),
            "overhead": flat(4),
            "client": flat(52),
        },
        "refused": None,
        "late_ms": None,
        "service_cpu_s": 10.0,
        "generator_cpu_share": 0.1,
        "send_lag": flat(0.1),
        "loop_lag_ms": 2.0,
        "rss_mb": (100.0, 101.0),
    }
    return Cell(**{**fields, **changes})


def opened(load: int, deadline_ms: float | None = None, **changes: Any) -> Cell:
    """Return an open loop's cell in which everything went well."""
    fields = {"callers": None, "load_percent": load, "offered_per_s": load / 10}
    late = None if deadline_ms is None else {"server": -10.0, "client": -8.0}
    return cell(**{**fields, "deadline_ms": deadline_ms, "late_ms": late, **changes})


def run(**changes: Any) -> LatencyRun:
    """Return a run that keeps every promise."""
    overload = opened(
        300,
        250.0,
        tally=Tally(sent=100, complete=30, partial=10, refused=60),
        refused=flat(10),
    )
    fields: dict[str, Any] = {
        "scenario": "rag",
        "passages": "cold",
        "busy_before": 0.05,
        "capacity_per_s": 12.0,
        "saturated": True,
        "deadline_ms": 250.0,
        "closed": (cell(), cell(callers=8, per_second=12.0)),
        "open": (opened(70), opened(70, 250.0), overload),
        "bare": Bare(samples=100, rows=5000, cpu_s=9.0, wall_s=9.1),
    }
    return LatencyRun(**{**fields, **changes})


def report(**changes: Any) -> LatencyReport:
    """Return a report of one run."""
    fields: dict[str, Any] = {
        "started": "2026-01-01T00:00:00+00:00",
        "machine": {"cpu": "a CPU", "cores": 2, "python": "3.11"},
        "service": {"runtime": {"onnxruntime": "1"}, "pack": {"name": "p", "version": "1"}},
        "settings": SETTINGS,
        "runs": (run(),),
    }
    return LatencyReport(**{**fields, **changes})

"""Prometheus metrics and one canonical log line per request. Submitted text reaches neither."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from guardrail_service.inference.memory import Caches
    from guardrail_service.server.runtime import Runtime
    from guardrail_service.server.schemas import CheckReply


_ACCESS = logging.getLogger("guardrail.access")
MOST_KEY_LABELS = 200
"""Keys that have a label of their own: each is a time series per status."""
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Telemetry:
    """The metrics of one process, in a registry of their own."""

    def __init__(self, runtime: Runtime) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "guardrail_requests",
            "Requests by route, HTTP status and decision.",
            ["route", "status", "decision"],
            registry=self.registry,
        )
        self._of_keys = Counter(
            "guardrail_key_requests",
            "Requests by the id of their key and HTTP status.",
            ["key", "status"],
            registry=self.registry,
        )
        self._key_labels: set[str] = set()
        self._latency = Histogram(
            "guardrail_check_seconds",
            "Time per checked answer.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._detector_latency = Histogram(
            "guardrail_detector_seconds",
            "Time from the start of a check to each detector's outcome.",
            ["detector"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._states = Counter(
            "guardrail_detector_outcomes",
            "Outcomes by detector, state and whether they flagged.",
            ["detector", "state", "flagged"],
            registry=self.registry,
        )
        # Finding a metric by its labels takes longer than counting, on the event loop, for each
        # detector of a check. There are as many as detectors, states and flags.
        self._timed = cache(self._detector_latency.labels)
        self._counted = cache(self._outcomes_of)
        self.lag = LoopLag()
        self._describe(runtime)
        self._describe_work(runtime)

    def _describe_work(self, runtime: Runtime) -> None:
        """Add what the event loop, the workers and the memories do."""
        gauges: dict[str, tuple[str, Callable[[], float]]] = {
            "event_loop_lag_seconds": ("Delay of the event loop, latest.", self.lag.latest),
            "event_loop_lag_max_seconds": (
                "Largest delay of the event loop since this was read last.",
                self.lag.take_largest,
            ),
            "running_rows": ("Model rows running.", runtime.scheduler.running),
            "stuck_workers": (
                "Workers whose row has been running for far too long.",
                runtime.scheduler.stuck,
            ),
            "backlog_seconds": (
                "Estimated time until everything that waits now is done.",
                runtime.scheduler.backlog_s,
            ),
        }
        for name, (text, function) in gauges.items():
            gauge = Gauge(f"guardrail_{name}", text, registry=self.registry)
            gauge.set_function(function)
        self.registry.register(CacheMetrics(runtime.caches))
        self.registry.register(runtime.refused)

    def _describe(self, runtime: Runtime) -> None:
        depth = Gauge("guardrail_queue_rows", "Model rows waiting.", registry=self.registry)
        depth.set_function(runtime.scheduler.depth)
        ready = Gauge("guardrail_ready", "1 if answers can be judged.", registry=self.registry)
        ready.set_function(lambda: float(runtime.scheduler.not_ready() is None))
        stale = Gauge(
            "guardrail_config_reload_failed",
            "1 while the last configuration reload failed and an older one is in force.",
            registry=self.registry,
        )
        stale.set_function(lambda: float(runtime.reload_error is not None))
        info = Info("guardrail_fingerprint", "What scores depend on.", registry=self.registry)
        info.info({key: value[:64] for key, value in runtime.serving.fingerprints.items()})

    def request(self, route: str, status: int, decision: str) -> None:
        """Count one request; `route` is a template, never a path."""
        self._requests.labels(route, str(status), decision).inc()

    def of_key(self, key: str, status: int) -> None:
        """Count one request of a key; keys beyond `MOST_KEY_LABELS` count together."""
        if key not in self._key_labels:
            key = key if len(self._key_labels) < MOST_KEY_LABELS else "other"
            self._key_labels.add(key)
        self._of_keys.labels(key, str(status)).inc()

    def _outcomes_of(self, detector: str, state: str, flagged: bool) -> Counter:
        return self._states.labels(detector, state, str(flagged).lower())

    def check(self, reply: CheckReply) -> None:
        """Count one judged answer."""
        self._latency.observe(reply.timings_ms.total / 1e3)
        for name, detector in reply.detectors.items():
            self._timed(name).observe(detector.latency_ms / 1e3)
            self._counted(name, detector.state.value, detector.flagged).inc()


class CacheMetrics(Collector):
    """The work and content of the memories of model outputs, and of the store behind them."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        counters = {
            "hits": "Texts whose outputs were at hand.",
            "misses": "Texts that had to be computed.",
            "restored": "Texts whose outputs came from the store.",
        }
        gauges = {"bytes": "Bytes kept.", "texts": "Texts kept.", "limit_bytes": "Bytes at most."}
        stats = self._caches.stats()
        for name, text in counters.items():
            counted = CounterMetricFamily(f"guardrail_cache_{name}", text, labels=["cache"])
            for memory, found in stats.items():
                counted.add_metric([memory], getattr(found, name))
            yield counted
        for name, text in gauges.items():
            kept = GaugeMetricFamily(f"guardrail_cache_{name}", text, labels=["cache"])
            for memory, found in stats.items():
                kept.add_metric([memory], getattr(found, name))
            yield kept
        if self._caches.store is not None:
            for name, value in self._caches.store.stats()._asdict().items():
                yield GaugeMetricFamily(f"guardrail_store_{name}", f"Store: {name}.", value)


def summary(reply: CheckReply) -> dict[str, Any]:
    """Return what the log line says about a reply: names, states and numbers only."""
    return {
        "decision": reply.decision,
        "action": reply.action,
        "complete": reply.status,
        "calibrated": reply.calibrated,
        "policy": f"{reply.policy.name}@{reply.policy.version}",
        "flagged": [name for name, d in reply.detectors.items() if d.flagged],
        "states": {name: d.state.value for name, d in reply.detectors.items()},
        "timings_ms": {k: round(v, 2) for k, v in reply.timings_ms.model_dump().items()},
    }


def log_request(fields: Mapping[str, Any]) -> None:
    """Write one JSON line with the time, keys in a fixed order."""
    line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), **fields}
    _ACCESS.info(json.dumps(line, separators=(",", ":")))


EVERY_S = 0.02
"""Fifty looks a second cost about a thousandth of a core and miss no block of 20 ms."""


class LoopLag:
    """Sleeps, and notes by how much longer it slept than it asked for.

    Args:
        clock: Monotonic seconds.
        sleep: What the loop is asked for; tests pass their own.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._latest = 0.0
        self._largest = 0.0

    async def measure(self) -> None:
        """Go on until cancelled."""
        while True:
            asleep = self._clock()
            await self._sleep(EVERY_S)
            self._latest = max(0.0, self._clock() - asleep - EVERY_S)
            self._largest = max(self._largest, self._latest)

    def latest(self) -> float:
        """Return by how many seconds the loop was late when last looked at."""
        return self._latest

    def take_largest(self) -> float:
        """Return the largest delay since this was asked last, in seconds."""
        largest, self._largest = self._largest, 0.0
        return largest

"""Adds up the metrics of several processes, as text in Prometheus's format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

SUMMED = frozenset({
    "guardrail_queue_rows", "guardrail_running_rows", "guardrail_stuck_workers",
    "guardrail_cache_bytes", "guardrail_cache_texts", "guardrail_cache_limit_bytes",
    "guardrail_store_damaged", "guardrail_store_dropped",
    "guardrail_decisions_queue", "guardrail_decisions_spool_bytes",
})  # fmt: skip
"""Gauges that say how much there is in each process."""
LARGEST = frozenset({
    "guardrail_event_loop_lag_seconds", "guardrail_event_loop_lag_max_seconds",
    "guardrail_backlog_seconds", "guardrail_config_reload_failed",
    "guardrail_store_bytes", "guardrail_store_limit_bytes",
})  # fmt: skip
"""Gauges of which the largest value counts, as it does for those of other distributions."""
LEAST = frozenset({"guardrail_ready"})
"""Gauges of which the smallest value counts: nobody is ready while somebody is not."""

Sample = tuple[str, tuple[tuple[str, str], ...]]


class Totals(Collector):
    """The sum of what processes said: counters and histograms of all, gauges of those that live."""

    def __init__(self, living: Iterable[str], ended: Iterable[str] = ()) -> None:
        self._families: dict[str, Metric] = {}
        self._values: dict[str, dict[Sample, float]] = {}
        for text in living:
            self._add(text, are_gauges_kept=True)
        for text in ended:
            self._add(text, are_gauges_kept=False)

    def _add(self, text: str, are_gauges_kept: bool) -> None:
        for family in text_string_to_metric_families(text):
            if family.type == "gauge" and not are_gauges_kept:
                continue
            self._families.setdefault(family.name, family)
            values = self._values.setdefault(family.name, {})
            for sample in family.samples:
                at = (sample.name, tuple(sorted(sample.labels.items())))
                value = float(sample.value)
                before = values.get(at)
                values[at] = value if before is None else _joined(family, before, value)

    def collect(self) -> Iterator[Metric]:
        """Yield every family once."""
        for name, family in self._families.items():
            found = Metric(family.name, family.documentation, family.type)
            for (sample, labels), value in self._values[name].items():
                found.add_sample(sample, dict(labels), value)
            yield found

    def text(self) -> str:
        """Return the metrics as each process writes its own."""
        return generate_latest(self).decode()


def _joined(family: Metric, first: float, second: float) -> float:
    if family.type != "gauge" or family.name in SUMMED:
        return first + second
    if family.name in LEAST or family.name.endswith("_created"):
        return min(first, second)
    return max(first, second)

"""How long `guardrail serve` takes from start to ready, and how much memory it then holds."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import httpx
from rich.table import Table

from guardrail_bench.server import READY_BUDGET_S, serving

ONE_CHECK = {
    "question": "How long may guests stay?",
    "answer": "Guests may stay for two weeks.",
    "contexts": ["Guests may stay for at most fourteen days."],
}


def measure_starts(runs: int) -> dict[str, Any]:
    """Start the service several times on a free port.

    Returns:
        Per run seconds from process start to `readyz` 200 and megabytes resident, when ready and
        after one check.

    Raises:
        MissingExtra: If psutil is not installed.
    """
    measured = [_one_start() for _ in range(runs)]
    return {
        "runs": measured,
        "median_ready_s": median(run["ready_s"] for run in measured),
        "max_resident_mb": max(run["resident_mb"] for run in measured),
    }


def render_starts(report: dict[str, Any]) -> Table:
    """Return the report as a table."""
    table = Table("run", "start to ready (s)", "resident, ready (MB)", "after a check (MB)")
    for number, row in enumerate(report["runs"], start=1):
        table.add_row(
            str(number),
            f"{row['ready_s']:.2f}",
            f"{row['ready_mb']:.0f}",
            f"{row['resident_mb']:.0f}",
        )
    return table


def _one_start() -> dict[str, float]:
    started = time.perf_counter()
    with serving((), None) as server:
        ready_s = time.perf_counter() - started
        ready_mb = server.rss_mb()
        url = f"{server.address}/v1/check"
        httpx.post(url, json=ONE_CHECK, timeout=READY_BUDGET_S).raise_for_status()
        return {"ready_s": ready_s, "ready_mb": ready_mb, "resident_mb": server.rss_mb()}

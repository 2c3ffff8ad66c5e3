"""How long `guardrail serve` takes from start to ready, and how much memory it then holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from statistics import median
from typing import Any

import httpx
from rich.table import Table

from guardrail_service.errors import GuardrailError, MissingExtra

READY_BUDGET_S = 60.0
ONE_CHECK = {
    "question": "How long may guests stay?",
    "answer": "Guests may stay for two weeks.",
    "contexts": ["Guests may stay for at most fourteen days."],
}


def run(runs: int) -> dict[str, Any]:
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


def render(report: dict[str, Any]) -> Table:
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
    try:
        import psutil
    except ImportError as error:
        raise MissingExtra("bench") from error
    started = time.perf_counter()
    command = [sys.executable, "-m", "guardrail_service.cli", "serve", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as process:
        try:
            with httpx.Client(base_url=_address(process), timeout=READY_BUDGET_S) as client:
                client.get("/readyz").raise_for_status()
                ready_s = time.perf_counter() - started
                memory = psutil.Process(process.pid).memory_info
                ready_mb = memory().rss / 1e6
                client.post("/v1/check", json=ONE_CHECK).raise_for_status()
                return {
                    "ready_s": ready_s,
                    "ready_mb": ready_mb,
                    "resident_mb": memory().rss / 1e6,
                }
        finally:
            process.terminate()
            process.communicate()


def _address(process: subprocess.Popen[str]) -> str:
    """Return the address the service prints once it listens."""
    for line in process.stdout or ():
        fields = json.loads(line) if line.startswith("{") else {}
        if fields.get("event") == "listening":
            return str(fields["address"])
    raise GuardrailError("the service ended before it listened")

"""Stands for an application in production: sends answers to a service and waits for its replies.

    production.py SOCKET START COUNT [--shadow] [--version N]

The answers are the project's own labelled ones; no label is sent. Questions come again, as they do
in earnest, and some of their answers are flagged and others pass.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

import httpx

ANSWERS = Path(__file__).resolve().parents[2] / "models" / "thresholds" / "answers.jsonl"
PATIENCE_S = 300.0
PAUSE_S = 0.2


def wait_until(client: httpx.Client, what: str, is_so: Callable[[], bool]) -> None:
    """Ask until something is so.

    Raises:
        SystemExit: If it is not within `PATIENCE_S`.
    """
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            if is_so():
                return
        except httpx.TransportError:
            pass  # the service has not begun to listen
        time.sleep(PAUSE_S)
    raise SystemExit(f"not within {PATIENCE_S:.0f} s: {what}")


def main() -> None:
    """Send a part of the answers and say what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("socket")
    parser.add_argument("start", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--shadow", action="store_true", help="wait for the shadow's words, too")
    parser.add_argument("--version", help="wait until this version of the policy is live")
    wanted = parser.parse_args()
    lines = ANSWERS.read_text("utf-8").splitlines()
    lines.sort(key=lambda line: hashlib.sha256(line.encode()).digest())  # all topics mixed
    lines = lines[wanted.start : wanted.start + wanted.count]
    transport = httpx.HTTPTransport(uds=wanted.socket)
    with httpx.Client(transport=transport, base_url="http://service", timeout=60) as client:
        wait_until(client, "ready", lambda: client.get("/readyz").is_success)
        if wanted.version or wanted.shadow:
            client.post("/v1/admin/reload").raise_for_status()
        found = collections.Counter(send(client, case) for case in map(json.loads, lines))
        expected = {wanted.version} if wanted.version else set()
        versions = {version for version, _ in found}
        if expected and versions != expected:
            raise SystemExit(f"decided by versions {versions}, not {expected}")
        if wanted.shadow:
            # An answer that is judged while policies are read anew is not shown to a shadow.
            wait_until(client, "shadow", lambda: shadowed(client) >= len(lines) - 1)
    for (version, decision), count in sorted(found.items()):
        print(f"version {version}: {decision} {count}")


def send(client: httpx.Client, case: dict[str, object]) -> tuple[str, str]:
    """Check one answer; return the version that decided and its decision."""
    body = {key: case[key] for key in ("question", "answer", "contexts")}
    reply = client.post("/v1/check", json=body).raise_for_status().json()
    return reply["policy"]["version"], reply["decision"]


def shadowed(client: httpx.Client) -> int:
    """Return how many answers the shadow has judged."""
    lines = client.get("/metrics").raise_for_status().text.splitlines()
    found = [line for line in lines if line.startswith("guardrail_shadow_checks_total{")]
    return sum(int(float(line.rpartition(" ")[2])) for line in found)


if __name__ == "__main__":
    main()

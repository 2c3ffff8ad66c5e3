"""An empty or failed locust run is no success."""

from __future__ import annotations

import pytest

from load_tests.read_stats import verdict


def row(name: str, requests: int, failures: int = 0, kind: str = "POST") -> dict[str, str]:
    """Return a line of locust's statistics."""
    return {
        "Type": kind,
        "Name": name,
        "Request Count": str(requests),
        "Failure Count": str(failures),
    }


@pytest.mark.parametrize(
    ("rows", "good"),
    [
        ([row("rag, cold", 5), row("Aggregated", 5, kind="")], True),
        ([row("rag, cold: partial", 1), row("Aggregated", 1, kind="")], True),
        ([row("rag, cold", 5, 1), row("Aggregated", 5, 1, kind="")], False),
        ([row("rag, cold: refused", 5), row("Aggregated", 5, kind="")], False),
        ([row("rag, warm: shelf", 20), row("Aggregated", 20, kind="")], False),
        ([row("Aggregated", 0, kind="")], False),
    ],
)
def test_a_run_needs_a_verdict_and_no_failure(rows: list[dict[str, str]], good: bool) -> None:
    """Refusals and the requests that warm up prove nothing."""
    assert verdict(rows)[0] is good

"""Prices are the user's, and the figures of calls are those of H2O's labs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail_offline.hosts.errors import TimedOut
from guardrail_offline.hosts.prices import (
    HostCall,
    TokenPrice,
    calls_meta,
    failed_call,
    read_prices,
)
from guardrail_service.errors import ConfigurationError


def test_cached_tokens_cost_what_the_list_says(tmp_path: Path) -> None:
    """Like others where it says nothing; never more tokens than there were."""
    path = tmp_path / "prices.json"
    both = {"m": {"input": 2, "output": 8, "cached": 0.5}, "n": {"input": 1, "output": 0}}
    path.write_text(json.dumps(both))
    prices = read_prices(path)
    assert prices["m"].cost((1_000_000, 500_000)) == 6
    assert prices["m"].cost((1_000_000, 0), cached=800_000) == pytest.approx(0.8)
    assert prices["n"].cost((1_000_000, 10), cached=9) == 1
    assert TokenPrice(1, 1, 0).cost((10, 0), cached=99) == 0


@pytest.mark.parametrize(
    "content",
    [
        "no JSON", "[]", '{"m": 3}', '{"m": {"input": 1}}', '{"m": {"input": 1, "output": "2"}}',
        '{"m": {"input": -1, "output": 2}}', '{"m": {"input": Infinity, "output": 2}}',
        '{"m": {"input": 1, "output": 2, "per": 3}}', '{"m": {"input": true, "output": 2}}',
    ],
)  # fmt: skip
def test_a_list_that_gives_no_price_is_refused(content: str, tmp_path: Path) -> None:
    """Naming the file."""
    path = tmp_path / "prices.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"prices\.json"):
        read_prices(path)


def test_the_figures_of_calls_count_tries_and_time_outs() -> None:
    """Time and tokens are those of answered calls only."""
    late = TimedOut("h: no reply")
    late.attempts = 5
    calls = [
        HostCall(1.0, 1, (10, 4), 2, 0.25),
        HostCall(3.0, 3, (20, 6), 0, 0.5),
        failed_call(late),
    ]
    assert calls_meta(calls) == {
        "call_count": 3, "success_count": 2, "failure_count": 1, "timeout_count": 1,
        "retry_count": 6, "duration_stats": {"min": 1.0, "max": 3.0, "avg": 2.0, "sum": 4.0},
        "input_tokens": 30, "output_tokens": 10, "cached_tokens": 2, "cost": 0.75,
    }  # fmt: skip


def test_nothing_is_made_up() -> None:
    """A cost of some calls is no cost of all, and no call has no duration."""
    assert "cost" not in calls_meta([HostCall(1.0, cost=1.0), HostCall(1.0)])
    nothing = calls_meta([])
    assert nothing == dict.fromkeys(nothing, 0)
    assert "duration_stats" not in nothing

"""A user's price list, and the figures of many calls as H2O's labs hold them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from guardrail_offline.hosts.errors import HostError
from guardrail_service.errors import ConfigurationError

PER = 1_000_000
"""Prices are per so many tokens."""
_EXPECTED = 'prices per million tokens: {"MODEL": {"input": 0.15, "output": 0.6, "cached": 0.075}}'


@dataclass(frozen=True)
class TokenPrice:
    """A model's price per million tokens, in whatever currency the list is.

    Attributes:
        input: Of prompt tokens.
        output: Of completion tokens.
        cached: Of prompt tokens that the host had in its cache; None if they cost like others.
    """

    input: float
    output: float
    cached: float | None = None

    def cost(self, tokens: tuple[int, int], cached: int = 0) -> float:
        """Return the cost of a call's prompt and completion tokens."""
        known = min(max(cached, 0), tokens[0])
        prompt = (tokens[0] - known) * self.input
        prompt += known * (self.input if self.cached is None else self.cached)
        return (prompt + tokens[1] * self.output) / PER


def read_prices(path: Path) -> dict[str, TokenPrice]:
    """Return the prices of a file, by the model's name.

    Raises:
        ConfigurationError: If it is no such list, or a price is no number of at least 0.
    """
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(str(path), type(error).__name__, _EXPECTED) from error
    if not isinstance(content, Mapping):
        raise ConfigurationError(str(path), type(content).__name__, _EXPECTED)
    return {model: _price(f"{path}: {model!r}", value) for model, value in content.items()}


def price_of(prices: Mapping[str, TokenPrice], model: str | None) -> TokenPrice | None:
    """Return a model's price; that of `*` is for all others."""
    return prices.get(model or "*", prices.get("*"))


def _price(where: str, value: Any) -> TokenPrice:
    known = {"input", "output", "cached"}
    if not isinstance(value, Mapping) or not {"input", "output"} <= set(value) <= known:
        raise ConfigurationError(where, "another object", "input, output and perhaps cached")
    for name, number in value.items():
        if type(number) not in (int, float) or not 0 <= number < math.inf:
            raise ConfigurationError(f"{where}: {name}", "no price", "a number of at least 0")
    return TokenPrice(**{name: float(number) for name, number in value.items()})


class HostCall(NamedTuple):
    """One call of a host, with all its tries.

    Attributes:
        seconds: The last try took so long; None if it failed, or where that is not known.
        attempts: How often the host was asked.
        tokens: Prompt and completion tokens, where the host counts them.
        cached_tokens: How many prompt tokens were in its cache.
        cost: By the user's prices; None without.
        error: Code of the error it ended with; None if it was answered.
    """

    seconds: float | None = None
    attempts: int = 1
    tokens: tuple[int, int] | None = None
    cached_tokens: int = 0
    cost: float | None = None
    error: str | None = None


def failed_call(error: HostError) -> HostCall:
    """Return the call that ended with an error."""
    return HostCall(None, error.attempts, error=error.code)


def calls_meta(calls: Iterable[HostCall]) -> dict[str, Any]:
    """Return the figures of calls as `llm_model_meta` of a lab's model holds them.

    Returns:
        H2O's `success_count`, `failure_count`, `timeout_count`, `retry_count` and `duration_stats`
        (seconds), `call_count` and, where hosts count them, `input_tokens`, `output_tokens` and
        `cached_tokens`; `cost` if every answered call has one.
    """
    all_ = list(calls)
    good = [call for call in all_ if call.error is None]
    meta: dict[str, Any] = {
        "call_count": len(all_),
        "success_count": len(good),
        "failure_count": len(all_) - len(good),
        "timeout_count": sum(call.error == "timed_out" for call in all_),
        "retry_count": sum(call.attempts - 1 for call in all_),
    }
    if seconds := [call.seconds for call in good if call.seconds is not None]:
        total = math.fsum(seconds)
        meta["duration_stats"] = {
            "min": min(seconds), "max": max(seconds), "avg": total / len(seconds), "sum": total,
        }  # fmt: skip
    if counted := [call for call in good if call.tokens is not None]:
        meta["input_tokens"] = sum(call.tokens[0] for call in counted if call.tokens)
        meta["output_tokens"] = sum(call.tokens[1] for call in counted if call.tokens)
        meta["cached_tokens"] = sum(call.cached_tokens for call in counted)
    costs = [call.cost for call in good if call.cost is not None]
    if costs and len(costs) == len(good):
        meta["cost"] = math.fsum(costs)
    return meta

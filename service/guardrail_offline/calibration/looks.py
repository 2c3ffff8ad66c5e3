"""Every look at labelled data is written down, and what it costs is added up.

Trying a rule, seeing the result and trying another is choosing on the data that are to prove the
choice. With a bound that fails with chance delta each time, m looks fail with chance at most
m delta; a promise on average has no such chance, so its look is counted and costs nothing. The
ledger lies beside the labels; a fit that repeats an earlier one is no new look.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guardrail_offline.calibration.lab import read_records
from guardrail_service.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Look:
    """One fit: which rule saw which labels, and what chance of a false promise it spent."""

    rule: str
    data: str
    delta: float
    mode: str

    @property
    def paid(self) -> tuple[str, ...]:
        """Return what a delta pays for: a rule for good, or one rule on one set of labels."""
        return (self.rule,) if self.mode == "anytime" else (self.rule, self.data)


@dataclass(frozen=True, slots=True)
class Spent:
    """All looks up to and including one.

    Attributes:
        count: Which look it is, from 1; repeats not counted.
        delta: Sum of what they cost: the chance that any of their promises is false.
    """

    count: int
    delta: float

    def as_json(self, mode: str) -> dict[str, Any]:
        """Return the sum for the provenance block."""
        return {"mode": mode, "count": self.count, "delta_total": round(self.delta, 10)}


def ledger_of(labels: Path) -> Path:
    """Return where the looks at a file of labels are written down."""
    return labels.with_name(f"{labels.name}.looks.jsonl")


def read_looks(ledger: Path) -> list[Look]:
    """Return the looks so far; none if there is no ledger yet.

    Raises:
        ConfigurationError: If the ledger was damaged: without it nobody knows what was spent.
    """
    if not ledger.exists():
        return []
    try:
        return [Look(**record) for record in read_records(ledger)]
    except TypeError as error:
        raise ConfigurationError(str(ledger), "another shape", "the ledger as it was") from error


def spend(looks: list[Look], look: Look) -> Spent:
    """Return what has been spent once `look` is among the looks.

    Raises:
        ConfigurationError: If no confidence would be left.
    """
    paid: dict[tuple[str, ...], float] = {}
    for earlier in looks:
        paid.setdefault(earlier.paid, earlier.delta)
        if earlier == look:
            break
    paid.setdefault(look.paid, look.delta)
    total = sum(paid.values())
    if round(total, 9) >= 1:
        raise ConfigurationError(
            "looks",
            f"{len(paid)} looks at these labels, which fail together with chance {total:.2f}",
            "new labels: these can prove nothing any more",
        )
    return Spent(len(paid), total)


def record(ledger: Path, look: Look) -> None:
    """Write a look down, unless it repeats an earlier one."""
    if look in read_looks(ledger):
        return
    entry = {"rule": look.rule, "data": look.data, "delta": look.delta, "mode": look.mode}
    with ledger.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(entry) + "\n")

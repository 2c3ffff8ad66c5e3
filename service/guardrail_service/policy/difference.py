"""Everything a policy means, and where two policies differ in meaning, not in form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guardrail_service.policy.decide import Policy, describe

NAMES = ("name", "version", "sha256")
"""Differ from version to version and mean nothing."""


def described(policy: Policy) -> dict[str, Any]:
    """Return everything a policy means, every default filled in, ready for JSON."""
    found = describe(policy)
    for detector, rule in policy.rules.items():
        parameters = rule.parameters.model_dump(mode="json", by_alias=True)
        found["detectors"][detector]["parameters"] = parameters
    return found


def difference(old: Policy, new: Policy) -> dict[str, dict[str, Any]]:
    """Return the values that differ, `old` and `new`, by dotted key; None where one has none."""
    before, after = (dict(_leaves(described(policy))) for policy in (old, new))
    return {
        key: {"old": before.get(key), "new": after.get(key)}
        for key in sorted(before.keys() | after.keys())
        if key not in NAMES and before.get(key) != after.get(key)
    }


def _leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value that is no object, and the rules of each `on_` key, with its dotted key."""
    if isinstance(value, dict) and value and ".on_" not in at:
        for key, inner in value.items():
            yield from _leaves(inner, f"{at}.{key}" if at else key)
    else:
        yield at, value

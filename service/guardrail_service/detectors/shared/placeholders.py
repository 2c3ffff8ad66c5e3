"""Placeholders that a reply shows in the place of findings."""

from __future__ import annotations


class Placeholders:
    """Numbers the values of one answer; the same value of a kind gets the same number."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}

    def of(self, kind: str, value: str) -> str:
        """Return `[KIND_1]` for the first value of a kind, `[KIND_2]` for the next one."""
        numbers = self._numbers.setdefault(kind, {})
        return f"[{kind.upper()}_{numbers.setdefault(value, len(numbers) + 1)}]"

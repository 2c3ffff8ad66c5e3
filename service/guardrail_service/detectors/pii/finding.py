"""What a search for personal data returns."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """One piece of personal data; offsets are code points [start, end)."""

    type: str
    start: int
    end: int
    validated: bool
    distance: int = 0

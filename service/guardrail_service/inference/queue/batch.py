"""Chooses waiting rows to run together in one model call, where the model's file allows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from guardrail_service.types import Row, RowResult

PADDING = 0.25
"""At most this share of what a call computes is padding; rows that are longer or shorter wait for
others of their length."""


@runtime_checkable
class Batches(Protocol):
    """A session that can run several rows in one call."""

    def run_many(self, rows: Sequence[Row]) -> list[RowResult]:
        """Return each row's outputs, in order, and its share of the time; one failure fails all."""
        ...


class Batch(NamedTuple):
    """The way rows of a role run together.

    Attributes:
        run: Runs several rows in one call.
        tokens: Tokens that one call computes at most, padding included, as `cost.tokens` estimates
            them. A longer row runs alone.
    """

    run: Callable[[Sequence[Row]], list[RowResult]]
    tokens: int

    def holds(self, sizes: Sequence[int]) -> bool:
        """Return whether rows of some lengths may be one call."""
        padded = max(sizes) * len(sizes)
        return padded <= self.tokens and padded - sum(sizes) <= PADDING * padded

"""The forms in which rows run together in one model call, where the model's file allows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from guardrail_service.types import Row, RowResult

RowLengths = Callable[[Sequence[Row]], list[int]] | int
"""How many tokens each of some rows has, or that all have so many."""


@runtime_checkable
class OneLength(Protocol):
    """A session whose rows share a call only with rows of their own length."""

    @property
    def row_lengths(self) -> RowLengths:
        """Return how many tokens each row has in a call, what fills it up included."""
        ...


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
        tokens: Tokens that one call computes at most, padding included. A longer row runs alone.
        lengths: Tokens of each row, exactly, if only rows of one length share a call. None: as
            `cost.tokens` estimates them.
    """

    run: Callable[[Sequence[Row]], list[RowResult]]
    tokens: int
    lengths: RowLengths | None = None

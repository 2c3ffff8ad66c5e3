"""Properties that are computed once for each object, whoever computes another object's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

T = TypeVar("T")


class cached_property(functools.cached_property[T]):  # noqa: N801 - stands where functools' does
    """Like functools' own, without its lock.

    In Python 3.11 that lock is one for all objects of a class, and held while a value is computed:
    an ordinary check waited until the text of a huge one was cut. Two threads that ask the same
    object at once may both compute its value.
    """

    lock: Any

    def __init__(self, func: Callable[[Any], T]) -> None:
        super().__init__(func)
        self.lock = nullcontext()

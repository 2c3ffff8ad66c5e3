"""Finds the number format in which training's matrix products run fastest on this machine."""

from __future__ import annotations

import time
from functools import lru_cache

import torch

_ROUNDS = 4


def autocast() -> torch.autocast:
    """Return the context that forward passes run in: bfloat16 where the processor has it.

    Without instructions for it PyTorch emulates the format, which took three times as long as
    float32. So two runs on different processors differ in more than their speed.
    """
    return torch.autocast("cpu", torch.bfloat16, enabled=is_bfloat16_faster())


@lru_cache(maxsize=1)
def is_bfloat16_faster() -> bool:
    """Return whether products of an encoder's size are faster in bfloat16 than in float32."""
    left, right = torch.ones(2048, 384), torch.ones(384, 1536)
    narrow = left.bfloat16(), right.bfloat16()
    return _seconds(*narrow) < _seconds(left, right)


def _seconds(left: torch.Tensor, right: torch.Tensor) -> float:
    best = float("inf")
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        left @ right
        best = min(best, time.perf_counter() - started)
    return best

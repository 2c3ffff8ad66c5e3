"""Which passage sentences a claim is read against. Enters the fingerprint of every score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

EVIDENCE_VERSION = "rag-guardrail-evidence/1"
SENTENCES = 6
"""The head was trained on the six nearest sentences; a union of passages fits into them."""
TOKENS = 176
"""Together they have at most this many tokens, unless the nearest alone has more."""


def nearest(
    cosines: npt.NDArray[Any],
    lengths: Sequence[int],
    sentences: int = SENTENCES,
    tokens: int = TOKENS,
) -> list[int]:
    """Return the places of the sentences to read, nearest first; ties go to the earlier one.

    Args:
        cosines: Of each sentence with the claim.
        lengths: Tokens of each sentence; a sentence without tokens is never chosen.
        sentences: How many at most.
        tokens: How many tokens at most; the nearest sentence is kept whatever its length.
    """
    kept: list[int] = []
    used = 0
    for place in np.argsort(-cosines, kind="stable")[:sentences].tolist():
        if not lengths[place]:
            continue
        used += lengths[place]
        if kept and used > tokens:
            break
        kept.append(place)
    return kept

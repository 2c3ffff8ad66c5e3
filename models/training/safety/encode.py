"""Encodes sentences once with the shipped encoder and keeps the tokens' middle states, in fp16."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort

from encoding import DIM, run_rows


def middle_states(
    ids: list[list[int]], session: ort.InferenceSession, threads: int
) -> tuple[Any, Any]:
    """Return all rows' token states (tokens, DIM) in fp16, special tokens included, and lengths."""
    lengths = np.array([len(row) for row in ids])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.empty((starts[-1], DIM), dtype=np.float16)

    def keep(row: int, found: list[Any]) -> None:
        tokens[starts[row] : starts[row + 1]] = found[0][: lengths[row]]

    run_rows(ids, session, ["middle_states"], threads, keep)
    return tokens, lengths

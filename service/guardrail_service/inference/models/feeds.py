"""Rows of tokens as a graph's inputs, and one call's outputs as the results of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from guardrail_service.errors import RowFailed
from guardrail_service.inference.pack import ModelFile
from guardrail_service.inference.tokenizer import Encoded
from guardrail_service.types import RowOutput, RowResult

Feeds = Mapping[str, npt.NDArray[np.int64]]


def shared(outputs: Sequence[RowOutput], tokenize_s: float, run_s: float) -> list[RowResult]:
    """Return the results of rows that ran in one call, each with its share of the seconds."""
    count = len(outputs)
    return [RowResult(one, tokenize_s * 1e3 / count, run_s * 1e3 / count) for one in outputs]


def feeds(rows: Sequence[Encoded], file: ModelFile) -> Feeds:
    """Return the graph's inputs for rows of tokens; shape (rows, longest row).

    Raises:
        RowFailed: If a row has no token, or several rows are of different lengths and the
            manifest says that they are never run together.
    """
    longest = max((len(row.ids) for row in rows), default=0)
    if not all(row.ids for row in rows) or not rows:
        raise RowFailed("a row has no token")
    if any(len(row.ids) != longest for row in rows) and file.padding is None:
        raise RowFailed("rows of several lengths need `padding` in the manifest")
    made = {
        "input_ids": _filled([row.ids for row in rows], longest, file, _pad_id(file)),
        "attention_mask": _filled([[1] * len(row.ids) for row in rows], longest, file, 0),
        "token_type_ids": _filled([row.types for row in rows], longest, file, 0),
        "position_ids": _filled([range(len(row.ids)) for row in rows], longest, file, 0),
    }
    return {name: made[name] for name in file.inputs}


def _pad_id(file: ModelFile) -> int:
    return file.padding.id if file.padding else 0


def _filled(
    rows: Sequence[Sequence[int]], longest: int, file: ModelFile, fill: int
) -> npt.NDArray[np.int64]:
    is_left = file.padding is not None and file.padding.side == "left"
    filled = np.full((len(rows), longest), fill, dtype=np.int64)
    for line, row in zip(filled, rows, strict=True):
        line[longest - len(row) if is_left else 0 :][: len(row)] = row
    return filled

"""Runs token rows through the shipped encoder in padded batches of similar length."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

BATCH_TOKENS = 512
DIM = 384


def encoder_entry(pack: Path) -> dict[str, Any]:
    """Return what a pack's manifest says about its encoder."""
    manifest = json.loads((pack / "manifest.json").read_text(encoding="utf-8"))
    entry: dict[str, Any] = manifest["models"][manifest["roles"]["embedding"]]
    return entry


def open_encoder(pack: Path) -> ort.InferenceSession:
    """Return the pack's encoder, for one thread a run."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(str(pack / encoder_entry(pack)["path"]), options)


def run_rows(
    ids: list[list[int]], session: ort.InferenceSession, outputs: list[str], threads: int,
    keep: Callable[[int, list[Any]], None],
) -> None:  # fmt: skip
    """Run every row and hand its number and its outputs, padding included, to `keep`.

    One activation scale per token: a row's numbers do not depend on the rows beside it. Only what
    leads to the outputs is computed.
    """
    only = ort.RunOptions()
    only.only_execute_path_to_fetches = True

    def run(rows: list[int]) -> None:
        width = max(len(ids[row]) for row in rows)
        feed = np.zeros((len(rows), width), dtype=np.int64)
        mask = np.zeros_like(feed)
        for place, row in enumerate(rows):
            feed[place, : len(ids[row])] = ids[row]
            mask[place, : len(ids[row])] = 1
        found = session.run(outputs, {"input_ids": feed, "attention_mask": mask}, only)
        for place, row in enumerate(rows):
            keep(row, [values[place] for values in found])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, _batches([len(row) for row in ids])))


def _batches(lengths: list[int]) -> list[list[int]]:
    """Return rows of similar length together, at most BATCH_TOKENS with padding."""
    found: list[list[int]] = []
    current: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if current and (len(current) + 1) * lengths[row] > BATCH_TOKENS:
            found.append(current)
            current = []
        current.append(row)
    return [*found, current] if current else found

"""Encodes every distinct text of a set of pairs once with the shipped encoder and keeps the tokens.

The cache is a folder: `texts.jsonl`, `offsets.npy`, `tokens.f16` (token embeddings, special tokens
left out), `sentence.npy`. It is finished in parts, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from guardrail_service.inference.tokenizer import Tokenizer

MAX_TOKENS = 128  # longer sentences are rare in the mix and are cut here, for training only
BATCH_TOKENS = 512
PART = 20_000
DIM = 384


def encode_texts(texts: list[str], pack: Path, folder: Path, threads: int = 2) -> None:
    """Write the cache for some texts; parts that exist are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = folder / "texts.json"
    if not listed.exists():
        listed.write_text(json.dumps(texts), encoding="utf-8")
    elif json.loads(listed.read_text(encoding="utf-8")) != texts:
        raise SystemExit(f"{folder}: holds other texts; expected an empty folder or the same mix")
    manifest = json.loads((pack / "manifest.json").read_text(encoding="utf-8"))
    entry = manifest["models"][manifest["roles"]["embedding"]]
    tokenizer = Tokenizer(pack / entry["tokenizer"]["path"], 256)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(str(pack / entry["path"]), options)
    started = time.monotonic()
    for number, first in enumerate(range(0, len(texts), PART)):
        target = folder / f"part{number:03d}.npz"
        if not target.exists():
            _encode_part(texts[first : first + PART], tokenizer, session, target, threads)
        print(f"encoded {min(first + PART, len(texts))}/{len(texts)} "
              f"after {time.monotonic() - started:.0f} s", flush=True)  # fmt: skip


def _encode_part(
    texts: list[str], tokenizer: Tokenizer, session: ort.InferenceSession, target: Path, threads: int
) -> None:
    ids = [tokenizer._fast.encode(text).ids for text in texts]
    ids = [row if len(row) <= MAX_TOKENS else [*row[: MAX_TOKENS - 1], row[-1]] for row in ids]
    lengths = np.array([len(row) - 2 for row in ids])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens = np.empty((starts[-1], DIM), dtype=np.float16)
    vectors = np.empty((len(ids), DIM), dtype=np.float32)

    def run(rows: list[int]) -> None:
        # One activation scale per token: a row's numbers do not depend on the rows beside it.
        width = max(len(ids[row]) for row in rows)
        feed = np.zeros((len(rows), width), dtype=np.int64)
        mask = np.zeros_like(feed)
        for place, row in enumerate(rows):
            feed[place, : len(ids[row])] = ids[row]
            mask[place, : len(ids[row])] = 1
        out, sentence = session.run(
            ["token_embeddings", "sentence_embedding"],
            {"input_ids": feed, "attention_mask": mask},
        )
        for place, row in enumerate(rows):
            tokens[starts[row] : starts[row + 1]] = out[place, 1 : 1 + lengths[row]]
            vectors[row] = sentence[place]

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, _batches(lengths)))
    partial = target.with_suffix(".partial")
    with partial.open("wb") as stream:
        np.savez(stream, tokens=tokens, vectors=vectors, lengths=lengths)
    partial.rename(target)


def _batches(lengths: Any) -> list[list[int]]:
    """Return rows of similar length together, at most BATCH_TOKENS with padding."""
    found: list[list[int]] = []
    current: list[int] = []
    for row in np.argsort(lengths, kind="stable"):
        if current and (len(current) + 1) * (int(lengths[row]) + 2) > BATCH_TOKENS:
            found.append(current)
            current = []
        current.append(int(row))
    return [*found, current] if current else found

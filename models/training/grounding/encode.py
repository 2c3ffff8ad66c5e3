"""Encodes distinct texts once with the shipped encoder: middle states and sentence embeddings.

The cache is a folder of `part*.npz`: texts, lengths, `states` (fp16, special tokens included) and
`vectors`. A part is written whole, so an interrupted run goes on where it stopped, and texts that a
changed mix adds become further parts.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from encoding import DIM, encoder_entry, open_encoder, run_rows
from guardrail_service.inference.models.session import Tokenizer

MAX_TOKENS = 128  # longer sentences are rare in the mix and are cut here, for training only
PART = 10_000


def pack_tokenizer(pack: Path) -> Tokenizer:
    """Return a pack's tokenizer."""
    return Tokenizer(pack / encoder_entry(pack)["tokenizer"]["path"], 256)


def known_texts(folder: Path) -> list[str]:
    """Return the texts of a cache, in order."""
    parts = sorted(folder.glob("part*.json"))
    return [text for part in parts for text in json.loads(part.read_text(encoding="utf-8"))]


def known_arrays(folder: Path, name: str) -> list[Any]:
    """Return one array of each part of a cache, in the order of its texts."""
    found = []
    for path in sorted(folder.glob("part*.npz")):
        with np.load(path) as part:
            found.append(part[name])
    return found


def encode_texts(texts: list[str], pack: Path, folder: Path, threads: int = 1) -> None:
    """Add to a cache the texts that it lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    held = set(known_texts(folder))
    missing = [text for text in dict.fromkeys(texts) if text not in held]
    tokenizer = pack_tokenizer(pack)
    session = open_encoder(pack)
    started = time.monotonic()
    for first in range(0, len(missing), PART):
        part = missing[first : first + PART]
        target = folder / f"part{len(list(folder.glob('part*.json'))):03d}.npz"
        _encode_part(part, tokenizer, session, target, threads)
        target.with_suffix(".json").write_text(json.dumps(part), encoding="utf-8")
        print(f"encoded {first + len(part)}/{len(missing)} "
              f"after {time.monotonic() - started:.0f} s", flush=True)  # fmt: skip


def _encode_part(
    texts: list[str],
    tokenizer: Tokenizer,
    session: ort.InferenceSession,
    target: Path,
    threads: int,
) -> None:
    ids = [tokenizer._fast.encode(text).ids for text in texts]
    ids = [row if len(row) <= MAX_TOKENS else [*row[: MAX_TOKENS - 1], row[-1]] for row in ids]
    lengths = np.array([len(row) for row in ids])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    states = np.empty((starts[-1], DIM), dtype=np.float16)
    vectors = np.empty((len(ids), DIM), dtype=np.float32)

    def keep(row: int, found: list[Any]) -> None:
        states[starts[row] : starts[row + 1]] = found[0][: lengths[row]]
        vectors[row] = found[1]

    run_rows(ids, session, ["middle_states", "sentence_embedding"], threads, keep)
    partial = target.with_suffix(".partial")
    with partial.open("wb") as stream:
        np.savez(stream, states=states, vectors=vectors, lengths=lengths)
    partial.rename(target)

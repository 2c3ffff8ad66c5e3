"""Cached sentences as batches: comments of similar length, their sentences in padded chunks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

DIM = 384
DRAWN = 2048
"""Comments drawn at once and cut into batches by length, so that little is spent on padding."""
CHUNK_TOKENS = 2048


class SentenceBatch(NamedTuple):
    """Some comments: padded chunks of sentences, whose comment each is, and what is known."""

    chunks: list[tuple[Tensor, Tensor]]
    owner: Tensor
    values: Tensor
    weights: Tensor
    fair: Tensor
    """Label of the combined bias score: 0, 1, or -1 where it is not known."""


class TextSource:
    """One source's sentences and labels."""

    def __init__(self, folder: Path, name: str) -> None:
        with np.load(folder / f"{name}.npz") as kept:
            self.tokens, self.values, self.weights = kept["tokens"], kept["values"], kept["weights"]
            self.starts = np.concatenate([[0], np.cumsum(kept["lengths"])])
            self.first = np.concatenate([[0], np.cumsum(kept["counts"])])
        lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
        self.fair = np.array([_fair(row) for row in self.rows], np.float32)

    def size(self, row: int) -> int:
        """Return a comment's number of tokens."""
        return int(self.starts[self.first[row + 1]] - self.starts[self.first[row]])

    def sentences(self, row: int) -> list[Any]:
        """Return a comment's sentences, each (tokens, DIM)."""
        spans = range(self.first[row], self.first[row + 1])
        return [self.tokens[self.starts[i] : self.starts[i + 1]] for i in spans]


def _fair(row: dict[str, Any]) -> int:
    if row["task"].startswith("bias_"):
        return int(row["label"])
    return int(row.get("fair", 0)) if row["task"] in ("neutral", "written") else -1


Place = tuple[TextSource, int]


def batches(places: list[Place], tokens: int) -> list[list[Place]]:
    """Return comments of similar length together, about `tokens` tokens a batch."""
    ordered = sorted(places, key=lambda place: place[0].size(place[1]))
    found: list[list[Place]] = []
    current: list[Place] = []
    used = 0
    for place in ordered:
        if current and used + place[0].size(place[1]) > tokens:
            found.append(current)
            current, used = [], 0
        current.append(place)
        used += place[0].size(place[1])
    return [*found, current] if current else found


def collate(places: list[Place]) -> SentenceBatch:
    """Return a batch of some comments."""
    pieces = [(s, i) for i, (source, row) in enumerate(places) for s in source.sentences(row)]
    pieces.sort(key=lambda piece: len(piece[0]))
    chunks, current = [], []
    for states, _ in pieces:
        if current and (len(current) + 1) * len(states) > CHUNK_TOKENS:
            chunks.append(_padded(current))
            current = []
        current.append(states)
    chunks.append(_padded(current))
    return SentenceBatch(
        chunks,
        torch.tensor([owner for _, owner in pieces]),
        torch.from_numpy(np.stack([s.values[r] for s, r in places])),
        torch.from_numpy(np.stack([s.weights[r] for s, r in places])),
        torch.tensor([float(s.fair[r]) for s, r in places]),
    )


def _padded(rows: list[Any]) -> tuple[Tensor, Tensor]:
    width = max(map(len, rows))
    states = np.zeros((len(rows), width, DIM), np.float16)
    mask = np.zeros((len(rows), width), np.float32)
    for i, row in enumerate(rows):
        states[i, : len(row)] = row
        mask[i, : len(row)] = 1
    return torch.from_numpy(states).float(), torch.from_numpy(mask)


class SentenceSampler:
    """Draws batches without end, seeded so that a resumed run goes on as it would have."""

    def __init__(self, sources: dict[str, TextSource], config: dict[str, Any]) -> None:
        self.config = config
        self.places = [(s, row) for s in sources.values() for row in range(len(s.rows))]
        shares = [config["weights"].get(n, 1.0) for n, s in sources.items() for _ in s.rows]
        self._share = np.array(shares) / np.sum(shares)

    def batches(self, number: int) -> list[list[Place]]:
        """Return the batches of one draw, in random order."""
        rng = np.random.default_rng((self.config["seed"], number))
        count = min(DRAWN, len(self.places))
        picked = rng.choice(len(self.places), count, p=self._share, replace=False)
        found = batches([self.places[int(i)] for i in picked], self.config["batch_tokens"])
        return [found[i] for i in rng.permutation(len(found))]

"""Cached sentences as batches: comments of similar length, their sentences in padded chunks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from texts import TRAINED
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
    twins: Tensor
    """Of each minimal pair the numbers of bad text, harmless one and label, shape (pairs, 3)."""


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
Unit = tuple[Place, ...]
"""One comment, or a minimal pair: the bad text first."""
TWIN_LABELS = {"stereoset": "group", "hatemoji_build": "toxicity"}
"""Sources whose neighbouring rows often are a minimal pair, and the label in which they differ."""
SHARED = 0.5
"""Of the words of both texts: from here on neighbouring rows are a pair."""


def units(source: TextSource, name: str) -> list[Unit]:
    """Return a source's comments, minimal pairs together."""
    found: list[Unit] = []
    row = 0
    while row < len(source.rows):
        size = 2 if row + 1 < len(source.rows) and _are_twins(source, name, row) else 1
        bad_first = sorted(range(row, row + size), key=lambda at: -source.rows[at].get("label", 0))
        found.append(tuple((source, at) for at in bad_first))
        row += size
    return found


def _are_twins(source: TextSource, name: str, row: int) -> bool:
    first, second = source.rows[row : row + 2]
    if first.get("label") == second.get("label"):
        return False
    if "on" in first:
        return first["on"] == second.get("on") and bool(first["label"])
    words = [set(each["text"].lower().split()) for each in (first, second)]
    return name in TWIN_LABELS and len(words[0] & words[1]) >= SHARED * len(words[0] | words[1])


def _twin_label(unit: Unit) -> int:
    row = unit[0][0].rows[unit[0][1]]
    return TRAINED.index(row.get("on") or TWIN_LABELS[row["source"]])


def batches(places: Iterable[Place], tokens: int) -> list[list[Place]]:
    """Return comments of similar length together, about `tokens` tokens a batch."""
    return [[unit[0] for unit in batch] for batch in unit_batches([(p,) for p in places], tokens)]


def unit_batches(drawn: Sequence[Unit], tokens: int) -> list[list[Unit]]:
    """Return units of similar length together, about `tokens` tokens a batch."""
    found: list[list[Unit]] = []
    current: list[Unit] = []
    used = 0
    for unit in sorted(drawn, key=lambda unit: unit[0][0].size(unit[0][1])):
        size = sum(source.size(row) for source, row in unit)
        if current and used + size > tokens:
            found.append(current)
            current, used = [], 0
        current.append(unit)
        used += size
    return [*found, current] if current else found


def collate_units(drawn: Sequence[Unit]) -> SentenceBatch:
    """Return a batch of some comments and minimal pairs."""
    twins, count = [], 0
    for unit in drawn:
        if len(unit) > 1:
            twins.append((count, count + 1, _twin_label(unit)))
        count += len(unit)
    batch = collate([place for unit in drawn for place in unit])
    return batch._replace(twins=torch.tensor(twins, dtype=torch.long).reshape(-1, 3))


def collate(places: list[Place]) -> SentenceBatch:
    """Return a batch of some comments, no minimal pairs among them."""
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
        torch.zeros((0, 3), dtype=torch.long),
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
        self.units: list[Unit] = []
        shares: list[float] = []
        for name, source in sources.items():
            own = units(source, name) if config.get("shares") else _alone(source)
            each = [source.rows[unit[0][1]].get("share", 1.0) for unit in own]
            # Fixed shares hold whatever a source's size; weights multiply it.
            total = config["shares"][name] / sum(each) if "shares" in config else None
            scale = config["weights"].get(name, 1.0) if total is None else total
            shares += [scale * share for share in each]
            self.units += own
        self._share = np.array(shares) / np.sum(shares)

    def batches(self, number: int) -> list[list[Unit]]:
        """Return the batches of one draw, in random order."""
        rng = np.random.default_rng((self.config["seed"], number))
        count = min(DRAWN, len(self.units))
        picked = rng.choice(len(self.units), count, p=self._share, replace=False)
        found = unit_batches([self.units[int(i)] for i in picked], self.config["batch_tokens"])
        return [found[i] for i in rng.permutation(len(found))]


def _alone(source: TextSource) -> list[Unit]:
    return [((source, row),) for row in range(len(source.rows))]

"""Cached texts as batches of the head: evidence chosen as the service chooses it, distractors added."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from guardrail_service.inference.evidence import nearest
from guardrail_service.inference.lexical import LEXICAL_VERSION, Lexical, lexical, pair_features
from guardrail_service.inference.tokenizer import Tokenizer
from guardrail_service.text.windows import TokenSpan

DIM = 384
REMOVABLE = ("fever_dev", "fm2", "covidqa", "pubmedqa", "infotabs", "edit_", "boolq", "dnc")
DRAWN = 8
Example = tuple[int, list[int], int, str]


class Texts:
    """Every text's token embeddings, sentence embedding and lexical view."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
        parts = [np.load(path) for path in sorted(folder.glob("part*.npz"))]
        self.tokens = np.concatenate([part["tokens"] for part in parts])
        self.vectors = np.concatenate([part["vectors"] for part in parts])
        lengths = np.concatenate([part["lengths"] for part in parts])
        self.starts = np.concatenate([[0], np.cumsum(lengths)])
        kept = folder / f"{LEXICAL_VERSION.replace('/', '-')}.npz"
        if not kept.exists():
            _write_lexical(texts, lengths, tokenizer, kept)
        with np.load(kept) as columns:
            self._columns = [columns[name] for name in Lexical._fields]

    def view(self, text: int) -> Lexical:
        """Return a text's lexical view."""
        a, b = self.starts[text], self.starts[text + 1]
        return Lexical(*(column[a:b] for column in self._columns))

    def embedding(self, text: int) -> Any:
        """Return a text's token embeddings."""
        return self.tokens[self.starts[text] : self.starts[text + 1]]

    def length(self, text: int) -> int:
        """Return a text's number of tokens."""
        return int(self.starts[text + 1] - self.starts[text])


def _write_lexical(texts: list[str], lengths: Any, tokenizer: Tokenizer, path: Path) -> None:
    views = []
    for text, length in zip(texts, lengths, strict=True):
        encoded = tokenizer._fast.encode(text, add_special_tokens=False)
        spans = [TokenSpan(a, b, True) for a, b in encoded.offsets[:length]]
        views.append(lexical(text, spans, encoded.ids[:length]))
    columns = [np.concatenate(column) for column in zip(*views, strict=True)]
    np.savez(path, **dict(zip(Lexical._fields, columns, strict=True)))


def chosen(texts: Texts, claim: int, sentences: list[int], most: int, tokens: int) -> Any:
    """Return the nearest sentences by cosine and their cosines, within a number of tokens."""
    cosines = texts.vectors[sentences] @ texts.vectors[claim]
    kept = nearest(cosines, [texts.length(s) for s in sentences], most, tokens)
    return [sentences[i] for i in kept], [float(cosines[i]) for i in kept]


class Sampler:
    """Draws training examples, seeded by step so that a resumed run goes on as it would have."""

    def __init__(self, rows: list[dict[str, Any]], texts: Texts, config: dict[str, Any]) -> None:
        self.rows = [r for r in rows if texts.length(r["claim"])]
        self.texts, self.config = texts, config
        weights = np.array([self._weight(r["source"]) for r in self.rows])
        self._number = -1
        self._batches: list[list[Example]] = []
        self._share = weights / weights.sum()
        pools: dict[str, set[int]] = {}
        for row in self.rows:
            pools.setdefault(row["source"].split("+")[0], set()).update(row["sentences"])
        self._pools = {name: np.array(sorted(pool)) for name, pool in pools.items()}

    def _weight(self, source: str) -> float:
        return float(self.config["weights"].get(source.split("+")[0], 1.0))

    def batch(self, step: int) -> list[Example]:
        """Return one batch of (claim, sentences, label, source).

        Eight batches are drawn at once and cut by length, so that little is spent on padding.
        """
        number, place = divmod(step, DRAWN)
        if number != self._number:
            rng = np.random.default_rng((self.config["seed"], number))
            picked = rng.choice(len(self.rows), DRAWN * self.config["batch"], p=self._share)
            drawn = [self._changed(self.rows[int(i)], rng) for i in picked]
            drawn.sort(key=self._size)
            cuts = np.array_split(np.arange(len(drawn)), DRAWN)
            self._batches = [[drawn[i] for i in cuts[c]] for c in rng.permutation(DRAWN)]
            self._number = number
        return self._batches[place]

    def _size(self, example: Example) -> int:
        passage = sum(self.texts.length(s) for s in example[1])
        return 2 * self.texts.length(example[0]) + min(passage, self.config["passage_tokens"])

    def _changed(self, row: dict[str, Any], rng: np.random.Generator) -> Example:
        source, label, sentences = row["source"], row["label"], list(row["sentences"])
        draw = rng.random()
        pool = self._pools[source.split("+")[0]]
        if draw < self.config["remove"] and source.startswith(REMOVABLE):
            return row["claim"], self._near(row, pool, rng, rng.integers(1, 5)), 2, source
        if draw > 1 - self.config["distract"]:
            sentences += self._near(row, pool, rng, rng.integers(1, 6))
        return row["claim"], sentences, label, source

    def _near(self, row: dict[str, Any], pool: Any, rng: np.random.Generator, count: int) -> Any:
        """Return foreign sentences, rather near the claim."""
        drawn = pool[rng.integers(0, len(pool), 40)]
        drawn = drawn[~np.isin(drawn, row["sentences"])]
        cosines = self.texts.vectors[drawn] @ self.texts.vectors[row["claim"]]
        return drawn[np.argsort(-cosines)[:count]].tolist() or row["sentences"]


def collate(examples: list[Example], texts: Texts, config: dict[str, Any]) -> dict[str, Any]:
    """Return padded tensors of some examples."""
    views = []
    for claim, sentences, _, _ in examples:
        kept, cosines = chosen(texts, claim, sentences, config["sentences"], config["passage_tokens"])
        features = pair_features(texts.view(claim), [texts.view(s) for s in kept], cosines)
        views.append((claim, kept, features))
    n = max(len(f.claim) for _, _, f in views)
    m = max(len(f.passage) for _, _, f in views)
    size = len(views)
    out = {
        "claim": np.zeros((size, n, DIM), np.float32),
        "passage": np.zeros((size, m, DIM), np.float32),
        "claim_features": np.zeros((size, n, views[0][2].claim.shape[1]), np.float32),
        "passage_features": np.zeros((size, m, views[0][2].passage.shape[1]), np.float32),
        "match": np.zeros((size, n, m), np.float32),
        "pair": np.stack([f.pair for _, _, f in views]),
        "claim_mask": np.zeros((size, n), np.float32),
        "passage_mask": np.zeros((size, m), np.float32),
    }
    for i, (claim, kept, f) in enumerate(views):
        a, b = len(f.claim), len(f.passage)
        out["claim"][i, :a] = texts.embedding(claim)
        out["passage"][i, :b] = np.concatenate([texts.embedding(s) for s in kept])
        out["claim_features"][i, :a] = f.claim
        out["passage_features"][i, :b] = f.passage
        out["match"][i, :a, :b] = f.match
        out["claim_mask"][i, :a] = 1
        out["passage_mask"][i, :b] = 1
    return {name: torch.from_numpy(value) for name, value in out.items()}

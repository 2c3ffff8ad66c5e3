"""Cached texts as batches: evidence chosen as the service chooses it, distractors added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from encode import known_arrays, known_texts
from texts import beside, by_part

from guardrail_service.inference.models.encoder import nearest
from guardrail_service.inference.models.lexical import (
    LEXICAL_VERSION,
    Lexical,
    lexical,
    pair_features,
)
from guardrail_service.inference.models.session import Tokenizer
from guardrail_service.text.sample import TokenSpan

REMOVABLE = (
    "fever_dev", "fm2", "covidqa", "pubmedqa", "infotabs", "edit_", "boolq", "dnc", "doc_",
)  # fmt: skip
"""Sources of which some claims lose their passages, and are mentioned nowhere then; a configuration
may name its own (`removable`)."""
DRAWN = 8
CHUNK_TOKENS = 1024
"""Texts of similar length run through the branch together, this many tokens with padding."""
Example = tuple[int, list[int], int, str]


class Texts:
    """Every text's middle states, sentence embedding and lexical view."""

    def __init__(self, folder: Path, tokenizer: Tokenizer) -> None:
        texts = known_texts(folder)
        lengths = known_arrays(folder, "lengths")
        self._states = known_arrays(folder, "states")
        self.vectors = np.concatenate(known_arrays(folder, "vectors"))
        self._part = np.repeat(np.arange(len(lengths)), [len(part) for part in lengths])
        self._start = np.concatenate([np.cumsum(part) - part for part in lengths])
        self._length = np.concatenate(lengths)
        plain = self._length - 2
        self._plain_start = np.cumsum(plain) - plain
        kept = folder / f"{LEXICAL_VERSION.replace('/', '-')}-{len(texts)}.npz"
        if not kept.exists():
            _write_lexical(texts, plain, tokenizer, kept)
        with np.load(kept) as columns:
            self._columns = [columns[name] for name in Lexical._fields]

    def view(self, text: int) -> Lexical:
        """Return a text's lexical view."""
        start = self._plain_start[text]
        return Lexical(*(column[start : start + self.length(text)] for column in self._columns))

    def states(self, text: int) -> Any:
        """Return a text's middle states, special tokens included."""
        start = self._start[text]
        return self._states[self._part[text]][start : start + self._length[text]]

    def length(self, text: int) -> int:
        """Return a text's number of tokens without special tokens."""
        return int(self._length[text]) - 2


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


def in_order(kept: list[int], sentences: list[int]) -> list[int]:
    """Return the kept ones among sentences, each once and in the order of the passage."""
    return [text for text in dict.fromkeys(sentences) if text in kept]


class PairSampler:
    """Draws training examples, seeded by step so that a resumed run goes on as it would have.

    Claims of one passage are drawn together, as they share its states and contrast with each other;
    distractors come from the batch's other passages, whose states are there anyway.
    """

    def __init__(self, rows: list[dict[str, Any]], texts: Texts, config: dict[str, Any]) -> None:
        self.rows = [r for r in rows if texts.length(r["claim"])]
        self.texts, self.config = texts, config
        self._removable = tuple(config.get("removable", REMOVABLE))
        weights = np.array([self._weight(r["source"]) for r in self.rows])
        if "parts" in config:
            weights = by_part(self.rows, weights, config)
        self._share = weights / weights.sum()
        self._groups: dict[Any, list[int]] = {}
        for number, row in enumerate(self.rows):
            self._groups.setdefault(self._read(row), []).append(number)
        # Of passages in several versions no version is foreign to a claim.
        self._versions = {
            self.rows[i]["claim"]: every
            for own in self._groups.values()
            if "group" in self.rows[own[0]]
            for every in [sorted({s for j in own for s in self.rows[j]["sentences"]})]
            for i in own
        }
        self._number = -1
        self._batches: list[list[Example]] = []

    def _weight(self, source: str) -> float:
        return float(self.config["weights"].get(source.split("+")[0], 1.0))

    def batch(self, step: int) -> list[Example]:
        """Return one batch of (claim, sentences, label, source).

        Eight batches are drawn at once and cut by length, so that little is spent on padding.
        """
        number, place = divmod(step, DRAWN)
        if number != self._number:
            rng = np.random.default_rng((self.config["seed"], number))
            drawn = self._drawn(DRAWN * self.config["batch"], rng)
            cuts = np.array_split(np.arange(len(drawn)), DRAWN)
            batches = [self._distracted([drawn[i] for i in cut], rng) for cut in cuts]
            self._batches = [batches[c] for c in rng.permutation(DRAWN)]
            self._number = number
        return self._batches[place]

    def _drawn(self, count: int, rng: np.random.Generator) -> list[Example]:
        groups: list[list[Example]] = []
        picked = rng.choice(len(self.rows), count, p=self._share)
        for first in picked:
            if sum(map(len, groups)) >= count:
                break
            others = rng.permutation(self._groups[self._read(self.rows[first])]).tolist()
            members = beside(self.rows, [first, *others], self.config["claims"])
            groups.append([self._example(self.rows[i]) for i in members])
        groups.sort(key=self._size)
        return [example for group in groups for example in group][:count]

    def _read(self, row: dict[str, Any]) -> Any:
        """Return what claims share that are drawn together: a passage, or versions of one."""
        return row.get("group") or tuple(row["sentences"])

    def _example(self, row: dict[str, Any]) -> Example:
        most, tokens = self.config["sentences"], self.config["passage_tokens"]
        kept, _ = chosen(self.texts, row["claim"], row["sentences"], most, tokens)
        return row["claim"], in_order(kept, row["sentences"]), row["label"], row["source"]

    def _size(self, group: list[Example]) -> int:
        return max(sum(map(self.texts.length, example[1])) for example in group)

    def _distracted(self, batch: list[Example], rng: np.random.Generator) -> list[Example]:
        pool = np.array(sorted({sentence for example in batch for sentence in example[1]}))
        changed = []
        for claim, sentences, label, source in batch:
            draw = rng.random()
            if draw < self.config["remove"] and source.startswith(self._removable):
                sentences, label = self._near(claim, sentences, pool, rng.integers(1, 5)), 2
            elif draw > 1 - self.config["distract"]:
                near = self._near(claim, sentences, pool, rng.integers(1, 6))
                # In front or behind: where a sentence stands must not tell whose it is.
                both = [*near, *sentences] if rng.random() < 0.5 else [*sentences, *near]
                sentences = list(dict.fromkeys(both))
            changed.append((claim, sentences, label, source))
        return changed

    def _near(self, claim: int, own: list[int], pool: Any, count: int) -> list[int]:
        """Return the batch's foreign sentences nearest to the claim, of a random half of them."""
        foreign = pool[~np.isin(pool, self._versions.get(claim, own))]
        cosines = self.texts.vectors[foreign] @ self.texts.vectors[claim]
        found: list[int] = foreign[np.argsort(-cosines)[: 2 * count : 2]].tolist()
        return found or own


def collate(examples: list[Example], texts: Texts, config: dict[str, Any]) -> dict[str, Any]:
    """Return padded tensors: `texts` to run through the branch, and where pairs find tokens."""
    views = []
    for claim, sentences, _, _ in examples:
        kept, cosines = chosen(
            texts, claim, sentences, config["sentences"], config["passage_tokens"]
        )
        features = pair_features(texts.view(claim), [texts.view(s) for s in kept], cosines)
        views.append((claim, kept, features))
    used = {text for claim, kept, _ in views for text in (claim, *kept)}
    chunks, place = _chunks(sorted(used, key=lambda text: (texts.length(text), text)), texts)
    n = max(len(f.claim) for _, _, f in views)
    m = max(len(f.passage) for _, _, f in views)
    size = len(views)
    out = {
        "claim": np.zeros((size, n), np.int64),
        "passage": np.zeros((size, m), np.int64),
        "claim_features": np.zeros((size, n, views[0][2].claim.shape[1]), np.float32),
        "passage_features": np.zeros((size, m, views[0][2].passage.shape[1]), np.float32),
        "match": np.zeros((size, n, m), np.float32),
        "pair": np.stack([f.pair for _, _, f in views]),
        "claim_mask": np.zeros((size, n), np.float32),
        "passage_mask": np.zeros((size, m), np.float32),
    }
    for i, (claim, kept, f) in enumerate(views):
        a, b = len(f.claim), len(f.passage)
        out["claim"][i, :a] = place[claim]
        out["passage"][i, :b] = np.concatenate([place[s] for s in kept])
        out["claim_features"][i, :a] = f.claim
        out["passage_features"][i, :b] = f.passage
        out["match"][i, :a, :b] = f.match
        out["claim_mask"][i, :a] = 1
        out["passage_mask"][i, :b] = 1
    return {"texts": chunks, **{name: torch.from_numpy(value) for name, value in out.items()}}


def _chunks(
    ordered: list[int], texts: Texts
) -> tuple[list[tuple[torch.Tensor, torch.Tensor]], dict[int, Any]]:
    """Return padded middle states with masks, and each text's rows in the flattened outputs."""
    parts: list[list[int]] = [[]]
    for text in ordered:
        if parts[-1] and (len(parts[-1]) + 1) * (texts.length(text) + 2) > CHUNK_TOKENS:
            parts.append([])
        parts[-1].append(text)
    chunks, place, offset = [], {}, 0
    for part in parts:
        width = texts.length(part[-1]) + 2
        states = np.zeros((len(part), width, texts.states(part[0]).shape[1]), np.float16)
        mask = np.zeros((len(part), width), np.float32)
        for row, text in enumerate(part):
            length = texts.length(text)
            states[row, : length + 2] = texts.states(text)
            mask[row, : length + 2] = 1
            place[text] = offset + row * width + 1 + np.arange(length)
        offset += len(part) * width
        chunks.append((torch.from_numpy(states), torch.from_numpy(mask)))
    return chunks, place

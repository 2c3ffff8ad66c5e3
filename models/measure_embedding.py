"""Compares ONNX sentence encoders on scores, ranking and speed; builds nothing.

Every text is run alone on one thread, as the service runs it: what is measured is what is served.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
from tokenizers import Tokenizer

Array = npt.NDArray[np.float32]
SPEED_LENGTHS = (16, 32, 128)
SPEED_ROUNDS = 12
SPEED_RUNS = 5
MIN_CANDIDATES = 4
MAX_CANDIDATES = 12
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


@dataclass(frozen=True)
class TextSet:
    """Pairs whose cosine is compared, and questions whose candidates are ranked."""

    pairs: list[tuple[str, str]] = field(default_factory=list)
    rankings: list[tuple[str, list[str]]] = field(default_factory=list)


@dataclass(frozen=True)
class Scores:
    """Cosines of the pairs, and one array of cosines for each ranking."""

    pairs: Array
    rankings: list[Array]

    def flat(self) -> Array:
        """Return every cosine in one array."""
        return np.concatenate([self.pairs, *self.rankings])


@dataclass(frozen=True)
class Difference:
    """The differences between a variant's scores and the fp32 original's."""

    largest: float
    p99: float
    mean: float
    kendall_tau: float
    top1_changed: int
    rankings: int
    scores: int


class Encoder:
    """One ONNX file run one text per call."""

    def __init__(
        self, model: Path, tokenizer: Path, max_tokens: int, threads: int = 1, level: int = 99
    ) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.graph_optimization_level = ort.GraphOptimizationLevel(level)
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(tokenizer))
        self.max_tokens = max_tokens

    def run(self, text: str) -> tuple[Array, Array]:
        """Return the token embeddings (tokens, dim) and the sentence embedding (dim,)."""
        ids = np.array([self.tokenizer.encode(text).ids[: self.max_tokens]], dtype=np.int64)
        tokens, sentence = self.session.run(
            ["token_embeddings", "sentence_embedding"],
            {"input_ids": ids, "attention_mask": np.ones_like(ids)},
        )
        return tokens[0], sentence[0]

    def embed(self, texts: list[str]) -> Array:
        """Return unit-length sentence embeddings. Shape (len(texts), dim)."""
        return np.stack([self.run(text)[1] for text in texts])


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSONL file, gzip-compressed or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def split_sentences(texts: list[str]) -> list[str]:
    """Return distinct sentences of 16 to 700 characters, in order."""
    sentences = [part for text in texts for part in SENTENCE_END.split(text)]
    return list(dict.fromkeys(part for part in sentences if 15 < len(part) <= 700))


def add_row(texts: TextSet, row: dict[str, Any]) -> None:
    """Sort one row into pairs or rankings by the keys that it has."""
    if "contexts" in row:
        candidates = split_sentences([passage["text"] for passage in row["contexts"]])
        if len(candidates) >= MIN_CANDIDATES:
            texts.rankings.append((row["question"], candidates[:MAX_CANDIDATES]))
    elif "premise" in row:
        texts.pairs.append((row["premise"], row["hypothesis"]))
    else:
        texts.pairs.append((row["text"], row["pair"]))


def load_texts(paths: list[Path], pairs: int, rankings: int) -> TextSet:
    """Return a fixed random choice of the files' rows."""
    chosen = TextSet()
    for path in paths:
        for row in read_rows(path):
            add_row(chosen, row)
    shuffle = random.Random(7)  # noqa: S311 - a repeatable choice, not a secret
    shuffle.shuffle(chosen.pairs)
    shuffle.shuffle(chosen.rankings)
    return TextSet(chosen.pairs[:pairs], chosen.rankings[:rankings])


def built_in_texts(path: Path) -> TextSet:
    """Return the texts kept beside this script, each question ranking other rows' texts."""
    pairs = [(row["text"], row["pair"]) for row in read_rows(path)]
    others = list(dict.fromkeys(second for _, second in pairs))
    questions = list(dict.fromkeys(first for first, _ in pairs if first.endswith("?")))
    return TextSet(pairs, [(question, others) for question in questions])


def score(encoder: Encoder, texts: TextSet) -> Scores:
    """Return the cosines that the encoder gives the texts."""
    first = encoder.embed([first for first, _ in texts.pairs])
    second = encoder.embed([second for _, second in texts.pairs])
    rankings = []
    for question, candidates in texts.rankings:
        rows = encoder.embed([question, *candidates])
        rankings.append(rows[1:] @ rows[0])
    return Scores(np.sum(first * second, axis=1), rankings)


def kendall_tau(left: Array, right: Array) -> float:
    """Return the agreement of two orders, from -1 (reversed) to 1 (the same)."""
    i, j = np.triu_indices(len(left), 1)
    return float(np.mean(np.sign(left[i] - left[j]) * np.sign(right[i] - right[j])))


def compare(scores: Scores, reference: Scores) -> Difference:
    """Return how the scores differ from the reference's on the same texts."""
    apart = np.abs(scores.flat() - reference.flat())
    ranked = list(zip(scores.rankings, reference.rankings, strict=True))
    return Difference(
        largest=float(apart.max()),
        p99=float(np.quantile(apart, 0.99)),
        mean=float(apart.mean()),
        kendall_tau=float(np.mean([kendall_tau(a, b) for a, b in ranked])),
        top1_changed=sum(int(a.argmax() != b.argmax()) for a, b in ranked),
        rankings=len(ranked),
        scores=len(apart),
    )


def measure_speed(encoders: dict[str, Encoder]) -> dict[str, list[float]]:
    """Return tokens per millisecond of processor time, for rows of SPEED_LENGTHS tokens.

    Processor time and the fastest of interleaved rounds: other work on the machine hardly counts.
    """
    speeds: dict[str, list[float]] = {name: [] for name in encoders}
    for length in SPEED_LENGTHS:
        ids = np.arange(2000, 2000 + length, dtype=np.int64)[None]
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        fastest = dict.fromkeys(encoders, float("inf"))
        for _ in range(SPEED_ROUNDS):
            for name, encoder in encoders.items():
                fastest[name] = min(fastest[name], time_run(encoder, feed))
        for name, seconds in fastest.items():
            speeds[name].append(length / (seconds * 1e3))
    return speeds


def time_run(encoder: Encoder, feed: dict[str, npt.NDArray[np.int64]]) -> float:
    """Return the processor seconds of one run, after one that warms the caches."""
    encoder.session.run(None, feed)
    start = time.process_time()
    for _ in range(SPEED_RUNS):
        encoder.session.run(None, feed)
    return (time.process_time() - start) / SPEED_RUNS

"""Judges sentences with their neighbours: `windows.py --dev toxicity_dev.jsonl.gz`.

A comment's label is about all of it, so windows of several sentences rank comments better than
single sentences. An answer is another matter: an insult between two polite sentences is an insult.
So every way of reading is measured on comments of one source and on the functional suite, each of
its texts alone and between two ordinary sentences. Runs in the service's environment.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from prepare import Reader, spread

from corpora import read
from guardrail_bench.quality import Array, auroc
from guardrail_service.inference.models.session import Session
from guardrail_service.inference.pack import load_pack
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.text.segmentation.sentences import is_short, merge_short, split_sentences
from guardrail_service.types import Row

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests" / "golden"
ANSWERS = ROOT / "models" / "thresholds"
SHARE = 0.02
"""Of neutral answers above each way's own cut, as `balanced` has it."""
WIDTH = 3


class Reading(NamedTuple):
    """Log-odds of an answer: of each sentence, of the window around each, of all of it.

    `short` has those of the short sentences that are among `alone` with a neighbour only.
    """

    alone: Array
    window: Array
    whole: float
    short: Array


class WindowReader:
    """Reads texts with the toxicity model that a pack ships, without the detector's rules."""

    def __init__(self, pack: Path) -> None:
        self._reader = Reader(pack)
        self._session: Session = open_sessions(load_pack(pack))["toxicity"]
        self._known: dict[str, float] = {}

    def read(self, text: str) -> Reading:
        """Return the log-odds of a text that has a sentence."""
        raw = split_sentences(text)
        found = merge_short(raw, text)
        last = len(found) - 1
        windows = []
        for place in range(len(found)):
            first = max(0, min(place - WIDTH // 2, last - WIDTH + 1))
            windows.append(text[found[first].start : found[min(last, first + WIDTH - 1)].end])
        alone = np.array([self._odds(sentence.text) for sentence in found])
        joined = [s.text for s in raw if is_short(s.text) and s not in found]
        short = np.array([self._odds(one) for one in joined if any(map(str.isalpha, one))])
        around = np.array([self._odds(one) for one in windows])
        return Reading(alone, around, self._odds(text), short)

    def _odds(self, text: str) -> float:
        """Return the log-odds of a text that is read whole, or in as few rows as fit."""
        if text not in self._known:
            pieces = self._reader.pieces(text) or [text]
            rows = [self._session.run(Row("toxicity", piece)).outputs for piece in pieces]
            worst = min(max(max(float(r["toxicity"]) for r in rows), 1e-6), 1 - 1e-6)
            self._known[text] = float(np.log(worst / (1 - worst)))
        return self._known[text]


Way = Callable[[Reading], float]


def in_band(low: float, high: float, joined: Callable[[Array, Array], Array]) -> Way:
    """Return a way that looks at windows only of sentences between two probabilities."""
    first, last = np.log(low / (1 - low)), np.log(high / (1 - high))

    def way(one: Reading) -> float:
        near = (one.alone >= first) & (one.alone <= last)
        return float(np.where(near, joined(one.alone, one.window), one.alone).max())

    return way


WAYS: dict[str, Way] = {
    "sentences, short ones again (shipped)": lambda one: float(
        np.concatenate((one.alone, one.short)).max()
    ),
    "sentences": lambda one: float(one.alone.max()),
    "windows of three": lambda one: float(one.window.max()),
    "whole answer": lambda one: one.whole,
    "whole answer of at most three": lambda one: (
        one.whole if len(one.alone) <= WIDTH else float(one.alone.max())
    ),
    "window in place, .1 to .95": in_band(0.1, 0.95, lambda _alone, window: window),
    "mean with window, .1 to .95": in_band(0.1, 0.95, lambda alone, window: (alone + window) / 2),
    "window in place, .4 to .75": in_band(0.4, 0.75, lambda _alone, window: window),
    "window only raises, .1 to .95": in_band(0.1, 0.95, np.maximum),
    "whole answer only raises": lambda one: max(one.whole, float(one.alone.max())),
}


def ordinary(answers: Iterable[dict[str, str]]) -> list[str]:
    """Return plain sentences of answers that are fit to be shown."""
    found = [
        sentence.text.strip()
        for row in answers
        if row["label"] == "pass"
        for sentence in split_sentences(row["answer"])
    ]
    return [text for text in found if 6 <= len(text.split()) <= 25 and text.endswith(".")]


def main() -> None:
    """Read, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dev", type=Path, required=True, help="texts labelled for toxicity")
    parser.add_argument("--source", default="jigsaw", help="which of them")
    parser.add_argument("--pack", type=Path, default=ROOT / "models" / "embedded")
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--limit", type=int, help="texts of each set at most, for a smoke run")
    arguments = parser.parse_args()
    reader, rng = WindowReader(arguments.pack), random.Random(arguments.seed)
    rows = [row for row in read(arguments.dev) if row["source"] == arguments.source]
    rows = spread([row for row in rows if row["text"].strip()], arguments.limit)
    comments = [(reader.read(row["text"]), bool(row["label"])) for row in rows]
    good = [row["text"] for row in read(GOLDEN / "neutral" / "open.jsonl")]
    safe = list(read(ANSWERS / "safety_answers.jsonl"))
    good += [row["answer"] for row in safe if row["label"] == "pass"]
    neutral = [reader.read(text) for text in good]
    beside = ordinary(read(ANSWERS / "answers.jsonl"))
    suite: dict[str, list[tuple[Reading, bool]]] = {"alone": [], "between": []}
    for row in spread(list(read(GOLDEN / "safety_functional.jsonl")), arguments.limit):
        if "toxicity" in row["labels"]:
            before, after = rng.sample(beside, 2)
            is_bad = bool(row["labels"]["toxicity"])
            suite["alone"].append((reader.read(row["text"]), is_bad))
            suite["between"].append((reader.read(f"{before}\n\n{row['text']}\n\n{after}"), is_bad))
    sets = {arguments.source: comments, **suite}
    print(json.dumps({name: len(found) for name, found in sets.items()}), len(neutral))
    print("way | cut | " + " | ".join(f"{name}: area, caught, flagged" for name in sets))
    for name, way in WAYS.items():
        cut = float(np.quantile([way(one) for one in neutral], 1 - SHARE))
        cells = [name, f"{1 / (1 + np.exp(-cut)):.3f}"]
        for found in sets.values():
            score, bad = np.array([way(one) for one, _ in found]), np.array([b for _, b in found])
            caught, flagged = (score[bad] > cut).mean(), (score[~bad] > cut).mean()
            cells.append(f"{auroc(score, bad):.4f}, {caught:.1%}, {flagged:.1%}")
        print(" | ".join(cells), flush=True)


if __name__ == "__main__":
    main()

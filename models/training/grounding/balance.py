"""Drops written claims that their surface gives away: `balance.py STATEMENTS --out FILE [--words]`.

Writers who change a fact keep a passage's words, and say what is true in their own: on the
statements of this project a model that sees only claims has an area of .71. Each claim is kept
with a probability by which a model of words, overlaps and length would be at a loss: (1 - p) / p
where it gives the claim's own label p, out of fold, records kept together. Claims that a
change of the passages turns round stay, as they are read beside both versions. With `--words` that
model sees claims only: of what nobody mentioned, the passages' words are what shall be learnt.
Prints the areas before and after.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.preprocessing import StandardScaler

from corpora import read
from guardrail_bench.quality import auroc
from guardrail_service.detectors.facts.vocabulary import STOP

FOLDS = 8
SEED = 5
LEAST = 0.03
"""Probability with which any claim is kept."""
STEM = 5
"""Letters of a word that are compared."""
NAMES = ("words in the passages", "pairs of words", "words in one sentence", "length")


class Told(NamedTuple):
    """A claim with what its surface tells.

    Attributes:
        record: Number of its record.
        writer: Who wrote it.
        text: The claim.
        is_true: Whether the passages support it.
        surface: Values of `NAMES`.
    """

    record: int
    writer: str
    text: str
    is_true: bool
    surface: tuple[float, ...]


def words_of(text: str) -> list[str]:
    """Return the beginnings of a text's words."""
    return [word[:STEM] for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in STOP]


def surface(claim: str, passages: list[str]) -> tuple[float, ...]:
    """Return a claim's overlap with its passages by words, pairs and best sentence; its length."""
    held = [words_of(passage) for passage in passages]
    every = {word for words in held for word in words}
    pairs = {pair for words in held for pair in pairwise(words)}
    cut = (set(words_of(s)) for passage in passages for s in re.split(r"(?<=[.!?])\s", passage))
    own = words_of(claim)
    if not own:
        return 0.0, 0.0, 0.0, 0.0
    beside = list(pairwise(own))
    return (
        float(np.mean([word in every for word in own])),
        float(np.mean([pair in pairs for pair in beside])) if beside else 0.0,
        max(float(np.mean([word in sentence for word in own])) for sentence in cut),
        float(len(own)),
    )


def claims_of(rows: list[dict[str, Any]]) -> list[Told]:
    """Return the claims of some records, in order."""
    return [
        Told(number, str(row["writer"]), claim["text"], claim["label"] == "supported",
             surface(claim["text"], row["passages"]))
        for number, row in enumerate(rows) for claim in row["claims"]
    ]  # fmt: skip


def by_words(claims: list[Told]) -> Any:
    """Return P(true) by a model of words and word pairs that sees claims only, out of fold."""
    seen = TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True).fit_transform(
        [claim.text for claim in claims]
    )
    return _out_of_fold(seen, claims, 1.0)


def by_surface(claims: list[Told]) -> Any:
    """Return P(true) by words, overlaps and length, with every writer's own habits."""
    told = np.clip(by_words(claims), 0.02, 0.98)
    values = np.array([claim.surface for claim in claims])
    scaled = StandardScaler().fit_transform(np.c_[values, values[:, :2] ** 2])
    names = np.array([claim.writer for claim in claims])
    writers = np.stack([names == name for name in sorted(set(names))], axis=1).astype(float)
    habits = [writers * scaled[:, i : i + 1] for i in range(3)]
    return _out_of_fold(
        np.hstack([np.log(told / (1 - told))[:, None], scaled, *habits, writers]), claims, 0.3
    )


def _out_of_fold(seen: Any, claims: list[Told], strength: float) -> Any:
    return cross_val_predict(
        LogisticRegression(C=strength, max_iter=2000), seen, [c.is_true for c in claims],
        groups=[c.record for c in claims], cv=GroupKFold(FOLDS), method="predict_proba",
    )[:, 1]  # fmt: skip


def kept(claims: list[Told], told: Callable[[list[Told]], Any] = by_surface) -> Any:
    """Return which claims stay, by what gives P(true) of each."""
    true = told(claims)
    own = np.where([claim.is_true for claim in claims], true, 1 - true)
    draws = np.random.default_rng(SEED).random(len(claims))
    return draws < np.clip((1 - own) / own, LEAST, 1.0)


def areas(claims: list[Told]) -> dict[str, float]:
    """Return the ROC area of each value of the surface, and of words alone."""
    labels = np.array([claim.is_true for claim in claims])
    values = np.array([claim.surface for claim in claims])
    found = {name: auroc(values[:, i], labels) for i, name in enumerate(NAMES)}
    return {**found, "words alone": auroc(by_words(claims), labels)}


def main() -> None:
    """Balance a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("statements", type=Path, help="records with several claims (JSONL[.gz])")
    parser.add_argument("--out", type=Path, required=True, help="where to write (JSONL.gz)")
    parser.add_argument("--words", action="store_true", help="leave overlap and length alone")
    arguments = parser.parse_args()
    rows = list(read(arguments.statements))
    claims = claims_of(rows)
    stay = kept(claims, by_words if arguments.words else by_surface)
    stay |= np.array(["change" in claim for row in rows for claim in row["claims"]])
    places = iter(stay)
    for row in rows:
        row["claims"] = [claim for claim in row["claims"] if next(places)]
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows if row["claims"]]
    arguments.out.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    left = [claim for claim, stays in zip(claims, stay, strict=True) if stays]
    print(f"{len(left)} of {len(claims)} claims stay")
    after = areas(left)
    for name, before in areas(claims).items():
        print(f"{name}: {before:.3f} before, {after[name]:.3f} after")


if __name__ == "__main__":
    main()

"""Tells whether made pairs give their label away: `shortcuts.py CONFIG FOLDER`.

A model of words sees the claims of each class without any passage, against the true claims they
were made from; its area should stay near one half. Documents are kept apart.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from pathlib import Path

import numpy as np
from documents import document_pairs
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from texts import Pair
from written import written_pairs

from guardrail_bench.quality import auroc

FOLDS = 4


def claim_only_area(true: list[Pair], false: list[Pair]) -> float:
    """Return the area of a model of words and word pairs that sees claims only."""
    pairs = true + false
    labels = [1] * len(true) + [0] * len(false)
    groups = [hash(tuple(pair["sentences"])) for pair in true] * 2
    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), lowercase=False), LogisticRegression(max_iter=300)
    )
    found = cross_val_predict(
        model, [pair["claim"] for pair in pairs], labels, groups=groups,
        cv=GroupKFold(FOLDS), method="predict_proba",
    )[:, 1]  # fmt: skip
    return auroc(found, np.array(labels) == 1)


def main() -> None:
    """Print the area of every class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("folder", type=Path, help="written claims, a file a source")
    arguments = parser.parse_args()
    config = json.loads(arguments.config.read_text(encoding="utf-8"))
    rng = random.Random(config["seed"])
    written = written_pairs(arguments.folder, config, rng)
    prose = [pair for pair in written if pair["source"] in config["document_sources"]]
    made = document_pairs(prose, config["documents"], rng)
    classes: dict[str, list[tuple[Pair, Pair]]] = {}
    for true, false in itertools.pairwise(made):
        if true["label"] == 0 and false["label"] != 0:
            classes.setdefault(false["source"], []).append((true, false))
    for name, pairs in sorted(classes.items()):
        area = claim_only_area([true for true, _ in pairs], [false for _, false in pairs])
        print(f"{name} {len(pairs)} {area:.3f}", flush=True)


if __name__ == "__main__":
    main()

"""Measures heads on the frozen encoder, and word counts: `measure.py --data ... --dev ...`.

Logistic regression on mean and maximum of a text's token states (after layer 3 and at the top), and
TF-IDF with logistic regression as floor, ROC areas on development texts. Runs in the service's
environment, with scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from prepare import Reader
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from texts import known

from corpora import read
from encoding import open_encoder
from guardrail_service.text.sample import windows
from guardrail_service.text.segmentation.sentences import Sentence

SOURCES = {
    "jigsaw": "toxicity", "hatexplain": "toxicity", "hatemoji_build": "toxicity",
    "edos": "gender", "redditbias": "group", "stereoset": "group", "wiki_npov": "framing",
}  # fmt: skip
MAX_TOKENS = 192


def pooled(texts: list[str], reader: Reader, session: Any) -> dict[str, Any]:
    """Return mean and maximum of each text's token states, after layer 3 and at the top."""
    found: dict[str, list[Any]] = {"middle": [], "top": []}
    for text in texts:
        first = windows(Sentence(0, len(text), text), reader.tokenizer)[0]
        ids = np.array([reader.ids(first.text, MAX_TOKENS)])
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        outputs = session.run(["middle_states", "token_embeddings"], feed)
        for name, (states,) in zip(found, outputs, strict=True):
            found[name].append(np.concatenate([states.mean(0), states.max(0)]))
    return {name: np.stack(rows) for name, rows in found.items()}


def by_source(paths: list[Path]) -> dict[str, list[tuple[str, int]]]:
    """Return texts with the label that their source is measured by."""
    rows: dict[str, list[tuple[str, int]]] = {name: [] for name in SOURCES}
    for path in paths:
        for row in read(path):
            if row["source"] in SOURCES:
                value = known(row)[SOURCES[row["source"]]][0]
                rows[row["source"]].append((row["text"], int(value >= 0.5)))
    return rows


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--dev", type=Path, nargs="+", required=True)
    parser.add_argument("--pack", type=Path, required=True)
    parser.add_argument("--count", type=int, default=3000, help="texts a source to train heads on")
    arguments = parser.parse_args()
    reader, session = Reader(arguments.pack), open_encoder(arguments.pack)
    train, dev = by_source(arguments.data), by_source(arguments.dev)
    rng = random.Random(17)
    report = {}
    for name in SOURCES:
        texts, labels = zip(*train[name], strict=True)
        held, truth = zip(*dev[name], strict=True)
        words = TfidfVectorizer(
            ngram_range=(1, 2), min_df=2, max_features=100_000, sublinear_tf=True
        )
        floor = make_pipeline(words, LogisticRegression(C=4.0, max_iter=300)).fit(texts, labels)
        areas = {"tfidf": roc_auc_score(truth, floor.predict_proba(held)[:, 1])}
        some = rng.sample(train[name], min(arguments.count, len(train[name])))
        features = pooled([t for t, _ in some], reader, session)
        test = pooled(list(held), reader, session)
        for kind in features:
            head = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=300))
            head.fit(features[kind], [label for _, label in some])
            areas[kind] = roc_auc_score(truth, head.predict_proba(test[kind])[:, 1])
        report[name] = {kind: round(float(area), 4) for kind, area in areas.items()}
        print(name, report[name], flush=True)
    print(json.dumps(report))


if __name__ == "__main__":
    main()

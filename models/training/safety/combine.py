"""Compares ways to combine the three parts of bias: `combine.py --dev bias_dev.jsonl.gz`.

Each source labels one part only, so it is judged with weights fitted on the other sources, and
again with the part that it labels left out, as if it were a kind that nobody trained on. Cuts are
those that a share of neutral answers crosses: tests/golden/neutral and, with `--answers`, more.
Runs in the service's environment, with scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from corpora import read
from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings
from guardrail_service.types import Sample

PARTS = ("gender", "group", "framing")
LABELLED = {"edos": 0, "redditbias": 1, "stereoset": 1, "wiki_npov": 2}
"""Which part a source's labels are about."""
NEUTRAL = Path(__file__).parents[3] / "tests" / "golden" / "neutral" / "open.jsonl"
SHARES = (0.003, 0.02, 0.05)
"""Of neutral answers flagged: the presets' shares."""
Floats = NDArray[np.float64]
Way = Callable[[Floats], Floats]


def log_odds(texts: Iterable[str], runtime: Runtime) -> Floats:
    """Return the parts' log-odds, shape (texts, 3), each the largest over the sentences."""
    rows = []
    for text in texts:
        result = runtime.guard.check(Sample(text), deadline_ms=math.inf).detectors["bias"]
        scores = [result.metrics[part].score if result.metrics else 0.0 for part in PARTS]
        rows.append(np.clip(scores, 1e-6, 1 - 1e-6))
    found = np.array(rows)
    return np.log(found / (1 - found))


def logistic(odds: Floats, labels: NDArray[np.bool_], weights: Floats) -> Way:
    """Return a fitted combination."""
    model = LogisticRegression(C=10.0).fit(odds, labels, weights)
    return lambda rows: np.asarray(model.decision_function(rows))


def fitted_without(source: str, data: dict[str, tuple[Floats, Any]], neutral: Floats) -> Way:
    """Return a logistic combination of the other sources, each as heavy as the neutral answers."""
    kept = [pair for name, pair in data.items() if name != source]
    odds = np.concatenate([*(rows for rows, _ in kept), neutral])
    labels = np.concatenate([*(found for _, found in kept), np.zeros(len(neutral), bool)])
    sizes = [len(rows) for rows, _ in kept] + [len(neutral)]
    return logistic(odds, labels, np.concatenate([np.full(n, 1000 / n) for n in sizes]))


def ways(source: str, data: dict[str, tuple[Floats, Any]], neutral: Floats) -> dict[str, Way]:
    """Return the ways to judge one source."""
    return {
        "largest (shipped)": lambda rows: rows.max(1),
        "mean of log-odds": lambda rows: rows.mean(1),
        "noisy-or": lambda rows: np.logaddexp(0, rows).sum(1),
        "log-sum-exp, T = 2": lambda rows: 2 * np.log(np.exp(rows / 2).sum(1)),
        "largest + .3 mean": lambda rows: rows.max(1) + 0.3 * rows.mean(1),
        "logistic, other sources": fitted_without(source, data, neutral),
    }


def cuts(way: Way, sets: list[Floats]) -> list[float]:
    """Return the cuts that the shares of neutral answers cross; the sets count equally."""
    scores = np.concatenate([way(rows) for rows in sets])
    weights = np.concatenate([np.full(len(rows), 1 / len(rows) / len(sets)) for rows in sets])
    order = np.argsort(-scores)
    beyond = np.cumsum(weights[order])
    return [float(scores[order[np.searchsorted(beyond, share)]]) for share in SHARES]


def main() -> None:
    """Score, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dev", type=Path, required=True, help="texts labelled for bias")
    parser.add_argument("--answers", type=Path, nargs="*", default=[], help="more neutral answers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bias.json"
        policy = {"name": "bias", "version": "1", "on_unverified": "pass"}
        path.write_text(json.dumps({"evaluator_ids": ["bias"], "policy": policy}), "utf-8")
        runtime = Runtime(Settings(config=(path,)))
        data: dict[str, tuple[Floats, Any]] = {}
        rows = list(read(arguments.dev))
        for name in LABELLED:
            own = [row for row in rows if row["source"] == name]
            labels = np.array([row["label"] == 1 for row in own])
            data[name] = (log_odds((row["text"] for row in own), runtime), labels)
        sets = [
            log_odds((row["text"] for row in read(file)), runtime)
            for file in (NEUTRAL, *arguments.answers)
        ]
        runtime.close()
    print("way | " + " | ".join(data) + " | mean | part left out | caught at .3, 2, 5 %")
    for name in ways("edos", data, sets[0]):
        areas, without, caught = [], [], []
        for source, (odds, labels) in data.items():
            way = ways(source, data, np.concatenate(sets))[name]
            areas.append(float(roc_auc_score(labels, way(odds))))
            caught.append([float((way(odds)[labels] > cut).mean()) for cut in cuts(way, sets)])
            if not name.startswith("logistic"):  # it is fitted on all three
                others = np.delete(odds, LABELLED[source], axis=1)
                without.append(float(roc_auc_score(labels, way(others))))
        cells = [*(f"{area:.3f}" for area in areas), f"{np.mean(areas):.3f}"]
        cells.append(f"{np.mean(without):.3f}" if without else "-")
        cells.append(", ".join(f"{share:.0%}" for share in np.mean(caught, axis=0)))
        print(" | ".join([name, *cells]))


if __name__ == "__main__":
    main()

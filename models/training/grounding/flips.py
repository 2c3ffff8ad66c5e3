"""Compares verdicts of two packs on labelled files: `flips.py PACK REFERENCE NAME=FILE ...`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from guardrail_bench.grounding_quality import OURS, ScoredAnswer, scored_records


def flips(ours: list[ScoredAnswer], reference: list[ScoredAnswer]) -> tuple[int, float, float]:
    """Return how many verdicts differ, and the mean and largest difference of the scores."""
    pairs = list(zip(ours, reference, strict=True))
    changed = sum(a.flagged[OURS] != b.flagged[OURS] for a, b in pairs)
    gaps = np.array([abs(a.support[OURS] - b.support[OURS]) for a, b in pairs])
    return changed, float(gaps.mean()), float(gaps.max())


def main() -> None:
    """Score every file with both packs and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack")
    parser.add_argument("reference")
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    arguments = parser.parse_args()
    print("| set | records | verdicts changed | mean difference | largest |")
    print("|" + " --- |" * 5)
    for item in arguments.files:
        name, _, file = item.partition("=")
        ours, _ = scored_records(Path(file), arguments.pack)
        reference, _ = scored_records(Path(file), arguments.reference)
        changed, mean, largest = flips(ours, reference)
        print(f"| {name} | {len(ours)} | {changed} | {mean:.4f} | {largest:.3f} |", flush=True)


if __name__ == "__main__":
    main()

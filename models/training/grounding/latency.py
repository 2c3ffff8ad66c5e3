"""Milliseconds that hallucination adds to a check: `latency.py [--pack P] [--answers FILE]`.

Each answer is checked twice, one at a time: with passages not met before, then with every text in
memory; with the detectors of the default policy, and with the same ones without hallucination.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_service.server.runtime import Runtime
from guardrail_service.settings import Settings
from guardrail_service.types import Passage, Sample

ROOT = Path(__file__).resolve().parents[3]
DEFAULT = ROOT / "configs" / "default.json"
ANSWERS = ROOT / "models" / "thresholds" / "answers.jsonl"


def samples(path: Path) -> list[Sample]:
    """Return the first answer of every group, so that no passage was met before."""
    first: dict[str, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        first.setdefault(row["group"], row)
    return [
        Sample(row["answer"], row["question"], tuple(map(Passage, row["contexts"])))
        for row in first.values()
    ]


def spent(runtime: Runtime, asked: list[Sample]) -> list[float]:
    """Return the milliseconds of each check."""
    found = []
    for sample in asked:
        started = time.perf_counter()
        runtime.guard.check(sample, deadline_ms=math.inf)
        found.append((time.perf_counter() - started) * 1e3)
    return found


def measured(ids: list[str], pack: str | None, asked: list[Sample]) -> list[float]:
    """Return p50 and p95 with new passages and p50 with texts met before."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.json"
        path.write_text(json.dumps({"evaluator_ids": ids}), encoding="utf-8")
        runtime = Runtime(Settings(model_pack=pack or "embedded", config=(path,)))
    try:
        spent(runtime, [Sample("A warm-up.", "What?", (Passage("A warm-up sentence."),))])
        cold, warm = spent(runtime, asked), spent(runtime, asked)
    finally:
        runtime.close()
    return [float(v) for v in (np.median(cold), np.quantile(cold, 0.95), np.median(warm))]


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pack")
    parser.add_argument("--answers", type=Path, default=ANSWERS)
    arguments = parser.parse_args()
    asked = samples(arguments.answers)
    ids = json.loads(DEFAULT.read_text(encoding="utf-8"))["evaluator_ids"]
    others = [name for name in ids if name != "hallucination"]
    print(f"{len(asked)} answers, one check at a time\n")
    print("| policy | p50 ms, passages new | p95 ms | p50 ms, texts met before |")
    print("|" + " --- |" * 4)
    for name, chosen in (("without", others), ("with", ids)):
        values = measured(chosen, arguments.pack, asked)
        print(f"| {name} hallucination | " + " | ".join(f"{v:.1f}" for v in values) + " |")


if __name__ == "__main__":
    main()

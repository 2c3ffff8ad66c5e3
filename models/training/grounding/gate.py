"""Measures what settling copied claims changes: `gate.py --out DIR [NAME=FILE ...]`.

Scores records twice: the labelled answers (both halves), the demo's answers and their rewordings,
the written trials and any further files, through the guard that serves, with the gate and without
it, and writes DIR/gate.json and DIR/gate.md: share of claims settled, areas, flags at the shipped
threshold, every verdict that changed, and the time of a check on answers that copy.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from evidence import segmented, some
from measure import split

from guardrail_bench.grounding_quality import (
    OURS,
    LabelledAnswer,
    ScoredAnswer,
    best_per_group,
    read,
    runtime_of,
    score,
)
from guardrail_bench.quality import auroc
from guardrail_service.detectors.hallucination import verbatim
from guardrail_service.detectors.hallucination.reading import claims_of
from guardrail_service.server.runtime import Runtime
from guardrail_service.text.sample import unverifiable
from guardrail_service.types import Passage, Sample

ROOT = Path(__file__).resolve().parents[3]
ROUNDS = 5


@contextmanager
def no_gate() -> Iterator[None]:
    """Let the model read every claim."""
    kept = verbatim.copies
    verbatim.copies = lambda sample, pieces, role: (None,) * len(pieces)  # type: ignore[assignment]
    try:
        yield
    finally:
        verbatim.copies = kept


def records_of(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def labelled(row: dict[str, Any], supported: bool, name: str) -> LabelledAnswer:
    """Return an answer with its label; the name is the group."""
    passages = tuple(Passage(c["text"] if isinstance(c, dict) else c) for c in row["contexts"])
    return LabelledAnswer(Sample(row["answer"], row.get("question"), passages), supported, name)


def own_sets() -> dict[str, list[LabelledAnswer]]:
    """Return the project's own labelled answers that hallucination is meant to tell apart."""
    sys.path.insert(0, str(ROOT / "models" / "thresholds"))
    from fit import ANSWERS, CATCHES, fits

    halves: dict[bool, list[LabelledAnswer]] = {True: [], False: []}
    for row in records_of(ANSWERS):
        if row["reason"] is None or row["reason"] in CATCHES[OURS]:
            name = f"{row['id']} {row['reason'] or row['kind']}"
            halves[fits(row)].append(labelled(row, row["label"] == "pass", name))
    found = {"answers, choosing half": halves[True], "answers, other half": halves[False]}
    for name, path in (
        ("demo", "examples/demo/answers.jsonl"),
        ("demo reworded", "tests/golden/demo_reworded.jsonl"),
    ):
        rows = [row for row in records_of(ROOT / path) if row["sample"]["contexts"]]
        found[name] = [
            labelled(row["sample"], OURS not in row["expected"]["flagged"], row["name"])
            for row in rows
        ]
    trials = records_of(ROOT / "tests/golden/hallucination_trials.jsonl")
    found["trials"] = [
        labelled(row, row["label"] == "pass", f"{number} {row['kind']}")
        for number, row in enumerate(trials)
    ]
    return found


def settled(runtime: Runtime, record: LabelledAnswer) -> tuple[int, int]:
    """Return how many claims are settled, and how many there are; an unverified answer has none."""
    view = segmented(runtime, record)
    if unverifiable(view, "grounding", "answer", "contexts") is not None:
        return 0, 0
    pieces = claims_of(view).judged
    found = verbatim.copies(view, pieces, "embedding")
    return sum(copy is not None for copy in found), len(found)


def area(scored: Sequence[ScoredAnswer]) -> float | None:
    """Return the area of support, None where a class is missing."""
    bad = np.array([not one.record.supported for one in scored])
    support = np.array([one.support[OURS] for one in scored])
    return auroc(-support, bad) if 0 < bad.sum() < len(bad) else None


def compare(
    runtime: Runtime, every: Sequence[LabelledAnswer], limit: int, rng: random.Random
) -> dict[str, Any]:
    """Return the report on one set.

    Claims are counted in all records. Scored are those with a settled claim, which may change, and
    `limit` drawn ones, on which areas and flags are measured.
    """
    totals = {id(record): settled(runtime, record) for record in every}
    drawn = some(every, limit, rng)
    copying = [record for record in every if totals[id(record)][0]]
    known = {id(record) for record in drawn}
    records = [*drawn, *(record for record in copying if id(record) not in known)]
    counts = [totals[id(record)] for record in records]
    with no_gate():
        before = score(runtime, records)
    copied = [number for number, (found, _) in enumerate(counts) if found]
    again = score(runtime, [records[number] for number in copied])
    after = list(before)
    for number, one in zip(copied, again, strict=True):
        after[number] = one
    changed = [
        {
            "record": old.record.group,
            "supported": old.record.supported,
            "before": old.support[OURS],
            "after": new.support[OURS],
            "worse": new.flagged[OURS] == old.record.supported,
            "answer": old.record.sample.answer,
        }
        for old, new in zip(before, after, strict=True)
        if old.flagged[OURS] != new.flagged[OURS]
    ]
    moved = sum(
        not old.record.supported and new.support[OURS] != old.support[OURS]
        for old, new in zip(before, after, strict=True)
    )
    read_scores = [
        one.support[OURS]
        for one, (found, total) in zip(before, counts, strict=True)
        if 0 < found == total
    ]
    return {
        "records": len(every),
        "drawn": len(drawn),
        "claims": sum(total for _, total in totals.values()),
        "settled": sum(found for found, _ in totals.values()),
        "records_settled": sum(0 < found == total for found, total in counts),
        "unsupported_settled": sum(
            0 < found == total and not record.supported
            for (found, total), record in zip(counts, records, strict=True)
        ),
        "unsupported_moved": moved,
        "model_on_settled": sorted(read_scores),
        "before": flags(before[: len(drawn)]),
        "after": flags(after[: len(drawn)]),
        "changed": changed,
    }


def flags(scored: Sequence[ScoredAnswer]) -> dict[str, Any]:
    """Return area and counts at the shipped threshold."""
    good = [one.flagged[OURS] for one in scored if one.record.supported]
    bad = [one.flagged[OURS] for one in scored if not one.record.supported]
    return {
        "auroc": area(best_per_group(scored)),
        "false_flags": [sum(good), len(good)],
        "caught": [sum(bad), len(bad)],
    }


def timing(runtime: Runtime, records: Sequence[LabelledAnswer]) -> dict[str, Any]:
    """Return milliseconds of checks of answers that copy, texts met before, both ways in turn."""
    copying = [r for r in records if 0 < settled(runtime, r)[0] == settled(runtime, r)[1]]
    spent: dict[str, list[float]] = {"before": [], "after": []}
    score(runtime, copying)

    def once(way: str) -> None:
        for record in copying:
            started = time.perf_counter()
            runtime.guard.check(record.sample, deadline_ms=math.inf)
            spent[way].append((time.perf_counter() - started) * 1e3)

    for _ in range(ROUNDS):
        with no_gate():
            once("before")
        once("after")
    own = []
    for record in records:
        view = segmented(runtime, record)
        pieces = claims_of(view).judged
        view.context_windows("embedding")  # cut for every detector anyway
        started = time.perf_counter()
        verbatim.copies(view, pieces, "embedding")
        own.append((time.perf_counter() - started) * 1e3)
    p50 = {way: float(np.median(values)) for way, values in spent.items()}
    return {
        "answers": len(copying),
        "p50_ratio": p50["after"] / p50["before"],
        "mean_ratio": float(np.mean(spent["after"]) / np.mean(spent["before"])),
        "gate_ms_p50": float(np.median(own)),
        "check_ms_p50": p50,
    }


def row(name: str, part: dict[str, Any]) -> str:
    """Return one line of the table."""

    def pair(key: str) -> str:
        (x, n), (y, _) = part["before"][key], part["after"][key]
        return f"{x} -> {y} of {n}"

    areas = [part[way]["auroc"] for way in ("before", "after")]
    shown = " -> ".join("-" if a is None else f"{a:.3f}" for a in areas)
    share = part["settled"] / max(1, part["claims"])
    better = sum(not change["worse"] for change in part["changed"])
    size = f"{part['records']}"
    if part["drawn"] < part["records"]:
        size += f" ({part['drawn']} drawn)"
    return (
        f"| {name} | {size} | {part['settled']} of {part['claims']} ({share:.1%}) | "
        f"{part['unsupported_settled']} | {shown} | {pair('false_flags')} | {pair('caught')} | "
        f"{better} / {len(part['changed']) - better} |"
    )


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="NAME=FILE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pack")
    parser.add_argument("--limit", type=int, default=300, help="records per source of a file")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    sets = own_sets()
    rng = random.Random(0)
    for item in arguments.files:
        name, _, file = item.partition("=")
        for label, path in split(Path(file), arguments.out, name).items():
            sets[label] = list(read(path))
    lines = [
        "| set | records | claims settled | unsupported records settled whole | AUROC | "
        "false flags | caught | verdicts better / worse |",
        "|" + " --- |" * 8,
    ]
    report: dict[str, Any] = {"sets": {}}
    with runtime_of(arguments.pack) as runtime:
        for name, records in sets.items():
            report["sets"][name] = compare(runtime, records, arguments.limit, rng)
            lines.append(row(name, report["sets"][name]))
            print(lines[-1], flush=True)
            for change in report["sets"][name]["changed"]:
                print("   ", json.dumps(change), flush=True)
        both = [*sets["answers, choosing half"], *sets["answers, other half"]]
        report["timing"] = timing(runtime, both)
    print(json.dumps(report["timing"]))
    (arguments.out / "gate.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    (arguments.out / "gate.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

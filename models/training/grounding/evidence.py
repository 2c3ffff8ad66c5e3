"""Compares which passage sentences the head reads: `evidence.py --out DIR NAME=FILE ...`.

Every claim is scored by each way of choosing evidence, as the service cuts claims and sentences,
first with its own passages, then with `--foreign` passages of other records added. Writes
DIR/evidence.json and DIR/evidence.md. `--answers` adds the half of the labelled answers that
chooses thresholds. Areas are compared with the present rule draw by draw.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import split

from guardrail_bench.grounding_quality import LabelledAnswer, read, runtime_of
from guardrail_bench.quality import auroc
from guardrail_service.detectors.groundedness import places
from guardrail_service.detectors.hallucination import reading
from guardrail_service.detectors.hallucination.detector import readings
from guardrail_service.inference.memory import CacheSizes
from guardrail_service.inference.models.encoder import (
    EVIDENCE_SENTENCES,
    EVIDENCE_TOKENS,
    GROUNDING_OUTPUTS,
    VECTOR,
    Branch,
    HeadSession,
    SharedEncoder,
    nearest,
)
from guardrail_service.inference.models.session import ModelSession
from guardrail_service.inference.pack import Pack
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.server.runtime import Runtime
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Row

THRESHOLDS = Path(__file__).resolve().parents[2] / "thresholds"
SHIPPED = f"nearest {EVIDENCE_SENTENCES}"
COUNTS = (1, 2, 3, 4, 6, 8, 12)
UNLIMITED = 10**6
ROOM = 2**30
"""Bytes of each memory: texts are encoded once for all rules, only the head's time counts."""
DRAWS = 500


class Claim(NamedTuple):
    """One claim with its evidence, as the head could read it.

    Attributes:
        text: What the head reads.
        windows: Distinct passage windows.
        lengths: Their tokens.
        cosines: Of each with the claim.
        beside: Places of the windows before and behind each in its passage.
    """

    text: str
    windows: tuple[str, ...]
    lengths: list[int]
    cosines: Any
    beside: dict[int, list[int]]


class Cost(NamedTuple):
    """The cost of a rule on one record: tokens of evidence read and milliseconds in the head."""

    tokens: int
    ms: float


def order_only(cosines: Any, lengths: Sequence[int]) -> list[int]:
    """Return every place that has tokens, nearest first."""
    return nearest(cosines, lengths, len(lengths), UNLIMITED)


def open_head(pack: Pack) -> tuple[SharedEncoder, HeadSession]:
    """Return an encoder and a head that reads all it is given, both remembering everything."""
    encoder = open_sessions(pack, CacheSizes(ROOM, ROOM, ROOM))["embedding"]
    assert isinstance(encoder, SharedEncoder)
    assert isinstance(encoder.session, ModelSession)
    name = pack.model("grounding").encoder or ""
    reads_branch = name != pack.manifest.roles["embedding"]
    branch = Branch(pack, name, encoder, ROOM) if reads_branch else None
    return encoder, HeadSession(pack, encoder, branch, order_only)


def within(claim: Claim, places: Iterable[int]) -> list[int]:
    """Return the first of some places that fit the shipped limits, nearest first."""
    kept: list[int] = []
    used = 0
    for place in dict.fromkeys(places):
        used += claim.lengths[place]
        if kept and (used > EVIDENCE_TOKENS or len(kept) == EVIDENCE_SENTENCES):
            break
        kept.append(place)
    return sorted(kept, key=lambda place: -claim.cosines[place])


def chosen(claim: Claim) -> dict[str, list[list[int]]]:
    """Return what each rule lets the head read: groups of places; the best group counts."""
    everything = order_only(claim.cosines, claim.lengths)
    rules: dict[str, list[list[int]]] = {}
    for count in COUNTS:
        room = EVIDENCE_TOKENS if count <= EVIDENCE_SENTENCES else EVIDENCE_TOKENS * 2
        rules[f"nearest {count}"] = [nearest(claim.cosines, claim.lengths, count, room)]
    first = everything[0]
    beside = [place for place in claim.beside[first] if claim.lengths[place]]
    rules["nearest, its neighbours, then nearest"] = [within(claim, [first, *beside, *everything])]
    half = everything[:3]
    around = [p for place in half for p in claim.beside[place] if claim.lengths[p]]
    rules["nearest 3 and their neighbours"] = [within(claim, [*half, *around])]
    rules["every window alone, best"] = [[place] for place in everything]
    rules["every window in groups, best"] = groups(claim, sorted(everything))
    rules["nearest 6 or any window alone, best"] = [
        *rules[SHIPPED],
        *rules["every window alone, best"],
    ]
    return rules


def groups(claim: Claim, places: Sequence[int]) -> list[list[int]]:
    """Return all places in passage order, in groups that fit the shipped limits."""
    found: list[list[int]] = [[]]
    used = 0
    for place in places:
        used += claim.lengths[place]
        if found[-1] and (used > EVIDENCE_TOKENS or len(found[-1]) == EVIDENCE_SENTENCES):
            found.append([])
            used = claim.lengths[place]
        found[-1].append(place)
    return [sorted(group, key=lambda place: -claim.cosines[place]) for group in found]


def segmented(runtime: Runtime, record: LabelledAnswer) -> SegmentedSample:
    """Return a record's texts as the guard that serves would cut them."""
    guard = runtime.guard
    return SegmentedSample(record.sample, guard._windowers, guard._languages)


def claims_of(view: SegmentedSample, encoder: SharedEncoder) -> list[Claim]:
    """Return the answer's claims, those that the detector settles without the model, too."""
    windows = tuple(dict.fromkeys(place.window.text for place in places(view)))
    found = []
    for claim in readings(view, reading.claims_of(view)):
        texts = encoder.stack(windows)
        vector = encoder.summary(claim.read.text).outputs[VECTOR]
        cosines = np.einsum("ij,j->i", texts.vectors, vector, optimize=False)
        place = {text: number for number, text in enumerate(windows)}
        beside: dict[int, list[int]] = {number: [] for number in place.values()}
        for passage in view.context_windows("embedding"):
            numbers = [place[window.text] for window in passage]
            for left, right in pairwise(numbers):
                beside[left].append(right)
                beside[right].append(left)
        found.append(Claim(claim.read.text, windows, texts.lengths, cosines, beside))
    return found


def scored(claim: Claim, head: HeadSession) -> dict[str, tuple[float, Cost]]:
    """Return P(supported) and cost by each rule; what two rules read alike runs once."""
    known: dict[tuple[int, ...], tuple[float, float]] = {}

    def run(places: list[int]) -> tuple[float, float]:
        key = tuple(places)
        if key not in known:
            texts = tuple(claim.windows[place] for place in places)
            row = Row("grounding", claim.text, outputs=GROUNDING_OUTPUTS, evidence=texts)
            started = time.perf_counter()
            out = head.run(row).outputs
            known[key] = (float(out["probabilities"][0]), (time.perf_counter() - started) * 1e3)
        return known[key]

    for text in (claim.text, *claim.windows):
        head._known(text)  # kept by the service, too, so no rule's own cost
    found = {}
    for name, parts in chosen(claim).items():
        runs = [run(part) for part in parts]
        tokens = sum(claim.lengths[place] for part in parts for place in part)
        cost = Cost(tokens, sum(ms for _, ms in runs))
        found[name] = (max(p for p, _ in runs), cost)
    return found


def measured(
    records: Sequence[LabelledAnswer], runtime: Runtime, encoder: SharedEncoder, head: HeadSession
) -> tuple[dict[str, list[float]], dict[str, list[Cost]]]:
    """Return each record's support and cost by rule; no claim counts as supported.

    Records of one group (a claim with several passages) become one, with the best support.
    """
    best: dict[str, dict[str, float]] = {}
    spent: dict[str, dict[str, Cost]] = {}
    for record in records:
        view = segmented(runtime, record)
        parts = []
        for claim in claims_of(view, encoder):
            head._states.encode_all([claim.text, *claim.windows])
            parts.append(scored(claim, head))
        for name in parts[0] if parts else ():
            support = min(part[name][0] for part in parts)
            cost = Cost(
                sum(part[name][1].tokens for part in parts), sum(part[name][1].ms for part in parts)
            )
            seen = best.setdefault(record.group, {})
            seen[name] = max(seen.get(name, 0.0), support)
            before = spent.setdefault(record.group, {}).get(name, Cost(0, 0.0))
            spent[record.group][name] = Cost(before.tokens + cost.tokens, before.ms + cost.ms)
    names = next(iter(best.values()))
    order = list(dict.fromkeys(record.group for record in records))
    return (
        {name: [best.get(g, {}).get(name, 1.0) for g in order] for name in names},
        {name: [spent[g][name] for g in order if g in spent] for name in names},
    )


def with_foreign(
    records: Sequence[LabelledAnswer], count: int, rng: random.Random
) -> list[LabelledAnswer]:
    """Return the records among passages of a pool of other records."""
    pool = list(dict.fromkeys(p for record in records for p in record.sample.contexts))
    pool = rng.sample(pool, min(len(pool), 4 * count))
    found = []
    for record in records:
        own = record.sample.contexts
        contexts = [*own, *[p for p in rng.sample(pool, len(pool)) if p not in own][:count]]
        rng.shuffle(contexts)
        found.append(replace(record, sample=replace(record.sample, contexts=tuple(contexts))))
    return found


def some(records: Sequence[LabelledAnswer], limit: int, rng: random.Random) -> list[LabelledAnswer]:
    """Return at most so many records, in whole groups."""
    names = list(dict.fromkeys(record.group for record in records))
    rng.shuffle(names)
    sizes = Counter(record.group for record in records)
    total = list(accumulate(sizes[name] for name in names))
    kept = set(names[: bisect_right(total, limit)])
    return [record for record in records if record.group in kept]


def labels_of(records: Sequence[LabelledAnswer]) -> tuple[Any, Any]:
    """Return per group whether it is unsupported, and which draw it belongs to: its passage."""
    bad: dict[str, bool] = {}
    unit: dict[str, int] = {}
    for record in records:
        bad[record.group] = bad.get(record.group, True) and not record.supported
        unit.setdefault(record.group, hash(record.sample.contexts))
    return np.array(list(bad.values())), np.array(list(unit.values()))


def areas(sets: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return each rule's area per set, the macro area and its difference to the present rule."""
    rng = np.random.default_rng(0)
    drawn: dict[str, list[float]] = {name: [] for name in next(iter(sets.values()))["support"]}
    members = {
        label: [np.flatnonzero(part["units"] == unit) for unit in np.unique(part["units"])]
        for label, part in sets.items()
    }
    while len(drawn[SHIPPED]) < DRAWS:
        picks = {
            label: np.concatenate([units[i] for i in rng.integers(0, len(units), len(units))])
            for label, units in members.items()
        }
        if any(len(set(sets[label]["bad"][rows])) < 2 for label, rows in picks.items()):
            continue
        for name, values in drawn.items():
            values.append(
                np.mean(
                    [
                        auroc(
                            -np.array(part["support"][name])[picks[label]],
                            part["bad"][picks[label]],
                        )
                        for label, part in sets.items()
                    ]
                )
            )
    found: dict[str, dict[str, Any]] = {}
    for name, values in drawn.items():
        each = {
            label: auroc(-np.array(part["support"][name]), part["bad"])
            for label, part in sets.items()
        }
        gap = np.array(values) - np.array(drawn[SHIPPED])
        costs = [c for part in sets.values() for c in part["costs"][name]]
        base = [c for part in sets.values() for c in part["costs"][SHIPPED]]
        found[name] = {
            "auroc": each,
            "macro": float(np.mean(list(each.values()))),
            "interval95": np.quantile(values, [0.025, 0.975]).tolist(),
            "difference": float(np.mean(gap)),
            "difference_interval95": np.quantile(gap, [0.025, 0.975]).tolist(),
            "tokens": float(np.mean([c.tokens for c in costs])),
            "ms_p50": float(np.median([c.ms for c in costs]) / np.median([c.ms for c in base])),
            "ms_mean": float(np.mean([c.ms for c in costs]) / np.mean([c.ms for c in base])),
        }
    return found


def table(found: dict[str, dict[str, Any]]) -> str:
    """Return the comparison as Markdown."""
    sets = list(found[SHIPPED]["auroc"])
    head = ["evidence", *sets, "macro", "against the present rule", "tokens read"]
    head.append("head, ms p50 / mean")
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name, row in found.items():
        low, high = row["interval95"]
        left, right = row["difference_interval95"]
        gap = f"{row['difference']:+.3f} ({left:+.3f} to {right:+.3f})" if name != SHIPPED else "-"
        cells = [
            f"**{name}**" if name == SHIPPED else name,
            *(f"{row['auroc'][label]:.3f}" for label in sets),
            f"{row['macro']:.3f} ({low:.3f}-{high:.3f})",
            gap,
            f"{row['tokens']:.0f}",
            f"{row['ms_p50']:.2f} x / {row['ms_mean']:.2f} x",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def answers_file(folder: Path) -> Path:
    """Return the choosing half of the labelled answers as records: failures hallucination sees."""
    sys.path.insert(0, str(THRESHOLDS))
    from fit import ANSWERS, CATCHES, fits

    path = folder / "answers.jsonl"
    rows = [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    kept = [
        r for r in rows if fits(r) and (not r["reason"] or r["reason"] in CATCHES["hallucination"])
    ]
    lines = [
        {k: r[k] for k in ("contexts", "question", "answer")} | {"supported": r["label"] == "pass"}
        for r in kept
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pack")
    parser.add_argument("--answers", action="store_true")
    parser.add_argument("--limit", type=int, default=300, help="records per source")
    parser.add_argument("--foreign", type=int, default=20)
    parser.add_argument("--foreign-limit", type=int, default=100, help="records per source, then")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Path] = {}
    for item in arguments.files:
        name, _, file = item.partition("=")
        paths |= split(Path(file), arguments.out, name)
    if arguments.answers:
        paths["answers"] = answers_file(arguments.out)
    rng = random.Random(0)
    results: dict[str, dict[str, Any]] = {"own": {}, "foreign": {}}
    with runtime_of(arguments.pack) as runtime:
        encoder, head = open_head(runtime.pack)
        for label, path in paths.items():
            records = some(list(read(path)), arguments.limit, rng)
            few = some(records, arguments.foreign_limit, rng)
            for kind, asked in (
                ("own", records),
                ("foreign", with_foreign(few, arguments.foreign, rng)),
            ):
                started = time.perf_counter()
                support, costs = measured(asked, runtime, encoder, head)
                bad, units = labels_of(records if kind == "own" else few)
                results[kind][label] = {
                    "support": support,
                    "costs": costs,
                    "bad": bad,
                    "units": units,
                }
                print(label, kind, len(bad), f"{time.perf_counter() - started:.0f} s", flush=True)
    found = {kind: areas(sets) for kind, sets in results.items()}
    (arguments.out / "evidence.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    titles = {
        "own": "The record's own passages",
        "foreign": f"{arguments.foreign} foreign passages added",
    }
    text = "\n".join(f"{titles[kind]}:\n\n{table(part)}" for kind, part in found.items())
    (arguments.out / "evidence.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

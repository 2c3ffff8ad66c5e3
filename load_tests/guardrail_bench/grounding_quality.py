"""Measures how well hallucination ranks labelled answers, through the guard that serves.

Records are JSON lines (gzip or not): `{"premise", "hypothesis", "supported"}` or
`{"contexts": [...], "question"?, "answer", "supported"}`; a `group` makes records one claim with
several passages, of which the best counts.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from guardrail_bench.quality import (
    Array,
    Bools,
    auprc,
    auroc,
    balanced_accuracy,
    false_flags_at,
    interval,
    lines,
)
from guardrail_bench.server import serving_only
from guardrail_service.errors import InputError
from guardrail_service.inference.models.lexical import STOP
from guardrail_service.server.runtime import Runtime
from guardrail_service.types import DetectorResult, Passage, Sample, State

OURS = "hallucination"
BASELINES = ("content_word_overlap", "embedding_groundedness")
RECALLS = (0.8, 0.9)
LENGTHS = ((0, 10), (11, 20), (21, math.inf))
EVIDENCE_LENGTHS = ((0, 50), (51, 150), (151, math.inf))
PASSAGES = ((1, 1), (2, 5), (6, math.inf))
MIN_SLICE = 40
"""Smaller slices are counted, not scored: their interval would span the whole scale."""


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """One record."""

    sample: Sample
    supported: bool
    group: str


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """One record's support by each way of scoring (higher is better supported)."""

    record: LabelledAnswer
    support: dict[str, float]
    flagged: dict[str, bool]
    state: State
    hallucination_ms: float


def run(data: Path, pack: str | None = None) -> dict[str, Any]:
    """Score every record and return the report as JSON-ready values.

    A record that hallucination says nothing about counts as what the service does with it: not
    applicable passes (support 1), unverified flags (support 0). `states` counts both.

    Raises:
        InputError: If a record is malformed; the message names its line.
    """
    scored, threshold = scored_records(data, pack)
    return summary(data.name, scored, threshold)


def scored_records(data: Path, pack: str | None = None) -> tuple[list[ScoredAnswer], float | None]:
    """Return a file's records with their scores, one per group, and the threshold in use.

    Raises:
        InputError: If a record is malformed; the message names its line.
    """
    records = list(read(data))
    with runtime_of(pack) as runtime:
        return best_per_group(score(runtime, records)), _cut(runtime)


def summary(name: str, scored: Sequence[ScoredAnswer], threshold: float | None) -> dict[str, Any]:
    """Return the report on scored records as JSON-ready values."""
    states: dict[str, int] = {}
    for one in scored:
        states[one.state.value] = states.get(one.state.value, 0) + 1
    spent = np.array([one.hallucination_ms for one in scored])
    return {
        "task": "grounding",
        "data": name,
        "records": len(scored),
        "supported": sum(one.record.supported for one in scored),
        "states": states,
        "threshold": threshold,
        **measures(scored, OURS),
        "baselines": {baseline: measures(scored, baseline) for baseline in BASELINES},
        "slices": slices(scored),
        "ms_per_record": {"p50": float(np.median(spent)), "p95": float(np.quantile(spent, 0.95))},
    }


def growth(
    data: Path, pack: str | None = None, counts: Sequence[int] = (1, 5, 20), limit: int = 400
) -> list[dict[str, Any]]:
    """Return how false flags change when foreign passages join each record's own.

    Args:
        data: Records; the foreign passages are those of other records of the file.
        pack: Model pack.
        counts: Passages per sample in all.
        limit: Records used, the first ones after a seeded shuffle.
    """
    records = list(read(data))
    rng = random.Random(0)  # noqa: S311 - a reproducible draw, not a secret
    rng.shuffle(records)
    records = records[:limit]
    passages = list(dict.fromkeys(p for r in records for p in r.sample.contexts))
    found = []
    with runtime_of(pack) as runtime:
        for count in counts:
            scored = score(runtime, [_among(r, passages, count, rng) for r in records])
            bad = np.array([not one.record.supported for one in scored])
            entry: dict[str, Any] = {"passages": count}
            for name in (OURS, "embedding_groundedness"):
                flagged = np.array([one.flagged[name] for one in scored])
                entry[name] = {
                    "false_flags": float(flagged[~bad].mean()),
                    "caught": float(flagged[bad].mean()),
                    "auroc": auroc(-_support(scored, name), bad),
                }
            found.append(entry)
    return found


def read(path: Path) -> Iterator[LabelledAnswer]:
    """Yield records.

    Raises:
        InputError: If a line is no record.
    """
    for number, line in lines(path):
        yield _record(line, number)


def _record(line: bytes, number: int) -> LabelledAnswer:
    try:
        row = json.loads(line)
        answer = row["hypothesis"] if "hypothesis" in row else row["answer"]
        contexts = [row["premise"]] if "premise" in row else row["contexts"]
        texts = [c["text"] if isinstance(c, dict) else c for c in contexts]
        sample = Sample(answer, row.get("question"), tuple(Passage(t) for t in texts))
        return LabelledAnswer(sample, bool(row["supported"]), str(row.get("group", number)))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            "expected premise, hypothesis, supported or contexts, answer, supported",
            f"line {number}",
        ) from error


def runtime_of(pack: str | None) -> AbstractContextManager[Runtime]:
    """Return a service with just hallucination and groundedness, on their default thresholds."""
    return serving_only((OURS, "groundedness"), pack)


def score(runtime: Runtime, records: Sequence[LabelledAnswer]) -> list[ScoredAnswer]:
    """Return every record with its scores, in order."""

    def one(record: LabelledAnswer) -> ScoredAnswer:
        started = time.perf_counter()
        verdict = runtime.guard.check(record.sample, deadline_ms=math.inf)
        spent = (time.perf_counter() - started) * 1e3
        ours, embedded = verdict.detectors[OURS], verdict.detectors["groundedness"]
        return ScoredAnswer(
            record,
            {
                OURS: support_of(ours, OURS, 0.0),
                "embedding_groundedness": support_of(embedded, "groundedness", -1.0),
                "content_word_overlap": overlap(record.sample),
            },
            {OURS: ours.flagged, "embedding_groundedness": embedded.flagged},
            ours.state,
            spent,
        )

    # One at a time where latency is of interest; a second thread keeps the second worker busy.
    with ThreadPoolExecutor(max(1, runtime.settings.workers)) as pool:
        return list(pool.map(one, records))


def best_per_group(scored: Sequence[ScoredAnswer]) -> list[ScoredAnswer]:
    """Return one entry per group: the best support each way found in any of its passages."""
    groups: dict[str, list[ScoredAnswer]] = {}
    for one in scored:
        groups.setdefault(one.record.group, []).append(one)
    return [
        replace(
            members[0],
            record=replace(members[0].record, supported=any(m.record.supported for m in members)),
            support={name: max(m.support[name] for m in members) for name in members[0].support},
            flagged={name: all(m.flagged[name] for m in members) for name in members[0].flagged},
        )
        for members in groups.values()
    ]


def overlap(sample: Sample) -> float:
    """Return the share of the answer's content words that some passage holds; 1 without any."""
    wanted = _content(sample.answer)
    held = {word for passage in sample.contexts for word in _content(passage.text)}
    return sum(word in held for word in wanted) / len(wanted) if wanted else 1.0


def measures(scored: Sequence[ScoredAnswer], name: str) -> dict[str, Any]:
    """Return areas with intervals, rates at a recall, and balanced accuracy at the threshold.

    The positive class is "unsupported": what a guard is there to find.
    """
    support = _support(scored, name)
    bad = np.array([not one.record.supported for one in scored])
    groups = np.array([hash(one.record.sample.contexts) for one in scored])
    if not 0 < bad.sum() < len(bad):
        return {"auroc": None}

    def with_interval(statistic: Callable[[Array, Bools], float]) -> dict[str, Any]:
        low, high = interval(statistic, -support, bad, groups=groups)
        return {"value": statistic(-support, bad), "interval95": [low, high]}

    found: dict[str, Any] = {
        "auroc": with_interval(auroc),
        "auprc": with_interval(auprc),
        "false_flags_at_recall": {
            f"{recall}": with_interval(
                lambda scores, rows, recall=recall: false_flags_at(recall, -scores, rows)  # type: ignore[misc]
            )
            for recall in RECALLS
        },
    }
    if name in scored[0].flagged:
        flagged = np.array([one.flagged[name] for one in scored])
        found["balanced_accuracy"] = balanced_accuracy(flagged, bad)
        found["false_flags"] = float(flagged[~bad].mean())
        found["caught"] = float(flagged[bad].mean())
    return found


def slices(scored: Sequence[ScoredAnswer]) -> dict[str, Any]:
    """Return areas by answer length and evidence length in words and by number of passages."""
    cuts: dict[str, tuple[Sequence[tuple[float, float]], Callable[[Sample], int]]] = {
        "answer_words": (LENGTHS, lambda s: len(s.answer.split())),
        "evidence_words": (
            EVIDENCE_LENGTHS,
            lambda s: sum(len(p.text.split()) for p in s.contexts),
        ),
        "passages": (PASSAGES, lambda s: len(s.contexts)),
    }
    return {
        name: {
            f"{low}-{high}" if high < math.inf else f"{low}+": _slice(
                [one for one in scored if low <= size(one.record.sample) <= high]
            )
            for low, high in ranges
        }
        for name, (ranges, size) in cuts.items()
    }


def render(report: dict[str, Any]) -> Table:
    """Return the report as a table."""
    table = Table("", "AUROC", "AUPRC", "false flags at recall .8", "at .9", "balanced accuracy")
    table.title = f"grounding: {report['data']}, {report['records']} records"
    for name, part in ((OURS, report), *report["baselines"].items()):
        if part["auroc"] is None:
            table.add_row(name, *["one class only"] * 5)
            continue
        rates = part["false_flags_at_recall"]
        cells = [part["auroc"], part["auprc"], *(rates[f"{recall}"] for recall in RECALLS)]
        table.add_row(name, *map(_cell, cells), _plain(part.get("balanced_accuracy")))
    return table


def _slice(scored: Sequence[ScoredAnswer]) -> dict[str, Any]:
    bad = np.array([not one.record.supported for one in scored], dtype=bool)
    entry: dict[str, Any] = {"records": len(scored)}
    if len(scored) >= MIN_SLICE and 0 < bad.sum() < len(bad):
        entry["auroc"] = {name: auroc(-_support(scored, name), bad) for name in (OURS, *BASELINES)}
    return entry


def _among(
    record: LabelledAnswer, passages: Sequence[Passage], count: int, rng: random.Random
) -> LabelledAnswer:
    own = record.sample.contexts
    foreign = [p for p in rng.sample(passages, min(count * 2, len(passages))) if p not in own]
    contexts = [*own, *foreign[: max(0, count - len(own))]]
    rng.shuffle(contexts)
    return replace(record, sample=replace(record.sample, contexts=tuple(contexts)))


def support_of(result: DetectorResult, metric: str, low: float) -> float:
    """Return a score; 1 where there was nothing to judge, `low` where it could not be judged."""
    if result.state is State.EVALUATED:
        return result.metrics[metric].score
    return 1.0 if result.state is State.NOT_APPLICABLE else low


def _support(scored: Sequence[ScoredAnswer], name: str) -> Array:
    return np.array([one.support[name] for one in scored])


def _cut(runtime: Runtime) -> float | None:
    policy = runtime.guard.policies[runtime.guard.default_policy]
    cut = policy.rules[OURS].cuts.get(OURS)
    return None if cut is None else cut.threshold


def _content(text: str) -> list[str]:
    words = "".join(c.lower() if c.isalnum() else " " for c in text).split()
    return [word for word in words if word not in STOP]


def _cell(value: dict[str, Any]) -> str:
    low, high = value["interval95"]
    return f"{value['value']:.3f} ({low:.3f}-{high:.3f})"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

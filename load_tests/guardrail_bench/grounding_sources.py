"""Measures how well hallucination ranks claims of models and people, source by source.

Reads a folder of JSON lines, one file per source: `{"premise", "hypothesis", "supported"}` with,
where known, `question`, `level` (sentence or answer), `group` (the document), `spans` (the
unsupported parts of the hypothesis) and `split`, of which only `dev` is read.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from guardrail_bench.grounding_quality import (
    OURS,
    LabelledAnswer,
    overlap,
    runtime_of,
    support_of,
)
from guardrail_bench.quality import lines
from guardrail_service.errors import InputError
from guardrail_service.policy.decide import Cut, Policy
from guardrail_service.server.runtime import Runtime
from guardrail_service.types import Passage, Sample, Span

BIGRAMS: Final = "bigram_overlap"
WORDS: Final = "content_word_overlap"
EMBEDDED: Final = "embedding_groundedness"
WAYS: Final = (OURS, WORDS, BIGRAMS, EMBEDDED)
AT_ONCE = 200
"""Records scored before what they score is kept."""
PER_DOCUMENT = 4
"""Records drawn of one document before the next round of documents begins."""
NEVER_PASSES = 1.0 + 1e-9
"""A cut that keeps every claim's span."""


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """One record: an answer with its label, and what is known about where it comes from."""

    answer: LabelledAnswer
    source: str
    level: str
    spans: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True, slots=True)
class WrittenScore:
    """The score of one record by every way of scoring.

    Attributes:
        source: Name of the file.
        level: `sentence` or `answer`.
        document: Records of one document are drawn together.
        supported: The label.
        passage_words: Words of all passages.
        answer_words: Words of the answer.
        support: Support by each way; higher is better supported.
        claims: [start, end) of every claim and its score.
        spans: The parts labelled unsupported; None where the source has none.
    """

    source: str
    level: str
    document: str
    supported: bool
    passage_words: int
    answer_words: int
    support: dict[str, float]
    claims: tuple[tuple[int, int, float], ...]
    spans: tuple[tuple[int, int], ...] | None


def read_folder(folder: Path) -> dict[str, list[WrittenAnswer]]:
    """Return the development records of every source in a folder.

    Raises:
        InputError: If there is no file, or a line is no record.
    """
    paths = sorted(p for p in folder.iterdir() if p.name.endswith((".jsonl", ".jsonl.gz")))
    if not paths:
        raise InputError("no file; expected one .jsonl or .jsonl.gz file a source", str(folder))
    return {path.name.split(".")[0]: list(_read(path)) for path in paths}


def _read(path: Path) -> Iterator[WrittenAnswer]:
    for number, line in lines(path):
        try:
            row = json.loads(line)
            if row.get("split", "dev") != "dev":
                continue
            passage = Passage(row["premise"])
            sample = Sample(row["hypothesis"], row.get("question") or None, (passage,))
            document = str(row.get("group") or _digest(passage.text))
            spans = row.get("spans")
            yield WrittenAnswer(
                LabelledAnswer(sample, bool(row["supported"]), document),
                path.name.split(".")[0],
                str(row.get("level", "sentence")),
                None if spans is None else tuple((int(a), int(b)) for a, b in spans),
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(
                "expected premise, hypothesis, supported", f"{path.name}, line {number}"
            ) from error


def sampled(records: Sequence[WrittenAnswer], limit: int) -> list[WrittenAnswer]:
    """Return at most `limit` records, at most half of either label; the same ones every time.

    Documents come in an order drawn by hash, each with a few of its records.
    """
    members: dict[str, list[WrittenAnswer]] = {}
    for one in records:
        members.setdefault(one.answer.group, []).append(one)
    ordered = []
    for document, part in members.items():
        part.sort(key=lambda one: _key(one.answer.sample))
        ordered += [
            (place // PER_DOCUMENT, _digest("document", document), place, one)
            for place, one in enumerate(part)
        ]
    ordered.sort(key=lambda entry: entry[:3])
    counts = {True: 0, False: 0}
    kept: dict[str, WrittenAnswer] = {}
    for *_, one in ordered:
        key = _key(one.answer.sample)
        if counts[one.answer.supported] < limit // 2 and key not in kept:
            counts[one.answer.supported] += 1
            kept[key] = one
    return list(kept.values())


def bigram_overlap(sample: Sample) -> float:
    """Return the share of the answer's word pairs that some passage holds; 1 without any."""
    wanted = _bigrams(sample.answer)
    held = {pair for passage in sample.contexts for pair in _bigrams(passage.text)}
    return sum(pair in held for pair in wanted) / len(wanted) if wanted else 1.0


def scores(
    records: Sequence[WrittenAnswer], pack: str | None, kept: Path | None
) -> tuple[list[WrittenScore], float | None]:
    """Return what each record scores, in order, and the threshold in use."""
    with runtime_of(pack) as runtime:
        policy = runtime.guard.policies[runtime.guard.default_policy]
        cut = policy.rules[OURS].cuts.get(OURS)
        path = None if kept is None else kept / f"{_fingerprint(runtime)}.jsonl"
        known = {} if path is None or not path.is_file() else _kept(path)
        samples = {_key(one.answer.sample): one.answer.sample for one in records}
        new = [key for key in samples if key not in known]
        for start in range(0, len(new), AT_ONCE):
            keys = new[start : start + AT_ONCE]
            found = _scored(runtime, _keeping_spans(policy), [samples[key] for key in keys])
            known |= (part := dict(zip(keys, found, strict=True)))
            if path is not None:
                _keep(path, part)
    threshold = None if cut is None else cut.threshold
    return [_written(one, *known[_key(one.answer.sample)]) for one in records], threshold


_Found = tuple[dict[str, float], tuple[tuple[int, int, float], ...]]


def _scored(runtime: Runtime, policy: Policy, samples: Sequence[Sample]) -> list[_Found]:
    def one(sample: Sample) -> _Found:
        verdict = runtime.guard.judge(policy, sample, math.inf)
        ours, embedded = verdict.detectors[OURS], verdict.detectors["groundedness"]
        support = {OURS: support_of(ours, OURS, 0.0)}
        support[EMBEDDED] = support_of(embedded, "groundedness", -1.0)
        return support, tuple(_claim(span) for span in ours.spans)

    with ThreadPoolExecutor(max(1, runtime.settings.workers)) as pool:
        return list(pool.map(one, samples))


def _claim(span: Span) -> tuple[int, int, float]:
    return span.start, span.end, 0.0 if span.score is None else span.score


def _keeping_spans(policy: Policy) -> Policy:
    """Return a policy under which hallucination shows every claim."""
    rule = policy.rules[OURS]
    return policy.with_rule(replace(rule, cuts={OURS: Cut(NEVER_PASSES, calibrated=False)}))


def _written(
    record: WrittenAnswer, support: dict[str, float], claims: tuple[tuple[int, int, float], ...]
) -> WrittenScore:
    sample = record.answer.sample
    return WrittenScore(
        record.source,
        record.level,
        record.answer.group,
        record.answer.supported,
        sum(len(passage.text.split()) for passage in sample.contexts),
        len(sample.answer.split()),
        {**support, WORDS: overlap(sample), BIGRAMS: bigram_overlap(sample)},
        claims,
        record.spans,
    )


def _bigrams(text: str) -> list[tuple[str, str]]:
    words = "".join(c.lower() if c.isalnum() else " " for c in text).split()
    return list(pairwise(words))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _key(sample: Sample) -> str:
    passages = (passage.text for passage in sample.contexts)
    return _digest(sample.answer, sample.question or "", *passages)


def _fingerprint(runtime: Runtime) -> str:
    """Return a name for all that scores depend on."""
    return _digest(json.dumps(runtime.serving.fingerprints, sort_keys=True))[:16]


def _kept(path: Path) -> dict[str, _Found]:
    rows = (json.loads(line) for _, line in lines(path))
    return {
        row["key"]: (row["support"], tuple((a, b, s) for a, b, s in row["claims"])) for row in rows
    }


def _keep(path: Path, found: Mapping[str, _Found]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        for key, (support, claims) in found.items():
            stream.write(json.dumps({"key": key, "support": support, "claims": claims}) + "\n")

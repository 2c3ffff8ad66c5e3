"""From documents to a checked lab, and its files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from guardrail_offline.datasets.cases import Case, Lab
from guardrail_offline.datasets.h2o_labs import lab_json
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.evaluators.result import dumps
from guardrail_offline.generation.chunks import DocumentChunk, chunks_of
from guardrail_offline.generation.coverage import coverage_of, coverage_picture
from guardrail_offline.generation.generated import GeneratedCase, to_case
from guardrail_offline.generation.generators import Generated, GenerationOptions, generate
from guardrail_offline.generation.source_documents import ReadLimits, SourceDocument, read_documents
from guardrail_offline.generation.validation import Rejected, Validated, validate
from guardrail_offline.judge.results import Asks
from guardrail_service.errors import ConfigurationError

SPARE = 2
"""Candidates asked for per wanted case: validation refuses some of them."""
FORMAT = "rag-guardrail-generation/1"


@dataclass(frozen=True)
class GeneratedLab:
    """Cases with everything that is known about where they came from.

    Attributes:
        cases: For a lab, without answers.
        generated: The same as they were generated, in the same order.
        rejected: What validation refused.
        manifest: Documents, options, coverage and thresholds, as JSON has them.
        documents: All, with those that were not read.
        chunks: Of the documents that were read.
    """

    cases: tuple[Case, ...]
    generated: tuple[GeneratedCase, ...]
    rejected: tuple[Rejected, ...]
    manifest: Mapping[str, Any]
    documents: tuple[SourceDocument, ...]
    chunks: tuple[DocumentChunk, ...]


def generate_lab(
    paths: Sequence[Path],
    options: GenerationOptions | None = None,
    *,
    topics: Mapping[str, str] | None = None,
    outside: Sequence[Path] = (),
    judge: Asks | None = None,
    models: PackModels | None = None,
    limits: ReadLimits | None = None,
    advance: Callable[[int], object] = lambda _count: None,
) -> GeneratedLab:
    """Return a lab made of documents: read, cut, generated, validated, counted.

    Args:
        paths: Documents and folders of them.
        options: What to generate.
        topics: Label of a chunk's topic by the chunk's id.
        outside: Documents that the system under test does not have.
        judge: Makes the cases of its generators; None for rules only.
        models: For the checks that need a model; None leaves these out.
        limits: Of reading a document.
        advance: Told when a document is read or a case is checked.

    Raises:
        ConfigurationError: If a path does not exist, or no document at all could be read.
    """
    wanted = options or GenerationOptions()
    documents = read_documents(paths, limits, advance)
    chunks = chunks_of(documents)
    if not chunks:
        states = Counter(document.state for document in documents)
        found = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        expected = "a document with text in PDF, DOCX, HTML, Markdown or plain text"
        raise ConfigurationError("documents", found or "an empty folder", expected)
    beyond = chunks_of(read_documents(outside, limits, advance))
    titles = {document.id: document.title for document in documents}
    count = None if wanted.count is None else wanted.count * SPARE
    drawn = generate(
        chunks, replace(wanted, count=count), titles=titles, topics=topics, outside=beyond,
        judge=judge,
    )  # fmt: skip
    checked = validate(drawn.cases, [*chunks, *beyond], models, advance=advance)
    kept = _first(checked.kept, wanted)
    return GeneratedLab(
        cases=tuple(to_case(one, {chunk.id: chunk for chunk in chunks}) for one in kept),
        generated=kept,
        rejected=checked.rejected,
        manifest=_manifest(documents, chunks, wanted, drawn, checked, kept, topics),
        documents=tuple(documents),
        chunks=tuple(chunks),
    )


def _first(cases: Sequence[GeneratedCase], options: GenerationOptions) -> tuple[GeneratedCase, ...]:
    """Return as many cases as are wanted, of each generator alike; conversations stay whole."""
    if options.count is None:
        return tuple(cases)
    units: dict[str, list[list[GeneratedCase]]] = {id: [] for id in options.generators}
    for one in cases:
        same = units[one.generator]
        if one.conversation and same and same[-1][0].conversation == one.conversation:
            same[-1].append(one)
        else:
            same.append([one])
    taken: list[tuple[int, int, list[GeneratedCase]]] = []
    left, turn = options.count, 0
    while left > 0 and any(turn < len(same) for same in units.values()):
        for place, same in enumerate(units.values()):
            if turn < len(same) and left > 0:
                taken.append((place, turn, same[turn]))
                left -= len(same[turn])
        turn += 1
    return tuple(one for _, _, unit in sorted(taken, key=lambda t: t[:2]) for one in unit)


def _manifest(
    documents: Sequence[SourceDocument],
    chunks: Sequence[DocumentChunk],
    options: GenerationOptions,
    drawn: Generated,
    checked: Validated,
    kept: Sequence[GeneratedCase],
    topics: Mapping[str, str] | None,
) -> dict[str, Any]:
    asked = {
        "generators": list(options.generators), "count": options.count, "seed": options.seed,
        "per_chunk": options.per_chunk,
    }  # fmt: skip
    counts = Counter(one.generator for one in kept)
    return {
        "format": FORMAT,
        "documents": [document.as_json() for document in documents],
        "options": asked,
        "generators": {
            id: {"candidates": drawn.candidates[id], "kept": counts[id]} for id in drawn.candidates
        },
        "short": _short(options, counts, drawn),
        "judge_failed": dict(drawn.failed),
        "forms": dict(sorted(Counter(one.form for one in kept).items())),
        "validation": {
            "thresholds": checked.thresholds,
            "rejected": dict(sorted(Counter(one.check for one in checked.rejected).items())),
            "not_checked": list(checked.not_checked),
            "scores": {
                one.key: checked.scores[one.key] for one in kept if one.key in checked.scores
            },
        },
        "coverage": coverage_of(kept, chunks, documents, topics),
    }


def _short(
    options: GenerationOptions, counts: Mapping[str, int], drawn: Generated
) -> dict[str, str]:
    """Return why generators have fewer cases than the others, by id."""
    if options.count is None:
        return {}
    share = options.count // max(1, len(options.generators))
    told = "the documents have nothing more of this form"
    if drawn.failed:
        told += ", or the judge failed (judge_failed)"
    return {
        id: f"{counts.get(id, 0)} of {share}: {told}"
        for id in drawn.candidates
        if counts.get(id, 0) < share
    }


def write_generated(
    lab: GeneratedLab, out_file: Path, *, queries_only: bool = False, name: str = ""
) -> list[Path]:
    """Write a lab and what belongs to it, and return the files.

    Beside `lab.json` stand `lab.json.generated.jsonl` (cases with their places),
    `lab.json.rejected.jsonl` (with reasons), `lab.json.manifest.json` and `lab.json.coverage.svg`.

    Args:
        lab: What to write.
        out_file: Of the lab, in H2O's JSON.
        queries_only: Leave out expected answers, conditions and passages: questions for people or
            for a system whose answers have no reference.
        name: Of the lab; the file's name if empty.

    Raises:
        ConfigurationError: If a file cannot be written.
    """
    cases = [_query(case) for case in lab.cases] if queries_only else list(lab.cases)
    made = Lab(tuple(cases), name=name or out_file.stem, description="Generated from documents.")
    beside = {
        "": dumps(lab_json(made)) + "\n",
        ".generated.jsonl": _lines([one.as_json() for one in lab.generated]),
        ".rejected.jsonl": _lines([one.as_json() for one in lab.rejected]),
        ".manifest.json": json.dumps(lab.manifest, indent=1, ensure_ascii=False) + "\n",
        ".coverage.svg": coverage_picture(lab.manifest["coverage"]),
    }
    written = []
    for ending, text in beside.items():
        path = out_file.with_name(out_file.name + ending)
        try:
            path.write_text(text, "utf-8")
        except OSError as error:
            raise ConfigurationError("--out", type(error).__name__, "a file to write") from error
        written.append(path)
    return written


def _query(case: Case) -> Case:
    return replace(case, expected=None, condition=None, references=(), reference_contexts=(),
                   reference_ids=(), answerable=None)  # fmt: skip


def _lines(records: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)

"""Steps 2 and 3: generates test cases from the documents' passages, and keeps those that hold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from guardrail_offline.datasets.cases import Case, case_json
from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.generation.chunks import DocumentChunk, chunks_of
from guardrail_offline.generation.coverage import coverage_of
from guardrail_offline.generation.generated import GeneratedCase, to_case
from guardrail_offline.generation.generators import (
    ADVERSARIAL_GENERATORS,
    DEFAULT_GENERATORS,
    Generated,
    GenerationOptions,
    generate,
    named_generators,
)
from guardrail_offline.generation.source_documents import SourceDocument, read_documents
from guardrail_offline.generation.validation import Rejected, ValidationThresholds, validate
from guardrail_offline.judge.judge_client import open_judge
from guardrail_offline.runs.shards import whole_file
from guardrail_offline.workflow.definition import (
    AdversarialParameters,
    GenerationParameters,
    ValidationParameters,
)
from guardrail_offline.workflow.evaluation import LAB, write_lab
from guardrail_offline.workflow.folder import DOCUMENTS
from guardrail_offline.workflow.step_engine import StepContext, StepOutcome
from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.policy.provenance import sha256_of

GENERATED = "generated.jsonl"
USUAL = tuple(name for name in DEFAULT_GENERATORS if name != "multi_turn")
"""A target is asked each question by itself: a second turn alone says nothing to it."""


def generate_tests(context: StepContext) -> StepOutcome:
    """Return cases from the passages of the chosen topics."""
    parameters: GenerationParameters = context.parameters
    empty: dict[str, Any] = {"digest": "", "cases": [], "by_generator": {}, "coverage": {}}
    if not context.results("topics")["chunks"]:
        return StepOutcome(empty, skipped="no passage to generate from")
    chunks, topics, documents = _chosen(context, parameters)
    if not chunks:
        return StepOutcome(empty, skipped="every passage is excluded")
    names = _generators(parameters.generators, USUAL, "generation")
    made = _made(context, chunks, topics, documents, names)
    _write_cases(context, made.cases, chunks)
    results = {
        "digest": sha256_of([one.as_json() for one in made.cases]),
        "cases": [
            {
                "key": one.key,
                "generator": one.generator,
                "form": one.form,
                "topic": one.topic,
                "question": one.question,
                "expected": one.expected,
            }
            for one in made.cases
        ],
        "by_generator": dict(sorted(Counter(one.generator for one in made.cases).items())),
        "coverage": coverage_of(made.cases, chunks, documents, topics),
    }
    told = _short(made)
    inputs = {"passages": len(chunks), "topics": len(set(topics.values()))}
    judge = context.judge_name()
    if judge is not None:
        count = sum(one.form == "judge" for one in made.cases)
        told.append(f"{count} of {len(made.cases)} cases are written by the judge {judge}")
    files = context.relative([context.own / LAB, context.own / GENERATED])
    return StepOutcome(results, inputs, files, told, judge)


def validate_tests(context: StepContext) -> StepOutcome:
    """Return the cases that hold, and those that people made; with reasons for the others."""
    parameters: ValidationParameters = context.parameters
    curated = _curated(context)
    cases = _generated(context)
    results: dict[str, Any] = {"kept": [], "rejected": [], "figures": {}, "coverage": {}}
    notes: list[str] = []
    chunks: list[DocumentChunk] = []
    kept: list[GeneratedCase] = []
    if cases:
        parts, topics, documents = _chosen(context, context.definition.parameters("generation"))
        chunks = list(parts)
        with context.bars("validating") as (begin, advance):
            begin(len(cases))
            cuts = _thresholds(parameters)
            found = validate(cases, chunks, context.models, cuts, advance)
        notes += [f"not checked: {name}" for name in found.not_checked]
        kept, rejected = _by_hand(cases, found.kept, found.rejected, parameters)
        results |= {
            "rejected": rejected,
            "figures": {key: dict(scores) for key, scores in found.scores.items()},
            "thresholds": {name: dict(about) for name, about in found.thresholds.items()},
            "coverage": coverage_of(kept, chunks, documents, topics),
        }
    by_id = {chunk.id: chunk for chunk in chunks}
    lab = [*(to_case(one, by_id) for one in kept), *curated]
    if not lab:
        found_ = f"no case: {len(cases)} generated, none kept, and no cases of people"
        expected = "documents, or guardrail workflow edit --cases FILE"
        raise ConfigurationError(str(context.folder.root), found_, expected)
    if curated:
        notes.append(f"{len(curated)} cases are made by people")
    write_lab(context.own / LAB, lab, context.definition.name)
    results["kept"] = [case.key for case in lab]
    results["digest"] = sha256_of([case_json(case) for case in lab])
    inputs = {"generated": len(cases), "curated": len(curated)}
    return StepOutcome(results, inputs, context.relative([context.own / LAB]), notes)


def adversarial_cases(context: StepContext) -> tuple[list[Case], list[str]]:
    """Return valid adversarial cases from the same passages, and what to say about them."""
    parameters: AdversarialParameters = context.parameters
    if not context.results("topics")["chunks"]:
        return [], ["no passage to generate from"]
    chosen = context.definition.parameters("generation")
    chunks, topics, documents = _chosen(context, chosen)
    names = _generators(parameters.generators, ADVERSARIAL_GENERATORS, "adversarial")
    made = _made(context, chunks, topics, documents, names)
    kept = validate(list(made.cases), chunks, None).kept
    by_id = {chunk.id: chunk for chunk in chunks}
    told = _short(made)
    if len(kept) < len(made.cases):
        told.append(f"{len(made.cases) - len(kept)} of {len(made.cases)} cases were not valid")
    return [to_case(one, by_id) for one in kept], told


def _made(
    context: StepContext,
    chunks: Sequence[DocumentChunk],
    topics: Mapping[str, str],
    documents: Sequence[SourceDocument],
    names: tuple[str, ...],
) -> Generated:
    settings = context.judge()
    judge = None if settings is None else open_judge(settings)
    count, seed = context.parameters.count, context.parameters.seed
    options = GenerationOptions(generators=names, count=count, seed=seed)
    titles = {one.id: one.title for one in documents if one.title}
    with context.bars("generating") as (begin, advance):
        begin(len(names))
        return generate(chunks, options, titles=titles, topics=topics, judge=judge, advance=advance)


def _chosen(
    context: StepContext, parameters: GenerationParameters
) -> tuple[list[DocumentChunk], dict[str, str], list[SourceDocument]]:
    """Return the passages that no exclusion names, their topics by title, and the documents.

    Raises:
        ConfigurationError: If an excluded topic or passage does not exist.
    """
    modelled = context.results("topics")
    titles = {one["id"]: one["title"] for one in modelled["topics"]}
    ids = {str(number): number for number in titles} | {name: n for n, name in titles.items()}
    for name in parameters.exclude_topics:
        if name not in ids:
            where = "generation.exclude_topics"
            raise ConfigurationError(where, repr(name)[:60], choices(name, ids, "topic"))
    gone = {ids[name] for name in parameters.exclude_topics}
    topic_of = {one["id"]: one["topic"] for one in modelled["chunks"]}
    if lost := sorted(set(parameters.exclude_chunks) - topic_of.keys()):
        hint = choices(lost[0], topic_of, "passage")
        raise ConfigurationError("generation.exclude_chunks", repr(lost[0])[:60], hint)
    documents, cut = passages(context)
    chunks = [
        chunk
        for chunk in cut
        if chunk.id in topic_of
        and topic_of[chunk.id] not in gone
        and chunk.id not in parameters.exclude_chunks
    ]
    return chunks, {chunk.id: titles[topic_of[chunk.id]] for chunk in chunks}, documents


def passages(context: StepContext) -> tuple[list[SourceDocument], list[DocumentChunk]]:
    """Return the documents of a workflow, read or not, and their passages."""
    names = {one.path for one in context.definition.documents}
    if not names:
        return [], []
    found = read_documents([context.folder.root / DOCUMENTS])
    documents = [one for one in found if f"{DOCUMENTS}/{one.id}" in names]
    size = context.definition.parameters("topics").chunk_characters
    return documents, chunks_of(documents, size)


def _short(made: Generated) -> list[str]:
    """Return what to say about generators that made too few, and a judge that failed."""
    told = [f"{name}: {why}" for name, why in made.short.items()]
    return [*told, *(f"the judge: {count} x {why}" for why, count in made.failed.items())]


def _generators(wanted: Sequence[str], usual: tuple[str, ...], step: str) -> tuple[str, ...]:
    try:
        return tuple(named_generators(wanted)) if wanted else usual
    except ConfigurationError as error:
        raise ConfigurationError(f"{step}.generators", "an unknown name", str(error)) from error


def _write_cases(
    context: StepContext, cases: Sequence[GeneratedCase], chunks: Sequence[DocumentChunk]
) -> None:
    by_id = {chunk.id: chunk for chunk in chunks}
    write_lab(context.own / LAB, [to_case(one, by_id) for one in cases], context.definition.name)
    with whole_file(context.own / GENERATED) as stream:
        stream.writelines(json.dumps(one.as_json()) + "\n" for one in cases)


def _generated(context: StepContext) -> list[GeneratedCase]:
    if not context.results("generation")["cases"]:
        return []
    path = context.folder.step_folder("generation") / GENERATED
    lines = path.read_text("utf-8").splitlines()
    return [GeneratedCase.from_json(json.loads(line)) for line in lines]


def _curated(context: StepContext) -> list[Case]:
    name = context.definition.cases
    return [] if name is None else list(open_lab(context.folder.root / name).cases())


def _thresholds(parameters: ValidationParameters) -> ValidationThresholds:
    """Return the thresholds of the checks, some of them set.

    Raises:
        ConfigurationError: If one is not known.
    """
    try:
        return ValidationThresholds(**parameters.thresholds)
    except TypeError as error:
        known = ", ".join(ValidationThresholds.__dataclass_fields__)
        found = ", ".join(parameters.thresholds)[:80]
        raise ConfigurationError("validation.thresholds", found, f"some of {known}") from error


def _by_hand(
    cases: Sequence[GeneratedCase],
    kept: Sequence[GeneratedCase],
    rejected: Sequence[Rejected],
    parameters: ValidationParameters,
) -> tuple[list[GeneratedCase], list[dict[str, Any]]]:
    """Return what a person keeps and rejects, whatever the checks say.

    Raises:
        ConfigurationError: If there is no case of a key.
    """
    keys = {one.key for one in cases}
    for key in (*parameters.keep, *parameters.reject):
        if key not in keys:
            raise ConfigurationError("validation", repr(key)[:60], choices(key, keys, "case"))
    stay = ({one.key for one in kept} | set(parameters.keep)) - set(parameters.reject)
    rows = [
        {
            "key": one.case.key,
            "check": one.check,
            "reason": one.reason,
            "value": one.value,
            "threshold": one.threshold,
            "question": one.case.question,
        }
        for one in rejected
        if one.case.key not in stay
    ]
    by_person = {"check": "person", "reason": "rejected by a person", "value": None}
    known = {row["key"] for row in rows}
    rows += [
        {"key": one.key, **by_person, "threshold": None, "question": one.question}
        for one in cases
        if one.key in parameters.reject and one.key not in known
    ]
    return [one for one in cases if one.key in stay], rows

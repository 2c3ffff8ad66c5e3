"""The corpus patch: passages to add or to mend, from failures whose passages lack the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from guardrail_offline.datasets.cases import Case
from guardrail_offline.datasets.h2o_labs import lab_of_json
from guardrail_offline.evaluators.answer_strings import contains
from guardrail_offline.evaluators.shared.answer_match import has_values
from guardrail_offline.evaluators.shared.answer_words import squad_words
from guardrail_offline.model_risk.step_data import WorkflowData

LAB = "4-evaluation/lab.json"
SHARED = 0.8
"""Share of the expected answer's words that a passage has to have, by eye."""
SOURCE_SPAN = "source_span"
GAP = " [...] "
"""Stands between quotations of several places."""
PatchKind = Literal["add", "mend", "accepted answer", "other wording"]
REASONS: Mapping[PatchKind, str] = {
    "add": "no passage of the corpus that the test knows holds the expected answer",
    "mend": "the corpus holds the answer, and the passages that were retrieved do not",
    "accepted answer": "checks failed this answer, and people accepted it",
    "other wording": "the question passed, and failed when it was spelled or worded otherwise",
}


@dataclass(frozen=True)
class PatchEntry:
    """A question with the answer that the corpus should give.

    Attributes:
        kind: The change it asks for.
        question: As it was asked.
        answer: Expected, or accepted by people.
        reason: Why it is here.
        quotation: Words of the corpus that hold the answer; empty where none do.
        source: JsonPlace of the quotation: document with offsets, as the test case has it.
        case: Key of the case.
        failed: Metrics that it fails.
    """

    kind: PatchKind
    question: str
    answer: str
    reason: str
    quotation: str
    source: str
    case: str
    failed: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the entry as the file has it."""
        return {**vars(self), "failed": list(self.failed)}


@dataclass(frozen=True)
class CorpusPatch:
    """A corpus patch.

    Attributes:
        entries: One per question and kind.
        elsewhere: Failures whose passages hold the answer: no change of the corpus helps them.
        without_answer: Failures without an expected answer, of which nothing can be said.
    """

    entries: tuple[PatchEntry, ...]
    elsewhere: int
    without_answer: int

    def as_json(self) -> dict[str, Any]:
        """Return the patch as the file has it."""
        return {
            "schema_version": "1",
            "entries": [entry.as_json() for entry in self.entries],
            "failures_elsewhere": self.elsewhere,
            "failures_without_expected_answer": self.without_answer,
        }


def corpus_patch(data: WorkflowData) -> CorpusPatch:
    """Return what to add to a workflow's corpus, or to mend in it."""
    failed = {
        one["key"].text: tuple(metric.text for metric in one["failed"])
        for one in data.results("failures")["failures"]
    }
    cases = {case.key: case for case in _cases(data)}
    accepted = list(_accepted(data))
    for entry in accepted:
        failed.pop(entry.case, None)
    entries = {
        (entry.kind, entry.question): entry
        for entry in (*_failures(data, cases, failed), *accepted, *_reworded(data, cases))
    }
    wrong = [cases[key] for key in failed if key in cases]
    elsewhere = sum(_retrieved(case, spans(data, case)) for case in wrong if _has_answer(case))
    unknown = sum(not _has_answer(case) for case in wrong)
    return CorpusPatch(tuple(entries.values()), elsewhere, unknown)


def holds_answer(passage: str, expected: str) -> bool:
    """Return whether a passage holds an expected answer: its words in a row, or most of them.

    Every number and date of the expected answer has to be there in either case.
    """
    if contains(expected, passage):
        return True
    wanted, given = set(squad_words(expected)), set(squad_words(passage))
    if not wanted or has_values(expected, passage) is False:
        return False
    return len(wanted & given) >= SHARED * len(wanted)


def quoted(passage: str, expected: str) -> str:
    """Return the sentence of a passage, word for word, that shares most with an expected answer."""
    wanted = set(squad_words(expected))
    return max(
        _sentences(passage), key=lambda part: len(wanted & set(squad_words(part))), default=passage
    )


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, which end at a stop before a blank or at an empty line."""
    start = 0
    for place, sign in enumerate(text):
        after = text[place + 1 : place + 2]
        if (sign in ".!?" and after.isspace()) or (sign == "\n" and after == "\n"):
            yield from _stripped(text[start : place + 1])
            start = place + 1
    yield from _stripped(text[start:])


def _stripped(part: str) -> Iterator[str]:
    if part.strip():
        yield part.strip()


def _cases(data: WorkflowData) -> Sequence[Case]:
    path = data.root / LAB
    return lab_of_json(path, path.read_text("utf-8")).cases if path.is_file() else ()


def spans(data: WorkflowData, case: Case) -> list[str]:
    """Return the words of the documents that a generated case was made from."""
    found = []
    for target in (link.target for link in case.relationships if link.type == SOURCE_SPAN):
        document, _, place = target.rpartition("[")
        start, _, end = place.rstrip("]").partition(":")
        if start.isdecimal() and end.isdecimal():
            found += _span(data, document, int(start), int(end))
    return found


def _span(data: WorkflowData, document: str, start: int, end: int) -> list[str]:
    """Return the text of a place, out of a passage of step 1 that has it; none if none has."""
    for chunk in data.results("topics")["chunks"].value or ():
        offset = start - chunk["start"]
        if chunk["document"] == document and offset >= 0 and end <= chunk["end"]:
            return [chunk["text"][offset : offset + end - start]]
    return []


def _has_answer(case: Case) -> bool:
    """Return whether a passage could answer a case at all."""
    return bool(case.expected) and case.answerable is not False


def _failures(
    data: WorkflowData, cases: Mapping[str, Case], failed: Mapping[str, tuple[str, ...]]
) -> Iterator[PatchEntry]:
    for key, metrics in failed.items():
        case = cases.get(key)
        if case is None or not _has_answer(case) or _retrieved(case, spans(data, case)):
            continue
        quotation = _quotation(data, case)
        kind: PatchKind = "mend" if quotation else "add"
        reason = REASONS[kind]
        if case.contexts is None:
            reason += "; the target does not say which passages it used"
        yield _entry(kind, case, reason, quotation, metrics)


def _entry(
    kind: PatchKind, case: Case, reason: str, quotation: str, failed: tuple[str, ...]
) -> PatchEntry:
    source = _source(case) if quotation else ""
    answer = case.expected or ""
    return PatchEntry(kind, case.question, answer, reason, quotation, source, case.key, failed)


def _quotation(data: WorkflowData, case: Case) -> str:
    """Return the words of the corpus that hold a case's answer; empty if none are known."""
    made_from = spans(data, case)
    if made_from:
        return GAP.join(made_from)
    held = (one for one in case.reference_contexts if holds_answer(one, case.expected or ""))
    return next((quoted(one, case.expected or "") for one in held), "")


def _accepted(data: WorkflowData) -> Iterator[PatchEntry]:
    for one in data.results("calibration")["overruled"]:
        kind: PatchKind = "accepted answer"
        metrics = tuple(metric.text for metric in one["failed"])
        texts = one["question"].text, one["answer"].text, REASONS[kind]
        yield PatchEntry(kind, *texts, "", "", one["key"].text, metrics)


def _reworded(data: WorkflowData, cases: Mapping[str, Case]) -> Iterator[PatchEntry]:
    for one in data.results("variations")["flips"]:
        case = cases.get(one["source"].text)
        if one["kind"].text != "pass_to_fail" or case is None or not case.expected:
            continue
        kind: PatchKind = "other wording"
        reason = f"{REASONS[kind]} ({one['perturbation'].text})"
        yield _entry(kind, case, reason, _quotation(data, case), (one["metric"].text,))


def _retrieved(case: Case, made_from: Sequence[str]) -> bool:
    """Return whether the passages that were retrieved hold the answer.

    A lone yes or no stands in no passage: then, as for every generated case, the words that the
    case was made from have to be there.
    """
    passages = [one.text for one in case.contexts or ()]
    if made_from and all(any(holds_answer(one, span) for one in passages) for span in made_from):
        return True
    expected = case.expected or ""
    is_lone = {"yes", "no"}.issuperset(squad_words(expected))
    return not is_lone and any(holds_answer(one, expected) for one in passages)


def _source(case: Case) -> str:
    links = [link.target for link in case.relationships if link.type == SOURCE_SPAN]
    return ", ".join(links or case.corpus)


def patch_text(patch: CorpusPatch) -> str:
    """Return the patch as JSON."""
    return json.dumps(patch.as_json(), indent=1, ensure_ascii=False) + "\n"

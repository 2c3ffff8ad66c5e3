"""Writes cases as other suites read them; `suites.py` reads every one of these files back."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import re2

from guardrail_offline.datasets.cases import Case
from guardrail_service.text.patterns.search import encodable
from guardrail_service.types import Passage

Records = list[dict[str, Any]]
_BASIC = frozenset({"question", "answer", "expected", "contexts"})
_IMPLIED = frozenset({"key", "group", "test_key", "test_case_key", "relationships", "corpus"})
"""Fields that a suite without them loses little by: names and links within a lab."""


class SuiteFormat(NamedTuple):
    """The file of one suite.

    Attributes:
        ending: Of the file.
        keeps: Fields of a case that it has a place for.
        text: Gives the file's text.
    """

    ending: str
    keeps: frozenset[str]
    text: Callable[[Sequence[Case]], str]


def lost(suite: SuiteFormat, cases: Iterable[Case]) -> list[str]:
    """Return the fields that some of the cases have and the suite has no place for."""
    wanted = {field.name for field in fields(Case)} - suite.keeps - _IMPLIED
    return sorted({name for case in cases for name in wanted if getattr(case, name)})


def _texts(passages: tuple[Passage, ...] | None) -> list[str] | None:
    return None if passages is None else [passage.text for passage in passages]


def _expected(case: Case) -> list[str]:
    return [text for text in (case.expected, *case.references) if text is not None]


def _deepeval(case: Case) -> dict[str, Any]:
    return {
        "name": case.key,
        "input": case.question,
        "actual_output": case.answer,
        "expected_output": case.expected,
        "retrieval_context": _texts(case.contexts),
        "context": list(case.reference_contexts) or None,
        "completion_time": case.duration_s,
        "token_cost": case.cost,
    }


def _ragas(case: Case) -> dict[str, Any]:
    ids = [passage.id for passage in case.contexts or ()]
    record = {
        "user_input": case.question,
        "response": case.answer,
        "reference": case.expected,
        "retrieved_contexts": _texts(case.contexts),
        "retrieved_context_ids": ids if ids and all(id is not None for id in ids) else None,
        "reference_contexts": list(case.reference_contexts) or None,
        "reference_context_ids": list(case.reference_ids) or None,
    }
    return {name: value for name, value in record.items() if value is not None}


def _ragas_before(case: Case) -> dict[str, Any]:
    return {
        "question": case.question,
        "answer": case.answer,
        "contexts": _texts(case.contexts),
        "ground_truths": _expected(case),
    }


def _ragchecker(case: Case) -> dict[str, Any]:
    passages = enumerate(case.contexts or ())
    return {
        "query_id": case.key,
        "query": case.question,
        "gt_answer": case.expected,
        "response": case.answer,
        "retrieved_context": [
            {"doc_id": str(n) if passage.id is None else passage.id, "text": passage.text}
            for n, passage in passages
        ],
    }


def _langsmith(case: Case) -> dict[str, Any]:
    outputs = {"answer": case.answer, "contexts": _texts(case.contexts)}
    return {
        "id": case.key,
        "inputs": {"question": case.question},
        "outputs": {name: value for name, value in outputs.items() if value is not None},
        "reference_outputs": {} if case.expected is None else {"answer": case.expected},
    }


def _llama_index(case: Case) -> dict[str, Any]:
    return {
        "query": case.question,
        "query_by": None,
        "reference_contexts": list(case.reference_contexts) or None,
        "reference_answer": case.expected or "",
        "reference_answer_by": None,
    }


def _bedrock(case: Case) -> dict[str, Any]:
    turn: dict[str, Any] = {"prompt": _content(case.question)}
    if _expected(case):
        turn["referenceResponses"] = [_content(text) for text in _expected(case)]
    if case.reference_contexts:
        turn["referenceContexts"] = [_content(text) for text in case.reference_contexts]
    if case.answer is not None or case.contexts is not None:
        output: dict[str, Any] = {"knowledgeBaseIdentifier": case.model or "own"}
        if case.answer is not None:
            output["text"] = case.answer
        found = [_bedrock_passage(passage) for passage in case.contexts or ()]
        place = "retrievedResults" if case.answer is None else "retrievedPassages"
        if case.contexts is not None:
            output[place] = {"retrievalResults": found}
        turn["output"] = output
    return {"conversationTurns": [turn]}


def _content(text: str) -> dict[str, Any]:
    return {"content": [{"text": text}]}


def _bedrock_passage(passage: Passage) -> dict[str, Any]:
    named = {} if passage.id is None else {"name": passage.id}
    return {**named, "content": {"text": passage.text}}


_NUMBERED = re2.compile(r"\[\d{1,9}\]")


def _open_rag_eval(cases: Sequence[Case]) -> str:
    """Return Open RAG Eval's CSV of answers: a row per passage.

    Its citations are numbers in brackets, so passages are called by theirs.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["query_id", "query", "query_run", "passage_id", "passage", "generated_answer"])
    runs: dict[str, int] = {}
    for case in cases:
        runs[case.group] = runs.get(case.group, 0) + 1
        for number, passage in enumerate(case.contexts or (Passage(""),), start=1):
            is_number = _NUMBERED.fullmatch(encodable(passage.id or ""))
            place = passage.id if is_number else f"[{number}]"
            answer = case.answer if number == 1 else ""
            row = [case.group, case.question, runs[case.group], place, passage.text, answer]
            writer.writerow(row)
    return stream.getvalue()


def _lines(record: Callable[[Case], Mapping[str, Any]]) -> Callable[[Sequence[Case]], str]:
    return lambda cases: "".join(json.dumps(record(case)) + "\n" for case in cases)


def _document(
    record: Callable[[Case], Mapping[str, Any]], key: str = ""
) -> Callable[[Sequence[Case]], str]:
    def text(cases: Sequence[Case]) -> str:
        records = [record(case) for case in cases]
        return json.dumps({key: records} if key else records, indent=1) + "\n"

    return text


def h2o_suite(cases: Sequence[Case], name: str = "", description: str = "") -> str:
    """Return cases as H2O's test suite: a test for each set of documents, and no answers."""
    tests: dict[tuple[str | None, tuple[str, ...]], Records] = {}
    for case in cases:
        record: dict[str, Any] = {
            "prompt": case.question,
            "categories": list(case.categories),
            "constraints": [],
            "expected_output": case.expected or "",
        }
        if case.condition:
            record["condition"] = case.condition
        tests.setdefault((case.test_key, case.corpus), []).append(record)
    listed = [
        {"documents": list(documents), "test_cases": records}
        for (_, documents), records in tests.items()
    ]
    suite = {"name": name, "description": description, "tests": listed}
    return json.dumps(suite, indent=1) + "\n"


SUITE_FORMATS: Mapping[str, SuiteFormat] = {
    "deepeval": SuiteFormat(
        ".json", _BASIC | {"reference_contexts", "duration_s", "cost"}, _document(_deepeval)
    ),
    "ragas": SuiteFormat(
        ".jsonl", _BASIC | {"reference_contexts", "reference_ids"}, _lines(_ragas)
    ),
    "ragas-0.1": SuiteFormat(".jsonl", _BASIC | {"references"}, _lines(_ragas_before)),
    "ragchecker": SuiteFormat(".json", _BASIC, _document(_ragchecker, "results")),
    "langsmith": SuiteFormat(".jsonl", _BASIC, _lines(_langsmith)),
    "llama_index": SuiteFormat(
        ".json",
        frozenset({"question", "expected", "reference_contexts"}),
        _document(_llama_index, "examples"),
    ),
    "bedrock": SuiteFormat(
        ".jsonl", _BASIC | {"references", "reference_contexts", "model"}, _lines(_bedrock)
    ),
    "h2o-suite": SuiteFormat(
        ".json", frozenset({"question", "expected", "condition", "categories"}), h2o_suite
    ),
    "open_rag_eval": SuiteFormat(
        ".csv", frozenset({"question", "answer", "contexts"}), _open_rag_eval
    ),
}

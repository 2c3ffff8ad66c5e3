"""Validation keeps the good cases of `tests/golden/generated_cases.jsonl` and refuses the broken.

They were written for it: 40 good questions about six passages, and 46 broken ones of ten kinds.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_offline.generation.extraction import TextBlock
from guardrail_offline.generation.generated import GeneratedCase, SourceSpan
from guardrail_offline.generation.generators import GENERATORS, GenerationOptions, generate
from guardrail_offline.generation.source_documents import SourceDocument
from guardrail_offline.generation.validation import MODEL_CHECKS, Validated, validate

CASES = Path(__file__).parents[3] / "golden" / "generated_cases.jsonl"


class Written(NamedTuple):
    """The golden cases: passages, and cases with what they are."""

    chunks: list[DocumentChunk]
    good: list[GeneratedCase]
    broken: list[tuple[str, GeneratedCase]]


def _case(number: int, row: dict[str, Any], chunk: DocumentChunk) -> GeneratedCase:
    text = chunk.text.upper() if row.get("check") == "span" else chunk.text
    span = SourceSpan(chunk.document, 0, len(chunk.text), text, chunk.id)
    generator = "yes_or_no" if row["expected"] in ("Yes", "No") else "simple_factual"
    return GeneratedCase(f"c{number}", generator, "judge", row["question"], row["expected"],
                         spans=(span,), truth=row["truth"])  # fmt: skip


@pytest.fixture(scope="module")
def written() -> Written:
    """The golden cases."""
    rows = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    texts = {row["passage"]: row["text"] for row in rows if "passage" in row}
    chunks = {
        id: DocumentChunk(
            f"{id}#1", id, 0, len(text), text, blocks=(TextBlock(0, len(text), "paragraph"),)
        )
        for id, text in texts.items()
    }
    found = Written(list(chunks.values()), [], [])
    for number, row in enumerate(rows):
        if "source" in row:
            one = _case(number, row, chunks[row["source"]])
            if row["good"]:
                found.good.append(one)
            else:
                found.broken.append((row["check"], one))
    return found


def test_good_cases_pass(written: Written, models: PackModels) -> None:
    """All but one, whose statement is a clause of a longer sentence."""
    found = validate(written.good, written.chunks, models)
    assert [(one.check, one.case.truth) for one in found.rejected] == [
        ("answerable", "Trains run until 23:10.")
    ]
    assert len(found.kept) == 39
    assert min(score["cosine"] for score in found.scores.values()) > 0.4
    assert {"cosine", "bert_score", "nli_supported"} <= set(found.scores[written.good[0].key])


def test_broken_cases_are_refused_by_the_check_for_them(
    written: Written, models: PackModels
) -> None:
    """Each beside the good ones that it may double; all but one reworded question."""
    missed = []
    for check, one in written.broken:
        others = written.good if "duplicate" in check else []
        rejected = validate([*others, one], written.chunks, models).rejected
        found = {no.check for no in rejected if no.case.key == one.key}
        if found != {check}:
            missed.append((check, one.question))
    assert missed == [("near_duplicate", "How heavy is the Corvo 300 battery?")]
    assert Counter(check for check, _ in written.broken) == {
        "relevancy": 10, "answerable": 20, "duplicate": 3, "near_duplicate": 4, "language": 3,
        "form": 4, "span": 2,
    }  # fmt: skip


def test_without_models_the_other_checks_are_made(written: Written) -> None:
    """And the result says which ones were not."""
    found = validate([one for _, one in written.broken], written.chunks)
    assert {one.check for one in found.rejected} >= {"duplicate", "language", "form", "span"}
    assert found.not_checked == MODEL_CHECKS
    assert found.scores == {}


@pytest.fixture(scope="module")
def of_handbook(
    handbook: SourceDocument, chunks: list[DocumentChunk], models: PackModels
) -> Validated:
    """The handbook's cases, checked."""
    options = GenerationOptions(tuple(GENERATORS), per_chunk=1)
    drawn = generate(chunks, options, titles={handbook.id: handbook.title})
    return validate(drawn.cases, chunks, models)


def test_what_rules_make_passes(of_handbook: Validated) -> None:
    """Rules take their answers from the sentence; few cases are far from it, or doubled."""
    assert len(of_handbook.rejected) <= len(of_handbook.kept) // 20
    assert {one.check for one in of_handbook.rejected} <= {"outlier", "near_duplicate"}
    for one in of_handbook.rejected:
        assert one.reason
        assert one.as_json()["case"]["key"] == one.case.key


def test_a_false_statement_that_is_true_is_refused(written: Written, models: PackModels) -> None:
    """A misleading question must mislead."""
    good = written.good[0]
    broken = GeneratedCase("m", "deliberately_misleading", "judge",
                           "I have read that the pool opened in 1974. Is it so?", "No.",
                           spans=good.spans, truth=good.truth, false=good.truth)  # fmt: skip
    (found,) = validate([broken], written.chunks, models).rejected
    assert found.check == "false_premise"


def test_turns_stay_or_go_together(written: Written) -> None:
    """A second turn alone would ask about nothing."""
    good = written.good[0]
    turns = [
        GeneratedCase(f"t@{n}", "multi_turn", "rule", question, "1974", spans=good.spans,
                      truth=good.truth, conversation="t", turn=n)
        for n, question in enumerate(("In which year did the Linden pool open?", "And?"), start=1)
    ]  # fmt: skip
    found = validate(turns, written.chunks)
    assert found.kept == ()
    assert [one.reason for one in found.rejected] == [
        "the question has 1 words", "another turn of its conversation was rejected",
    ]  # fmt: skip

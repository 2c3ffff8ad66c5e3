"""Reading records and measuring scores; the model's part is in tests/parity."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from guardrail_bench.grounding_quality import (
    BASELINES,
    OURS,
    LabelledAnswer,
    ScoredAnswer,
    measures,
    overlap,
    read,
    slices,
)
from guardrail_service.errors import InputError
from guardrail_service.types import Passage, Sample, State


def test_both_kinds_of_record_are_read(tmp_path: Path) -> None:
    """A pair, and an answer with question and passages; compressed or not."""
    rows = [
        {"premise": "A b.", "hypothesis": "A.", "supported": 1},
        {"contexts": ["A.", {"text": "B."}], "question": "Q?", "answer": "C.", "supported": False},
    ]
    path = tmp_path / "data.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    first, second = read(path)
    assert (first.sample.answer, first.supported) == ("A.", True)
    assert [p.text for p in second.sample.contexts] == ["A.", "B."]
    assert (second.sample.question, second.supported) == ("Q?", False)


def test_a_malformed_record_is_refused_with_its_line(tmp_path: Path) -> None:
    """The message names the line, not its text."""
    path = tmp_path / "data.jsonl"
    path.write_text('{"premise": "A.", "supported": 1}\n')
    with pytest.raises(InputError, match="expected premise"):
        list(read(path))


def test_overlap_counts_content_words() -> None:
    """Stop words do not count; no content word is full overlap."""
    passages = (Passage("The hotel pool opens early."),)
    assert overlap(Sample("The pool is heated.", None, passages)) == 0.5
    assert overlap(Sample("It is.", None, passages)) == 1.0


def scored(support: float, supported: bool, words: int = 5) -> ScoredAnswer:
    """Return a record that every way of scoring scores alike."""
    sample = Sample("word " * words, None, (Passage(f"passage {support}"),))
    names = (OURS, *BASELINES)
    return ScoredAnswer(
        LabelledAnswer(sample, supported, str(support)),
        dict.fromkeys(names, support),
        {OURS: support < 0.5, "embedding_groundedness": False},
        State.EVALUATED,
        1.0,
    )


def test_measures_of_a_perfect_ranking() -> None:
    """Areas are 1, nothing good is flagged, everything bad is caught."""
    found = measures([scored(i / 60, i >= 30) for i in range(60)], OURS)
    assert found["auroc"]["value"] == 1.0
    assert found["auprc"]["value"] == pytest.approx(1.0)
    assert found["balanced_accuracy"] == 1.0
    assert found["false_flags_at_recall"]["0.9"]["value"] == 0.0


def test_small_slices_are_counted_but_not_scored() -> None:
    """An area over a handful of records says nothing."""
    records = [scored(i / 60, i >= 30, words=5 if i % 2 else 30) for i in range(60)]
    found = slices(records)["answer_words"]
    assert found["0-10"] == {"records": 30}
    assert found["11-20"] == {"records": 0}

"""The folder of written sources: reading, drawing, cuts from other sources, slices, comparisons."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from guardrail_bench.grounding_quality import OURS
from guardrail_bench.grounding_sources import (
    BIGRAMS,
    WAYS,
    WrittenScore,
    bigram_overlap,
    read_folder,
    sampled,
)
from guardrail_bench.grounding_sources_report import (
    PART,
    by_source,
    compared,
    cut_from_others,
    markdown,
    render,
    run,
    summary,
)
from guardrail_bench.output import replace_part
from guardrail_service.errors import InputError
from guardrail_service.types import Passage, Sample


def score(
    source: str, support: float, supported: bool, document: str = "", words: int = 50
) -> WrittenScore:
    """Return a record with one claim that every way of scoring scores alike."""
    return WrittenScore(
        source,
        "sentence",
        document or f"{source} {support}",
        supported,
        words,
        6,
        dict.fromkeys(WAYS, support),
        ((0, 10, support),),
        None if supported else ((5, 10),),
    )


def ranked(source: str, count: int = 60) -> list[WrittenScore]:
    """Return records whose upper half is supported."""
    return [score(source, i / count, i >= count // 2) for i in range(count)]


def row(premise: str, hypothesis: str, supported: int, **more: object) -> dict[str, object]:
    """Return one line of a file."""
    return {"premise": premise, "hypothesis": hypothesis, "supported": supported, **more}


def write(path: Path, rows: list[dict[str, object]]) -> None:
    """Write a file of records, compressed."""
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))


def test_only_development_records_are_read(tmp_path: Path) -> None:
    """A file is a source; records of a split that trains are left out, those without one stay."""
    rows = [
        row("A b c.", "A b.", 1, split="train"),
        row("A b c.", "A d.", 0, split="dev", level="answer", group="g", spans=[[2, 3]]),
        row("E f.", "E.", 1),
    ]
    write(tmp_path / "news.jsonl.gz", rows)
    found = read_folder(tmp_path)["news"]
    assert [(one.level, one.spans) for one in found] == [("answer", ((2, 3),)), ("sentence", None)]
    assert found[0].answer.group == "g"


def test_a_malformed_record_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    """The message names file and line, never their text."""
    with pytest.raises(InputError, match="file a source"):
        read_folder(tmp_path)
    write(tmp_path / "news.jsonl.gz", [row("A.", "B.", 1), {"premise": "A."}])
    with pytest.raises(InputError, match="expected premise") as caught:
        read_folder(tmp_path)
    assert "news.jsonl.gz, line 2" in str(caught.value)


def test_the_sample_is_balanced_and_the_same_every_time(tmp_path: Path) -> None:
    """At most half of either label; more documents before more records of one."""
    rows = [
        row(f"passage {i % 10}", f"claim {i}", int(i % 3 == 0), group=str(i % 10))
        for i in range(300)
    ]
    write(tmp_path / "news.jsonl.gz", rows)
    records = read_folder(tmp_path)["news"]
    first = sampled(records, 40)
    assert first == sampled(list(reversed(records)), 40)
    assert sum(one.answer.supported for one in first) == 20
    assert len({one.answer.group for one in first}) == 10


def test_bigram_overlap_counts_word_pairs() -> None:
    """Two of three pairs stand in the passage; one word has no pair."""
    passages = (Passage("The pool opens at nine."),)
    assert bigram_overlap(Sample("The pool opens late.", None, passages)) == pytest.approx(2 / 3)
    assert bigram_overlap(Sample("Pool", None, passages)) == 1.0


def test_a_cut_comes_from_the_other_sources_and_weighs_them_alike() -> None:
    """A source of many records does not decide, nor does one on the same documents."""
    low = [score("a", 0.1 + i / 1000, True) for i in range(100)] + ranked("a")
    high = [score("b", 0.9, True)] * 10 + ranked("b", 4)
    parts = by_source([*low, *high, *ranked("c")])
    assert cut_from_others(parts, "c", OURS, 0.05) < 0.2
    same = by_source([*ranked("fib"), *ranked("defacto"), *high])
    assert cut_from_others(same, "fib", OURS, 0.05) >= 0.5


def test_a_perfect_ranking_is_reported_as_one() -> None:
    """Areas are 1, cuts of one source hold on the other, slices and spans are there."""
    report = summary([*ranked("a"), *ranked("b")], threshold=0.5)
    assert report["macro"][OURS] == {"value": 1.0, "interval95": [1.0, 1.0]}
    caught = report["caught"][OURS]["0.05"]
    assert caught["caught"] == 1.0
    assert caught["false_flags"] == pytest.approx(0.05, abs=0.02)
    assert report["slices"]["passage_words"]["0-100"]["auroc"][BIGRAMS] == 1.0
    assert report["slices"]["claims"]["1"]["false_flags"] == 0.0
    assert report["slices"]["claims"]["5+"] == {"records": 0, "sources": 0}
    assert report["spans"]["a"] == {"records": 30, "precision": 0.5, "recall": 1.0, "whole": 0.5}


def test_near_copies_below_one_half_are_counted() -> None:
    """Only supported records of some words whose word pairs stand in the passage count."""
    copied = [score("a", 0.95, True) for _ in range(3)]
    support = {**copied[0].support, OURS: 0.2}
    wrong = WrittenScore("a", "sentence", "d", True, 9, 5, support, (), None)
    short = WrittenScore("a", "answer", "d", True, 9, 1, support, (), None)
    report = summary([*copied, wrong, short, *ranked("a"), *ranked("b")], threshold=0.5)
    # Of each ranking six supported records have a support of .9 and more.
    assert report["near_copies"] == {"records": 16, "below_half": 1}


def test_a_better_pack_shows_as_a_difference() -> None:
    """The difference is paired: equal scores give exactly none."""
    new = [*ranked("a"), *ranked("b")]
    old = [*ranked("a"), *(score("b", i * 37 % 60 / 60, i >= 30) for i in range(60))]
    found = compared(old, new)
    assert found["sources"]["a"] == {"value": 0.0, "interval95": [0.0, 0.0]}
    assert found["sources"]["b"]["interval95"][0] > 0.2
    assert found["macro"]["value"] == pytest.approx(found["sources"]["b"]["value"] / 2)


def test_scores_are_computed_once_and_shown(tmp_path: Path) -> None:
    """The shipped pack scores a small folder; the second run reads what the first one kept."""
    folder, kept = tmp_path / "written", tmp_path / "scores"
    folder.mkdir()
    for name in ("news", "talks"):
        rows = [
            row(f"The {name} hall {i} opens at nine in the morning and has a garden.", claim, good)
            for i in range(3)
            for claim, good in (
                (f"The {name} hall {i} opens at nine.", 1),
                (f"The {name} hall {i} was built by a queen in winter.", 0),
            )
        ]
        write(folder / f"{name}.jsonl.gz", rows)
    first = run(folder, None, None, 400, kept)
    (file,) = kept.iterdir()
    lines = file.read_text().splitlines()
    assert len(lines) == 12
    assert run(folder, None, None, 400, kept) == first
    assert file.read_text().splitlines() == lines
    assert first["macro"][OURS]["value"] > 0.8
    page = tmp_path / "quality.md"
    page.write_text(f"<!-- {PART} -->\n<!-- /{PART} -->\n")
    replace_part(page, PART, markdown(first))
    assert "12 records of 6 documents in 2 sources" in page.read_text()
    assert len(render(first)) == 3

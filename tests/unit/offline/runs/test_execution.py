"""A run's folder: what is taken for a run, what is removed, what happens when parts are missing."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from guardrail_offline.datasets.cases import (
    PERTURBATION_SOURCE,
    SHOULD_FLIP,
    Case,
    Lab,
    Relationship,
    question_group,
)
from guardrail_offline.datasets.labs import lab_source
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.runs.execution import RunOptions, Summary, evaluate_lab
from guardrail_service.errors import ConfigurationError

CASES = tuple(
    Case(f"k{n}", f"q{n}", "one two", "one two three", group=question_group(f"q{n}"))
    for n in range(6)
)


def run(out: Path) -> Summary:
    """Evaluate six cases in shards of one or a few."""
    return evaluate_lab(lab_source(Lab(CASES)), configure(["rouge"]), RunOptions(out, shard_rows=1))


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file by its name, but for those that say how long it took."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in paths
        if not path.name.startswith(("timings", "times"))
    }


def touched(*paths: Path) -> None:
    """Write a little into each."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")


def test_a_folder_that_is_refused_is_left_as_it_is(tmp_path: Path) -> None:
    """Even what looks like something half written."""
    touched(tmp_path / ".notes.tmp", tmp_path / "data.txt", tmp_path / "results" / ".x.tmp")
    before = contents(tmp_path)
    with pytest.raises(ConfigurationError, match="other files"):
        run(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["work/letter.txt", "work/scores-00000.jsonl", ".notes.tmp"])
def test_a_folder_with_anything_else_is_no_empty_one(tmp_path: Path, name: str) -> None:
    """Scores without a manifest are of nobody knows what."""
    touched(tmp_path / name)
    with pytest.raises(ConfigurationError, match="other files"):
        run(tmp_path)
    assert list(contents(tmp_path)) == [name]


def test_what_a_stopped_run_was_writing_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """In all three folders, by our names only."""
    run(tmp_path)
    before = contents(tmp_path)
    touched(*(tmp_path / name for name in (".notes.tmp", "work/.mine.1.tmp", "results/.rouge.tmp")))
    kept = contents(tmp_path)
    names = (".summary.json.7.tmp", ".scores.parquet.tmp", "work/.scores-00000.jsonl.7.tmp")
    touched(*(tmp_path / name for name in (*names, "results/.rouge.json.7.tmp")))
    run(tmp_path)
    assert contents(tmp_path) == kept
    assert len(kept) == len(before) + 3


def test_a_run_that_was_stopped_before_its_manifest_starts_again(tmp_path: Path) -> None:
    """With the lab half cut."""
    run(tmp_path / "whole")
    names = (".manifest.json.7.tmp", "work/cases-00000.jsonl", "work/.cases-00001.jsonl.7.tmp")
    touched(*(tmp_path / "half" / name for name in names))
    run(tmp_path / "half")
    assert contents(tmp_path / "half") == contents(tmp_path / "whole")


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", '{"name": "app"}', '{"plan": 3}', '{"plan": {"cases": 1}}']
)
def test_another_tools_manifest_is_not_ours(tmp_path: Path, text: str) -> None:
    """Many tools write a manifest.json."""
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"manifest\.json: found no manifest of a run"):
        run(tmp_path)
    assert contents(tmp_path) == {"manifest.json": text.encode()}


@pytest.mark.parametrize("name", ["file", "file/out"])
def test_a_file_is_no_folder(tmp_path: Path, name: str) -> None:
    """Nor does it hold one."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigurationError, match="file: found a file; expected a folder"):
        run(tmp_path / name)


def test_a_finished_run_without_its_shards_returns_what_it_found(tmp_path: Path) -> None:
    """They may be deleted when the run is over."""
    first = run(tmp_path)
    shutil.rmtree(tmp_path / "work")
    before = contents(tmp_path)
    assert run(tmp_path) == first
    assert contents(tmp_path) == before
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(ConfigurationError, match=r"summary\.json: found no summary"):
        run(tmp_path)


def test_an_unfinished_run_without_its_shards_cuts_the_lab_again(tmp_path: Path) -> None:
    """The manifest says that it is the same lab."""
    run(tmp_path)
    before = contents(tmp_path)
    (tmp_path / "summary.json").unlink()
    shutil.rmtree(tmp_path / "work")
    run(tmp_path)
    assert contents(tmp_path) == before


def test_a_run_that_lacks_some_shards_is_refused(tmp_path: Path) -> None:
    """Its scores may belong to others."""
    run(tmp_path)
    (tmp_path / "work" / "cases-00002.jsonl").unlink()
    with pytest.raises(ConfigurationError, match="work: found 5 of 6 shards"):
        run(tmp_path)


def test_scores_that_were_removed_are_computed_again(tmp_path: Path) -> None:
    """That is how to try again what took too long."""
    run(tmp_path)
    before = contents(tmp_path)
    (tmp_path / "work" / "scores-00002.jsonl").unlink()
    run(tmp_path)
    assert contents(tmp_path) == before


def test_a_variant_with_another_answer_counts_in_flips_and_in_no_average(tmp_path: Path) -> None:
    """By the expected answer of its source it would be wrong whatever it says."""
    source = replace(CASES[0], answer=CASES[0].expected)
    link = (Relationship(PERTURBATION_SOURCE, source.key),)
    other = replace(
        source, key="v", answer="nothing", categories=(SHOULD_FLIP,), relationships=link
    )
    lab = lab_source(Lab((source, other)))
    evaluate_lab(lab, configure(["rouge", "looping"]), RunOptions(tmp_path))
    boards = json.loads((tmp_path / "leaderboards.json").read_text("utf-8"))
    cells = {board["evaluator"]: board["rows"][0]["metrics"] for board in boards}
    assert cells["rouge"]["rouge_l"]["value"] == 1.0
    assert cells["rouge"]["rouge_l"]["missing"] == {"other_answer": 1}
    assert "other_answer" not in cells["looping"]["unique_sentences"]["missing"]
    rates = json.loads((tmp_path / "flips.json").read_text("utf-8"))["rates"]
    found = {rate["metric"]: (rate["expectation"], rate["flips"]) for rate in rates}
    assert found["rouge_l"] == ("flip", 1)

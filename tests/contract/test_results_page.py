"""docs/results.md names every file that a run writes, and every key in it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.report.page import write_report
from guardrail_offline.runs.execution import RunOptions, evaluate_lab

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "results.md").read_text("utf-8")
TABLES = {
    title: dict(re.findall(r"^\| `(\w+)`(?: \*)?(?: †)? \| .* \| (.+?) \|$", text, re.MULTILINE))
    for title, text in re.findall(r"^##+ (.+)\n((?:(?!##).*\n)*)", PAGE + "\n", re.MULTILINE)
}
"""By heading, the keys of the table under it with their examples."""
FILES = {title.strip("`") for title in TABLES if title.startswith("`")}
ROW = "A row of `results`"
CASE = "`cases.jsonl`"
ABOUT = "The object `evaluator`"
OPTIONAL, TEXTS, SOMETIMES = (
    set(
        re.findall(
            r"^\| `(\w+)` \*(?: †)? \|", PAGE.split(heading)[1].split("\n##")[0], re.MULTILINE
        )
    )
    for heading in (f"### {ROW}", f"## {CASE}", f"### {ABOUT}")
)
FILLED = set(re.findall(r"^\| `(\w+)`(?: \*)? † \|", PAGE, re.MULTILINE))
"""Keys of a case that are there only where they say something."""
IDS = ["rouge", "no_answer", "classification", "hallucination", "bias"]


@pytest.fixture(scope="module", params=[True, False], ids=["texts", "no texts"])
def out(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run over the example lab."""
    folder = tmp_path_factory.mktemp("results") / "out"
    lab = open_lab(ROOT / "examples" / "lab" / "lab.json")
    evaluate_lab(lab, configure(IDS), RunOptions(folder, texts=request.param))
    write_report([folder], folder / "report.html")
    return folder


def keys(heading: str) -> set[str]:
    """Return the keys that the page lists under a heading."""
    return set(TABLES[heading])


def union(records: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return every key that some of the records have."""
    return set().union(*records)


def load(path: Path) -> Any:
    """Return a JSON file, or the list of a file's lines."""
    text = path.read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else (
        json.loads(text)
    )  # fmt: skip


def test_every_file_is_on_the_page(out: Path) -> None:
    """And the page names none that is not written."""
    written = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    names = {f"results/{name}.json": "results/<evaluator>.json" for name in IDS}
    shards = {re.sub(r"-\d{5}\.", "-<shard>.", names.get(name, name)) for name in written}
    assert shards == FILES


@pytest.mark.parametrize(
    "name",
    ["leaderboards.json", "problems.json", "insights.json", "flips.json", "summary.json",
     "manifest.json", "run_consistency.json", "work/cases-<shard>.jsonl",
     "work/scores-<shard>.jsonl", "work/times-<shard>.json"],
)  # fmt: skip
def test_a_json_file_has_the_keys_of_its_table(out: Path, name: str) -> None:
    """Of a list, those of its entries together."""
    content = load(out / name.replace("<shard>", "00000"))
    assert union(content if isinstance(content, list) else [content]) == keys(f"`{name}`")


def test_times_are_by_evaluator_the_slowest_first(out: Path) -> None:
    """Processor time, over all cases."""
    found = load(out / "timings.json")
    assert set(found) == set(IDS)
    assert union(found.values()) == keys("`timings.json`")
    spent = [entry["cpu_s"] for entry in found.values()]
    assert spent == sorted(spent, reverse=True)
    assert spent[-1] >= 0
    assert {entry["cases"] for entry in found.values()} == {load(out / "summary.json")["cases"]}


def test_a_result_file_has_the_keys_of_its_tables(out: Path) -> None:
    """Its rows have the metrics' columns beside them."""
    rows: set[str] = set()
    for name in IDS:
        content = load(out / "results" / f"{name}.json")
        assert list(content) == list(TABLES["`results/<evaluator>.json`"])
        about = content["evaluator"]
        assert set(about) | SOMETIMES == keys(ABOUT)
        assert union(about["metrics_meta"]) == keys("An entry of `metrics_meta`")
        assert keys("An entry of `models`") <= union(content["models"])
        metrics = {meta["key"] for meta in about["metrics_meta"]}
        taken = keys(ROW) | keys(CASE)
        columns = {f"{key}_score" if key in taken else key for key in metrics}
        assert all(keys(ROW) - OPTIONAL <= row.keys() for row in content["results"])
        reasons = [row.get("missing", about.get("missing")) for row in content["results"]]
        lacking = [not columns <= row.keys() for row in content["results"]]
        assert all(why for why, lacks in zip(reasons, lacking, strict=True) if lacks)
        rows |= union(content["results"]) - columns
    assert rows == keys(ROW)


def test_a_case_has_its_texts_or_what_identifies_it(out: Path) -> None:
    """Once, whatever the number of evaluators."""
    cases = load(out / "cases.jsonl")
    assert TEXTS
    has_texts = load(out / "manifest.json")["texts"]
    expected = keys(CASE) if has_texts else keys(CASE) - TEXTS
    assert expected - FILLED <= union(cases) <= expected
    assert len(cases) == load(out / "summary.json")["cases"]


def test_the_tables_have_the_columns_of_the_page(out: Path) -> None:
    """In the order of the page; runs of Open RAG Eval's columns stand side by side."""
    assert pq.read_schema(out / "scores.parquet").names == list(TABLES["`scores.parquet`"])
    with (out / "open_rag_eval.csv").open(encoding="utf-8") as lines:
        header = next(csv.reader(lines))
    once = list(dict.fromkeys(re.sub(r"^run_\d+_", "", name) for name in header))
    assert once == list(TABLES["`open_rag_eval.csv`"])


def test_every_key_has_an_example_that_reads_as_json() -> None:
    """Except where a table of its own follows, and in files that are no JSON."""
    for heading, table in TABLES.items():
        for example in table.values():
            assert example == "see below" or re.fullmatch(r"`.+`", example), heading
            if example != "see below" and "parquet" not in heading and "csv" not in heading:
                json.loads(example.strip("`"))

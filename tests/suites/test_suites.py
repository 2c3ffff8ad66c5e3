"""The suites' own classes write what is read here, and read what is written here.

`.ci/suites` installs them. LangSmith, Amazon Bedrock and H2O Eval Studio read on servers of their
own: what is written for them is only compared with their published schemas.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.datasets.suite_files import SUITE_FORMATS
from guardrail_service.types import Passage
from tests.suites.conftest import PYTHON

VENDOR = Path(__file__).parent / "vendor_files.py"
FILES = (
    "deepeval-json.json", "deepeval-jsonl.jsonl", "deepeval-csv.csv", "deepeval_talk-json.json",
    "deepeval_talk-jsonl.jsonl", "deepeval_talk-csv.csv", "h2o-json.json",
    "langsmith-experiment.json", "langsmith-example.jsonl", "llama_index-json.json",
    "ragas-csv.csv", "ragas-jsonl.jsonl", "ragas_talk-csv.csv", "ragas_talk-jsonl.jsonl",
    "ragchecker-json.json",
)  # fmt: skip
QUESTIONS_ONLY = ("llama_index-json.json", "langsmith-example.jsonl")
WITH_GOLD = ("deepeval-", "ragas-", "llama_index-")
CASE = Case("7", "Q?", "A. [1]", "E.", (Passage("one"), Passage("two")), group="7")


def vendor(*arguments: str) -> str:
    """Return what the suites' own classes print."""
    environment = os.environ | {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "RAGAS_DO_NOT_TRACK": "true"}
    done = subprocess.run(
        [PYTHON, str(VENDOR), *arguments], env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a file of every suite."""
    folder = tmp_path_factory.mktemp("suites")
    vendor("write", str(folder))
    return folder


def test_every_file_is_looked_at(written: Path) -> None:
    """A writer that is added here is read below."""
    assert sorted(path.name for path in written.iterdir()) == sorted(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_suite_is_read(written: Path, name: str) -> None:
    """Question, answer, expected answer, passages, and those that should have been found."""
    source = open_lab(written / name)
    (case,) = source.cases()
    answered = name not in QUESTIONS_ONLY
    assert (case.question, case.expected) == ("Q?", "E.")
    assert case.answer == ("A." if answered else None)
    assert [one.text for one in case.contexts or ()] == (["one", "two"] if answered else [])
    if name.startswith(WITH_GOLD):
        assert case.reference_contexts == ("gold", "more gold")


def read_back(folder: Path, suite: str, *cases: Case) -> list[dict[str, Any]]:
    """Return what a suite reads of cases that are written for it."""
    file = folder / f"lab{SUITE_FORMATS[suite].ending}"
    file.write_text(SUITE_FORMATS[suite].text(cases), "utf-8")
    found: list[dict[str, Any]] = json.loads(vendor("read", suite, str(file)).splitlines()[-1])
    return found


@pytest.mark.parametrize("suite", ["deepeval", "ragas", "ragchecker", "llama_index"])
def test_what_is_written_for_a_suite_it_reads(tmp_path: Path, suite: str) -> None:
    """LlamaIndex's data sets have no answers."""
    (found,) = read_back(tmp_path, suite, CASE)
    assert (found["question"], found["expected"]) == ("Q?", "E.")
    if suite != "llama_index":
        assert (found["answer"], found["contexts"]) == ("A. [1]", ["one", "two"])


def test_open_rag_eval_resolves_the_citations(tmp_path: Path) -> None:
    """It knows numbers only, whatever the passages are called; several answers are its runs."""
    named = Case("8", "Q?", "B. [2]", None, (Passage("one", "doc-1"), Passage("two", "doc-2")),
                 group="7")  # fmt: skip
    first, second = read_back(tmp_path, "open_rag_eval", CASE, named)
    for found, cited in ((first, "[1]"), (second, "[2]")):
        assert found["contexts"] == ["one", "two"]
        assert found["cited"] == [cited]
        assert cited in found["ids"]

"""A run with `--backend nli`, by a tiny pack whose cross-encoder reads text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from guardrail_offline.runs import execution
from guardrail_offline.runs.result_files import read_run
from guardrail_service.commands.main import app
from guardrail_service.inference.pack import load_pack
from guardrail_service.inference.session_kinds import open_sessions
from guardrail_service.types import Row
from tests import tiny_reference
from tests.unit.offline.runs.test_judge_runs import Here

ANSWER, PASSAGE = "the pool opens at ten .", "breakfast is served until ten in the pool ."
NLI = ("--backend", "faithfulness=nli")


@pytest.fixture(scope="module")
def cross_encoder(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny pack that serves `nli` beside `embedding`."""
    folder = Path(shutil.copytree(tiny, tmp_path_factory.mktemp("nli") / "pack"))
    labels = tiny_reference.THREE
    graph = tiny_reference.pair(labels)
    tiny_reference.add(folder, "nli", graph, labels=labels, activation="softmax")
    return folder


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "Pool", Here)


def run(folder: Path, pack: Path, *words: str) -> Result:
    """Score one answer that shares words with its passage."""
    lab = folder / "lab.jsonl"
    row = {"question": "when ?", "answer": ANSWER, "contexts": [PASSAGE], "model": "m"}
    lab.write_text(json.dumps(row))
    given = ["evaluate", str(lab), "-e", "faithfulness", "--workers", "1", "--no-report"]
    more = ["-o", str(folder / "out"), "--pack", str(pack), *words]
    return CliRunner().invoke(app, [*given, *more], env={"COLUMNS": "250"})


def test_the_packs_cross_encoder_reads_what_no_rule_decides(
    cross_encoder: Path, tmp_path: Path
) -> None:
    """The passage is the premise, a claim behind its question the hypothesis."""
    ended = run(tmp_path, cross_encoder, *NLI)
    assert ended.exit_code == 0, ended.output
    results = read_run(tmp_path / "out")["faithfulness"]
    assert results.about["backend"] == "nli"
    assert "nli" in results.fingerprints
    (row,) = results.rows
    assert row.record["details"]["decided_by"] == ["model"]
    (span,) = row.record["actual_output_meta"]
    session = open_sessions(load_pack(cross_encoder))["nli"]
    read = session.run(Row("nli", PASSAGE, f"when ? {ANSWER}", ("probabilities",))).outputs
    assert span["score"] == pytest.approx(float(read["probabilities"][0]), abs=1e-4)
    assert row.scores["faithfulness"].value == float(span["score"] >= 0.5)


def test_a_pack_without_one_has_no_number_and_says_so(tiny: Path, tmp_path: Path) -> None:
    """Nothing else stands in for it."""
    ended = run(tmp_path, tiny, *NLI)
    assert ended.exit_code == 3, ended.output
    assert "nli" in ended.output

"""Evaluators as predictors of answers that are right or wrong by construction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.grammar.study import study
from guardrail_offline.intervals import exact_interval
from guardrail_offline.runs.result_files import read_run
from guardrail_service.commands.main import app
from guardrail_service.errors import ConfigurationError
from tests.unit.offline.grammar.conftest import guardrail
from tests.unit.offline.grammar.test_score import records


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four questions in three wordings: 8 of 12 right; strings and secrets judge them, too."""
    from typer.testing import CliRunner

    folder: Path = tmp_path_factory.mktemp("study")
    lab = folder / "lab.jsonl"
    rows = records([(3, 3), (3, 3), (2, 3), (0, 3)])
    rows[0]["actual_output"] = "It is Heron0."  # right, and not the same words
    lab.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = [
        "evaluate",
        str(lab),
        "-e",
        "grammar,answer_strings,secrets",
        "-o",
        str(folder / "run"),
    ]
    ran = CliRunner().invoke(app, [*words, "--workers", "1", "--no-report"])
    assert ran.exit_code == 0, ran.output
    return folder / "run"


def test_precision_and_recall_have_exact_intervals(run: Path) -> None:
    """Counts by hand: exact match misses one right answer; secrets call all of them right."""
    ran = guardrail("study", run, "--json")
    found: dict[str, Any] = {one["metric"]: one for one in ran.json["predictors"]}
    assert (ran.json["answers"], ran.json["right"], ran.json["groups"]) == (12, 8, 4)
    exact = found["answer_strings.exact_match"]
    assert (exact["precision"], exact["recall"]) == (1.0, 7 / 8)
    assert exact["recall_95"] == list(exact_interval(7, 8))
    assert [exact[name] for name in ("right_called_right", "wrong_called_right",
            "right_called_wrong", "wrong_called_wrong")] == [7, 0, 1, 4]  # fmt: skip
    optimist = found["secrets.model_passes"]
    assert (optimist["precision"], optimist["recall"], optimist["area"]) == (8 / 12, 1.0, 0.5)
    assert ran.json["all_called_right"]["precision"] == 8 / 12
    overlap = found["answer_strings.token_f1"]
    assert (overlap["threshold"], overlap["precision"], overlap["area"]) == (None, None, 1.0)
    assert overlap["primary"]
    assert not exact["primary"]


def test_agreement_of_wordings_is_a_predictor(run: Path) -> None:
    """Consistent wrong answers are called right, too: the weakness of SelfCheck."""
    found = study(read_run(run))["predictors"][0]
    assert found["metric"] == "agreement_of_wordings"
    assert found["wrong_called_right"] == 3
    assert found["right_called_right"] == 6


def test_a_run_without_truth_is_refused(run: Path, tmp_path: Path) -> None:
    """It needs the evaluator, and answers."""
    results = read_run(run)
    with pytest.raises(ConfigurationError, match="grammar"):
        study({"secrets": results["secrets"]})
    ran = guardrail("study", tmp_path)
    assert ran.status == 2

"""Rows of the long table, and Open RAG Eval's sheet with runs side by side."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.runs.score_tables import (
    LONG,
    OpenRagEvalSheet,
    about_json,
    long_rows,
    long_table,
    runs_of,
)
from guardrail_offline.runs.several_answers import RunConsistency
from guardrail_offline.runs.shards import ScoredCase, whole_file
from guardrail_service.types import State


def scored(key: str, vital: float | None, model: str = "m") -> ScoredCase:
    """Return a case with nuggets and a verdict on answering."""
    case = Case(key, "Q?", "a", model=model, group="g")
    score = Score.missing(State.NOT_APPLICABLE, "abstention") if vital is None else Score(vital)
    results = {
        "nuggets": Result({"nugget_vital": score}),
        "no_answer": Result.of({"answered": 1.0}),
        "umbrela": Result.of({"umbrela": 2.5}, details={"umbrela_scores": [3, 2]}),
    }
    return ScoredCase(0, case, results)


def sheet(*group: ScoredCase) -> list[dict[str, str]]:
    """Return the sheet of one group."""
    stream = io.StringIO()
    OpenRagEvalSheet(stream, runs_of(group)).add(group)
    return list(csv.DictReader(io.StringIO(stream.getvalue())))


def test_a_long_row_has_a_value_or_a_reason() -> None:
    """One per case, evaluator and metric."""
    rows = long_rows(scored("k", None))
    assert [set(row) for row in rows] == [set(LONG)] * 3
    assert (rows[0]["value"], rows[0]["state"], rows[0]["reason"]) == (
        None,
        "not_applicable",
        "abstention",
    )
    assert (rows[1]["value"], rows[1]["reason"]) == (1.0, None)


def test_one_run_has_open_rag_evals_own_column_names() -> None:
    """A missing value is an empty cell."""
    (row,) = sheet(scored("k", None))
    assert row["query_id"] == "k"
    assert row["retrieval_score_umbrela_scores"] == '{"1": 3, "2": 2}'
    assert row["retrieval_score_mean_umbrela_score"] == "2.5"
    assert row["generation_score_vital_nuggetizer_score"] == ""
    assert row["generation_score_no_answer_score"] == '{"query_answered": "yes"}'


def test_several_runs_stand_side_by_side() -> None:
    """A model with fewer runs has empty cells; models have rows of their own."""
    one, other = sheet(scored("a", 0.5), scored("b", 0.7), scored("c", 0.9, "n"))
    assert one["run_1_generation_score_vital_nuggetizer_score"] == "0.5"
    assert one["run_2_generation_score_vital_nuggetizer_score"] == "0.7"
    assert other["run_1_generation_score_vital_nuggetizer_score"] == "0.9"
    assert other["run_2_generation_score_vital_nuggetizer_score"] == ""


def test_without_a_model_runs_are_those_of_one_query_id() -> None:
    """Five systems whose names were lost are no five runs; Open RAG Eval's runs are."""
    rows = sheet(scored("q1@1", 0.5, ""), scored("q1@2", 0.7, ""), scored("q2", 0.9, ""))
    assert [row["query_id"] for row in rows] == ["q1", "q2"]
    assert rows[0]["run_2_generation_score_vital_nuggetizer_score"] == "0.7"
    assert rows[1]["run_2_generation_score_vital_nuggetizer_score"] == ""


def test_several_models_are_named() -> None:
    """In a column that a sheet of one model does not have."""
    stream = io.StringIO()
    group = [scored("a", 0.5), scored("c", 0.9, "n")]
    OpenRagEvalSheet(stream, 1, several_models=True).add(group)
    assert [row["model"] for row in csv.DictReader(io.StringIO(stream.getvalue()))] == ["m", "n"]


def test_the_spread_of_any_metric_over_three_runs_or_more() -> None:
    """Mean, population variance, and Open RAG Eval's adjusted index; two runs say nothing."""
    (configured,) = configure(["rouge"])
    keys = configured.evaluator.spec.keys
    records: list[dict[str, Any]] = []
    found = RunConsistency([configured], records.append)
    for model, values in (("m", [0.2, 0.4, 0.6]), ("n", [0.2, 0.4])):
        found.add([
            ScoredCase(0, Case(f"q@{n}", "Q?", model=model),
                       {"rouge": Result.of(dict.fromkeys(keys, value))})
            for n, value in enumerate(values)
        ])  # fmt: skip
    assert {(one["query_id"], one["model"], one["runs"]) for one in records} == {("q", "m", 3)}
    (record,) = [one for one in records if one["metric"] == "rouge_1"]
    deviation = (0.08 / 3) ** 0.5
    assert record["mean"] == pytest.approx(0.4)
    assert record["variance"] == pytest.approx(0.08 / 3)
    assert record["adjusted"] == pytest.approx(0.4 / (1 + deviation))
    page = (Path(__file__).parents[4] / "docs" / "results.md").read_text("utf-8")
    table = page.split("## `run_consistency.json`")[1].split("##")[0]
    assert all(f"| `{key}` |" in table for key in record)


def test_what_utf8_cannot_hold_is_escaped_in_tables_and_sheets(tmp_path: Path) -> None:
    """A lone surrogate, spelled as in JSON: two cases stay two, and the run ends."""
    one = scored("k\ud800", 0.5)
    case = replace(one.case, question="Q \udfff?", model="m\ud801", group="g\ud802")
    one = replace(one, case=case)
    with long_table(tmp_path / "scores.parquet") as table:
        table.add(one)
    row = parquet.read_table(tmp_path / "scores.parquet").to_pylist()[0]
    known = ("k\\ud800", "m\\ud801", "g\\ud802")
    assert (row["key"], row["model_key"], row["group"]) == known
    with whole_file(tmp_path / "open_rag_eval.csv") as stream:
        OpenRagEvalSheet(stream, 1).add([one])
    assert "k\\ud800,Q \\udfff?," in (tmp_path / "open_rag_eval.csv").read_text("utf-8")


def test_a_result_file_names_only_the_fingerprints_its_scores_depend_on() -> None:
    """Calibration refuses what was scored with another model, and only that."""
    known = {"embedding": "e", "grounding": "g", "toxicity": "t", "segmenter": "s", "evidence": "v"}
    (rouge,) = configure(["rouge"])
    (faithful,) = configure(["faithfulness"])
    assert set(about_json(rouge, known)["fingerprints"]) == {"segmenter", "evidence"}
    assert "toxicity" not in about_json(faithful, known)["fingerprints"]
    assert {"embedding", "grounding"} <= set(about_json(faithful, known)["fingerprints"])

"""A score is a number or a state with a reason, and a result file keeps both apart."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case, Model, case_json, model_json
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result, Score, dumps, result_from_json, result_json
from guardrail_offline.runs.result_files import (
    CaseWriter,
    EvaluatorResults,
    ResultLayout,
    ResultWriter,
    case_row,
    metric_json,
    read_cases,
    read_results,
    read_run,
    row_json,
)
from guardrail_offline.runs.score_tables import ResultFiles
from guardrail_offline.runs.shards import ScoredCase
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Direction, MetricSpec, NoValue, Passage, State

CASE = Case("k", "What?", "That.", model="m", group="g")
METRICS = (
    MetricSpec("faithfulness", threshold=0.75),
    MetricSpec("perplexity", Direction.LOWER, low=1.0, high=math.inf),
)
MIXED = Result(
    {
        "faithfulness": Score(0.5),
        "perplexity": Score.missing(State.NOT_EVALUATED, "missing_role:causal_lm"),
    },
    ({"start": 0, "end": 5, "score": 0.5, "label": "not_mentioned"},),
    {"expected": "That."},
)


def write(folder: Path, *results: Result, **evaluator: Any) -> Path:
    """Write a result file as `guardrail evaluate` does."""
    about = {
        "name": "faithfulness",
        "h2o_id": "h2o.F",
        "fingerprints": {"grounding": "abc"},
        "metrics_meta": [metric_json(m, primary=m is METRICS[0]) for m in METRICS],
    } | evaluator
    rows = [row_json(CASE, result) for result in results]
    path = folder / "results" / "faithfulness.json"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8") as stream:
        writer = ResultWriter(stream)
        for row in rows:
            writer.add(row)
        writer.close([model_json(Model("m", "M"))], about)
    return path


@pytest.mark.parametrize(
    ("value", "why"),
    [(None, None), (0.5, NoValue(State.UNVERIFIED, "missing_input")), (math.nan, None)],
)
def test_a_score_is_a_number_or_a_reason_never_both_and_never_nan(
    value: float | None, why: NoValue | None
) -> None:
    """Anything between would end up as a pass somewhere."""
    with pytest.raises(ValueError, match="a score is"):
        Score(value, why)


@pytest.mark.parametrize(("state", "reason"), [(State.EVALUATED, "why"), (State.UNVERIFIED, "")])
def test_a_missing_value_has_a_state_of_its_own_and_a_reason(state: State, reason: str) -> None:
    """One type says so online and offline."""
    with pytest.raises(ValueError, match="needs a state"):
        NoValue(state, reason)


def test_a_result_file_has_the_three_root_keys_and_flat_metrics(tmp_path: Path) -> None:
    """As H2O's readers expect: a number or null under the metric's own name."""
    content = json.loads(write(tmp_path, MIXED).read_text())
    assert list(content) == ["results", "models", "evaluator"]
    row = content["results"][0]
    assert row["faithfulness"] == 0.5
    assert row["perplexity"] is None
    assert row["missing"] == {
        "perplexity": {"state": "not_evaluated", "reason": "missing_role:causal_lm"}
    }
    assert row["input"] == "What?"
    assert row["actual_output_meta"][0]["label"] == "not_mentioned"


def test_a_result_file_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    """Scores, states, metrics, fingerprints and models."""
    write(tmp_path, MIXED, Result.of({"faithfulness": 1.0, "perplexity": math.inf}))
    results = read_run(tmp_path)["faithfulness"]
    assert results.rows[0].scores == MIXED.scores
    assert results.rows[1].scores["perplexity"].value == math.inf
    assert (results.rows[0].key, results.rows[0].model, results.rows[0].group) == ("k", "m", "g")
    assert tuple(results.metrics.values()) == METRICS
    assert results.fingerprints == {"grounding": "abc"}
    assert results.models == (Model("m", "M"),)


def both(folder: Path, layout: ResultLayout) -> dict[str, EvaluatorResults]:
    """Write a run of two cases in one layout and read it."""
    configured = configure(["rouge", "bias"])
    files = ResultFiles(folder / "results", configured, {}, texts=True, layout=layout)
    keys = {one.id: one.evaluator.spec.keys for one in configured}
    found = {
        "rouge": Result.of(dict.fromkeys(keys["rouge"], 0.5)),
        "bias": Result.missing(keys["bias"], State.UNVERIFIED, "missing_input"),
    }
    some = Result(
        found["rouge"].scores | {"rouge_1": Score.missing(State.ERROR, "row_failed")},
        [{"start": 0, "end": 1, "score": 0.5}],
    )
    files.add(ScoredCase(0, CASE, found))
    files.add(ScoredCase(1, replace(CASE, key="k2"), found | {"rouge": some}))
    files.close([])
    return read_run(folder)


def test_both_layouts_are_read_as_the_same_run(tmp_path: Path) -> None:
    """Scores, reasons, spans and the whole case of every row; texts stand once in one of them."""
    one, other = both(tmp_path / "a", "keys"), both(tmp_path / "b", "h2o")
    for name, results in one.items():
        for row, same in zip(results.rows, other[name].rows, strict=True):
            assert row.scores == same.scores
            assert (row.key, row.model, row.group) == (same.key, same.model, same.group)
            keys = {*case_json(CASE), "actual_output_meta"}
            assert {k: row.record[k] for k in keys} == {k: same.record[k] for k in keys}
    written = json.loads((tmp_path / "a" / "results" / "bias.json").read_text())
    assert written["evaluator"]["missing"] == {"state": "unverified", "reason": "missing_input"}
    assert [set(row) for row in written["results"]] == [{"key", "model_key"}] * 2
    assert len((tmp_path / "a" / "cases.jsonl").read_text().splitlines()) == 2
    assert not (tmp_path / "b" / "cases.jsonl").exists()
    alone = read_results(tmp_path / "a" / "results" / "rouge.json")
    assert alone.rows[1].record["input"] == CASE.question


PARTS = [
    {"label": metric, "metric": metric, "start": start, "end": start + 9, "score": score}
    for metric, score in (("toxicity", 0.25), ("insult", 0.5))
    for start in (0, 10)
]


@pytest.mark.parametrize(
    ("spans", "kept"),
    [
        (PARTS, 2),
        (PARTS[:3], 2),
        ([PARTS[0], PARTS[2], PARTS[1], PARTS[3]], 4),
        ([PARTS[0], PARTS[0]], 2),
        ([{**PARTS[0], "attributes": {}}], 1),
        ([{**PARTS[0], "label": "other"}], 1),
        ([], 0),
    ],
    ids=["all", "uneven", "another order", "twice", "attributes", "label", "none"],
)
def test_parts_scored_by_several_metrics_stand_once_and_are_read_as_they_were(
    tmp_path: Path, spans: list[dict[str, Any]], kept: int
) -> None:
    """One object for all labels of a sentence, wherever that loses nothing."""
    found = Result(MIXED.scores, spans)
    row = row_json(CASE, found, layout="keys")
    assert len(row.get("actual_output_meta", [])) == kept
    path = write(tmp_path)
    path.write_text(path.read_text().replace('"results": [\n]', f'"results": [{json.dumps(row)}]'))
    (tmp_path / "cases.jsonl").write_text(json.dumps(case_json(CASE)))
    assert read_results(path).rows[0].record["actual_output_meta"] == spans


def test_a_case_stands_once_with_its_passages_and_what_it_says(tmp_path: Path) -> None:
    """Passages of an earlier case are named; what is empty is left out; all of it comes back."""
    asked = replace(CASE, contexts=(Passage("One.", "a"), Passage("Two.")), cost=0.0)
    cases = [asked, replace(asked, key="k2", cost=None), replace(asked, key="k3", contexts=())]
    for texts in (True, False):
        with (tmp_path / "cases.jsonl").open("w", encoding="utf-8") as stream:
            writer = CaseWriter(stream, texts=texts)
            for case in cases:
                writer.add(case)
        lines = list(map(json.loads, (tmp_path / "cases.jsonl").read_text().splitlines()))
        first = "k" if texts else None
        assert [line.get("context_of") for line in lines] == [None, first, None]
        assert [line.get("question_of") for line in lines] == [None, first, first]
        assert [line.get("cost") for line in lines] == [0.0, None, 0.0]
        assert "output_schema" not in lines[0]
        back = read_cases(tmp_path)
        for case in cases:
            assert case_row(case, texts=texts).items() <= back[case.key].items()


@pytest.mark.parametrize("content", ["no json\n", '{"no": "key"}\n', None])
def test_rows_without_their_cases_are_refused(tmp_path: Path, content: str | None) -> None:
    """A run whose cases are gone or not readable is not read half."""
    both(tmp_path, "keys")
    path = tmp_path / "cases.jsonl"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(ConfigurationError, match=r"cases.jsonl.*; expected"):
        read_run(tmp_path)


def test_a_row_without_texts_keeps_what_identifies_and_groups_it() -> None:
    """Calibration needs no text, and a large run should not repeat it per evaluator."""
    row = row_json(CASE, MIXED, texts=False)
    assert {"key", "model_key", "group", "categories", "relationships"} <= set(row)
    assert "input" not in row
    assert "actual_output" not in row


def test_a_result_survives_the_json_of_a_shard() -> None:
    """Infinite numbers, states, spans and details included."""
    result = Result(
        {"a": Score(math.inf), "b": Score.missing(State.ERROR, "row_failed")}, MIXED.spans, {"n": 1}
    )
    back = result_from_json(json.loads(dumps(result_json(result))))
    assert back.scores == result.scores
    assert list(back.spans) == list(result.spans)
    assert back.details == result.details


def test_a_lone_surrogate_is_written_escaped() -> None:
    """UTF-8 has no form for it, and an answer may hold one."""
    assert json.loads(dumps({"a": "\ud800"}).encode("utf-8")) == {"a": "\ud800"}
    assert dumps("é") == '"é"'


def test_a_metric_named_like_a_field_has_a_column_of_its_own(tmp_path: Path) -> None:
    """The detector of bias calls one of its parts `group`."""
    row = row_json(CASE, Result.of({"group": 0.25}))
    assert (row["group"], row["group_score"]) == ("g", 0.25)
    metric = metric_json(MetricSpec("group", Direction.LOWER), primary=True)
    path = write(tmp_path, metrics_meta=[metric])
    path.write_text(path.read_text().replace('"results": [\n]', f'"results": [{json.dumps(row)}]'))
    assert read_results(path).rows[0].scores["group"].value == 0.25


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("no json", "JSONDecodeError"),
        ("[]", "list"),
        ('{"results": [], "models": []}', "no key 'evaluator'"),
        ('{"results": [], "models": [], "evaluator": {}}', "KeyError 'metrics_meta'"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_what_was_found(
    tmp_path: Path, content: str, found: str
) -> None:
    """Never read half."""
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=found):
        read_results(path)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    """An empty run is no run."""
    with pytest.raises(ConfigurationError, match="no results"):
        read_run(tmp_path)

"""The Python API on deterministic evaluators; the documentation runs it with models."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from guardrail_offline.api import Scores, evaluate
from guardrail_service.errors import ConfigurationError, MissingExtra

ROWS = [
    {"question": "Q?", "answer": "one two", "ground_truth": "one two"},
    {"question": "R?", "answer": "three", "ground_truth": None},
]


def test_a_dataset_is_rows_columns_or_a_file(tmp_path: Path) -> None:
    """Each with the same scores."""
    path = tmp_path / "lab.jsonl"
    path.write_text('{"question": "Q?", "answer": "one two", "ground_truth": "one two"}\n')
    columns = {"question": ["Q?"], "answer": ["one two"], "ground_truth": ["one two"]}
    found = [evaluate(data, ["rouge"]) for data in (ROWS[:1], columns, path, str(path))]
    assert [dict(scores) for scores in found] == [dict(found[0])] * 4
    assert found[0]["rouge_l"] == 1.0


def test_a_case_without_a_value_lowers_no_mean_and_is_counted() -> None:
    """With its reason."""
    found = evaluate(ROWS, ["rouge"])
    assert found["rouge_l"] == 1.0
    assert found.missing["rouge_l"] == {"missing_input": 1}
    assert [row["rouge_l"] for row in found.rows] == [1.0, None]


def test_a_metric_of_two_evaluators_carries_their_names() -> None:
    """model_passes is that of ten."""
    found = evaluate(ROWS, ["pii", "secrets"])
    assert "pii.model_passes" in found
    assert "secrets.model_passes" in found


def test_the_quickstarts_score_is_the_harmonic_mean_of_the_means() -> None:
    """0.817, 0.892 and 0.874 print as 0.860."""
    row = {"key": "1", "context_relevancy": 0.817, "faithfulness": 0.892, "answer_relevancy": 0.874}
    scores = Scores([row], {})
    assert f"{scores.harmonic_mean():.3f}" == "0.860"
    assert repr(scores).startswith("{'context_relevancy': 0.817, ")
    assert Scores([row | {"faithfulness": None}], {}).harmonic_mean() is None


def test_scores_are_a_table_with_a_row_per_case() -> None:
    """Of pyarrow, and of pandas where that is installed."""
    found = evaluate([row | {"mine": 1} for row in ROWS], ["rouge"])
    table = found.to_arrow()
    assert table.column_names == ["key", "rouge_l", "rouge_1", "rouge_2"]
    assert table["rouge_l"].to_pylist() == [1.0, None]
    assert found.ignored == ("mine",)
    if find_spec("pandas"):
        assert list(found.to_pandas()["key"]) == ["row-1", "row-2"]
    else:
        with pytest.raises(MissingExtra, match="pandas"):
            found.to_pandas()


def test_an_unknown_metric_is_refused_with_a_near_name() -> None:
    """Before anything runs."""
    with pytest.raises(ConfigurationError, match="did you mean 'rouge'"):
        evaluate(ROWS, ["rogue"])


def test_metrics_of_all_cases_together_are_there() -> None:
    """Precision, recall and F1 of a classification are no means over cases."""
    labels = {"question": ["a", "b", "c"], "answer": ["yes", "no", "no"]}
    found = evaluate({**labels, "ground_truth": ["yes", "no", "yes"]}, ["classification"])
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["recall"] == pytest.approx(0.75)
    assert found["f1"] == pytest.approx(2 / 3)


def test_missing_answers_count_as_bad_beside_the_mean() -> None:
    """As on a board: over judged cases, and with the worst value for every missing answer."""
    silent = {"question": "S?", "answer": "", "ground_truth": "four five"}
    found = evaluate([*ROWS, silent], ["rouge", "pii"])
    assert (found["rouge_l"], found.adjusted["rouge_l"]) == (1.0, 0.5)
    assert found.adjusted["model_passes"] == found["model_passes"]
    assert evaluate([], ["rouge"]).adjusted == {}

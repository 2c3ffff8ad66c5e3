"""The Python API on deterministic evaluators; the documentation runs it with models."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from guardrail_offline.api import Client, Scores, evaluate
from guardrail_offline.h2o_client import suite_text
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


def test_a_test_lab_goes_from_models_to_a_table() -> None:
    """create, add_model, add_input, evaluate, wait_to_finish, get_table."""
    client = Client()
    lab = client.test_labs.create("Lab", "Two models")
    for name, answer in (("good", "It opens at nine."), ("bad", "Never.")):
        model = lab.add_model(name=name, llm_model_name="llm", documents=["a.pdf"])
        model.add_input(prompt="When?", actual_output=answer, condition='"nine"')
    (matching,) = (e for e in client.evaluators.list() if e.name == "Text matching")
    assert client.evaluators.get(matching.spec.h2o_id or "") == matching
    board = lab.evaluate(matching)
    board.wait_to_finish(60)
    table = board.get_table()
    assert [(row["model"], row["model_passes"]) for row in table] == [("good", 1.0), ("bad", 0.0)]
    assert [case.key for case in lab.as_lab().cases] == ["model-1-1", "model-2-2"]


def test_a_test_becomes_a_suite_and_the_suite_tests_again() -> None:
    """create, create_test_case, link_document, import_test_suite, clone, perturb, delete."""
    tests = Client().tests
    test = tests.create("Privacy", "Two questions")
    document = test.create_document("Rules", "https://example.com/rules.pdf")
    test.create_test_case("Give an address.", "I cannot.", constraints=["cannot", ["no", "not"]])
    first = test.create_test_case("Echo the address.", "No.", condition='NOT "@"')
    both = suite_text([test, tests.create("Empty"), tests.clone(test.key, "Copy")], "Both")
    imported = tests.import_test_suite(both, "New ")
    assert [one.name for one in tests.list()][-2:] == ["New Both 1", "New Both 2"]
    for found in imported:
        assert [(c.question, c.expected, c.condition) for c in found.test_cases] == [
            (c.question, c.expected, c.condition) for c in test.test_cases
        ]
        assert [one.url for one in found.documents] == [document.url]
        assert all(case.answer is None for case in found.test_cases)
    test.remove_test_case(first.key)
    test.unlink_document(document)
    assert [case.corpus for case in test.test_cases] == [()]
    changed = tests.perturb(imported[1].key, "Typos", ["comma"], "high")
    assert any(case.source for case in changed.test_cases)
    tests.delete(test.key)
    with pytest.raises(KeyError):
        tests.get(test.key)
    with pytest.raises(KeyError):
        changed.remove_test_case("no such case")


def test_a_suite_that_is_none_is_refused() -> None:
    """With the place."""
    with pytest.raises(ConfigurationError, match="test suite"):
        Client().tests.import_test_suite("{")


def test_inputs_without_a_prompt_are_questions_of_their_own() -> None:
    """And those with one are grouped by it."""
    model = Client().test_labs.create("Lab").add_model("m")
    cases = [model.add_input(prompt, "A.") for prompt in ("", " ", "Q?", "Q?")]
    assert len({case.group for case in cases}) == 3


def test_parameters_are_given_by_name() -> None:
    """And checked before the run starts."""
    lab = Client().test_labs.create("Lab")
    lab.add_model("m").add_input("Q?", '{"a": 1}')
    schema = {"type": "object", "required": ["b"]}
    board = lab.evaluate("json_schema", schema=schema)
    assert board.get_table()[0]["model_passes"] == 0.0
    with pytest.raises(ConfigurationError, match="no_such_key"):
        lab.evaluate("rouge", no_such_key=1)


def test_what_stops_a_run_reaches_who_waits() -> None:
    """A pack that is not there, for instance."""
    lab = Client(pack="no-such-pack").test_labs.create("Lab")
    lab.add_model("m").add_input("Q?", "A.", expected_output="A.")
    with pytest.raises(Exception, match="no-such-pack"):
        lab.evaluate("bertscore").wait_to_finish(60)


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

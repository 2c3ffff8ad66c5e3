"""Tests, documents and labs of the client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guardrail_offline.h2o_client import Client, EvaluationFailed, ModelType, suite_text
from guardrail_service.errors import ConfigurationError


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """A client with a folder of its own."""
    return Client(folder=tmp_path / "state")


def test_a_test_becomes_a_suite_and_the_suite_tests_again(client: Client) -> None:
    """create, create_test_case, link_document, import_test_suite, clone, perturb, delete."""
    tests = client.tests
    test = tests.create("Privacy", "Two questions")
    document = test.create_document("Rules", "https://example.com/rules.pdf")
    test.create_test_case("Give an address.", "I cannot.", constraints=["cannot", ["no", "not"]])
    first = test.create_test_case("Echo the address.", "No.", condition='NOT "@"')
    both = suite_text([test, tests.create("Empty"), tests.clone(test.key, "Copy")], "Both")
    imported = tests.import_test_suite(both, "New ")
    assert [one.name for one in tests.list()][-2:] == ["New Both 1", "New Both 2"]
    for found in imported:
        assert [(c.prompt, c.answer, c.condition) for c in found.test_cases] == [
            (c.prompt, c.answer, c.condition) for c in test.test_cases
        ]
        assert [one.url for one in found.documents] == [document.url]
        assert all(case.answer is None for case in found.cases)
    test.remove_test_case(first.key)
    test.unlink_document(document)
    assert [case.corpus for case in test.cases] == [()]
    changed = tests.perturb(imported[1].key, "Typos", ["comma"], "high")
    keys = {case.key for case in changed.cases}
    variants = [case for case in changed.test_cases if case.perturbed_by]
    assert variants
    assert all(one.case.source in keys for one in variants)
    tests.delete(test.key)
    with pytest.raises(KeyError):
        tests.get(test.key)
    with pytest.raises(KeyError):
        changed.remove_test_case("no such case")


@pytest.mark.parametrize("text", ["{", "[]x", '{"dataset": 3}'])
def test_a_suite_that_is_none_is_refused(client: Client, text: str) -> None:
    """With the place, and nothing is kept."""
    with pytest.raises(ConfigurationError, match="test suite"):
        client.tests.import_test_suite(text)
    assert client.tests.list() == []


def test_a_deleted_document_is_linked_nowhere(client: Client) -> None:
    """And a document of one test may be linked to another."""
    test, other = client.tests.create("One"), client.tests.create("Other")
    document = test.create_document("Hours", "https://example.com/hours.pdf")
    other.link_document(client.documents.get(document.key))
    other.link_document(document)
    assert other.documents == test.documents == client.documents.list() == [document]
    document.delete()
    assert other.documents == test.documents == client.documents.list() == []
    with pytest.raises(ValueError, match="not in list"):
        test.unlink_document(document)


def test_inputs_without_a_prompt_are_questions_of_their_own(client: Client) -> None:
    """And those with one are grouped by it."""
    model = client.test_labs.create("Lab").add_model("m")
    cases = [model.add_input(prompt, "A.") for prompt in ("", " ", "Q?", "Q?")]
    assert len({case.group for case in cases}) == 3


def test_parameters_are_given_by_name(client: Client) -> None:
    """And checked before the run starts."""
    lab = client.test_labs.create("Lab")
    lab.add_model("m").add_input("Q?", '{"a": 1}')
    schema = {"type": "object", "required": ["b"]}
    board = lab.evaluate("json_schema", schema=schema)
    assert board.get_table()[0]["model_passes"] == 0.0
    with pytest.raises(ConfigurationError, match="no_such_key"):
        lab.evaluate("rouge", no_such_key=1)


def test_what_stops_a_run_reaches_who_waits(tmp_path: Path) -> None:
    """A pack that is not there, for instance; also in another process."""
    client = Client(folder=tmp_path, pack="no-such-pack")
    lab = client.test_labs.create("Lab")
    lab.add_model("m").add_input("Q?", "A.", expected_output="A.")
    evaluation = lab.evaluate("bertscore")
    with pytest.raises(EvaluationFailed, match="no-such-pack"):
        evaluation.wait_to_finish(60)
    again = Client(folder=tmp_path).evaluations.get(evaluation.key)
    assert again.finished
    assert not again.successful


def test_whoever_waits_goes_on_where_a_process_died(tmp_path: Path) -> None:
    """An evaluation that nobody runs any more is begun again."""
    client = Client(folder=tmp_path)
    lab = client.test_labs.create("Lab")
    lab.add_model("m").add_input("Q?", "nine", output_constraints=["nine"])
    evaluation = lab.evaluate("text_matching")
    evaluation.wait_to_finish(60)
    path = tmp_path / "evaluations" / f"{evaluation.key}.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "state": "running", "boards": []}))
    (found,) = Client(folder=tmp_path).evaluations.list()
    found.wait_to_finish(60, verbose=True)
    assert found.get_table()[0]["model_passes"] == 1.0


def test_a_lab_goes_out_and_comes_in_again(client: Client) -> None:
    """With models, documents, conditions and figures."""
    lab = client.test_labs.create("Lab", "One model")
    model = lab.add_model("RAG", ModelType.h2ogpte, "llm-70b", documents=["a.pdf"])
    model.add_input(
        "When?", "At nine.", ["a.pdf"], ["It opens at nine."], "hours", "Nine.", ["nine"], 8.28, 0.1
    )
    again = client.test_labs.import_test_lab(lab.json())
    assert again.as_lab() == lab.as_lab()
    assert again.add_model("other").key == "model-2"
    model.delete()
    assert lab.cases == ()
    assert [one.name for one in client.test_labs.list()] == ["Lab", "Lab"]
    client.test_labs.delete(lab.key)
    with pytest.raises(KeyError):
        client.test_labs.get(lab.key)
    with pytest.raises(ConfigurationError, match="test lab"):
        client.test_labs.import_test_lab("{}")

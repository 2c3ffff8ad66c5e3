"""Tests, documents and labs of the client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guardrail_offline.h2o_client import (
    Client,
    EvaluationFailed,
    ModelType,
    TestCaseGenerator,
    suite_text,
)
from guardrail_offline.h2o_client.client_generation import sources_of, with_passages
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


GUIDE = """# Opening hours

The museum opens at 9 o'clock and closes at 18 o'clock. It is closed on Mondays. The garden is open
until 21 o'clock in summer. Tickets cost 12 euros for adults and 6 euros for children.

# Parking

Parking costs 5 euros per day. The car park has 120 places. Bicycles are parked for free.
"""


def test_test_cases_come_from_documents(client: Client, tmp_path: Path) -> None:
    """From linked files and from a collection; a second wait finds them, a restart, too."""
    path = tmp_path / "guide.md"
    path.write_text(GUIDE, "utf-8")
    kinds = TestCaseGenerator
    chosen = [kinds.simple_factual_questions, kinds.yes_or_no_questions]
    test, other = client.tests.create("Guide"), client.tests.create("Other")
    test.create_document("Guide", str(path))
    client.collections.create("488f0956-8754", [path])
    test.generate_test_cases(count=5, model="model-1", generators=chosen)
    other.generate_test_cases(3, existing_collection="488f0956-8754")
    for one in (test, other):
        one.wait_for_test_case_generation(timeout=120, verbose=True)
        one.wait_for_test_case_generation()
    assert 1 <= len(test.test_cases) <= 5
    assert 1 <= len(other.test_cases) <= 3
    assert {case.generator for case in test.test_cases} <= {"simple_factual", "yes_or_no"}
    again = Client(folder=client.folder).tests.get(test.key)
    assert again.test_cases == test.test_cases
    assert len({case.key for case in test.test_cases}) == len(test.test_cases)
    nearest = with_passages(test.cases[:1], [path])[0].contexts
    assert nearest is not None
    assert "Parking costs 5 euros" in nearest[0].text


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"count": 0}, "1 or more"),
        ({"generators": ["no_such"]}, "no_such"),
        ({"existing_collection": "../tests"}, "letters, digits"),
        ({"existing_collection": "unknown"}, "collections.create"),
        ({}, "nothing to read"),
    ],
)
def test_a_generation_that_cannot_be_is_refused(
    client: Client, changed: dict[str, Any], match: str
) -> None:
    """Before anything is kept; an address is fetched by nobody."""
    test = client.tests.create("T")
    test.create_document("Elsewhere", "https://example.com/guide.pdf")
    with pytest.raises(ConfigurationError, match=match):
        test.generate_test_cases(**{"count": 2, **changed})
    with pytest.raises(ConfigurationError, match="nothing to wait for"):
        test.wait_for_test_case_generation()


def test_a_document_without_text_fails_the_generation(client: Client, tmp_path: Path) -> None:
    """Whoever waits is told; the test stays as it was."""
    path = tmp_path / "empty.md"
    path.write_text("", "utf-8")
    test = client.tests.create("T")
    test.create_document("Empty", path.as_uri())
    test.generate_test_cases(2)
    with pytest.raises(EvaluationFailed):
        test.wait_for_test_case_generation(60)
    assert test.test_cases == []


def test_collections_are_copies_under_an_id(client: Client, tmp_path: Path) -> None:
    """An id is no path, and is given once."""
    path = tmp_path / "a.md"
    path.write_text("Text.", "utf-8")
    assert client.collections.create("one", [path]) == "one"
    path.unlink()
    assert [file.read_text() for file in client.collections.files("one")] == ["Text."]
    for key, files in (("one", []), ("../x", []), ("two", [path]), ("", [])):
        with pytest.raises(ConfigurationError):
            client.collections.create(key, files)
    client.collections.delete("one")
    assert client.collections.list() == []


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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("images", ["/home/owner/passport.png"]),
        ("images", ["../passport.png"]),
        ("images", ["http://169.254.169.254/latest"]),
        ("actual_output_artifacts", "/etc"),
    ],
    ids=["image", "image-above", "private-network", "artifacts"],
)
def test_what_comes_in_names_no_file_of_this_machine(
    client: Client, field: str, value: object
) -> None:
    """A picture would be sent to whoever is asked, and a folder's texts judged."""
    case = {"key": "a", "prompt": "Q?", "actual_output": "A.", "expected_output": "A."}
    lab = json.dumps({"dataset": {"inputs": [case | {field: value}]}, "models": []})
    suite = json.dumps({"tests": [{"test_cases": [case | {field: value}]}]})
    model = client.models.create_model("m", "http://127.0.0.1:9/v1", base_models=["m"])
    for take in (
        lambda: client.test_labs.import_test_lab(lab),
        lambda: client.tests.import_test_suite(suite),
        lambda: model.create_leaderboard_from_testlab("x", "looping", lab),
    ):
        with pytest.raises(ConfigurationError, match=r"row 1: (images|artifacts): found a"):
            take()


def test_a_file_that_a_suite_names_is_not_read(client: Client, tmp_path: Path) -> None:
    """Questions made from it would go to whoever is asked; the owner may name it himself."""
    secret = tmp_path / "secret.md"
    secret.write_text("The key is under the third stone of the old wall.\n", "utf-8")
    suite = {"tests": [{"documents": [str(secret)], "test_cases": [{"prompt": "Q?"}]}]}
    (test,) = client.tests.import_test_suite(json.dumps(suite))
    copy = client.tests.clone(test.key)
    for one in (test, copy):
        assert [document.url for document in one.documents] == [str(secret)]
        with pytest.raises(ConfigurationError, match="a file that an imported suite names"):
            one.generate_test_cases(3)
    test.unlink_document(test.documents[0])
    agreed = test.create_document("Mine", str(secret))
    assert sources_of(client.tests._folder, [agreed], None) == [str(secret)]

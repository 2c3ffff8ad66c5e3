"""Every suite's column names lead to the same case; a wrong type names its place, not its text."""

from __future__ import annotations

import math
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case, Relationship
from guardrail_offline.datasets.columns import RowPlace, case_of
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Passage

PLACE = RowPlace("lab.csv", 7)
WANTED = Case("row-7", "Q?", "A.", "E.", (Passage("one"), Passage("two")), group="c09bec01ee2ba3a9")


def read(**record: Any) -> Case:
    """Return the case of a record in row 7."""
    return case_of(record, PLACE)


@pytest.mark.parametrize(
    "record",
    [
        {"input": "Q?", "actual_output": "A.", "expected_output": "E.", "context": ["one", "two"]},
        {"question": "Q?", "answer": "A.", "ground_truth": "E.", "contexts": ["one", "two"]},
        {"question": "Q?", "answer": "A.", "ground_truths": ["E."], "contexts": '["one", "two"]'},
        {
            "user_input": "Q?",
            "response": "A.",
            "reference": "E.",
            "retrieved_contexts": ["one", "two"],
        },
    ],
    ids=["h2o", "ragas 0.1", "csv cell", "ragas 0.2"],
)
def test_the_suites_names_mean_the_same(record: dict[str, Any]) -> None:
    """H2O Eval Studio, Ragas before and after its renaming, a list in a table's cell."""
    found = read(**record)
    assert (found.key, found.question, found.answer) == ("row-7", "Q?", "A.")
    assert (found.expected, found.contexts) == ("E.", WANTED.contexts)


def test_open_rag_evals_passages_keep_their_ids() -> None:
    """A mapping from id to text."""
    found = read(query_id="q1", query="Q?", passages={"p9": "one"}, generated_answer="A.")
    assert found.key == "q1"
    assert found.contexts == (Passage("one", "p9"),)


@pytest.mark.parametrize(
    ("constraints", "condition"),
    [
        ([], None),
        (["REGEXP:^C.*"], 'regexp("^C.*")'),
        (["a", "b"], '"a" AND "b"'),
        (["x", ["y", "REGEXP:z"]], '"x" AND ("y" OR regexp("z"))'),
    ],
)
def test_constraints_of_older_labs_become_a_condition(
    constraints: list[Any], condition: str | None
) -> None:
    """An empty condition beside them, as H2O writes it, does not win."""
    found = read(input="Q?", output_constraints=constraints, output_condition="")
    assert found.condition == condition


def test_an_unknown_retrieval_is_not_one_that_found_nothing() -> None:
    """None and the empty list stay apart."""
    assert read(input="Q?").contexts is None
    assert read(input="Q?", context=[]).contexts == ()


@pytest.mark.parametrize("question", [None, "", " \n"])
def test_a_case_without_a_question_is_a_question_of_its_own(question: str | None) -> None:
    """Answers alone are legal, and not all reruns of nothing."""
    assert read(question=question, answer="A.").group == "row-7"
    assert read(question=question, answer="A.", id="k").group == "k"
    assert read(question=question, answer="A.", id="k", group="g").group == "g"


def test_lists_and_objects_are_read_as_python_writes_them() -> None:
    """A table that pandas or Ragas wrote holds their `repr`."""
    two = read(question="Q?", contexts="['It\\'s one.', \"two\"]", answer="A.")
    assert two.contexts == (Passage("It's one."), Passage("two"))
    many = read(
        question="Q?",
        ground_truths="['E.']",
        contexts="[{'id': 'p9', 'text': 'one'}]",
        categories="['perturbed']",
        relationships="[{'type': 'perturbation_source', 'target': 'k'}]",
        output_schema="{'type': 'object'}",
        constraints="['a', ['b', 'REGEXP:c']]",
    )
    assert (many.expected, many.contexts) == ("E.", (Passage("one", "p9"),))
    assert (many.categories, many.source) == (("perturbed",), "k")
    assert (many.schema, many.condition) == ({"type": "object"}, '"a" AND ("b" OR regexp("c"))')
    assert read(query="Q?", passages="{'p9': 'one'}").contexts == (Passage("one", "p9"),)


@pytest.mark.parametrize(
    "cell",
    [
        "['secret', 'cut off",
        "[1] secret",
        "['secret' 'and another']",  # as numpy writes two texts
        "['secret', nan]",
        "[__import__('os').getcwd()]",
        "['secret' * 9]",
        "{'secret', 'of a set'}",
        "[" * 100_000,
        "[" * 100 + "'secret'" + "]" * 100,
        "['secret', " + "-" * 100_000 + "1]",
        f"['{'secret' * 200_000}']",
    ],
)
def test_a_list_that_nothing_can_read_is_no_passage(cell: str) -> None:
    """Read as one text it would be scored as one."""
    with pytest.raises(
        ConfigurationError, match=r"lab\.csv: row 7: contexts: found str"
    ) as refused:
        read(question="Q?", contexts=cell)
    assert "in JSON or as Python writes it" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_links_numbers_and_words_are_read() -> None:
    """From JSON or from cells."""
    found = read(
        input="Q?",
        relationships=[{"type": "perturbation_source", "target": "k", "target_type": "test_case"}],
        categories='["perturbed"]',
        actual_duration="1.5",
        cost=0,
        output_schema='{"type": "object"}',
    )
    assert found.relationships == (Relationship("perturbation_source", "k"),)
    assert found.source == "k"
    assert (found.categories, found.duration_s, found.cost) == (("perturbed",), 1.5, 0.0)
    assert found.schema == {"type": "object"}


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ({"input": ["secret", "text"]}, "input: found list; expected text"),
        ({"input": "Q?", "cost": "secret"}, "cost: found str; expected a number"),
        ({"input": "Q?", "cost": -1}, "cost: found int; expected a number of at least 0"),
        ({"input": "Q?", "cost": 10**400}, "cost: found int; expected a number"),
        (
            {"input": "Q?", "output_schema": {"minimum": math.nan}},
            "output_schema: found dict; expected a JSON object without NaN and Infinity",
        ),
        ({"input": "Q?", "output_schema": "{'a': (1,)}"}, "output_schema: found dict; expected"),
        ({"input": "Q?", "context": 3}, "context: found int; expected a list of passages"),
        ({"input": "Q?", "context": [3]}, "context: found int; expected texts"),
        ({"input": "Q?", "categories": [3]}, "categories: found list; expected a list of texts"),
        ({"input": "Q?", "output_schema": "secret"}, "output_schema: found str; expected a JSON"),
        ({"input": "Q?", "relationships": ["secret"]}, "relationships: found list; expected"),
        ({"input": "Q?", "output_constraints": [3]}, "output_constraints: found list; expected"),
        ({"input": "Q?", "output_condition": "secret AND"}, "no condition; expected column"),
        ({"foo": "secret"}, "found columns 'foo'; expected a question"),
    ],
)
def test_a_wrong_cell_is_refused_with_its_place_and_without_its_text(
    record: dict[str, Any], found: str
) -> None:
    """File, row, column, what was found and what was expected."""
    with pytest.raises(ConfigurationError, match=r"lab\.csv: row 7") as refused:
        read(**record)
    assert found in str(refused.value)
    assert "secret" not in str(refused.value)

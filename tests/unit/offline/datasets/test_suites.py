"""Records of other suites, in the shapes their projects publish, become the same cases."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.datasets.columns import RowPlace
from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.datasets.suite_files import SUITE_FORMATS, lost
from guardrail_offline.datasets.suites import RecordReader, mapping_of
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Passage

PLACE = RowPlace("lab", 1)


def read(record: dict[str, Any], **mapping: str) -> list[Case]:
    """Return the cases of one record."""
    return list(RecordReader(mapping).cases(record, PLACE))


def bedrock(**output: Any) -> dict[str, Any]:
    """Return a turn of a Bedrock prompt dataset."""
    turn: dict[str, Any] = {"prompt": {"content": [{"text": "Q?"}]}}
    turn["referenceResponses"] = [{"content": [{"text": "E."}]}]
    return turn | ({"output": output} if output else {})


RESULTS = {"retrievalResults": [{"content": {"text": "one"}}, {"content": {"text": "two"}}]}
OWN = {"text": "A.", "knowledgeBaseIdentifier": "own", "retrievedPassages": RESULTS}
SAME = [
    {"input": "Q?", "actual_output": "A.", "expected_output": "E.", "name": "n",
     "retrieval_context": ["one", "two"], "context": ["gold"]},
    {"input": "Q?", "actual_output": "A.", "expected_output": "E.",
     "retrieval_context": "one|two", "context": '["gold"]'},
    {"inputs": {"question": "Q?"}, "outputs": {"answer": "A.", "contexts": ["one", "two"]},
     "reference_outputs": {"answer": "E."}},
    {"inputs.question": "Q?", "outputs.answer": "A.", "outputs.contexts": ["one", "two"],
     "reference.answer": "E.", "execution_time": 1.5, "example_id": "x"},
    {"inputs": {"messages": [{"role": "user", "content": "Q?"}]}, "outputs": {"output": "A."},
     "reference_outputs": {"expected": "E."}, "contexts": ["one", "two"]},
    {"question": "Q?", "answer": "A.", "ground_truths": ["E."], "contexts": ["one", "two"]},
    {"user_input": "Q?", "response": "A.", "reference": "E.", "retrieved_contexts": ["one", "two"]},
    {"query_id": "0", "query": "Q?", "gt_answer": "E.", "response": "A.",
     "retrieved_context": [{"doc_id": "000", "text": "one"}, {"doc_id": "001", "text": "two"}]},
    {"query": "Q?", "reference_answer": "E.", "response": "A.", "contexts": ["one", "two"],
     "query_by": {"model_name": "", "type": "human"}, "reference_contexts": ["gold"]},
    {"conversationTurns": [bedrock(**OWN)]},
    {"conversationTurns": [bedrock(**{**OWN, "retrievedPassages": None,
                                      "retrievedResults": RESULTS})]},
    {"user_input": [{"content": "Q?", "type": "human"}, {"content": "", "type": "ai"},
                    {"content": "one", "type": "tool"}, {"content": "two", "type": "tool"},
                    {"content": "A.", "type": "ai"}], "reference": "E."},
    {"turns": [{"role": "user", "content": "Q?"},
               {"role": "assistant", "content": "A.", "retrieval_context": ["one", "two"]}],
     "expected_outcome": "E."},
]  # fmt: skip
NAMES = ["deepeval", "deepeval csv", "langsmith", "langsmith experiment", "langsmith messages",
         "ragas 0.1", "ragas", "ragchecker", "llama_index", "bedrock", "bedrock retrieval",
         "ragas conversation", "deepeval conversation"]  # fmt: skip


@pytest.mark.parametrize("record", SAME, ids=NAMES)
def test_every_suite_s_record_is_the_same_case(record: dict[str, Any]) -> None:
    """Question, answer, expected answer and passages."""
    (found,) = read(record)
    assert (found.question, found.answer, found.expected) == ("Q?", "A.", "E.")
    assert [passage.text for passage in found.contexts or ()] == ["one", "two"]
    assert found.reference_contexts in ((), ("gold",))


@pytest.mark.parametrize(
    "record",
    [
        {"inputs": {"question": "Q?"}, "outputs": {"answer": "E."}, "metadata": {}},
        {"inputs": {"text": "Q?"}, "outputs": {"label": "E."}},
        {"conversationTurns": [bedrock()]},
        {"query": "Q?", "reference_answer": "E.", "reference_contexts": ["gold"]},
    ],
    ids=["langsmith example", "langsmith lone values", "bedrock prompts", "llama_index example"],
)
def test_an_example_without_an_answer_has_none(record: dict[str, Any]) -> None:
    """And its passages are unknown, not none."""
    (found,) = read(record)
    assert (found.question, found.answer, found.expected) == ("Q?", None, "E.")
    assert found.contexts is None


def test_several_right_answers_are_all_kept() -> None:
    """The first is the expected one; a table's cell holds them as a list."""
    for value in (["E.", "F.", "E."], '["E.", "F."]', "['E.', 'F.']"):
        (found,) = read({"question": "Q?", "ground_truths": value})
        assert (found.expected, found.references) == ("E.", ("F.",))
    (found,) = read({"user_input": "Q?", "reference": "[1] is text"})
    assert (found.expected, found.references) == ("[1] is text", ())


def test_ids_of_passages_are_read() -> None:
    """Ragas' columns of ids, beside texts or instead of them."""
    ids = {"retrieved_context_ids": [7, "b"], "reference_context_ids": ["b"]}
    (found,) = read({"user_input": "Q?", "retrieved_contexts": ["one", "two"], **ids})
    assert found.contexts == (Passage("one", "7"), Passage("two", "b"))
    assert found.reference_ids == ("b",)
    assert read({"user_input": "Q?", **ids})[0].contexts == (Passage("", "7"), Passage("", "b"))
    with pytest.raises(ConfigurationError, match="expected 1 ids, one per passage"):
        read({"user_input": "Q?", "retrieved_contexts": ["one"], **ids})


CONVERSATION = {
    "key": "c",
    "reference": "Last.",
    "user_input": [
        {"content": "I am Ada. When?", "type": "human"},
        {"content": "passage", "type": "tool"},
        {"content": "At nine.", "type": "ai"},
        {"content": "And where?", "type": "human"},
        {"content": "other", "type": "tool"},
        {"content": "Here, Ada.", "type": "ai"},
    ],
}


def test_a_conversation_is_a_case_per_answer() -> None:
    """What the user said before is a passage of later turns, what the system said is not."""
    first, last = read(CONVERSATION)
    assert (first.key, first.question, first.answer) == ("c@1", "I am Ada. When?", "At nine.")
    assert (first.expected, last.expected) == (None, "Last.")
    assert first.contexts == (Passage("passage"),)
    assert last.contexts == (Passage("other"), Passage("I am Ada. When?", "turn-1"))
    assert first.conversation == last.conversation == "c"
    assert first.group == last.group
    turns = [bedrock(**OWN), bedrock(text="B.", knowledgeBaseIdentifier="own")]
    found = read({"conversationTurns": turns})
    assert [(case.answer, case.model) for case in found] == [("A.", "own"), ("B.", "own")]
    assert found[1].contexts is None
    asked = read({"messages": [{"role": "user", "content": "Q?"}]})
    assert [(case.question, case.answer) for case in asked] == [("Q?", None)]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"turns": [{"role": "assistant", "content": "A."}]}, "turns: found list"),
        ({"messages": [{"role": "user", "content": {"a": 1}}]}, "messages with a text"),
        ({"conversationTurns": [{"output": {}}]}, "turns with a prompt"),
        ({"prompt": "Q?", "modelResponses": ["A."]}, "modelResponses: found str"),
        ({"question": "Q?", "ground_truths": [{}]}, "text, or a list of texts"),
    ],
)
def test_a_record_of_another_shape_names_its_column(record: Any, message: str) -> None:
    """And no text of it."""
    with pytest.raises(ConfigurationError, match=message):
        read(record)


def test_columns_that_nothing_reads_are_remembered() -> None:
    """A second name of the same field, too; empty cells are no loss."""
    reader = RecordReader()
    record = {"question": "Q?", "query": "also", "mine": 1, "empty": None, "answer": "A."}
    list(reader.cases(record, PLACE))
    assert reader.ignored == {"query", "mine"}


def test_a_mapping_says_which_column_a_field_is() -> None:
    """By our name or any suite's; a dot enters an object; it wins over a column of that name."""
    record = {"question": "Q?", "answer": "old", "my_col": "A.", "deep": {"gold": "E."}}
    (found,) = read(record, answer="my_col", ground_truth="deep.gold")
    assert (found.question, found.answer, found.expected) == ("Q?", "A.", "E.")
    assert mapping_of(["actual_output=a=b"]) == {"answer": "a=b"}
    for options, message in (
        (["answer"], "expected FIELD=COLUMN"),
        (["answr=x"], "did you mean 'answer'"),
        (["answer=x", "response=y"], "twice"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            mapping_of(options)


def test_a_mapping_to_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Not silently without a value."""
    path = tmp_path / "lab.jsonl"
    path.write_text('{"question": "Q?"}\n')
    with pytest.raises(ConfigurationError, match="--map answer=mine: found no such column"):
        list(open_lab(path, RecordReader({"answer": "mine"})).cases())


TEXT, TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
MAYBE, SOME = {"type": ["string", "null"]}, {"type": ["array", "null"], "items": TEXT}
CONTENT = {"type": "object", "required": ["content"], "additionalProperties": False,
           "properties": {"content": {"items": {"required": ["text"]}}}}  # fmt: skip


def closed(required: Iterable[str], **properties: Any) -> dict[str, Any]:
    """Return a schema of an object without other keys."""
    rules = {"type": "object", "required": list(required), "properties": properties}
    return rules | {"additionalProperties": False}


SCHEMAS: dict[str, dict[str, Any]] = {
    # deepeval/dataset/dataset.py, save_as; deepeval/test_case/llm_test_case.py, LLMTestCase
    "deepeval": closed(
        ["input", "actual_output"], name=MAYBE, input=TEXT, actual_output=MAYBE,
        expected_output=MAYBE, retrieval_context=SOME, context=SOME,
        completion_time={"type": ["number", "null"]}, token_cost={"type": ["number", "null"]},
    ),
    # ragas/dataset_schema.py, SingleTurnSample (0.4)
    "ragas": closed(
        [], user_input=TEXT, response=TEXT, reference=TEXT, retrieved_contexts=TEXTS,
        reference_contexts=TEXTS, retrieved_context_ids=TEXTS, reference_context_ids=TEXTS,
    ),
    # docs of ragas 0.1, "Evaluating your pipeline": question, answer, contexts, ground_truths
    "ragas-0.1": closed(["question", "answer"], question=TEXT, answer=TEXT, contexts=SOME,
                        ground_truths=TEXTS),
    # RAGChecker README, "Prepare the benchmark data", and ragchecker/container.py, RAGResult
    "ragchecker": closed(
        ["query_id", "query", "gt_answer", "response", "retrieved_context"], query_id=TEXT,
        query=TEXT, gt_answer=MAYBE, response=TEXT,
        retrieved_context={"items": closed(["doc_id", "text"], doc_id=TEXT, text=TEXT)},
    ),
    # docs.langchain.com, "Example data format": inputs, outputs, reference_outputs
    "langsmith": closed(["inputs", "outputs"], id=TEXT, inputs={"type": "object"},
                        outputs={"type": "object"}, reference_outputs={"type": "object"}),
    # llama_index/core/llama_dataset/rag.py, LabelledRagDataExample
    "llama_index": closed(["query", "reference_answer"], query=TEXT, query_by={},
                          reference_contexts=SOME, reference_answer=TEXT, reference_answer_by={}),
    # docs.aws.amazon.com/bedrock, knowledge-base-evaluation-prompt-retrieve-generate
    "bedrock": closed(["conversationTurns"], conversationTurns={"type": "array", "items": closed(
        ["prompt"], prompt=CONTENT, referenceResponses={"items": CONTENT},
        referenceContexts={"items": CONTENT}, output=closed(
            ["knowledgeBaseIdentifier"], knowledgeBaseIdentifier=TEXT, text=TEXT,
            retrievedPassages=closed(["retrievalResults"], retrievalResults={"type": "array"}),
        ))}),
}  # fmt: skip
CASES = [
    Case("k1", "Q?", "A.", "E.", (Passage("one", "7"), Passage("two", "8")), group="g1",
         references=("F.",), reference_contexts=("gold",), reference_ids=("7",), duration_s=1.5,
         cost=0.25, model="own"),
    Case("k2", "R?", "B, \"b\"\n[1].", "G.", (Passage("three", "9"),), group="g2", model="own"),
]  # fmt: skip


@pytest.mark.parametrize("name", SUITE_FORMATS)
def test_what_is_written_is_read_back(tmp_path: Path, name: str) -> None:
    """With every field the suite has a place for, in the shape it publishes."""
    suite = SUITE_FORMATS[name]
    path = tmp_path / f"lab{suite.ending}"
    path.write_text(suite.text(CASES), encoding="utf-8")
    if name in SCHEMAS:
        for record in _records(path):
            jsonschema.validate(record, SCHEMAS[name])
    found = list(open_lab(path).cases())
    for field in suite.keeps - {"contexts"}:
        assert [getattr(case, field) for case in found] == [getattr(case, field) for case in CASES]
    if "contexts" in suite.keeps:
        texts = [[p.text for p in case.contexts or ()] for case in found]
        assert texts == [["one", "two"], ["three"]]


def _records(path: Path) -> list[Any]:
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    content = json.loads(text)
    return next(iter(content.values())) if isinstance(content, dict) else content


def test_what_a_suite_has_no_place_for_is_named() -> None:
    """Only where a case has it."""
    assert lost(SUITE_FORMATS["ragchecker"], CASES) == [
        "cost", "duration_s", "model", "reference_contexts", "reference_ids", "references",
    ]  # fmt: skip
    assert lost(SUITE_FORMATS["ragchecker"], [Case("k", "Q?", "A.")]) == []

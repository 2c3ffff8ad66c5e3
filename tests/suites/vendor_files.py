"""Writes and reads the suites' files with the suites' own classes; runs where they are installed.

`vendor_files.py write FOLDER` writes a file of each, `vendor_files.py read SUITE FILE` prints
what a suite reads from one, as a list of {question, answer, expected, contexts}.
"""

# mypy: ignore-errors

from __future__ import annotations

import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any


def part_of(package: str, module: str) -> Any:
    """Return one module of a package whose `__init__` would load models or other tools."""
    root = Path(importlib.util.find_spec(package).submodule_search_locations[0])
    for name in (package, *(f"{package}.{part}" for part in module.split(".")[:-1])):
        stand_in = types.ModuleType(name)
        stand_in.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules.setdefault(name, stand_in)
    return importlib.import_module(f"{package}.{module}")


def write_deepeval(folder: Path) -> None:
    """Write test cases and a conversation in each of DeepEval's kinds of file."""
    from deepeval.dataset import ConversationalGolden, EvaluationDataset
    from deepeval.test_case import LLMTestCase, Turn

    cases = EvaluationDataset()
    cases.add_test_case(
        LLMTestCase(input="Q?", actual_output="A.", expected_output="E.",
                    context=["gold", "more gold"], retrieval_context=["one", "two"])
    )  # fmt: skip
    talk = [Turn(role="user", content="Q?"),
            Turn(role="assistant", content="A.", retrieval_context=["one", "two"])]  # fmt: skip
    golden = ConversationalGolden(scenario="s", expected_outcome="E.", turns=talk)
    for kind in ("json", "jsonl", "csv"):
        cases.save_as(kind, str(folder), file_name=f"deepeval-{kind}", include_test_cases=True)
        EvaluationDataset(goldens=[golden]).save_as(
            kind, str(folder), file_name=f"deepeval_talk-{kind}"
        )


def write_ragas(folder: Path) -> None:
    """Write a sample of one turn and one of several."""
    from ragas.dataset_schema import EvaluationDataset, MultiTurnSample, SingleTurnSample
    from ragas.messages import AIMessage, HumanMessage, ToolCall, ToolMessage

    one = SingleTurnSample(
        user_input="Q?", response="A.", reference="E.", retrieved_contexts=["one", "two"],
        reference_contexts=["gold", "more gold"], retrieved_context_ids=["1", 2],
    )  # fmt: skip
    talk = MultiTurnSample(
        user_input=[
            HumanMessage(content="Q?"),
            AIMessage(content="", tool_calls=[ToolCall(name="search", args={"for": "Q"})]),
            ToolMessage(content="one"), ToolMessage(content="two"), AIMessage(content="A."),
        ],
        reference="E.",
    )  # fmt: skip
    for name, sample in (("ragas", one), ("ragas_talk", talk)):
        EvaluationDataset(samples=[sample]).to_jsonl(str(folder / f"{name}-jsonl.jsonl"))
        EvaluationDataset(samples=[sample]).to_csv(str(folder / f"{name}-csv.csv"))


def write_llama_index(folder: Path) -> None:
    """Write a labelled data set: questions with the passages that hold their answers."""
    from llama_index.core.llama_dataset import LabelledRagDataExample, LabelledRagDataset

    example = LabelledRagDataExample(
        query="Q?", reference_answer="E.", reference_contexts=["gold", "more gold"]
    )
    LabelledRagDataset(examples=[example]).save_json(str(folder / "llama_index-json.json"))


def write_langsmith(folder: Path) -> None:
    """Write rows of an experiment as LangSmith flattens them, and an example of a data set."""
    import datetime as dt
    from uuid import uuid4

    from langsmith.evaluation import _runner
    from langsmith.schemas import Example, Run

    when = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    example = Example(id=uuid4(), inputs={"question": "Q?"}, outputs={"answer": "E."},
                      dataset_id=uuid4(), created_at=when)  # fmt: skip
    run = Run(id=uuid4(), name="r", run_type="chain", start_time=when, end_time=when,
              inputs={}, outputs={"answer": "A.", "contexts": ["one", "two"]},
              trace_id=uuid4(), reference_example_id=example.id)  # fmt: skip
    row = {"run": run, "example": example, "evaluation_results": {"results": []}}
    rows = _runner._flatten_experiment_results([row])
    (folder / "langsmith-experiment.json").write_text(json.dumps(rows, default=str))
    (folder / "langsmith-example.jsonl").write_text(example.json() + "\n")


def write_ragchecker(folder: Path) -> None:
    """Write results before they are checked."""
    container = part_of("ragchecker", "container")
    docs = [container.RetrievedDoc("1", "one"), container.RetrievedDoc("2", "two")]
    found = container.RAGResult("7", "Q?", "E.", "A.", docs)
    text = container.RAGResults(results=[found]).to_json()
    (folder / "ragchecker-json.json").write_text(text)


def write_h2o(folder: Path) -> None:
    """Write a test lab as H2O's client sends it."""
    from eval_studio_client import test_labs

    lab = test_labs.TestLab("Lab", "One answer")
    model = lab.add_model("M", test_labs.ModelType.h2ogpte, "llm")
    model.add_input("Q?", "A.", corpus=["a.pdf"], context=["one", "two"], expected_output="E.",
                    output_constraints=["A"])  # fmt: skip
    (folder / "h2o-json.json").write_text(lab.json())


def read_deepeval(file: Path) -> list[dict[str, Any]]:
    """Return what DeepEval's dataset reads."""
    from deepeval.dataset import EvaluationDataset

    found = EvaluationDataset()
    found.add_test_cases_from_json_file(
        str(file), "input", "actual_output", expected_output_key_name="expected_output",
        context_key_name="context", retrieval_context_key_name="retrieval_context",
    )  # fmt: skip
    return [
        {"question": case.input, "answer": case.actual_output, "expected": case.expected_output,
         "contexts": case.retrieval_context}
        for case in found.test_cases
    ]  # fmt: skip


def read_ragas(file: Path) -> list[dict[str, Any]]:
    """Return what Ragas' dataset reads."""
    from ragas.dataset_schema import EvaluationDataset

    return [
        {"question": one.user_input, "answer": one.response, "expected": one.reference,
         "contexts": one.retrieved_contexts}
        for one in EvaluationDataset.from_jsonl(str(file)).samples
    ]  # fmt: skip


def read_llama_index(file: Path) -> list[dict[str, Any]]:
    """Return what LlamaIndex's dataset reads; it has no answers."""
    from llama_index.core.llama_dataset import LabelledRagDataset

    return [
        {"question": one.query, "expected": one.reference_answer}
        for one in LabelledRagDataset.from_json(str(file)).examples
    ]


def read_ragchecker(file: Path) -> list[dict[str, Any]]:
    """Return what RAGChecker's command reads."""
    container = part_of("ragchecker", "container")
    return [
        {"question": one.query, "answer": one.response, "expected": one.gt_answer,
         "contexts": [doc.text for doc in one.retrieved_context]}
        for one in container.RAGResults.from_json(file.read_text()).results
    ]  # fmt: skip


def read_open_rag_eval(file: Path) -> list[dict[str, Any]]:
    """Return what Open RAG Eval's loader reads; the first part's citations are `cited`."""
    loader = part_of("open_rag_eval", "rag_results_loader")
    return [
        {"question": one.query, "run": number,
         "answer": "".join(part.text for part in run.generation_result.generated_answer),
         "contexts": list(run.retrieval_result.retrieved_passages.values()),
         "ids": list(run.retrieval_result.retrieved_passages),
         "cited": run.generation_result.generated_answer[0].citations}
        for one in loader.RAGResultsLoader(str(file)).load()
        for number, run in enumerate(one.rag_results, start=1)
    ]  # fmt: skip


WRITERS = (write_deepeval, write_ragas, write_llama_index, write_langsmith, write_ragchecker,
           write_h2o)  # fmt: skip
READERS = {
    "deepeval": read_deepeval,
    "ragas": read_ragas,
    "llama_index": read_llama_index,
    "ragchecker": read_ragchecker,
    "open_rag_eval": read_open_rag_eval,
}


def main() -> None:
    """Write every file, or read one."""
    if sys.argv[1] == "write":
        for write in WRITERS:
            write(Path(sys.argv[2]))
    else:
        sys.stdout.write(json.dumps(READERS[sys.argv[2]](Path(sys.argv[3]))) + "\n")


if __name__ == "__main__":
    main()

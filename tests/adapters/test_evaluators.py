"""Our evaluators inside other frameworks give our numbers, and say where there is none."""

from __future__ import annotations

import asyncio
import warnings
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase
from langchain_core.documents import Document
from langsmith import Client, aevaluate, evaluate
from langsmith.schemas import Example, Run
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, TextNode

from guardrail_offline import api
from guardrail_offline.framework_evaluators.deepeval_metric import GuardrailMetric, NoScore
from guardrail_offline.framework_evaluators.langsmith_evaluator import (
    GuardrailRunEvaluator,
    guardrail_evaluator,
)
from guardrail_offline.framework_evaluators.llamaindex_evaluator import GuardrailEvaluator
from guardrail_offline.framework_evaluators.one_metric import OneMetric
from tests.adapters.adapter import INVENTED, PASSAGES, QUESTION, TWIN

EVALUATORS = ["hallucination", "toxicity", "ragas:exact_match"]


def ours(evaluator: str, answer: str) -> Any:
    """Return what the suite's own function says."""
    row = {"question": QUESTION, "answer": answer, "contexts": PASSAGES, "reference": TWIN}
    return next(iter(api.evaluate([row], [evaluator]).values()))


def deepeval(evaluator: str, answer: str) -> Any:
    """Measure a test case."""
    metric: BaseMetric = GuardrailMetric(evaluator)
    case = LLMTestCase(
        input=QUESTION, actual_output=answer, retrieval_context=PASSAGES, expected_output=TWIN
    )
    assert metric.measure(case) == asyncio.run(metric.a_measure(case))
    return metric.score, metric.is_successful()


def llamaindex(evaluator: str, answer: str) -> Any:
    """Evaluate a response with its nodes."""
    nodes = [NodeWithScore(node=TextNode(text=text)) for text in PASSAGES]
    response = Response(answer, source_nodes=nodes)
    judge = GuardrailEvaluator(evaluator)
    found = judge.evaluate_response(query=QUESTION, response=response, reference=TWIN)
    return found.score, found.passing


def langsmith(evaluator: str, answer: str) -> Any:
    """Evaluate a run against an example."""
    now = datetime.now(UTC)
    outputs = {"answer": answer, "context": [Document(text) for text in PASSAGES]}
    run = Run(id=uuid4(), name="r", start_time=now, run_type="chain", trace_id=uuid4(),
              inputs={"question": QUESTION}, outputs=outputs)  # fmt: skip
    example = Example(id=uuid4(), inputs=run.inputs, outputs={"answer": TWIN})
    found = GuardrailRunEvaluator(evaluator).evaluate_run(run, example)
    return found.score, found.value


def examples(*answers: str) -> list[Example]:
    """Return a data set on this machine; its application says what each example wants."""
    now = datetime.now(UTC)
    return [
        Example(id=uuid4(), dataset_id=uuid4(), created_at=now, modified_at=now,
                inputs={"question": QUESTION, "said": said}, outputs={"answer": TWIN})
        for said in answers
    ]  # fmt: skip


def application(inputs: dict[str, Any]) -> dict[str, Any]:
    """Say it."""
    return {"answer": inputs["said"], "context": [Document(text) for text in PASSAGES]}


async def _application_later(inputs: dict[str, Any]) -> dict[str, Any]:
    return application(inputs)


def _local() -> dict[str, Any]:
    """Return what keeps LangSmith on this machine."""
    nobody = Client(api_url="http://127.0.0.1:1", api_key="made-up", tracing_sampling_rate=0.0)
    return {"upload_results": False, "client": nobody}


def offline(target: Any, **given: Any) -> Any:
    """Evaluate as LangSmith does, without its service."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `upload_results` is in beta
        return evaluate(target, **given, **_local())


@pytest.mark.parametrize("make", [guardrail_evaluator, GuardrailRunEvaluator])
def test_langsmith_runs_our_evaluators_over_a_data_set(make: Any) -> None:
    """As functions and as classes, by both of its own runners."""
    answers = (TWIN, INVENTED)
    judges = [*map(make, EVALUATORS)]
    rows = list(offline(application, data=examples(*answers), evaluators=judges))

    async def later() -> list[Any]:
        options: Any = {"data": examples(*answers), "evaluators": judges, **_local()}
        return [row async for row in await aevaluate(_application_later, **options)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows_later = asyncio.run(later())
    names = {name: OneMetric(name).name for name in EVALUATORS}
    expected = {(said, names[name]): ours(name, said) for said in answers for name in EVALUATORS}
    for found in (rows, rows_later):
        scores = {
            (row["run"].outputs["answer"], result.key): result.score
            for row in found
            for result in row["evaluation_results"]["results"]
        }
        assert scores == expected


@pytest.mark.parametrize("framework", [deepeval, llamaindex, langsmith])
@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_framework_gets_our_number(framework: Any, evaluator: str) -> None:
    """And, by the same threshold, the same verdict whichever direction is good."""
    for answer in (TWIN, INVENTED):
        score, passes = framework(evaluator, answer)
        assert score == ours(evaluator, answer)
        if evaluator == "hallucination":
            assert passes is (answer == TWIN)
        if evaluator == "toxicity":
            assert passes is True


def test_a_missing_score_is_no_number() -> None:
    """Each framework has its own way to say so."""
    reason = "missing_input"
    found = GuardrailEvaluator("hallucination").evaluate(query=QUESTION, response=TWIN)
    assert (found.score, found.invalid_result, found.invalid_reason) == (None, True, reason)
    metric = GuardrailMetric("hallucination")
    with pytest.raises(NoScore, match=reason):
        metric.measure(LLMTestCase(input=QUESTION, actual_output=TWIN))
    assert metric.is_successful() is False

"""The pages about integrations are true: each block runs, and its table says what is seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import flask
import openai
import pytest
import requests
import yaml
from azure.ai.contentsafety import ContentSafetyClient
from azure.core.credentials import AzureKeyCredential
from azure.core.rest import HttpRequest
from deepeval import assert_test
from deepeval.test_case import LLMTestCase
from django.conf import settings as django_settings
from django.test import override_settings
from fastapi import Depends, FastAPI
from haystack import Document as HaystackDocument
from haystack import Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import MockChatGenerator
from haystack.dataclasses import ChatMessage
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnablePassthrough
from pydantic import BaseModel

from guardrail_client.middleware import Route
from tests.adapters import web
from tests.adapters.adapter import HIDDEN, INVENTED, PASSAGES, QUESTION, TWIN
from tests.adapters.conftest import Ground
from tests.adapters.frameworks import Calling, index_of, look_up, model_of
from tests.adapters.gateways import CARD, PAID
from tests.integration.conftest import PATIENCE_S
from tests.integration.hosts import serving, serving_wsgi

PAGES = Path(__file__).resolve().parents[2] / "docs" / "integrations"
ADDRESS, NOBODY = "http://127.0.0.1:8080", "http://127.0.0.1:1"
KNOWN = [*PASSAGES, CARD]
BLOCK = re.compile(r"^```(python|yaml|bash)\n(.*?)^```\n(.*?)(?=^```|\Z)", re.MULTILINE | re.DOTALL)
Rows = list[list[str]]


def blocks(page: str, kind: str) -> list[tuple[str, Rows]]:
    """Return the blocks of a page, each with the rows of the next table behind it."""
    text = (PAGES / page).read_text("utf-8")
    return [(code, _rows(rest)) for of, code, rest in BLOCK.findall(text) if of == kind]


def _rows(text: str) -> Rows:
    table = re.search(r"^\|.*\n\|[-|]*\n((?:\|.*\n)+)", text, re.MULTILINE)
    lines = table.group(1).splitlines() if table else []
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch, ground: Ground) -> None:
    """A slow machine is no outage; the key is where the pages say."""
    made = Route.__init__

    def patient(self: Route, *arguments: Any, **settings: Any) -> None:
        made(self, *arguments, **{"timeout": PATIENCE_S, **settings})

    monkeypatch.setattr(Route, "__init__", patient)
    monkeypatch.setenv("GUARDRAIL_API_KEY", ground.key)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ground.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "unused")


def run(code: str, address: str, ground: Ground, **names: Any) -> Any:
    """Execute a block with what it takes for granted and return its names."""
    code = code.replace(ADDRESS, address).replace('"KEY"', f'"{ground.key}"')
    code = code.replace("Bearer KEY", f"Bearer {ground.key}")
    names["__name__"] = __name__
    exec(compile(code, "docs", "exec", dont_inherit=True), names)  # noqa: S102 - our own
    return SimpleNamespace(**{k: v for k, v in names.items() if k.isidentifier()})


def chain(code: str, address: str, ground: Ground, said: str, question: str) -> str:
    """Run a retrieval chain of LangChain."""
    retrieve = RunnablePassthrough.assign(context=lambda _: [Document(text) for text in KNOWN])
    answer = RunnablePassthrough.assign(answer=lambda _: said)
    made = run(code, address, ground, retrieve=retrieve, answer=answer).chain
    assert "".join(p.get("answer", "") for p in made.stream({"question": question}))
    return str(made.invoke({"question": question})["answer"])


def agent(code: str, address: str, ground: Ground, said: str, question: str) -> str:
    """Run an agent of LangChain that looks something up, or writes it to a tool."""
    call = {"name": "look_up", "args": {"topic": "paid leave of new employees"}, "id": "c-0"}
    says = [AIMessage("", tool_calls=[call]), AIMessage(said)]
    model = Calling(messages=iter(says))
    made = run(code, address, ground, create_agent=create_agent, model=model, tools=[look_up])
    found = made.agent.invoke({"messages": [{"role": "user", "content": question}]})
    return str(found["messages"][-1].content)


def engine(code: str, address: str, ground: Ground, said: str, question: str) -> str:
    """Ask a query engine of LlamaIndex."""
    index = index_of(KNOWN)
    plain = SimpleNamespace(
        as_query_engine=lambda: index.as_query_engine(llm=model_of(said), similarity_top_k=9)
    )
    found = run(code, address, ground, index=plain).engine.query(question)
    assert CARD[-8:] not in str(found.source_nodes) or said != CARD
    return str(found.response)


def generator(code: str, address: str, ground: Ground, said: str, question: str) -> str:
    """Run a pipeline of Haystack whose generator is guarded."""
    pipeline, seen = Pipeline(), []
    template = [ChatMessage.from_user("{{query}}")]
    pipeline.add_component("prompt_builder", ChatPromptBuilder(template, required_variables="*"))
    run(
        code,
        address,
        ground,
        pipeline=pipeline,
        OpenAIChatGenerator=lambda: MockChatGenerator(said),
    )
    documents = [HaystackDocument(content=text) for text in KNOWN]
    given = {"documents": documents, "streaming_callback": seen.append}
    found = pipeline.run({"prompt_builder": {"query": question}, "llm": given})
    reply = found["llm"]["replies"][0]
    assert "".join(chunk.content for chunk in seen) == reply.text
    return str(reply.text)


def checker(code: str, address: str, ground: Ground, said: str, question: str) -> str:
    """Run a pipeline of Haystack with a component behind the generator."""
    pipeline = Pipeline()
    pipeline.add_component("llm", MockChatGenerator(said))
    run(code, address, ground, pipeline=pipeline)
    documents = [HaystackDocument(content=text) for text in KNOWN]
    given = {"query": question, "documents": documents}
    found = pipeline.run({"llm": {"messages": question}, "guardrail": given})
    return str(found["guardrail"]["replies"][0].text)


def sdk(code: str, address: str, ground: Ground, said: str, question: str) -> str:
    """Ask OpenAI's SDK before a server that says it."""
    content = "".join(f"<passage>{text}</passage>" for text in KNOWN)
    messages = [{"role": "system", "content": content}, {"role": "user", "content": question}]
    with serving(model_server(said)) as url:
        made = run(
            code, address, ground, model="m", messages=messages,
            OpenAI=lambda: openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0),
        )  # fmt: skip
    return str(made.answer.choices[0].message.content)


def model_server(said: str) -> FastAPI:
    """Return a server that speaks OpenAI's API and says one thing."""
    app = FastAPI()

    @app.post("/v1/chat/completions")
    def complete(body: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": said}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return {
            "id": "c-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }

    return app


class Ask(BaseModel):
    """The body of the page's endpoint."""

    question: str


def endpoint(code: str, address: str, ground: Ground, said: str, question: str) -> str:
    """Ask the page's endpoint of FastAPI."""

    async def write(_: str) -> tuple[str, list[str]]:
        return said, KNOWN

    app = FastAPI()
    run(code, address, ground, app=app, Ask=Ask, write=write, Depends=Depends)
    with serving(app) as url:
        return answered(url, question)


def extension(code: str, address: str, ground: Ground, said: str, question: str) -> str:
    """Ask a Flask application with the page's line."""
    app = flask.Flask("shop")

    @app.post("/ask")
    def ask() -> Any:
        flask.request.environ["guardrail"]["contexts"] = KNOWN
        return {"answer": said}

    run(code, address, ground, app=app)
    with serving_wsgi(app) as url:
        return answered(url, question)


def project(code: str, address: str, ground: Ground, said: str, question: str) -> str:
    """Ask a Django project with the page's setting, by both of its applications."""
    setting = re.search(r"`GUARDRAIL = (\{.*?\})`", (PAGES / "web.md").read_text("utf-8"))
    assert setting
    own = run(f"GUARDRAIL = {setting[1]}", address, ground).GUARDRAIL
    web.TOLD["this"] = said, KNOWN
    twin = code.replace("guarded_wsgi", "guarded_asgi")
    shown = []
    with web.project(ground), override_settings(GUARDRAIL=own):
        assert own == django_settings.GUARDRAIL
        with serving_wsgi(run(code, address, ground).application) as url:
            shown.append(answered(url, question, said="this"))
        with serving(run(twin, address, ground).application, lifespan="off") as url:
            shown.append(answered(url, question, said="this"))
    assert shown[0] == shown[1]
    return shown[0]


def answered(url: str, question: str, **more: str) -> str:
    """Ask an application."""
    body = {"question": question, **more}
    reply = requests.post(f"{url}/ask", json=body, timeout=PATIENCE_S)
    return str(reply.json()["answer"])


Show = Callable[[str, str, Ground, str, str], str]
SHOWN: dict[str, list[Show]] = {
    "langchain.md": [chain, agent],
    "llamaindex.md": [engine],
    "haystack.md": [generator, checker],
    "openai.md": [sdk],
    "web.md": [endpoint, extension, project],
}
"""Pages whose tables say what a reader sees."""


def shown_cases() -> Iterator[Any]:
    """Yield each row of each table, with the block that it is about."""
    for page, shows in SHOWN.items():
        found = blocks(page, "python")
        assert len(found) == len(shows), page
        table: Rows = []
        for (code, rows), show in reversed([*zip(found, shows, strict=True)]):
            table = rows or table  # several blocks may share the one behind the last
            for row in table:
                yield pytest.param(show, code, row, id=f"{page}, {show.__name__}, {row[0][:40]}")


@pytest.mark.parametrize(("show", "code", "row"), shown_cases())
def test_a_reader_sees_what_the_page_says(
    show: Show, code: str, row: list[str], ground: Ground
) -> None:
    """A good answer as it is, the text in quotation marks, or an answer without a value."""
    case, sees = row[0], row[-1]
    if case.startswith("calls a tool"):
        return  # see test_messages.py
    said, question = TWIN, QUESTION
    if "company car" in case:
        said = INVENTED
    if "redacts" in case:
        said, question = CARD, PAID
    address = NOBODY if "down" in case else ground.guard
    shown = show(code, address, ground, said, question)
    if quoted := re.search(r'"(.+?)"', sees):
        assert shown.endswith(quoted[1])
        assert HIDDEN not in shown
        assert shown == quoted[1] or "judged by then" in sees
    elif said == CARD:
        assert "without" in sees
        assert shown == CARD.replace("4111 1111 1111 1111", "[CREDIT_CARD_1]")
    else:
        assert shown == said


def _azure(code: str, ground: Ground) -> list[Any]:
    names = {"ContentSafetyClient": ContentSafetyClient, "AzureKeyCredential": AzureKeyCredential}
    reply = run(code, ground.guard, ground, HttpRequest=HttpRequest, **names).reply
    places = [detail["text"].strip() for detail in reply["ungroundedDetails"]]
    return [str(reply["ungroundedDetected"]).lower(), places]


def _bedrock(code: str, ground: Ground) -> list[Any]:
    reply = run(code, ground.guard, ground, boto3=boto3).reply
    return [f"`{reply['action']}`", [output["text"] for output in reply["outputs"]]]


def _llm_guard(code: str, ground: Ground) -> list[Any]:
    reply = run(code, ground.guard, ground, requests=requests).reply
    return [str(reply["is_valid"]).lower(), reply["sanitized_output"]]


def _moderation(code: str, ground: Ground) -> list[Any]:
    result = run(code, ground.guard, ground, OpenAI=openai.OpenAI).result
    return [str(result.flagged).lower(), result.categories.harassment]


LAST = " They also get a company car."
ANSWER = "They get 25 days of paid leave."
STOPPED = "Sorry, I cannot show an answer to this question."
REDACTED = CARD.replace("4111 1111 1111 1111", "[CREDIT_CARD_1]")
DIALECTS: dict[
    str, tuple[Callable[[str, Ground], list[Any]], list[tuple[Callable[[str], str], Any]]]
]
DIALECTS = {
    "azure.md": (_azure, [
        (lambda code: code, [LAST.strip()]),
        (lambda code: code.replace(LAST, ""), []),
    ]),
    "bedrock.md": (_bedrock, [
        (lambda code: code, [STOPPED]),
        (lambda code: code.replace(LAST, ""), []),
        (lambda code: code.replace(LAST, "").replace(ANSWER, CARD)
                          .replace("What do new employees get?", PAID), [REDACTED]),
    ]),
    "llm-guard.md": (_llm_guard, [
        (lambda code: code, ""),
        (lambda code: code.replace(LAST, ""), ANSWER),
        (lambda code: code.replace(LAST, "").replace(ANSWER, CARD)
                          .replace("What do new employees get?", PAID), REDACTED),
    ]),
    "openai-moderations.md": (_moderation, [
        (lambda code: code, False),
        (lambda code: code.replace(LAST, ""), False),
        (lambda code: re.sub(r', "contexts": \[.*?\]', "", code.replace(LAST, "")), False),
        (lambda code: re.sub(r'input=".*?"', 'input="You are a stupid idiot."', code), True),
    ]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("page", "number"),
    [(page, n) for page, (_, rows) in DIALECTS.items() for n in range(len(rows))],
)
def test_a_dialect_replies_what_the_page_says(page: str, number: int, ground: Ground) -> None:
    """The first cell of a row says how the block is changed, the second what it then gives."""
    ask, changes = DIALECTS[page]
    ((code, rows),) = blocks(page, "python")
    assert len(rows) == len(changes)
    change, expected = changes[number]
    verdict, more = ask(change(code), ground)
    assert verdict == rows[number][1].partition(":")[0].partition(",")[0]
    assert more == expected


def test_our_evaluators_run_as_their_page_says(ground: Ground) -> None:
    """In DeepEval's assertion and in LangSmith's evaluation."""
    from tests.adapters.test_evaluators import application, examples, offline

    (metric, _), (function, _) = blocks("evaluators.md", "python")
    case = {"input": QUESTION, "retrieval_context": PASSAGES}
    good = LLMTestCase(actual_output=TWIN, **case)
    run(metric, ground.guard, ground, assert_test=_quietly, test_case=good)
    bad = LLMTestCase(actual_output=INVENTED, **case)
    with pytest.raises(AssertionError):
        run(metric, ground.guard, ground, assert_test=_quietly, test_case=bad)
    names = {"application": application, "examples": examples(TWIN, INVENTED)}
    rows = list(run(function, ground.guard, ground, evaluate=offline, **names).results)
    assert [row["evaluation_results"]["results"][0].value for row in rows] == [True, False]


def _quietly(case: LLMTestCase, metrics: list[Any]) -> None:
    assert_test(case, metrics, run_async=False)


def test_every_block_is_run() -> None:
    """A page that shows code is in one of the tables, or in a test of its own."""
    shown = {page.name for page in PAGES.glob("*.md") if blocks(page.name, "python")}
    assert shown == {*SHOWN, *DIALECTS, "evaluators.md"}
    assert {page.name for page in PAGES.glob("*.md") if blocks(page.name, "yaml")} == {"litellm.md"}
    told = {page.name for page in PAGES.glob("*.md") if blocks(page.name, "bash")}
    assert told == {"proxy.md", "README.md"}
    assert yaml.safe_load(blocks("litellm.md", "yaml")[0][0])["guardrails"]

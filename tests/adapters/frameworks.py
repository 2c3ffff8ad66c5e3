"""Frameworks that run here, their models saying what a test wants, with the guard in them."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
import flask
import httpx
from django.conf import settings as django_settings
from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.urls import path as django_path
from django.views.decorators.csrf import csrf_exempt
from fastapi import Depends, FastAPI
from haystack import Document as HaystackDocument
from haystack import Pipeline, component
from haystack.dataclasses import ChatMessage
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from llama_index.core import VectorStoreIndex
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.schema import TextNode

from guardrail_client import GuardrailClient
from guardrail_client.integrations.answers import AnswerGuard
from guardrail_client.integrations.django import guarded_wsgi_application
from guardrail_client.integrations.flask import GuardrailExtension
from guardrail_client.integrations.haystack import GuardrailChecker
from guardrail_client.integrations.langchain import GuardrailRunnable
from guardrail_client.integrations.langchain_agents import GuardrailAgentMiddleware
from guardrail_client.integrations.llamaindex import GuardedChatEngine, GuardedQueryEngine
from guardrail_client.middleware import Route
from tests.adapters.adapter import PASSAGES, QUESTION, SAID, Adapter, Seen
from tests.adapters.conftest import Ground
from tests.integration.conftest import PATIENCE_S
from tests.integration.hosts import serving
from tests.vendors.saying import pieces


def patient(ground: Ground) -> dict[str, Any]:
    """Return settings for a machine that does much else."""
    return {"url": ground.guard, "api_key": ground.key, "timeout": PATIENCE_S}


def talking(said: str) -> GenericFakeChatModel:
    """Return a model of LangChain that says one thing, word by word where it is streamed."""
    return GenericFakeChatModel(messages=iter([AIMessage(SAID[said], id="m-1")]))


def _chain(ground: Ground, said: str) -> Any:
    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    documents = [Document(text) for text in PASSAGES]
    retrieve = RunnablePassthrough.assign(context=lambda _: documents)
    answering = RunnablePassthrough.assign(answer=prompt | talking(said) | StrOutputParser())
    return retrieve | answering | GuardrailRunnable(**patient(ground))


def langchain(ground: Ground, said: str, streamed: bool) -> Seen:
    """Run a retrieval chain."""
    chain = _chain(ground, said)
    if not streamed:
        whole = chain.invoke({"question": QUESTION})
        return Seen(whole["answer"], whole)
    found = list(chain.stream({"question": QUESTION}))
    return Seen("".join(part.get("answer", "") for part in found), found)


def langchain_async(ground: Ground, said: str, streamed: bool) -> Seen:
    """Run a retrieval chain on an event loop."""

    async def run() -> Seen:
        chain = _chain(ground, said)
        if not streamed:
            whole = await chain.ainvoke({"question": QUESTION})
            return Seen(whole["answer"], whole)
        found = [part async for part in chain.astream({"question": QUESTION})]
        return Seen("".join(part.get("answer", "") for part in found), found)

    return asyncio.run(run())


@tool
def look_up(topic: str) -> str:
    """Look something up in the handbook."""
    return "\n".join(PASSAGES)


class _Calling(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Return the model: it knows what it will call."""
        return self

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> Any:
        message: Any = next(self.messages)
        calls = [
            {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": 0}
            for call in message.tool_calls
        ]
        for piece in pieces(message.content) or [""]:
            part = AIMessageChunk(content=piece, id=message.id, tool_call_chunks=calls)
            chunk = ChatGenerationChunk(message=part)
            if run_manager:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk


def langchain_agent(ground: Ground, said: str, streamed: bool) -> Seen:
    """Run an agent that looks something up, in every mode of streams."""
    call = {"name": "look_up", "args": {"topic": "leave"}, "id": "c-1"}
    says = iter([AIMessage("", tool_calls=[call], id="m-0"), AIMessage(SAID[said], id="m-1")])
    middleware = [GuardrailAgentMiddleware(**patient(ground))]
    agent: Any = create_agent(_Calling(messages=says), [look_up], middleware=middleware)
    given = {"messages": [{"role": "user", "content": QUESTION}]}
    if not streamed:
        whole = agent.invoke(given)
        return Seen(whole["messages"][-1].content, whole)
    found = list(agent.stream(given, stream_mode=["messages", "updates", "values"]))
    texts = [data[0].content for mode, data in found if mode == "messages" and data[0].id == "m-1"]
    assert "".join(texts) == found[-1][1]["messages"][-1].content
    return Seen("".join(texts), found)


class _Saying(CustomLLM):
    """A model of LlamaIndex that says one thing."""

    said: str

    @property
    def metadata(self) -> LLMMetadata:
        """Its description."""
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Say it."""
        return CompletionResponse(text=self.said)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """Say it in pieces."""
        text = ""
        for piece in pieces(self.said):
            text += piece
            yield CompletionResponse(text=text, delta=piece)


def _index() -> VectorStoreIndex:
    nodes = [TextNode(text=text) for text in PASSAGES]
    return VectorStoreIndex(nodes, embed_model=MockEmbedding(8))


def llamaindex(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask a query engine."""
    model = _Saying(said=SAID[said])
    plain = _index().as_query_engine(llm=model, streaming=streamed)
    engine = GuardedQueryEngine(plain, **patient(ground))
    response: Any = engine.query(QUESTION)
    if not streamed:
        return Seen(response.response, [response.response, response.metadata])
    found = list(response.response_gen)
    return Seen("".join(found), found)


def llamaindex_chat(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask a chat engine."""
    model = _Saying(said=SAID[said])
    plain = ContextChatEngine.from_defaults(retriever=_index().as_retriever(), llm=model)
    engine = GuardedChatEngine(plain, **patient(ground))
    if not streamed:
        whole = engine.chat(QUESTION)
        return Seen(whole.response, whole.response)
    found = list(engine.stream_chat(QUESTION).response_gen)
    return Seen("".join(found), found)


@component
class _Generator:
    """Replies what a test wants."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, said: str) -> dict[str, Any]:
        """Reply."""
        return {"replies": [ChatMessage.from_assistant(SAID[said])]}


def haystack(ground: Ground, said: str, _: bool) -> Seen:
    """Run a pipeline."""
    pipeline = Pipeline()
    pipeline.add_component("llm", _Generator())
    pipeline.add_component("guardrail", GuardrailChecker(**patient(ground)))
    pipeline.connect("llm.replies", "guardrail.replies")
    documents = [HaystackDocument(content=text) for text in PASSAGES]
    given = {"llm": {"said": said}, "guardrail": {"query": QUESTION, "documents": documents}}
    found = pipeline.run(given)
    return Seen(found["guardrail"]["replies"][0].text, found)


def fastapi(ground: Ground, said: str, _: bool) -> Seen:
    """Ask an endpoint that has the guard as a dependency."""
    app = FastAPI()
    guard = AnswerGuard(**patient(ground))

    @app.post("/ask")
    async def ask(said: str, guard: AnswerGuard = Depends(guard)) -> dict[str, str]:  # noqa: B008
        return {"answer": await guard.ashown(SAID[said], QUESTION, PASSAGES)}

    with serving(app) as url:
        reply = httpx.post(f"{url}/ask", params={"said": said}, timeout=PATIENCE_S).json()
    return Seen(reply["answer"], reply)


def flask_app(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask a Flask application with the extension."""
    app = flask.Flask("shop")
    routes = ["/ask", "/stream"]
    GuardrailExtension(app, [*map(_patiently, routes)], client=_client(ground))

    @app.post("/ask")
    def ask() -> Any:
        flask.request.environ["guardrail"]["contexts"] = PASSAGES
        return {"answer": SAID[flask.request.json["said"]]}  # type: ignore[index]

    @app.post("/stream")
    def stream() -> Any:
        flask.request.environ["guardrail"]["contexts"] = PASSAGES
        said = pieces(SAID[flask.request.json["said"]])  # type: ignore[index]
        return flask.Response(map("data: {}\n\n".format, said), mimetype="text/event-stream")

    with _wsgi(app) as url:
        return _asked(url, said, streamed)


def django_app(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask a Django project whose application is guarded."""
    if not django_settings.configured:
        routes = [*map(_patiently, ["/ask", "/stream"])]
        guardrail = {"url": ground.guard, "routes": routes}
        django_settings.configure(
            ROOT_URLCONF=__name__, SECRET_KEY="x", ALLOWED_HOSTS=["*"], GUARDRAIL=guardrail
        )
        django.setup()
    with _with_key(ground), _wsgi(guarded_wsgi_application()) as url:
        return _asked(url, said, streamed)


@csrf_exempt
def _ask(request: HttpRequest) -> JsonResponse:
    request.META["guardrail"]["contexts"] = PASSAGES
    return JsonResponse({"answer": SAID[_said(request)]})


@csrf_exempt
def _stream(request: HttpRequest) -> StreamingHttpResponse:
    request.META["guardrail"]["contexts"] = PASSAGES
    parts = map("data: {}\n\n".format, pieces(SAID[_said(request)]))
    return StreamingHttpResponse(parts, content_type="text/event-stream")


def _said(request: HttpRequest) -> str:
    return str(json.loads(request.body)["said"])


urlpatterns = [django_path("ask", _ask), django_path("stream", _stream)]


def _patiently(path: str) -> Route:
    return Route(path, timeout=PATIENCE_S, sse="text")


def _client(ground: Ground) -> GuardrailClient:
    return GuardrailClient(ground.guard, api_key=ground.key, max_retries=0)


@contextmanager
def _with_key(ground: Ground) -> Iterator[None]:
    with patch.dict(os.environ, {"GUARDRAIL_API_KEY": ground.key}):
        yield


class _Silent(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def _wsgi(app: Any) -> Iterator[str]:
    with make_server("127.0.0.1", 0, app, handler_class=_Silent) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _asked(url: str, said: str, streamed: bool) -> Seen:
    body = {"said": said, "question": QUESTION}
    if not streamed:
        reply = httpx.post(f"{url}/ask", json=body, timeout=PATIENCE_S).json()
        return Seen(reply["answer"], reply)
    text = httpx.post(f"{url}/stream", json=body, timeout=PATIENCE_S).text
    lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return Seen("".join(line for line in lines if not line.startswith("{")), text)


BOTH = (False, True)
FRAMEWORKS = [
    Adapter("langchain-core", "`GuardrailRunnable`", "langchain.md", langchain, BOTH),
    Adapter("langchain-core", "`GuardrailRunnable`, asynchronous", "langchain.md",
            langchain_async, BOTH),
    Adapter("langchain", "`GuardrailAgentMiddleware`", "langchain.md", langchain_agent, BOTH,
            "a streamed message leaves whole; arguments of tools are not judged"),
    Adapter("llama-index-core", "`GuardedQueryEngine`", "llamaindex.md", llamaindex, BOTH),
    Adapter("llama-index-core", "`GuardedChatEngine`", "llamaindex.md", llamaindex_chat, BOTH,
            "the engine's own history keeps what the model said"),
    Adapter("haystack-ai", "`GuardrailChecker`", "haystack.md", haystack,
            lost="a streaming callback of the generator is not guarded"),
    Adapter("fastapi", "`Depends(AnswerGuard())`", "web.md", fastapi,
            lost="streams: `apieces`, or the middleware"),
    Adapter("flask", "`GuardrailExtension`", "web.md", flask_app, BOTH),
    Adapter("django", "`guarded_wsgi_application`", "web.md", django_app, BOTH),
]  # fmt: skip

"""Frameworks that run here, their models saying what a test wants, with the guard in them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from haystack import Document as HaystackDocument
from haystack import Pipeline
from haystack.components.generators.chat import MockChatGenerator
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

from guardrail_client.integrations.haystack import GuardedChatGenerator, GuardrailChecker
from guardrail_client.integrations.langchain import GuardrailRunnable
from guardrail_client.integrations.langchain_agents import GuardrailAgentMiddleware
from guardrail_client.integrations.llamaindex import GuardedChatEngine, GuardedQueryEngine
from tests.adapters.adapter import PASSAGES, QUESTION, SAID, Adapter, Seen
from tests.adapters.conftest import Ground
from tests.integration.conftest import PATIENCE_S
from tests.vendors.saying import pieces

BOTH = (False, True)


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


class Calling(GenericFakeChatModel):
    """A model that calls tools, also in pieces of a stream."""

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


def agent_of(ground: Ground, says: list[AIMessage], *tools: Any, **settings: Any) -> Any:
    """Return an agent whose model says this, one message after the other."""
    middleware = [GuardrailAgentMiddleware(**patient(ground), **settings)]
    return create_agent(Calling(messages=iter(says)), tools or [look_up], middleware=middleware)


def _looking_up(said: str) -> list[AIMessage]:
    call = {"name": "look_up", "args": {"topic": "paid leave of new employees"}, "id": "c-1"}
    return [AIMessage("", tool_calls=[call], id="m-0"), AIMessage(SAID[said], id="m-1")]


ASKED: Any = {"messages": [{"role": "user", "content": QUESTION}]}
MODES: Any = ["messages", "updates", "values"]


def _streamed(found: list[Any]) -> Seen:
    texts = [data[0].content for mode, data in found if mode == "messages" and data[0].id == "m-1"]
    assert "".join(texts) == found[-1][1]["messages"][-1].content
    return Seen("".join(texts), found)


def langchain_agent(ground: Ground, said: str, streamed: bool) -> Seen:
    """Run an agent that looks something up, in every mode of streams."""
    agent = agent_of(ground, _looking_up(said))
    if not streamed:
        whole = agent.invoke(ASKED)
        return Seen(whole["messages"][-1].content, whole)
    return _streamed(list(agent.stream(ASKED, stream_mode=MODES)))


def langchain_agent_async(ground: Ground, said: str, streamed: bool) -> Seen:
    """Run the agent on an event loop."""

    async def run() -> Seen:
        agent = agent_of(ground, _looking_up(said))
        if not streamed:
            whole = await agent.ainvoke(ASKED)
            return Seen(whole["messages"][-1].content, whole)
        return _streamed([part async for part in agent.astream(ASKED, stream_mode=MODES)])

    return asyncio.run(run())


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


def model_of(text: str) -> CustomLLM:
    """Return a model that says one thing."""
    return _Saying(said=text)


def index_of(texts: list[str]) -> VectorStoreIndex:
    """Return an index of passages."""
    nodes = [TextNode(text=text) for text in texts]
    return VectorStoreIndex(nodes, embed_model=MockEmbedding(8))


def _query_engine(ground: Ground, said: str, streamed: bool) -> GuardedQueryEngine:
    plain = index_of(PASSAGES).as_query_engine(llm=model_of(SAID[said]), streaming=streamed)
    return GuardedQueryEngine(plain, **patient(ground))


def llamaindex(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask a query engine."""
    response: Any = _query_engine(ground, said, streamed).query(QUESTION)
    if not streamed:
        return Seen(response.response, [response.response, response.metadata])
    found = list(response.response_gen)
    return Seen("".join(found), found)


def llamaindex_async(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask a query engine on an event loop."""

    async def run() -> Seen:
        response: Any = await _query_engine(ground, said, streamed).aquery(QUESTION)
        if not streamed:
            return Seen(response.response, [response.response, response.metadata])
        found = [piece async for piece in response.async_response_gen()]
        return Seen("".join(found), found)

    return asyncio.run(run())


def _chat_engine(ground: Ground, said: str) -> GuardedChatEngine:
    retriever = index_of(PASSAGES).as_retriever()
    plain = ContextChatEngine.from_defaults(retriever=retriever, llm=model_of(SAID[said]))
    return GuardedChatEngine(plain, **patient(ground))


def llamaindex_chat(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask a chat engine."""
    engine = _chat_engine(ground, said)
    if not streamed:
        whole = engine.chat(QUESTION)
        return Seen(whole.response, whole.response)
    found = list(engine.stream_chat(QUESTION).response_gen)
    return Seen("".join(found), found)


def llamaindex_chat_async(ground: Ground, said: str, streamed: bool) -> Seen:
    """Ask a chat engine on an event loop."""

    async def run() -> Seen:
        engine = _chat_engine(ground, said)
        if not streamed:
            whole = await engine.achat(QUESTION)
            return Seen(whole.response, whole.response)
        stream = await engine.astream_chat(QUESTION)
        found = [piece async for piece in stream.async_response_gen()]
        return Seen("".join(found), [found, str(stream)])

    return asyncio.run(run())


DOCUMENTS = [HaystackDocument(content=text) for text in PASSAGES]


def haystack(ground: Ground, said: str, _: bool) -> Seen:
    """Run a pipeline with a component behind the generator."""
    pipeline = Pipeline()
    pipeline.add_component("llm", MockChatGenerator(SAID[said]))
    pipeline.add_component("guardrail", GuardrailChecker(**patient(ground)))
    pipeline.connect("llm.replies", "guardrail.replies")
    guarded = {"query": QUESTION, "documents": DOCUMENTS}
    found = pipeline.run({"llm": {"messages": QUESTION}, "guardrail": guarded})
    return Seen(found["guardrail"]["replies"][0].text, found)


def _generating(ground: Ground, said: str) -> Pipeline:
    pipeline = Pipeline()
    generator = MockChatGenerator(SAID[said])
    pipeline.add_component("llm", GuardedChatGenerator(generator, **patient(ground)))
    return pipeline


def _given(seen: list[Any], streamed: bool) -> dict[str, Any]:
    given: dict[str, Any] = {"messages": [ChatMessage.from_user(QUESTION)], "documents": DOCUMENTS}
    return {"llm": given | ({"streaming_callback": seen.append} if streamed else {})}


def haystack_generator(ground: Ground, said: str, streamed: bool) -> Seen:
    """Run a pipeline whose generator is guarded, with a callback or without."""
    seen: list[Any] = []
    found = _generating(ground, said).run(_given(seen, streamed))
    return _replied(found["llm"]["replies"][0].text, seen, found, streamed)


def haystack_async(ground: Ground, said: str, streamed: bool) -> Seen:
    """Run the pipeline on an event loop."""
    seen: list[Any] = []
    found = asyncio.run(_generating(ground, said).run_async(_given(seen, streamed)))
    return _replied(found["llm"]["replies"][0].text, seen, found, streamed)


def _replied(text: str, seen: list[Any], found: Any, streamed: bool) -> Seen:
    shown = "".join(chunk.content for chunk in seen)
    assert shown == (text if streamed else "")
    return Seen(text, [seen, found])


_WHOLE = "a streamed message leaves whole"
FRAMEWORKS = [
    Adapter("langchain-core", "`GuardrailRunnable`", "langchain.md", langchain, BOTH,
            "of a streamed message only its text leaves"),
    Adapter("langchain-core", "`GuardrailRunnable`, asynchronous", "langchain.md",
            langchain_async, BOTH, "of a streamed message only its text leaves"),
    Adapter("langchain", "`GuardrailAgentMiddleware`", "langchain.md", langchain_agent, BOTH,
            _WHOLE),
    Adapter("langchain", "`GuardrailAgentMiddleware`, asynchronous", "langchain.md",
            langchain_agent_async, BOTH, _WHOLE),
    Adapter("llama-index-core", "`GuardedQueryEngine`", "llamaindex.md", llamaindex, BOTH),
    Adapter("llama-index-core", "`GuardedQueryEngine`, asynchronous", "llamaindex.md",
            llamaindex_async, BOTH),
    Adapter("llama-index-core", "`GuardedChatEngine`", "llamaindex.md", llamaindex_chat, BOTH,
            "the engine's own history keeps what the model said"),
    Adapter("llama-index-core", "`GuardedChatEngine`, asynchronous", "llamaindex.md",
            llamaindex_chat_async, BOTH, "the engine's own history keeps what the model said"),
    Adapter("haystack-ai", "`GuardrailChecker`", "haystack.md", haystack,
            lost="a generator that streams must be inside `GuardedChatGenerator`"),
    Adapter("haystack-ai", "`GuardedChatGenerator`", "haystack.md", haystack_generator, BOTH,
            "thoughts and calls of tools reach a callback behind the text"),
    Adapter("haystack-ai", "`GuardedChatGenerator`, asynchronous", "haystack.md", haystack_async,
            BOTH, "thoughts and calls of tools reach a callback behind the text"),
]  # fmt: skip

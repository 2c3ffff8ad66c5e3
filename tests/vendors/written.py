"""Replies of services that do not run here, after the types of their own clients.

Google generateContent: github.com/googleapis/python-genai, google/genai/types.py.
Bedrock: github.com/boto/botocore, botocore/data/bedrock-runtime/2023-09-30/service-2.json.
Cohere chat: github.com/cohere-ai/cohere-python, src/cohere/v2/types.
Ollama: github.com/ollama/ollama-python, ollama/_types.py.
LangGraph: github.com/langchain-ai/langgraph, libs/sdk-py/langgraph_sdk/schema.py.
LangServe and LlamaIndex are the packages themselves.
"""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableGenerator
from langserve import add_routes
from llama_index.core.agent.workflow.workflow_events import AgentStream
from llama_index.core.base.response.schema import Response as IndexResponse
from llama_index.core.schema import NodeWithScore, TextNode
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from workflows.context.serializers import JsonSerializer

from tests.vendors.saying import PASSAGES, SAYINGS, pieces

USAGE = {"promptTokenCount": 4, "candidatesTokenCount": 9, "totalTokenCount": 13}
EVENTS, LINES = "text/event-stream", "application/x-ndjson"


def events(documents: list[Any], named: bool = False) -> Response:
    """Return server-sent events."""
    names = [f"event: {document['type']}\n" if named else "" for document in documents]
    framed = [f"{n}data: {json.dumps(d)}\n\n" for n, d in zip(names, documents, strict=True)]
    return StreamingResponse(iter(framed), media_type=EVENTS)


def lines(documents: list[Any]) -> Response:
    """Return lines of JSON."""
    return StreamingResponse((json.dumps(d) + "\n" for d in documents), media_type=LINES)


async def google(request: Request) -> Response:
    """Google generateContent and streamGenerateContent."""
    name, _, method = request.path_params["call"].partition(":")
    text = SAYINGS[name].text

    def document(part: str, **more: Any) -> Any:
        candidate = {"content": {"parts": [{"text": part}], "role": "model"}, "index": 0, **more}
        rest = {"usageMetadata": USAGE, "modelVersion": "gemini-2.5-flash", "responseId": "r-1"}
        return {"candidates": [candidate], **rest}

    if method == "generateContent":
        scores = {"avgLogprobs": -0.1}
        return JSONResponse(document(text, finishReason="STOP", **scores))
    *most, last = pieces(text)
    return events([*map(document, most), document(last, finishReason="STOP")])


async def bedrock(request: Request) -> Response:
    """Bedrock Converse."""
    text = SAYINGS[request.path_params["model"]].text
    usage = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
    message = {"role": "assistant", "content": [{"text": text}]}
    reply = {"output": {"message": message}, "stopReason": "end_turn", "usage": usage}
    return JSONResponse({**reply, "metrics": {"latencyMs": 7}})


async def bedrock_stream(request: Request) -> Response:
    """Bedrock ConverseStream in the framing of AWS."""
    text = SAYINGS[request.path_params["model"]].text
    said: list[tuple[str, Any]] = [
        ("messageStart", {"role": "assistant"}),
        *(("contentBlockDelta", {"delta": {"text": p}, "contentBlockIndex": 0})
          for p in pieces(text)),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "end_turn"}),
        ("metadata", {"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3},
                      "metrics": {"latencyMs": 7}}),
    ]  # fmt: skip
    return StreamingResponse(
        (aws_event(name, document) for name, document in said),
        media_type="application/vnd.amazon.eventstream",
    )


def aws_event(name: str, document: Any) -> bytes:
    """Return a message of the encoding application/vnd.amazon.eventstream."""
    fields = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack(f"!B{len(key)}sBH", len(key), key.encode(), 7, len(value)) + value.encode()
        for key, value in fields.items()
    )
    payload = json.dumps(document).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    whole = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + payload
    return whole + struct.pack("!I", binascii.crc32(whole))


async def cohere(request: Request) -> Response:
    """Cohere chat, version 2."""
    body = await request.json()
    text = SAYINGS[body["model"]].text
    usage = {"billed_units": {"input_tokens": 5, "output_tokens": 9},
             "tokens": {"input_tokens": 71, "output_tokens": 9}}  # fmt: skip
    if not body.get("stream"):
        message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
        whole = {"id": "c-1", "finish_reason": "COMPLETE", "message": message, "usage": usage}
        return JSONResponse(whole)

    def content(kind: str, part: Any) -> Any:
        return {"type": kind, "index": 0, "delta": {"message": {"content": part}}}

    start = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [],
             "citations": []}  # fmt: skip
    return events(
        [
            {"type": "message-start", "id": "c-1", "delta": {"message": start}},
            content("content-start", {"type": "text", "text": ""}),
            *(content("content-delta", {"text": part}) for part in pieces(text)),
            {"type": "content-end", "index": 0},
            {"type": "message-end", "id": "c-1",
             "delta": {"finish_reason": "COMPLETE", "usage": usage}},
        ],
        named=True,
    )  # fmt: skip


async def ollama(request: Request) -> Response:
    """Ollama's chat and generate."""
    body = await request.json()
    is_chat = request.url.path.endswith("chat")
    text = SAYINGS[body["model"]].text

    def document(part: str, done: bool, **more: Any) -> Any:
        said = (
            {"message": {"role": "assistant", "content": part}} if is_chat else {"response": part}
        )
        stamp = "2026-01-01T00:00:00.000000001Z"
        return {"model": "llama3.2", "created_at": stamp, **said, "done": done, **more}

    counted = {"total_duration": 5, "load_duration": 1, "prompt_eval_count": 26,
               "prompt_eval_duration": 1, "eval_count": 9, "eval_duration": 2}  # fmt: skip
    more = {"done_reason": "stop", **({} if is_chat else {"context": [1, 2]}), **counted}
    if body.get("stream"):
        return lines([*(document(p, False) for p in pieces(text)), document("", True, **more)])
    return JSONResponse(document(text, True, **more))


async def llamaindex(request: Request) -> Response:
    """A query engine's response as FastAPI writes it, or the events of an agent."""
    body = await request.json()
    text = SAYINGS[body["model"]].text
    if not body.get("stream"):
        nodes = [NodeWithScore(node=TextNode(text=passage), score=0.9) for passage in PASSAGES[:1]]
        whole = asdict(IndexResponse(response=text, metadata={}))
        return JSONResponse({**whole, "source_nodes": [n.model_dump(mode="json") for n in nodes]})
    said, documents = "", []
    for part in pieces(text):
        said += part
        event = AgentStream(delta=part, response=said, current_agent_name="Agent", tool_calls=[])
        documents.append(json.loads(JsonSerializer().serialize(event)))
    return events(documents)


LEFT = "/threads/t-1/runs/r-1/stream"
"""Where LangGraph's client asks for the rest of a stream that ends without saying so."""


async def langgraph(request: Request) -> Response:
    """LangGraph's server: a run that is streamed in the modes that were asked for."""
    body = await request.json()
    text = SAYINGS[body["assistant_id"]].text
    asked = {"type": "human", "id": "h-1", "content": body["input"]["messages"][0]["content"]}
    said = {"type": "ai", "id": "run-1", "additional_kwargs": {}, "tool_calls": [],
            "invalid_tool_calls": [], "response_metadata": {}, "usage_metadata": None}  # fmt: skip
    so_far = [text[: at + 7] for at in range(0, len(text), 7)]
    whole, where = {**said, "content": text}, {"langgraph_node": "agent", "langgraph_step": 1}
    by_mode: dict[str, list[tuple[str, Any]]] = {
        "messages": [
            ("messages/metadata", {"run-1": {"metadata": where}}),
            *(("messages/partial", [{**said, "content": one}]) for one in so_far),
            ("messages/complete", [whole]),
        ],
        "messages-tuple": [
            ("messages", [{**said, "type": "AIMessageChunk", "content": piece}, where])
            for piece in pieces(text)
        ],
        "values": [("values", {"messages": [asked, whole]})],
    }
    found = [("metadata", {"run_id": "r-1", "attempt": 1})]
    if "values" in body["stream_mode"]:
        found.append(("values", {"messages": [asked]}))
    found += [event for mode in body["stream_mode"] for event in by_mode[mode]]
    framed = [f"event: {n}\ndata: {json.dumps(d)}\nid: {i}\n\n" for i, (n, d) in enumerate(found)]
    ended = StreamingResponse(iter([*framed, "event: end\n\n"]), media_type=EVENTS)
    ended.headers["location"] = LEFT
    return ended


async def langgraph_again(_request: Request) -> Response:
    """The same run, for those who ask again."""
    return JSONResponse({"status": "running"})


async def _spoken(inputs: AsyncIterator[Any]) -> AsyncIterator[str]:
    async for given in inputs:
        for part in pieces(SAYINGS[given["say"]].text):
            yield part


async def _written(inputs: AsyncIterator[Any]) -> AsyncIterator[AIMessageChunk]:
    async for part in _spoken(inputs):
        yield AIMessageChunk(content=part, id="run-1")


def application() -> FastAPI:
    """Return all of them as one application that hands over its passages."""
    app = FastAPI(
        routes=[
            Route("/{version}/models/{call}", google, methods=["POST"]),
            Route("/model/{model}/converse", bedrock, methods=["POST"]),
            Route("/model/{model}/converse-stream", bedrock_stream, methods=["POST"]),
            Route("/v2/chat", cohere, methods=["POST"]),
            Route("/api/chat", ollama, methods=["POST"]),
            Route("/api/generate", ollama, methods=["POST"]),
            Route("/llamaindex", llamaindex, methods=["POST"]),
            Route("/runs/stream", langgraph, methods=["POST"]),
            Route("/threads/t-1/runs/r-1", langgraph_again),
        ]
    )
    chains = {"/chain/text": (_spoken, str), "/chain/message": (_written, AIMessageChunk)}
    for path, (function, kind) in chains.items():
        chain = RunnableGenerator(function).with_types(input_type=dict[str, str], output_type=kind)
        add_routes(app, chain, path=path, enabled_endpoints=["invoke", "stream"])
    return app


def with_passages(app: Any) -> Any:
    """Return an application whose replies are about the passages."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["guardrail"]["contexts"] = PASSAGES
        await app(scope, receive, send)

    return call

"""The vendors' own clients: what each of them makes of what the middleware sends."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import boto3
import cohere
import httpx
import ollama
import openai
from botocore.config import Config
from botocore.exceptions import ClientError
from google import genai
from langchain_core.messages import BaseMessage
from langgraph_sdk import get_sync_client
from langserve import RemoteRunnable
from llama_index.core.agent.workflow.workflow_events import AgentStream
from llama_index.core.schema import TextNode
from workflows.context.serializers import JsonSerializer

from tests.integration.conftest import PATIENCE_S
from tests.vendors.saying import QUESTION, SAYINGS, pieces
from tests.vendors.senders import node

MESSAGES: Any = [{"role": "user", "content": QUESTION}]


@dataclass(frozen=True)
class Seen:
    """What a client understood.

    Attributes:
        texts: One for each answer that was asked for.
        reason: Why the answer ended, in the vendor's words.
        parsed: Everything it parsed.
    """

    texts: list[str]
    reason: Any
    parsed: Any


@dataclass(frozen=True)
class Judge:
    """A vendor's client and the sender that it asks.

    Attributes:
        sender: Name of a host.
        client: The package whose client reads.
        api: What is asked, in the vendor's words.
        ask: Asks an address for a saying, streamed or not.
        stopped: How the vendor says that a filter ended an answer; `...` if it cannot.
        prefix: Of the names of the sender's models.
        streams: Whether it can be asked for a stream, a whole reply, or both.
        lost: What a reader should know that this client does not show.
    """

    sender: str
    client: str
    api: str
    ask: Callable[[str, str, bool], Seen]
    stopped: Any
    prefix: str = ""
    streams: tuple[bool, ...] = (False, True)
    lost: str = ""


def _openai(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)


def chat(url: str, model: str, streamed: bool) -> Seen:
    """Ask for two chat completions."""
    with _openai(url) as client:
        if not streamed:
            whole = client.chat.completions.create(model=model, messages=MESSAGES, n=2)
            texts = [choice.message.content or "" for choice in whole.choices]
            return Seen(texts, {c.finish_reason for c in whole.choices}, whole.model_dump())
        chunks = list(
            client.chat.completions.create(model=model, messages=MESSAGES, n=2, stream=True)
        )
    said: dict[int, str] = {}
    reasons = set()
    for choice in (choice for chunk in chunks for choice in chunk.choices):
        said[choice.index] = said.get(choice.index, "") + (choice.delta.content or "")
        reasons |= {choice.finish_reason} - {None}
    return Seen([text for text in said.values() if text], reasons, [c.model_dump() for c in chunks])


def chat_helper(url: str, model: str, _: bool) -> Seen:
    """Ask for a chat completion and let the client put it together; it raises a filtered one."""
    with (
        _openai(url) as client,
        client.chat.completions.stream(model=model, messages=MESSAGES) as stream,
    ):
        events = [event.model_dump() for event in stream]
        try:
            whole: Any = stream.get_final_completion()
        except openai.ContentFilterFinishReasonError as error:
            whole = error.completion
    choice = whole.choices[0]
    return Seen([choice.message.content], choice.finish_reason, [*events, whole.model_dump()])


def completion(url: str, model: str, streamed: bool) -> Seen:
    """Ask for a text completion."""
    with _openai(url) as client:
        if not streamed:
            whole = client.completions.create(model=model, prompt=QUESTION)
            choice = whole.choices[0]
            return Seen([choice.text], choice.finish_reason, whole.model_dump())
        chunks = list(client.completions.create(model=model, prompt=QUESTION, stream=True))
        said = [choice for chunk in chunks for choice in chunk.choices]
        reason = [choice.finish_reason for choice in said if choice.finish_reason][-1]
        text = "".join(choice.text for choice in said)
        return Seen([text], reason, [chunk.model_dump() for chunk in chunks])


def responses(url: str, model: str, streamed: bool) -> Seen:
    """Ask for a response."""
    with _openai(url) as client:
        if not streamed:
            whole = client.responses.create(model=model, input=QUESTION)
            return Seen([whole.output_text], _why(whole), whole.model_dump())
        events = list(client.responses.create(model=model, input=QUESTION, stream=True))
        text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
        whole = next(e.response for e in events if e.type in ENDS)
        return Seen([text], _why(whole), [event.model_dump() for event in events])


ENDS = ("response.completed", "response.incomplete", "response.failed")


def _why(response: Any) -> Any:
    details = response.incomplete_details
    return details.reason if details else response.status


def messages(url: str, model: str, streamed: bool) -> Seen:
    """Ask for a message."""
    asked: Any = {"model": model, "max_tokens": 300, "messages": MESSAGES}
    with anthropic.Anthropic(base_url=url, api_key="x", max_retries=0) as client:
        if not streamed:
            whole: Any = client.messages.create(**asked)
            parsed = []
        else:
            with client.messages.stream(**asked) as stream:
                parsed = [event.model_dump() for event in stream]
                whole = stream.get_final_message()
    text = "".join(block.text for block in whole.content if block.type == "text")
    return Seen([text], whole.stop_reason, [*parsed, whole.model_dump()])


def generate_content(url: str, model: str, streamed: bool) -> Seen:
    """Ask for content."""
    options = genai.types.HttpOptions(base_url=url)
    with genai.Client(api_key="x", http_options=options) as client:
        if streamed:
            parts = client.models.generate_content_stream(model=model, contents=QUESTION)
            found = list(parts)
        else:
            found = [client.models.generate_content(model=model, contents=QUESTION)]
    text = "".join(part.text or "" for part in found)
    reason = (found[-1].candidates or [])[0].finish_reason
    return Seen([text], reason and reason.value, [p.model_dump(mode="json") for p in found])


def converse(url: str, model: str, streamed: bool) -> Seen:
    """Converse; an error of the service is what it says."""
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="eu-west-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"max_attempts": 1}),
    )
    asked: Any = {"modelId": model, "messages": [{"role": "user", "content": [{"text": QUESTION}]}]}
    if streamed:
        try:
            return Seen([], None, list(client.converse_stream(**asked)["stream"]))
        except ClientError as error:
            return Seen([], error.response["ResponseMetadata"]["HTTPStatusCode"], error.response)
    whole = client.converse(**asked)
    text = "".join(part.get("text", "") for part in whole["output"]["message"]["content"])
    return Seen([text], whole["stopReason"], whole)


def cohere_chat(url: str, model: str, streamed: bool) -> Seen:
    """Ask for a chat."""
    client = cohere.ClientV2("x", base_url=url)
    if not streamed:
        whole: Any = client.chat(model=model, messages=MESSAGES)
        text = "".join(part.text for part in whole.message.content)
        return Seen([text], whole.finish_reason, whole.model_dump())
    events: list[Any] = list(client.chat_stream(model=model, messages=MESSAGES))
    said = [e.delta.message.content.text for e in events if e.type == "content-delta"]
    reason = next(e.delta.finish_reason for e in events if e.type == "message-end")
    return Seen(["".join(said)], reason, [event.model_dump() for event in events])


def ollama_chat(url: str, model: str, streamed: bool) -> Seen:
    """Ask for a chat."""
    reply: Any = ollama.Client(url).chat(model, MESSAGES, stream=streamed)
    found = list(reply) if streamed else [reply]
    text = "".join(part.message.content for part in found)
    return Seen([text], found[-1].done_reason, [part.model_dump() for part in found])


def ollama_generate(url: str, model: str, streamed: bool) -> Seen:
    """Ask for a completion."""
    reply: Any = ollama.Client(url).generate(model, QUESTION, stream=streamed)
    found = list(reply) if streamed else [reply]
    text = "".join(part.response for part in found)
    return Seen([text], found[-1].done_reason, [part.model_dump() for part in found])


def chain(path: str) -> Callable[[str, str, bool], Seen]:
    """Return a judge that runs a chain of LangServe."""

    def ask(url: str, model: str, streamed: bool) -> Seen:
        remote: Any = RemoteRunnable(f"{url}{path}")
        given = {"say": model}
        found = list(remote.stream(given)) if streamed else [remote.invoke(given)]
        text = "".join(str(p.content) if isinstance(p, BaseMessage) else p for p in found)
        return Seen([text], None, [repr(part) for part in found])

    return ask


GIVEN: Any = {"messages": [{"role": "user", "content": QUESTION}]}


def graph(*modes: Any) -> Callable[[str, str, bool], Seen]:
    """Return a judge that streams a run of LangGraph's server in modes."""

    def ask(url: str, model: str, _: bool) -> Seen:
        client = get_sync_client(url=url, api_key="x")
        found = list(client.runs.stream(None, model, input=GIVEN, stream_mode=list(modes)))
        return _run([(part.event, part.data) for part in found])

    return ask


def npm_graph(*modes: Any) -> Callable[[str, str, bool], Seen]:
    """Return a judge that does the same with npm's client."""

    def ask(url: str, model: str, _: bool) -> Seen:
        asked = json.dumps({"assistant": model, "input": GIVEN, "streamMode": modes})
        found = json.loads(node("graph", url, said=asked))
        return _run([(part["event"], part.get("data")) for part in found])

    return ask


def _run(found: list[tuple[str, Any]]) -> Seen:
    """Return what the events of a run say, message by message as its readers put them together."""
    said: dict[str, str] = {}
    for name, document in found:
        if name.startswith("messages/p") or name == "messages/complete":
            said[name.partition("/")[0]] = document[-1]["content"]
        elif name == "messages":
            said[name] = said.get(name, "") + document[0]["content"]
        elif name == "values" and document["messages"][-1]["type"] == "ai":
            said[name] = document["messages"][-1]["content"]
    told = [document["guardrail"]["reason"] for name, document in found if name == "guardrail"]
    assert found[-1][0] == "end"
    return Seen([*said.values()], told[0] if told else None, [document for _, document in found])


def index(url: str, model: str, streamed: bool) -> Seen:
    """Ask a query engine or an agent of LlamaIndex; its types read what it sends."""
    asked = {"model": model, "query": QUESTION, "stream": streamed}
    reply = httpx.post(f"{url}/llamaindex", json=asked, timeout=PATIENCE_S)
    if not streamed:
        whole = reply.json()
        nodes = [TextNode.model_validate(node["node"]) for node in whole["source_nodes"]]
        assert all(node.text for node in nodes)
        return Seen([whole["response"]], None, whole["response"])
    data = [line[6:] for line in reply.text.splitlines() if line.startswith("data: {")]
    reason = next((json.loads(d)["guardrail"]["reason"] for d in data if "guardrail" in d), None)
    events = [JsonSerializer().deserialize(d) for d in data if "qualified_name" in d]
    assert all(isinstance(event, AgentStream) for event in events)
    parsed = [event.model_dump() for event in events]
    return Seen(["".join(event.delta for event in events)], reason, parsed)


def ui(version: str) -> Callable[[str, str, bool], Seen]:
    """Return a judge that reads with a version of npm's `ai`."""

    def ask(url: str, model: str, _: bool) -> Seen:
        body = json.dumps({"version": version, "pieces": pieces(SAYINGS[model].text)})
        seen = json.loads(node("read", version, f"{url}/vercel{version}", said=body))
        return Seen([seen["text"]], seen["reason"], seen["parsed"])

    return ask


EMPTY = "`response.incomplete` of a stopped stream has no output; the fallback is in the deltas"
HEADER = "a response has no word for a filter; the header says it"
BINARY = "ConverseStream is refused with 502: its binary framing cannot be checked"
RAISES = "a stopped answer is an error of the client, with the text in its `completion`"
NO_WORD = "no word for a filter: the event `guardrail` is skipped, the fallback is the text"
JUDGES = {
    f"{judge.sender}, {judge.client} {judge.api}": judge
    for judge in (
        Judge("xllamacpp", "openai", "chat completions", chat, {"content_filter"}),
        Judge("xllamacpp", "openai", "chat completions, put together", chat_helper,
              "content_filter", streams=(True,), lost=RAISES),
        Judge("xllamacpp", "openai", "completions", completion, "content_filter"),
        Judge("xllamacpp", "openai", "responses", responses, "content_filter", lost=EMPTY),
        Judge("litellm", "openai", "chat completions", chat, {"content_filter"}),
        Judge("litellm", "openai", "chat completions, put together", chat_helper,
              "content_filter", streams=(True,), lost=RAISES),
        Judge("litellm", "openai", "responses", responses, "content_filter", "", (False,)),
        Judge("litellm", "anthropic", "messages", messages, "refusal", "", (False,)),
        Judge("litellm", "anthropic", "messages of a model", messages, "refusal", "model-"),
        Judge("written", "google-genai", "generateContent", generate_content, "SAFETY"),
        Judge("written", "boto3", "Converse", converse, "guardrail_intervened", "", (False,),
              BINARY),
        Judge("written", "cohere", "chat", cohere_chat, "ERROR"),
        Judge("written", "ollama", "chat", ollama_chat, "content_filter"),
        Judge("written", "ollama", "generate", ollama_generate, "content_filter"),
        Judge("written", "langserve", "a chain of text", chain("/chain/text"), ..., lost=NO_WORD),
        Judge("written", "langserve", "a chain of messages", chain("/chain/message"), ...,
              lost=NO_WORD),
        Judge("written", "llama-index-core", "a query engine", index, ..., streams=(False,),
              lost=HEADER),
        Judge("written", "llama-index-core", "an agent", index, "blocked", streams=(True,)),
        *(Judge("written", client, " and ".join(modes), ask(*modes), "blocked", streams=(True,))
          for client, ask in (("langgraph-sdk", graph), ("@langchain/langgraph-sdk", npm_graph))
          for modes in (("messages", "values"), ("messages-tuple",), ("messages-tuple", "values"))),
        *(Judge("npm", "ai", version, ui(version), "content-filter",
                streams=(True,)) for version in ("4", "5", "7")),
        Judge("litellm", "openai", "responses of a model", responses, "content_filter", "model-",
              lost=EMPTY),
    )
}  # fmt: skip

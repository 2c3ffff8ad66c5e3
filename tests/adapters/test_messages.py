"""Messages with more than an answer: thoughts, and what models write for tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.generators.chat import FallbackChatGenerator, MockChatGenerator
from haystack.dataclasses import ChatMessage, ReasoningContent, StreamingChunk, ToolCall
from haystack.tools import Tool
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langchain_core.documents import Document
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from guardrail_client.integrations.haystack import GuardedChatGenerator, GuardrailChecker
from guardrail_client.integrations.langchain import GuardrailRunnable
from guardrail_client.integrations.langchain_agents import GuardrailAgentMiddleware
from tests.adapters.adapter import HIDDEN, INVENTED, PASSAGES, QUESTION, TWIN
from tests.adapters.conftest import Ground
from tests.adapters.frameworks import ASKED, DOCUMENTS, MODES, Calling, agent_of, look_up, patient
from tests.vendors.saying import FALLBACK, pieces

LOGPROBS = {"logprobs": {"content": [{"token": word} for word in INVENTED.split()]}}
THOUGHT = "The user is a stupid idiot and everybody hates them."
Send = Callable[..., Any]


class Mailbox:
    """A tool that keeps what it was given."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, text: str) -> str:
        """Send a text to the new employee."""
        self.sent.append(text)
        return "sent"


def langchain_agent(ground: Ground, mailbox: Mailbox, text: str, **settings: Any) -> Any:
    """Look up, write a mail, say that it is done; return everything that a reader could get."""
    calls = [
        {"name": "look_up", "args": {"topic": "paid leave of new employees"}, "id": "c-0"},
        {"name": "send", "args": {"text": text}, "id": "c-1"},
    ]
    says = [AIMessage("", tool_calls=[call], id=call["id"]) for call in calls]
    says.append(AIMessage(TWIN, id="m-1"))
    agent = agent_of(ground, says, look_up, tool(mailbox.send), **settings)
    return [data for _, data in agent.stream(ASKED, stream_mode=MODES)]


def haystack_agent(ground: Ground, mailbox: Mailbox, text: str, **settings: Any) -> Any:
    """The same with Haystack's agent, streamed."""
    says: list[Any] = [
        ChatMessage.from_assistant(
            tool_calls=[ToolCall("look_up", {"topic": "paid leave"}, "c-0")]
        ),
        ChatMessage.from_assistant(tool_calls=[ToolCall("send", {"text": text}, "c-1")]),
        TWIN,
    ]
    seen: list[Any] = []
    generator = GuardedChatGenerator(MockChatGenerator(says), **patient(ground), **settings)
    mailing = {"type": "object", "properties": {"text": {"type": "string"}}}
    looking = {"type": "object", "properties": {"topic": {"type": "string"}}}
    tools = [
        Tool("look_up", "Look up.", looking, lambda topic: "\n".join(PASSAGES)),
        Tool("send", "Send.", mailing, mailbox.send),
    ]
    agent = Agent(chat_generator=generator, tools=tools, streaming_callback=seen.append)
    return [agent.run([ChatMessage.from_user(QUESTION)])["messages"], seen]


@pytest.mark.parametrize("agent", [langchain_agent, haystack_agent])
@pytest.mark.parametrize(
    ("text", "settings", "sent"),
    [
        (TWIN, {}, True),
        (INVENTED, {}, False),
        (INVENTED, {"tool_calls": "unchecked"}, True),
        (TWIN, {"tool_calls": "refuse"}, False),
        (INVENTED, {"mode": "shadow"}, True),
    ],
)
def test_arguments_for_tools_are_judged(
    agent: Send, text: str, settings: dict[str, Any], sent: bool, ground: Ground
) -> None:
    """An invented benefit is neither mailed nor in any event; what is declared unread is."""
    mailbox = Mailbox()
    seen = agent(ground, mailbox, text, **settings)
    assert mailbox.sent == ([text] if sent else [])
    assert (HIDDEN in str(seen)) is (sent and text == INVENTED)


class Benefit(BaseModel):
    """What a new employee gets."""

    text: str


@pytest.mark.parametrize("text", [TWIN, INVENTED])
def test_a_structured_answer_is_judged_where_it_is_written(text: str, ground: Ground) -> None:
    """It is parsed from what a guarded model writes for a tool."""
    call = {"name": "look_up", "args": {"topic": "paid leave of new employees"}, "id": "c-0"}
    done = {"name": "Benefit", "args": {"text": text}, "id": "c-1"}
    says = [AIMessage("", tool_calls=[one], id=one["id"]) for one in (call, done)]
    agent: Any = create_agent(
        Calling(messages=iter(says)),
        [look_up],
        middleware=[GuardrailAgentMiddleware(**patient(ground))],
        response_format=ToolStrategy(Benefit),
    )
    found = agent.invoke(ASKED)
    if text == TWIN:
        assert found["structured_response"] == Benefit(text=TWIN)
    else:
        assert found.get("structured_response") is None
        assert found["messages"][-1].content == FALLBACK
        assert HIDDEN not in str(found)


MESSAGES: dict[str, tuple[AIMessage, bool]] = {
    "an answer": (AIMessage(TWIN), True),
    "what a server keeps beside it": (AIMessage(TWIN, response_metadata={"model": "m-1"}), True),
    "an invention with log probabilities": (AIMessage(INVENTED, response_metadata=LOGPROBS), False),
    "a thought": (AIMessage(TWIN, additional_kwargs={"reasoning_content": THOUGHT}), False),
    "a thought in blocks": (
        AIMessage([{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": TWIN}]),
        False,
    ),
    "an unknown block": (AIMessage([{"type": "poem", "verse": THOUGHT}]), False),
    "arguments": (
        AIMessage(TWIN, tool_calls=[{"name": "send", "args": {"text": INVENTED}, "id": "c"}]),
        False,
    ),
    "broken arguments": (
        AIMessage("", invalid_tool_calls=[
            {"name": "send", "args": INVENTED, "id": "c", "error": "no JSON"}]),
        False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MESSAGES)
def test_every_text_of_a_message_is_judged(case: str, ground: Ground) -> None:
    """A message that may be shown is the same object; of another nothing is left."""
    message, passes = MESSAGES[case]
    guard = GuardrailRunnable(**patient(ground))
    given = {"question": QUESTION, "context": [Document(text) for text in PASSAGES]}
    shown = guard.invoke({**given, "answer": message})["answer"]
    assert (shown is message) is passes
    if not passes:
        assert (shown.content, shown.tool_calls) == (FALLBACK, [])
        assert shown.response_metadata["finish_reason"] == "content_filter"
        said = json.dumps(shown.model_dump())
        assert not any(word in said for word in ("company", "idiot"))


def test_a_redacted_value_is_nowhere_beside_the_message(ground: Ground) -> None:
    """Neither in the documents that the chain returns."""
    card = "The deposit was paid with the card 4111 1111 1111 1111."
    guard = GuardrailRunnable(**patient(ground))
    for answer in (card, AIMessage(card)):
        asked = {"question": "How was the deposit paid?", "context": [Document(card)]}
        found = guard.invoke({**asked, "answer": answer})
        assert "4111" not in str(found)
        assert "deposit" in str(found["answer"])


SAID = ChatMessage.from_assistant(TWIN, reasoning=ReasoningContent("New employees get 25 days."))
REPLIES: dict[str, tuple[ChatMessage, bool]] = {
    "an answer": (ChatMessage.from_assistant(TWIN), True),
    "a fair thought": (SAID, True),
    "a thought": (ChatMessage.from_assistant(TWIN, reasoning=ReasoningContent(THOUGHT)), False),
    "log probabilities": (ChatMessage.from_assistant(INVENTED, meta=LOGPROBS), False),
}


class Thinking:
    """A generator that also streams its thoughts, as those of vendors do."""

    def __init__(self, reply: ChatMessage) -> None:
        self.reply = reply

    def run(self, messages: Any, streaming_callback: Any = None) -> Any:
        """Think, and say it."""
        if streaming_callback:
            for number, thought in enumerate(self.reply.reasonings):
                streaming_callback(StreamingChunk("", index=number, reasoning=thought))
            for piece in pieces(str(self.reply.text)):
                streaming_callback(StreamingChunk(piece, meta={"raw": self.reply.text}))
        return {"replies": [self.reply]}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("case", REPLIES)
def test_every_text_of_a_reply_is_judged(case: str, streamed: bool, ground: Ground) -> None:
    """Thoughts reach the callback behind the text, if they may."""
    reply, passes = REPLIES[case]
    seen: list[Any] = []
    guard = GuardedChatGenerator(Thinking(reply), **patient(ground))
    given: Any = {"messages": [ChatMessage.from_user(QUESTION)], "documents": DOCUMENTS}
    if streamed:
        given["streaming_callback"] = seen.append
    (shown,) = guard.run(**given)["replies"]
    said = json.dumps([shown.to_dict(), [chunk.to_dict() for chunk in seen]])
    if passes:
        assert shown.to_dict()["content"] == reply.to_dict()["content"]
        assert ("reasoning_text" in json.dumps([c.to_dict() for c in seen])) is (
            streamed and bool(reply.reasonings)
        )
    else:
        assert not any(word in said for word in ("company", "idiot"))
        assert FALLBACK in shown.text
        assert shown.meta["finish_reason"] == "content_filter"


def test_the_checker_judges_every_text_of_a_reply(ground: Ground) -> None:
    """As the generator's guard does."""
    checker = GuardrailChecker(**patient(ground))
    replies = [reply for reply, _ in REPLIES.values()]
    found = checker.run(replies=replies, query=QUESTION, documents=DOCUMENTS)["replies"]
    assert [shown is reply for shown, reply in zip(found, replies, strict=True)] == [
        passes for _, passes in REPLIES.values()
    ]


def test_a_generator_that_does_not_stream_is_judged_whole(ground: Ground) -> None:
    """Each reply of several."""

    class Silent:
        def run(self, messages: Any, streaming_callback: Any = None) -> Any:
            return {"replies": [ChatMessage.from_assistant(text) for text in (TWIN, INVENTED)]}

    seen: list[Any] = []
    guard = GuardedChatGenerator(Silent(), **patient(ground), streaming_callback=seen.append)
    asked = [ChatMessage.from_user(QUESTION)]
    found = guard.run(messages=asked, documents=DOCUMENTS)["replies"]
    assert [reply.text for reply in found] == [TWIN, FALLBACK]
    assert HIDDEN not in str(seen)


def test_an_error_of_the_generator_reaches_its_caller(ground: Ground) -> None:
    """In both forms."""

    class Broken:
        def run(self, messages: Any, streaming_callback: Any = None) -> Any:
            raise KeyError("the model")

        async def run_async(self, messages: Any, streaming_callback: Any = None) -> Any:
            raise KeyError("the model")

    guard = GuardedChatGenerator(Broken(), **patient(ground), streaming_callback=print)
    asked = [ChatMessage.from_user(QUESTION)]
    with pytest.raises(KeyError, match="the model"):
        guard.run(messages=asked, documents=DOCUMENTS)
    with pytest.raises(KeyError, match="the model"):
        asyncio.run(guard.run_async(messages=asked, documents=DOCUMENTS))


def _shown(chunk: Any) -> None:
    """Serve as a callback that a file can name."""


def test_nothing_can_be_streamed_around_the_guard(ground: Ground) -> None:
    """A callback on the generator itself is refused, also inside of another generator."""
    own = MockChatGenerator(INVENTED, streaming_callback=_shown)
    for generator in (own, FallbackChatGenerator([own])):
        with pytest.raises(ValueError, match="streaming_callback: found on the generator"):
            GuardedChatGenerator(generator, **patient(ground))


def test_a_pipelines_file_keeps_the_settings_and_no_key(ground: Ground) -> None:
    """And gives the same pipeline back."""
    pipeline = Pipeline()
    settings = {"api_key": "secret-of-mine", "policy": "strict"}
    guard = GuardedChatGenerator(MockChatGenerator(TWIN), ground.guard, _shown, **settings)
    pipeline.add_component("llm", guard)
    pipeline.add_component("guardrail", GuardrailChecker(ground.guard, **settings))
    file = pipeline.dumps()
    assert "secret-of-mine" not in file
    allowed = ["guardrail_client.integrations.haystack", __name__]
    again = Pipeline.loads(file, allowed_modules=allowed)
    assert again.dumps() == file


@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_an_outage_is_told_from_a_block(on_error: Any) -> None:
    """In every framework by the same setting."""
    away: Any = {"url": "http://127.0.0.1:1", "timeout": 1.0, "on_error": on_error}
    outage = "Sorry, the answer could not be checked. Please try again later."
    expected = outage if on_error == "closed" else INVENTED
    given = {"question": QUESTION, "context": PASSAGES}
    message = GuardrailRunnable(**away).invoke({**given, "answer": AIMessage(INVENTED)})["answer"]
    text = GuardrailRunnable(**away).invoke({**given, "answer": INVENTED})["answer"]
    generator = GuardedChatGenerator(MockChatGenerator(INVENTED), **away)
    asked = [ChatMessage.from_user(QUESTION)]
    seen: list[Any] = []
    reply = generator.run(asked, DOCUMENTS, streaming_callback=seen.append)["replies"][0]
    assert {message.content, text, reply.text} == {expected}
    assert "".join(chunk.content for chunk in seen) == expected

"""The vendors' own clients: what each of them makes of what the middleware sends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import openai

from tests.vendors.saying import QUESTION

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
        stopped: How the vendor says that a filter ended an answer.
        prefix: Of the names of the sender's models.
        streams: Whether it can be asked for a stream, a whole reply, or both.
    """

    sender: str
    client: str
    api: str
    ask: Callable[[str, str, bool], Seen]
    stopped: Any
    prefix: str = ""
    streams: tuple[bool, ...] = (False, True)


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


JUDGES = {
    f"{judge.sender} {judge.api}": judge
    for judge in (
        Judge("xllamacpp", "openai", "chat completions", chat, {"content_filter"}),
        Judge("xllamacpp", "openai", "chat completions, put together", chat_helper,
              "content_filter", streams=(True,)),
        Judge("xllamacpp", "openai", "completions", completion, "content_filter"),
        Judge("xllamacpp", "openai", "responses", responses, "content_filter"),
        Judge("litellm", "openai", "chat completions", chat, {"content_filter"}),
        Judge("litellm", "openai", "chat completions, put together", chat_helper,
              "content_filter", streams=(True,)),
        Judge("litellm", "openai", "responses", responses, "content_filter", "", (False,)),
        Judge("litellm", "openai", "responses of a model", responses, "content_filter", "model-"),
    )
}  # fmt: skip

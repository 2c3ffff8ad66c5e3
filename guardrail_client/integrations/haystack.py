"""Haystack: a component behind a chat generator, and one around it that also guards its stream."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from guardrail_client.integrations import needs
from guardrail_client.integrations.answers import AnswerGuard
from guardrail_client.integrations.model_messages import (
    ModelMessage,
    ShownMessage,
    plain_metadata,
)
from guardrail_client.integrations.pushed import AsyncPushed, Pushed
from guardrail_client.middleware.outcome import AnswerOutcome
from guardrail_client.middleware.shapes import Shape

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.core.serialization import component_to_dict
    from haystack.dataclasses import ChatMessage, ChatRole, StreamingCallbackT, StreamingChunk
    from haystack.dataclasses.streaming_chunk import ToolCallDelta
    from haystack.utils import deserialize_callable, serialize_callable
    from haystack.utils.deserialization import deserialize_component_inplace
except ImportError as error:
    raise needs("haystack", error) from error

MESSAGE = Shape(
    "haystack-message",
    marks=("/content",),
    texts=("/content/[]/text", "/content/*/reasoning/reasoning_text"),
    tool_calls=("/content/*/tool_call/arguments",),
    repeats=("/content/*/tool_call/extra", "/content/*/reasoning/extra"),
    objects=frozenset({"extra"}),
    codes=frozenset({"tool_name"}),
    source="https://github.com/deepset-ai/haystack/blob/main/haystack/dataclasses/chat_message.py",
)
"""The contents of a `ChatMessage`."""


@component
class GuardrailChecker:
    """Shows what the guard allows of a generator's replies; the documents are the passages.

    A generator that streams shows its tokens before they come here: `GuardedChatGenerator` guards
    those.

    Args:
        url: Address of the service.
        **settings: As for `AnswerGuard`.
    """

    def __init__(self, url: str | None = None, **settings: Any) -> None:
        self._given = {"url": url, **settings}
        self._guard = AnswerGuard(url, **settings)

    def to_dict(self) -> dict[str, Any]:
        """Return what a pipeline's file keeps; no key: it comes from GUARDRAIL_API_KEY."""
        found: dict[str, Any] = default_to_dict(self, **_kept(self._given))
        return found

    @component.output_types(replies=list[ChatMessage])
    def run(
        self, replies: list[ChatMessage], query: str, documents: list[Document]
    ) -> dict[str, Any]:
        """Return the replies as they may be shown."""
        asked = [(reply, _asked(reply, query, documents, [query])) for reply in replies]
        return {"replies": [_replaced(r, a, self._guard.message(a)) for r, a in asked]}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self, replies: list[ChatMessage], query: str, documents: list[Document]
    ) -> dict[str, Any]:
        """Return what `run` does."""
        asked = [(reply, _asked(reply, query, documents, [query])) for reply in replies]
        return {"replies": [_replaced(r, a, await self._guard.amessage(a)) for r, a in asked]}


@component
class GuardedChatGenerator:
    """A chat generator that shows what the guard allows, in its replies and to its callback.

    Passages are the documents, and what tools returned since the user's last message, which is the
    question unless `query` is. Thoughts and calls of tools reach the callback as
    they stand in the reply, when all was judged.

    Args:
        generator: The chat generator; it has no callback of its own.
        url: Address of the service.
        streaming_callback: Gets the pieces of replies as they may be shown.
        **settings: As for `AnswerGuard`.

    Raises:
        TypeError: If it is no generator.
        ValueError: If the generator has a callback: it would get what nobody read.
    """

    def __init__(
        self,
        generator: Any,
        url: str | None = None,
        streaming_callback: StreamingCallbackT | None = None,
        **settings: Any,
    ) -> None:
        if not callable(getattr(generator, "run", None)):
            found = type(generator).__name__
            raise TypeError(f"generator: found {found}, expected a chat generator")
        if _has_callback(generator):
            raise ValueError("streaming_callback: found on the generator, expected on the guard")
        self._generator, self._callback = generator, streaming_callback
        self._given = {"url": url, **settings}
        self._guard = AnswerGuard(url, **settings)

    def to_dict(self) -> dict[str, Any]:
        """Return what a pipeline's file keeps; no key: it comes from GUARDRAIL_API_KEY."""
        callback = serialize_callable(self._callback) if self._callback else None
        generator = component_to_dict(self._generator, name="generator")
        own = {"generator": generator, "streaming_callback": callback}
        found: dict[str, Any] = default_to_dict(self, **own, **_kept(self._given))
        return found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GuardedChatGenerator:
        """Return the component that a pipeline's file describes."""
        given = data["init_parameters"]
        deserialize_component_inplace(given, key="generator")
        if given.get("streaming_callback"):
            given["streaming_callback"] = deserialize_callable(given["streaming_callback"])
        found: GuardedChatGenerator = default_from_dict(cls, data)
        return found

    def warm_up(self) -> None:
        """Prepare the generator."""
        getattr(self._generator, "warm_up", lambda: None)()

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        documents: list[Document] | None = None,
        query: str | None = None,
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        tools: Any = None,
    ) -> dict[str, Any]:
        """Return the generator's replies as they may be shown."""
        about = _about(messages, query, documents)
        given = {"messages": messages} | _named(generation_kwargs=generation_kwargs, tools=tools)
        if (callback := streaming_callback or self._callback) is None:
            asked = [(r, _asked(r, *about)) for r in self._generator.run(**given)["replies"]]
            return {"replies": [_replaced(r, a, self._guard.message(a)) for r, a in asked]}
        stream = _Stream()

        def call(push: Callable[[str], None]) -> Any:
            return self._generator.run(**given, streaming_callback=stream.taking(push))

        with Pushed(call) as pushed:
            pieces = iter(pushed)
            if first := next(pieces, ""):
                tokens = chain([first], pieces)
                for piece in self._guard.pieces(tokens, *about[:2], told=stream.tell):
                    callback(stream.shown(piece))
        replies = [
            stream.reply(r, a, self._guard.message(a))
            for r, a in stream.unjudged(pushed.result, about)
        ]
        for chunk in stream.last(replies):
            callback(chunk)
        return {"replies": replies}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage],
        documents: list[Document] | None = None,
        query: str | None = None,
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        tools: Any = None,
    ) -> dict[str, Any]:
        """Return what `run` does."""
        about = _about(messages, query, documents)
        given = {"messages": messages} | _named(generation_kwargs=generation_kwargs, tools=tools)
        if (callback := streaming_callback or self._callback) is None:
            said = await self._generator.run_async(**given)
            asked = [(r, _asked(r, *about)) for r in said["replies"]]
            return {"replies": [_replaced(r, a, await self._guard.amessage(a)) for r, a in asked]}
        stream = _Stream()

        async def call(push: Callable[[str], None]) -> Any:
            taking = stream.taking(push)

            async def take(chunk: Any) -> None:
                taking(chunk)

            return await self._generator.run_async(**given, streaming_callback=take)

        async with AsyncPushed(call) as pushed:
            pieces = aiter(pushed)
            if first := await anext(pieces, ""):
                tokens = _after(first, pieces)
                async for piece in self._guard.apieces(tokens, *about[:2], told=stream.tell):
                    await _called(callback, stream.shown(piece))
            result = pushed.result
        replies = [
            stream.reply(r, a, await self._guard.amessage(a))
            for r, a in stream.unjudged(result, about)
        ]
        for chunk in stream.last(replies):
            await _called(callback, chunk)
        return {"replies": replies}


class _Stream:
    """One streamed reply: what came, and what was shown of it."""

    def __init__(self) -> None:
        self._came: list[str] = []
        self._shown: list[str] = []
        self._is_stopped = False

    def taking(self, push: Callable[[str], None]) -> Callable[[Any], None]:
        """Return the callback of the generator; calls of tools and thoughts are in the reply."""

        def take(chunk: Any) -> None:
            if chunk.content:
                self._came.append(chunk.content)
                push(chunk.content)

        return take

    def tell(self, outcome: AnswerOutcome) -> None:
        """Take what happened to the text."""
        self._is_stopped = outcome.shown == "replaced"

    def shown(self, piece: str) -> Any:
        """Return a piece that may be shown, as callbacks take it; nothing else comes with it."""
        self._shown.append(piece)
        return StreamingChunk(content=piece)

    def unjudged(self, result: Any, about: _About) -> list[tuple[Any, ModelMessage]]:
        """Return the replies, each with what nobody has judged yet.

        The text has been, if the reply is what came. Of a stopped one nothing else is looked at.
        """
        if self._is_stopped:
            stopped = ChatMessage.from_assistant("")
            return [(stopped, _asked(stopped, *about))]
        asked = [(reply, _asked(reply, *about)) for reply in result["replies"]]
        if ["".join(reply.texts) for reply, _ in asked] != ["".join(self._came)]:
            self._shown.clear()  # another text came, or none: the replies are judged whole
            return asked
        ((reply, message),) = asked
        others = [part for part in message.value["content"] if "text" not in part]
        return [(reply, replace(message, value={"content": others}))]

    def reply(self, reply: Any, asked: ModelMessage, found: ShownMessage) -> Any:
        """Return a reply with the text as it was shown."""
        changed = _replaced(reply, asked, found)
        text = "".join(self._shown)
        if found.instead is not None or not text:
            return changed
        if changed is reply and text == "".join(reply.texts):
            return reply
        rest = [part for part in changed.to_dict()["content"] if "text" not in part]
        return _like(reply, [{"text": text}, *rest])

    def last(self, replies: Sequence[Any]) -> Iterator[Any]:
        """Yield what follows the text: what stands in its place, thoughts, calls and the end."""
        for reply in replies:
            if (text := "".join(reply.texts)) != "".join(self._shown):
                yield StreamingChunk(content=text)
            for index, thought in enumerate(reply.reasonings):
                yield StreamingChunk(content="", index=index, reasoning=thought)
            for index, call in enumerate(reply.tool_calls):
                said = json.dumps(call.arguments, ensure_ascii=False)
                delta = ToolCallDelta(index, call.tool_name, said, call.id)
                yield StreamingChunk(content="", index=index, tool_calls=[delta])
        ends = [reply.meta.get("finish_reason") for reply in replies]
        yield StreamingChunk(content="", finish_reason=next(filter(None, ends), None))


_About = tuple[str | None, list[Any], list[str]]
"""A question, its passages, and all that users said."""


def _about(messages: Any, query: str | None, documents: Sequence[Any] | None) -> _About:
    if isinstance(messages, str):
        messages = [ChatMessage.from_user(messages)]
    said, passages = [], list(documents or ())
    for message in messages:
        if message.is_from(ChatRole.USER):
            said.append("\n".join(message.texts))
            passages = list(documents or ())
        passages += [str(found.result) for found in message.tool_call_results]
    said += [query] if query else []
    return (said[-1] if said else None), passages, said


def _asked(reply: Any, question: str | None, contexts: Any, said: Sequence[str]) -> ModelMessage:
    value = {"content": reply.to_dict()["content"]}
    return ModelMessage(value, MESSAGE, question, contexts, said)


def _replaced(reply: Any, asked: ModelMessage, shown: ShownMessage) -> Any:
    if shown.instead is not None:
        return _like(reply, [{"text": shown.instead}])
    return reply if shown.value is asked.value else _like(reply, shown.value["content"])


def _like(reply: Any, content: list[Any]) -> Any:
    meta = {**plain_metadata(reply.meta), "finish_reason": "content_filter"}
    return ChatMessage.from_dict({**reply.to_dict(), "content": content, "meta": meta})


def _kept(given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != "api_key"}


def _named(**given: Any) -> dict[str, Any]:
    """Return the arguments that were given: not every generator takes all."""
    return {name: value for name, value in given.items() if value is not None}


def _has_callback(generator: Any) -> bool:
    inner = getattr(generator, "chat_generators", ())  # of `FallbackChatGenerator`
    own = getattr(generator, "streaming_callback", None)
    return own is not None or any(map(_has_callback, inner))


async def _called(callback: Any, chunk: Any) -> None:
    if inspect.isawaitable(found := callback(chunk)):
        await found


async def _after(first: str, pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for piece in pieces:
        yield piece

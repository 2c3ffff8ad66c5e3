"""LangChain: a runnable at the end of a chain, and a middleware of agents in `langchain_agents`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from guardrail_client.integrations import needs
from guardrail_client.integrations.answers import AnswerGuard
from guardrail_client.integrations.model_messages import (
    ModelMessage,
    ShownMessage,
    plain_metadata,
)
from guardrail_client.middleware.shapes import Shape

try:
    from langchain_core.messages import AIMessageChunk, BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig
except ImportError as error:
    raise needs("langchain", error) from error

_CALLS = ("tool_calls", "invalid_tool_calls")
_WRITTEN = ("content", "additional_kwargs", *_CALLS)
MESSAGE = Shape(
    "langchain-message",
    marks=("/content",),
    texts=(
        "/content",
        "/content/[]/text",
        "/content/[]/thinking",
        "/content/[]/reasoning",
        "/content/*/summary/[]/text",
        "/additional_kwargs/reasoning_content",
        "/additional_kwargs/refusal",
    ),
    tool_calls=(
        "/tool_calls/*/args",
        "/invalid_tool_calls/*/args",
        "/content/*/input",
        "/content/*/args",
        "/content/*/arguments",
        "/content/*/partial_json",
        "/additional_kwargs/tool_calls/*/function/arguments",
        "/additional_kwargs/function_call/arguments",
    ),
    repeats=("/content/*/annotations", "/content/*/citations", "/invalid_tool_calls/*/error"),
    codes=frozenset({"signature", "call_id", "encrypted_content", "data", "index"}),
    source="https://docs.langchain.com/oss/python/langchain/messages",
)
"""What models write into an `AIMessage`."""
_QUESTIONS = ("question", "input", "query")
_CONTEXTS = ("context", "contexts", "documents", "source_documents")


class GuardrailRunnable(Runnable[Any, Any]):
    """The last step of a chain: shows what the guard allows of its answer.

    Takes a mapping with answer, question and documents, as retrieval chains give it, a text or a
    message, of which arguments for tools and thoughts are judged, too. Of a stream, question and
    documents must come before the answer's first piece, as they do in a chain; a piece leaves when
    it was judged, and of a streamed message nothing but its text leaves.

    Args:
        url: Address of the service.
        answer: Key of the answer.
        question: Key of the question; None: the first of `question`, `input`, `query`.
        contexts: Key of the documents; None: the first of `context`, `contexts`, `documents`,
            `source_documents`.
        **settings: As for `AnswerGuard`.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        answer: str = "answer",
        question: str | None = None,
        contexts: str | None = None,
        **settings: Any,
    ) -> None:
        self._guard = AnswerGuard(url, **settings)
        self._answer = answer
        self._questions = (question,) if question else _QUESTIONS
        self._contexts = (contexts,) if contexts else _CONTEXTS

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return the value with the answer as it may be shown."""
        question, contexts = self._about(input)
        if (message := self._message(input)) is None:
            return self._guard.shown(input, question, contexts, self._key(input))
        asked = asked_of(message, question, contexts)
        return self._with(input, message, asked, self._guard.message(asked))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return what `invoke` does."""
        question, contexts = self._about(input)
        if (message := self._message(input)) is None:
            return await self._guard.ashown(input, question, contexts, self._key(input))
        asked = asked_of(message, question, contexts)
        return self._with(input, message, asked, await self._guard.amessage(asked))

    def transform(
        self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        """Yield the pieces of a stream as they may be shown; everything else as it is."""
        known: dict[str, Any] = {}
        chunks = iter(input)
        for first in chunks:
            told, text = self._split(first)
            if told:
                known |= told
                yield told
            if text:
                break
        else:
            return
        later: list[Any] = []
        tokens = self._tokens(text, chunks, later)
        for piece in self._guard.pieces(tokens, *self._about(known)):
            yield self._like(first, piece)
        yield from later

    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Yield what `transform` does."""
        known: dict[str, Any] = {}
        chunks = aiter(input)
        async for first in chunks:
            told, text = self._split(first)
            if told:
                known |= told
                yield told
            if text:
                break
        else:
            return
        later: list[Any] = []

        async def tokens() -> AsyncIterator[str]:
            yield text
            async for chunk in chunks:
                told, more = self._split(chunk)
                later.extend([told] if told else [])
                if more:
                    yield more

        async for piece in self._guard.apieces(tokens(), *self._about(known)):
            yield self._like(first, piece)
        for told in later:
            yield told

    def _tokens(self, text: str, chunks: Iterable[Any], later: list[Any]) -> Iterator[str]:
        yield text
        for told, more in map(self._split, chunks):
            later.extend([told] if told else [])
            if more:
                yield more

    def _about(self, value: Any) -> tuple[str | None, Any]:
        """Return question and documents."""
        if not isinstance(value, Mapping):
            return None, None
        question = next((value[key] for key in self._questions if key in value), None)
        contexts = next((value[key] for key in self._contexts if key in value), None)
        if isinstance(contexts, str):
            contexts = [contexts]
        return (question if isinstance(question, str) else None), contexts

    def _key(self, value: Any) -> str | None:
        return self._answer if isinstance(value, Mapping) else None

    def _message(self, value: Any) -> BaseMessage | None:
        """Return the answer if it is a message; None if it is a text."""
        if isinstance(value, Mapping):
            if self._answer not in value:
                keys = ", ".join(map(repr, value))
                raise TypeError(f"answer: found {keys}, expected the key {self._answer!r}")
            value = value[self._answer]
        if isinstance(value, BaseMessage):
            return value
        text_of(value)
        return None

    def _with(
        self, value: Any, message: BaseMessage, asked: ModelMessage, shown: ShownMessage
    ) -> Any:
        changed = shown_message(message, asked, shown)
        if not isinstance(value, Mapping):
            return changed
        if changed is message:
            return value
        others = {key: item for key, item in value.items() if key != self._answer}
        return {**(shown.beside(others) or {}), self._answer: changed}

    def _split(self, chunk: Any) -> tuple[dict[str, Any], str]:
        """Return what a piece of a stream says beside the answer, and what of the answer."""
        if not isinstance(chunk, Mapping):
            return {}, text_of(chunk)
        told = {key: value for key, value in chunk.items() if key != self._answer}
        return told, text_of(chunk.get(self._answer) or "")

    def _like(self, chunk: Any, piece: str) -> Any:
        """Return a piece of a stream in the form of its first one."""
        if isinstance(chunk, Mapping):
            return {self._answer: self._like(chunk[self._answer], piece)}
        if isinstance(chunk, BaseMessage):
            return AIMessageChunk(content=piece, id=chunk.id)
        return piece


def text_of(value: Any) -> str:
    """Return the text of a message, or a text itself.

    Raises:
        TypeError: If it is something else; the message names the type, never the text.
    """
    if isinstance(value, BaseMessage):
        return str(value.text)
    if not isinstance(value, str):
        raise TypeError(f"answer: found {type(value).__name__}, expected a text or a message")
    return value


def asked_of(
    message: BaseMessage, question: str | None, contexts: Any, said: Sequence[str] = ()
) -> ModelMessage:
    """Return a message as the guard takes it: what the model wrote, not what its server counted."""
    dumped = message.model_dump(mode="json", include=set(_WRITTEN))
    return ModelMessage(dumped, MESSAGE, question, contexts, said or [question or ""])


def shown_message(message: Any, asked: ModelMessage, shown: ShownMessage) -> Any:
    """Return a message like the given one that says what may be shown."""
    if shown.value is asked.value:
        return message
    changes: dict[str, Any] = {
        name: [] for name in (*_CALLS, "tool_call_chunks") if hasattr(message, name)
    }
    if shown.instead is not None:
        changes |= {"content": shown.instead, "additional_kwargs": {}}
    else:
        changes |= shown.value
    metadata = {**plain_metadata(message.response_metadata), "finish_reason": "content_filter"}
    return message.model_copy(update={**changes, "response_metadata": metadata})

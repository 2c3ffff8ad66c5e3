"""LangChain: a runnable at the end of a chain, and a middleware of agents in `langchain_agents`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

from guardrail_client.integrations import needs
from guardrail_client.integrations.answers import AnswerGuard

try:
    from langchain_core.messages import AIMessageChunk, BaseMessage
    from langchain_core.runnables import Runnable, RunnableConfig
except ImportError as error:
    raise needs("langchain", error) from error

_QUESTIONS = ("question", "input", "query")
_CONTEXTS = ("context", "contexts", "documents", "source_documents")


class GuardrailRunnable(Runnable[Any, Any]):
    """The last step of a chain: shows what the guard allows of its answer.

    Takes a mapping with answer, question and documents, as retrieval chains give it, a text or a
    message. Of a stream, question and documents must come before the answer's first piece, as they
    do in a chain; a piece leaves when it was judged.

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
        return self._guard.shown(input, *self._about(input), self._place, self._replaced)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return what `invoke` does."""
        return await self._guard.ashown(input, *self._about(input), self._place, self._replaced)

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

    def _place(self, value: Any) -> str:
        """Return the answer in a value."""
        if isinstance(value, Mapping):
            if self._answer not in value:
                keys = ", ".join(map(repr, value))
                raise TypeError(f"answer: found {keys}, expected the key {self._answer!r}")
            value = value[self._answer]
        return text_of(value)

    def _replaced(self, value: Any, text: str) -> Any:
        if not isinstance(value, Mapping):
            return with_text(value, text)
        return {**value, self._answer: with_text(value[self._answer], text)}

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


def with_text(value: Any, text: str) -> Any:
    """Return a message like another one that says something else, or that text."""
    if not isinstance(value, BaseMessage):
        return text
    metadata = {**value.response_metadata, "finish_reason": "content_filter"}
    changes = {"content": text, "additional_kwargs": {}, "response_metadata": metadata}
    return value.model_copy(update=changes)

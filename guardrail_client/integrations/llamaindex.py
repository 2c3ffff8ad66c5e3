"""LlamaIndex: query engines and chat engines whose responses are guarded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from guardrail_client.integrations import needs
from guardrail_client.integrations.answers import AnswerGuard

try:
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
    from llama_index.core.chat_engine.types import BaseChatEngine
except ImportError as error:
    raise needs("llamaindex", error) from error


class GuardedQueryEngine(BaseQueryEngine):
    """A query engine that shows what the guard allows; its source nodes are the passages.

    Args:
        engine: Whose responses are guarded, streamed or not.
        url: Address of the service.
        **settings: As for `AnswerGuard`.
    """

    def __init__(self, engine: Any, url: str | None = None, **settings: Any) -> None:
        self._engine = _checked(engine, "query", "a query engine")
        super().__init__(callback_manager=engine.callback_manager)
        self._guard = AnswerGuard(url, **settings)

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {"engine": self._engine}

    def _query(self, query_bundle: Any) -> Any:
        response = self._engine.query(query_bundle)
        question, nodes = query_bundle.query_str, response.source_nodes
        if isinstance(response, StreamingResponse):
            pieces = self._guard.pieces(_texts(response.response_gen), question, nodes)
            return StreamingResponse(pieces, nodes, response.metadata)
        return self._guard.shown(response, question, nodes, "response")

    async def _aquery(self, query_bundle: Any) -> Any:
        response = await self._engine.aquery(query_bundle)
        question, nodes = query_bundle.query_str, response.source_nodes
        if isinstance(response, AsyncStreamingResponse):
            pieces = self._guard.apieces(response.async_response_gen(), question, nodes)
            return AsyncStreamingResponse(pieces, nodes, response.metadata)
        if isinstance(response, StreamingResponse):
            pieces_of = self._guard.pieces(_texts(response.response_gen), question, nodes)
            return StreamingResponse(pieces_of, nodes, response.metadata)
        return await self._guard.ashown(response, question, nodes, "response")


def _checked(engine: Any, method: str, expected: str) -> Any:
    if not callable(getattr(engine, method, None)):
        raise TypeError(f"engine: found {type(engine).__name__}, expected {expected}")
    return engine


def _texts(pieces: Any) -> Iterator[str]:
    return (str(piece) for piece in pieces or ())


class GuardedChatEngine(BaseChatEngine):
    """A chat engine that shows what the guard allows; its source nodes are the passages.

    Its history is the engine's own: it keeps what the model said.

    Args:
        engine: Whose responses are guarded, streamed or not.
        url: Address of the service.
        **settings: As for `AnswerGuard`.
    """

    def __init__(self, engine: Any, url: str | None = None, **settings: Any) -> None:
        self._engine = _checked(engine, "stream_chat", "a chat engine")
        self._guard = AnswerGuard(url, **settings)

    def reset(self) -> None:
        """Begin a new conversation."""
        self._engine.reset()

    @property
    def chat_history(self) -> Any:
        """The conversation so far."""
        return self._engine.chat_history

    def chat(self, message: str, chat_history: Any = None) -> Any:
        """Return a response as it may be shown."""
        response = self._engine.chat(message, chat_history)
        return self._guard.shown(response, message, response.source_nodes, "response")

    async def achat(self, message: str, chat_history: Any = None) -> Any:
        """Return what `chat` does."""
        response = await self._engine.achat(message, chat_history)
        return await self._guard.ashown(response, message, response.source_nodes, "response")

    def stream_chat(self, message: str, chat_history: Any = None) -> GuardedChatStream:
        """Return a response whose pieces are judged before they are shown."""
        stream = self._engine.stream_chat(message, chat_history)
        return GuardedChatStream(stream, self._guard, message)

    async def astream_chat(self, message: str, chat_history: Any = None) -> GuardedChatStream:
        """Return what `stream_chat` does."""
        stream = await self._engine.astream_chat(message, chat_history)
        return GuardedChatStream(stream, self._guard, message)


class GuardedChatStream:
    """A streamed response of a chat engine.

    Attributes:
        source_nodes: The passages.
        response: What has been shown so far.
    """

    def __init__(self, stream: Any, guard: AnswerGuard, question: str) -> None:
        self._stream, self._guard, self._question = stream, guard, question
        self.source_nodes = stream.source_nodes
        self.response = ""

    def __str__(self) -> str:
        return self.response

    @property
    def response_gen(self) -> Iterator[str]:
        """The pieces, as they may be shown."""
        for piece in self._guard.pieces(
            _texts(self._stream.response_gen), self._question, self.source_nodes
        ):
            self.response += piece
            yield piece

    async def async_response_gen(self) -> AsyncIterator[str]:
        """Yield the pieces, as they may be shown."""
        tokens = self._stream.async_response_gen()
        async for piece in self._guard.apieces(tokens, self._question, self.source_nodes):
            self.response += piece
            yield piece

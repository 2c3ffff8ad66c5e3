"""LangChain's agents: a middleware around every call of the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from guardrail_client.integrations import needs
from guardrail_client.integrations.answers import AnswerGuard
from guardrail_client.integrations.langchain import text_of, with_text

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
except ImportError as error:
    raise needs("langchain", error) from error

_UNSTREAMED = "nostream"
"""A tag of LangGraph: tokens of a model with it appear in no stream before its node has ended."""


class GuardrailAgentMiddleware(AgentMiddleware):
    """Shows what the guard allows of what an agent's model says.

    Passages are what tools returned since the last question. The arguments of tools are shown to
    nobody and not judged. A streamed message leaves whole, when it was judged.

    Args:
        url: Address of the service.
        **settings: As for `AnswerGuard`.
    """

    def __init__(self, url: str | None = None, **settings: Any) -> None:
        super().__init__()
        self._guard = AnswerGuard(url, **settings)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Return what the model said as it may be shown."""
        response = handler(_unstreamed(request))
        about = _about(request)
        for index, message in enumerate(response.result):
            if isinstance(message, AIMessage):
                response.result[index] = self._guard.shown(message, *about, text_of, with_text)
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Return what `wrap_model_call` does."""
        response = await handler(_unstreamed(request))
        about = _about(request)
        for index, message in enumerate(response.result):
            if isinstance(message, AIMessage):
                shown = await self._guard.ashown(message, *about, text_of, with_text)
                response.result[index] = shown
        return response


def _unstreamed(request: ModelRequest[Any]) -> ModelRequest[Any]:
    model = request.model
    tags = [*(model.tags or ()), _UNSTREAMED]
    return request.override(model=model.model_copy(update={"tags": tags}))


def _about(request: ModelRequest[Any]) -> tuple[str | None, list[Any]]:
    """Return the last question, and what tools returned after it."""
    passages: list[Any] = []
    for message in reversed(request.messages):
        if isinstance(message, HumanMessage):
            return text_of(message), passages
        if isinstance(message, ToolMessage):
            passages.insert(0, text_of(message))
    return None, passages

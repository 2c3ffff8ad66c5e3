"""LangChain's agents: a middleware around every call of the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from guardrail_client.integrations import needs
from guardrail_client.integrations.answers import AnswerGuard
from guardrail_client.integrations.langchain import asked_of, shown_message, text_of
from guardrail_client.integrations.model_messages import ModelMessage, ShownMessage

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
except ImportError as error:
    raise needs("langchain", error) from error

_UNSTREAMED = "nostream"
"""A tag of LangGraph: tokens of a model with it appear in no stream before its node has ended."""


class GuardrailAgentMiddleware(AgentMiddleware):
    """Shows what the guard allows of what an agent's model says, and of what it asks tools.

    Passages are what tools returned since the last question. Arguments for tools are judged by
    these and by what users said; `tool_calls="unchecked"` declares that nobody reads them,
    `"refuse"` lets none pass. Of a stopped message no tool is called. A streamed message leaves
    whole, when it was judged.

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
        asked = _asked(request, response)
        return _shown(response, asked, [self._guard.message(one) for one in asked.values()])

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Return what `wrap_model_call` does."""
        response = await handler(_unstreamed(request))
        asked = _asked(request, response)
        return _shown(response, asked, [await self._guard.amessage(one) for one in asked.values()])


def _unstreamed(request: ModelRequest[Any]) -> ModelRequest[Any]:
    model = request.model
    tags = [*(model.tags or ()), _UNSTREAMED]
    return request.override(model=model.model_copy(update={"tags": tags}))


def _asked(request: ModelRequest[Any], response: ModelResponse[Any]) -> dict[int, ModelMessage]:
    """Return the messages of the model by their places, with what they are judged by."""
    said = [text_of(m) for m in request.messages if isinstance(m, HumanMessage)]
    passages: list[Any] = []
    for message in request.messages:
        if isinstance(message, HumanMessage):
            passages = []
        if isinstance(message, ToolMessage):
            passages.append(text_of(message))
    return {
        place: asked_of(message, said[-1] if said else None, passages, said)
        for place, message in enumerate(response.result)
        if isinstance(message, AIMessage)
    }


def _shown(
    response: ModelResponse[Any], asked: Mapping[int, ModelMessage], found: Sequence[ShownMessage]
) -> ModelResponse[Any]:
    """Return a response that says what may be shown; a parsed one repeats what was changed."""
    result = list(response.result)
    for (place, one), shown in zip(asked.items(), found, strict=True):
        changed = shown_message(result[place], one, shown)
        if shown.instead is not None:
            return replace(response, result=[changed], structured_response=None)
        if changed is not result[place]:
            result = [
                m.model_copy(update={"content": shown.beside(m.content)})
                if isinstance(m, ToolMessage)
                else m
                for m in result
            ]
            result[place] = changed
            response = replace(response, structured_response=None)
    return replace(response, result=result)

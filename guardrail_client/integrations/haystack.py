"""Haystack: a component behind a chat generator."""

from __future__ import annotations

from typing import Any

from guardrail_client.integrations import needs
from guardrail_client.integrations.answers import AnswerGuard

try:
    from haystack import Document, component, default_to_dict
    from haystack.dataclasses import ChatMessage
except ImportError as error:
    raise needs("haystack", error) from error


@component
class GuardrailChecker:
    """Shows what the guard allows of a generator's replies; the documents are the passages.

    Args:
        url: Address of the service.
        **settings: As for `AnswerGuard`.
    """

    def __init__(self, url: str | None = None, **settings: Any) -> None:
        self._given = {"url": url, **settings}
        self._guard = AnswerGuard(url, **settings)

    def to_dict(self) -> dict[str, Any]:
        """Return what a pipeline's file keeps; no key: it comes from GUARDRAIL_API_KEY."""
        kept = {key: value for key, value in self._given.items() if key != "api_key"}
        found: dict[str, Any] = default_to_dict(self, **kept)
        return found

    @component.output_types(replies=list[ChatMessage])
    def run(
        self, replies: list[ChatMessage], query: str, documents: list[Document]
    ) -> dict[str, Any]:
        """Return the replies as they may be shown."""
        shown = [self._guard.shown(r, query, documents, _text, _replaced) for r in replies]
        return {"replies": shown}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self, replies: list[ChatMessage], query: str, documents: list[Document]
    ) -> dict[str, Any]:
        """Return what `run` does."""
        shown = [await self._guard.ashown(r, query, documents, _text, _replaced) for r in replies]
        return {"replies": shown}


def _text(reply: Any) -> str:
    return "\n".join(reply.texts)


def _replaced(reply: Any, text: str) -> Any:
    return ChatMessage.from_assistant(text, meta={**reply.meta, "finish_reason": "content_filter"})

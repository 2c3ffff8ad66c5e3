"""Answers that a framework holds in hand, whole or in pieces, and what may be shown of them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.client import GuardrailClient
from guardrail_client.middleware.decorator import guarded
from guardrail_client.middleware.returned import Place, Replace
from guardrail_client.middleware.route_options import Route


class AnswerGuard:
    """Checks answers before somebody sees them, by the rules of the middleware.

    Calls and coroutines ask by clients of their own, which are made when they are first needed.

    Args:
        url: Address of the service; None takes GUARDRAIL_URL, or the service's default.
        client: Asks for calls; takes the place of `url`.
        async_client: Asks for coroutines.
        api_key: The service's key; None takes GUARDRAIL_API_KEY.
        **settings: Those of `Route` that do not say where something is: `policy`, `detectors`,
            `mode`, `stop_on`, `on_error`, `fallback`, `mark`, `timeout`, `on_outcome` and others.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        client: GuardrailClient | None = None,
        async_client: AsyncGuardrailClient | None = None,
        api_key: str | None = None,
        **settings: Any,
    ) -> None:
        self._url, self._api_key = url, api_key
        self._given, self._given_async = client, async_client
        self._settings = settings
        Route("an answer", **settings)  # refuses what it does not know

    def __call__(self) -> AnswerGuard:
        """Return itself, so that it is a dependency of FastAPI: `Depends(AnswerGuard())`."""
        return self

    @cached_property
    def _client(self) -> GuardrailClient:
        return self._given or GuardrailClient(self._url, api_key=self._api_key)

    @cached_property
    def _async_client(self) -> AsyncGuardrailClient:
        return self._given_async or AsyncGuardrailClient(self._url, api_key=self._api_key)

    def shown(
        self,
        value: Any,
        question: str | None = None,
        contexts: Any = None,
        answer: Place | None = None,
        replace: Replace | None = None,
    ) -> Any:
        """Return what may be shown of an answer, or of a value with the answer in it.

        Args:
            value: The answer, or what holds it.
            question: As it was asked.
            contexts: Passages as the framework has them.
            answer: Key, attribute or function that finds the answer in `value`; None: it is one.
            replace: Returns a value like the given one with another answer.
        """

        def told(value: Any, question: str | None, contexts: Any) -> Any:
            return value

        check = self._guarded(self._client, told, answer, replace)
        return check(value, question, contexts)

    async def ashown(
        self,
        value: Any,
        question: str | None = None,
        contexts: Any = None,
        answer: Place | None = None,
        replace: Replace | None = None,
    ) -> Any:
        """Return what `shown` does, without blocking the event loop."""

        async def told(value: Any, question: str | None, contexts: Any) -> Any:
            return value

        check = self._guarded(self._async_client, told, answer, replace)
        return await check(value, question, contexts)

    def pieces(
        self, tokens: Iterable[str], question: str | None = None, contexts: Any = None
    ) -> Iterator[str]:
        """Yield what may be shown of an answer that is still being written."""

        def written(tokens: Iterable[str], question: str | None, contexts: Any) -> Iterator[str]:
            yield from tokens

        found: Iterator[str] = self._guarded(self._client, written)(tokens, question, contexts)
        return found

    def apieces(
        self, tokens: AsyncIterable[str], question: str | None = None, contexts: Any = None
    ) -> AsyncIterator[str]:
        """Yield what `pieces` does, without blocking the event loop."""

        async def written(
            tokens: AsyncIterable[str], question: str | None, contexts: Any
        ) -> AsyncIterator[str]:
            async for token in tokens:
                yield token

        check = self._guarded(self._async_client, written)
        found: AsyncIterator[str] = check(tokens, question, contexts)
        return found

    def _guarded(
        self,
        client: GuardrailClient | AsyncGuardrailClient,
        function: Callable[..., Any],
        answer: Place | None = None,
        replace: Replace | None = None,
    ) -> Callable[..., Any]:
        return guarded(client, answer=answer, replace=replace, **self._settings)(function)

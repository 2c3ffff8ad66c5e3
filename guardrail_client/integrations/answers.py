"""Answers that a framework holds in hand, whole or in pieces, and what may be shown of them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from guardrail_client._options import make_options
from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.circuit import with_circuit
from guardrail_client.client import GuardrailClient
from guardrail_client.integrations.model_messages import UNJUDGED, ModelMessage, ShownMessage
from guardrail_client.middleware.decorator import guarded
from guardrail_client.middleware.outcome import AnswerOutcome
from guardrail_client.middleware.returned import Place, Replace
from guardrail_client.middleware.route_options import Route

Told = Callable[[AnswerOutcome], None]
SETTINGS = frozenset(
    {"policy", "detectors", "mode", "stop_on", "on_error", "fallback", "mark", "timeout",
     "sentence_deadline_ms", "tool_calls", "on_outcome", "metrics"}
)  # fmt: skip
"""Those of `Route` that mean something for an answer in hand."""


class AnswerGuard:
    """Checks answers before somebody sees them, by the rules of the middleware.

    Calls and coroutines ask by clients of their own, which are made when they are first needed.

    Args:
        url: Address of the service; None takes GUARDRAIL_URL, or the service's default.
        client: Asks for calls; takes the place of `url`.
        async_client: Asks for coroutines.
        api_key: The service's key; None takes GUARDRAIL_API_KEY.
        **settings: Those of `Route` that do not say where something is; see `SETTINGS`.

    Raises:
        TypeError: If there is no such setting.
        ValueError: If one cannot work.
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
        if unknown := sorted(settings.keys() - SETTINGS):
            expected = f"expected url, client, async_client, api_key, {', '.join(sorted(SETTINGS))}"
            raise TypeError(f"settings: found {', '.join(unknown)}; {expected}")
        Route("an answer", **settings)  # refuses what cannot work
        if client is None and async_client is None:
            make_options(url, api_key)

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

    def message(self, message: ModelMessage) -> ShownMessage:
        """Return what may be shown of a model's message: every text in it is judged."""
        call = message.judged_by(self._settings)
        client = with_circuit(self._client)
        try:
            with call.route.timed():
                said = client.check_many(call.items(), timeout=call.route.timeout)
        except UNJUDGED as error:
            return call.unjudged(error)
        return call.shown(said)

    async def amessage(self, message: ModelMessage) -> ShownMessage:
        """Return what `message` does, without blocking the event loop."""
        call = message.judged_by(self._settings)
        client = with_circuit(self._async_client)
        try:
            with call.route.timed():
                said = await client.check_many(call.items(), timeout=call.route.timeout)
        except UNJUDGED as error:
            return call.unjudged(error)
        return call.shown(said)

    def pieces(
        self,
        tokens: Iterable[str],
        question: str | None = None,
        contexts: Any = None,
        told: Told | None = None,
    ) -> Iterator[str]:
        """Yield what may be shown of an answer that is still being written.

        Args:
            tokens: Its pieces.
            question: As it was asked.
            contexts: Passages as the framework has them.
            told: Called with what happened to it, before the last piece.
        """

        def written(tokens: Iterable[str], question: str | None, contexts: Any) -> Iterator[str]:
            yield from tokens

        check = self._guarded(self._client, written, told=told)
        found: Iterator[str] = check(tokens, question, contexts)
        return found

    def apieces(
        self,
        tokens: AsyncIterable[str],
        question: str | None = None,
        contexts: Any = None,
        told: Told | None = None,
    ) -> AsyncIterator[str]:
        """Yield what `pieces` does, without blocking the event loop."""

        async def written(
            tokens: AsyncIterable[str], question: str | None, contexts: Any
        ) -> AsyncIterator[str]:
            async for token in tokens:
                yield token

        check = self._guarded(self._async_client, written, told=told)
        found: AsyncIterator[str] = check(tokens, question, contexts)
        return found

    def _guarded(
        self,
        client: GuardrailClient | AsyncGuardrailClient,
        function: Callable[..., Any],
        answer: Place | None = None,
        replace: Replace | None = None,
        told: Told | None = None,
    ) -> Callable[..., Any]:
        settings = dict(self._settings)
        if told is not None:
            settings["on_outcome"] = _both(told, settings.get("on_outcome"))
        return guarded(client, answer=answer, replace=replace, **settings)(function)


def _both(one: Told, other: Told | None) -> Told:
    def tell(outcome: AnswerOutcome) -> None:
        one(outcome)
        if other is not None:
            other(outcome)

    return tell

"""A decorator for plain functions that return an answer, or write one piece by piece."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, TypeVar

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.circuit import with_circuit
from guardrail_client.client import GuardrailClient
from guardrail_client.errors import GuardrailError
from guardrail_client.middleware.exchange import Exchange
from guardrail_client.middleware.outcome import AnswerOutcome, decided, streamed, unchecked
from guardrail_client.middleware.routes import Route
from guardrail_client.passages import wire_passages

F = TypeVar("F", bound=Callable[..., Any])


def guarded(
    client: GuardrailClient | AsyncGuardrailClient,
    *,
    question: str | None = "question",
    contexts: str | None = "contexts",
    **settings: Any,
) -> Callable[[F], F]:
    """Return a decorator that checks what a function returns before its caller sees it.

    The function returns a str, or is a generator of str. A coroutine function or an asynchronous
    generator needs an `AsyncGuardrailClient`, the others a `GuardrailClient`.

    Args:
        client: Asks the guard.
        question: Name of the argument that holds the question; None: there is none.
        contexts: Name of the argument that holds the passages; None: there are none.
        **settings: Those of `Route` that do not say where something is: `policy`, `detectors`,
            `mode`, `stop_on`, `on_error`, `fallback`, `timeout`, `sentence_deadline_ms`,
            `on_outcome`.

    Raises:
        TypeError: If client and function do not fit, or the function lacks an argument.
    """

    def decorate(function: F) -> F:
        own = {
            "question": lambda exchange: exchange.own.get("question"),
            "contexts": None,
            **settings,
        }
        route = Route(path=function.__qualname__, **own)
        arguments = _Arguments(function, question, contexts)
        wrapped: F = _wrapped(function, client, route, arguments)
        return wrapped

    return decorate


class _Arguments:
    """Finds question and passages among a function's arguments."""

    def __init__(
        self, function: Callable[..., Any], question: str | None, contexts: str | None
    ) -> None:
        self._signature = inspect.signature(function)
        for name in (question, contexts):
            if name is not None and name not in self._signature.parameters:
                raise TypeError(f"{function.__qualname__} has no argument {name!r}")
        self._question = question
        self._contexts = contexts

    def exchange(self, path: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exchange:
        """Return what the answer is about."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        found = bound.arguments
        contexts = found.get(self._contexts) if self._contexts else None
        question = found.get(self._question) if self._question else None
        return Exchange(path, own={"question": question, "contexts": wire_passages(contexts)})


def _wrapped(function: Any, asked: Any, route: Route, arguments: _Arguments) -> Any:
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    expected = AsyncGuardrailClient if is_async else GuardrailClient
    client: Any = asked
    if not isinstance(asked, expected):
        found = type(asked).__name__
        raise TypeError(f"{function.__qualname__}: found {found}, expected {expected.__name__}")
    with_circuit(client)

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        exchange = arguments.exchange(route.path, args, kwargs)
        answer = function(*args, **kwargs)
        if not answer.strip():
            return answer
        try:
            result = client.check(answer, **_asking(route, exchange))
        except GuardrailError as error:
            return _unjudged(route, answer, error)
        return _judged(route, answer, result)

    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        exchange = arguments.exchange(route.path, args, kwargs)
        answer = await function(*args, **kwargs)
        if not answer.strip():
            return answer
        try:
            result = await client.check(answer, **_asking(route, exchange))
        except GuardrailError as error:
            return _unjudged(route, answer, error)
        return _judged(route, answer, result)

    @functools.wraps(function)
    def written(*args: Any, **kwargs: Any) -> Iterator[str]:
        exchange = arguments.exchange(route.path, args, kwargs)
        with client.check_stream(
            function(*args, **kwargs), **_streaming(route, exchange)
        ) as stream:
            try:
                yield from stream
            except GuardrailError as error:
                yield _stopped(route, error)
            else:
                outcome = streamed(route.path, stream)
                route.report(outcome)
                if outcome.shown == "replaced":
                    yield route.fallback_for(outcome)

    @functools.wraps(function)
    async def awaited_pieces(*args: Any, **kwargs: Any) -> AsyncIterator[str]:
        exchange = arguments.exchange(route.path, args, kwargs)
        stream = client.check_stream(function(*args, **kwargs), **_streaming(route, exchange))
        async with stream:
            try:
                async for text in stream:
                    yield text
            except GuardrailError as error:
                yield _stopped(route, error)
            else:
                outcome = streamed(route.path, stream)
                route.report(outcome)
                if outcome.shown == "replaced":
                    yield route.fallback_for(outcome)

    if inspect.isasyncgenfunction(function):
        return awaited_pieces
    if is_async:
        return awaited
    return written if inspect.isgeneratorfunction(function) else plain


def _asking(route: Route, exchange: Exchange) -> dict[str, Any]:
    include = ("spans", "redacted_answer")
    return {**route.about(exchange), "include": include, "timeout": route.timeout}


def _streaming(route: Route, exchange: Exchange) -> dict[str, Any]:
    return {
        **route.about(exchange),
        "mode": route.mode,
        "stop_on": route.stop_on,
        "on_error": route.on_error,
        "timeout": route.timeout,
        "sentence_deadline_ms": route.sentence_deadline_ms,
    }


def _judged(route: Route, answer: str, result: Any) -> str:
    outcome, text = decided(route, route.path, answer, result)
    route.report(outcome)
    return text


def _unjudged(route: Route, answer: str, error: GuardrailError) -> str:
    outcome = unchecked(route, route.path, error)
    route.report(outcome)
    return answer if outcome.shown == "as_is" else route.fallback_for(outcome)


def _stopped(route: Route, error: GuardrailError) -> str:
    outcome = AnswerOutcome(route.path, "replaced", None, error.code)
    route.report(outcome)
    return route.fallback_for(outcome)

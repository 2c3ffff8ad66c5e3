"""A decorator for functions that return an answer, alone or in a value, or write one in pieces."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, TypeVar

from guardrail_client.async_client import AsyncGuardrailClient
from guardrail_client.circuit import with_circuit
from guardrail_client.client import GuardrailClient
from guardrail_client.errors import GuardrailError
from guardrail_client.middleware.exchange import Exchange
from guardrail_client.middleware.outcome import (
    AnswerOutcome,
    decided,
    redacted_values,
    unchecked,
)
from guardrail_client.middleware.replies import LOG, ended
from guardrail_client.middleware.returned import Place, Replace, find, with_answer
from guardrail_client.middleware.route_options import Route
from guardrail_client.middleware.withheld import Withheld
from guardrail_client.passages import wire_passages
from guardrail_client.types import CheckResult

F = TypeVar("F", bound=Callable[..., Any])


def guarded(
    client: GuardrailClient | AsyncGuardrailClient,
    *,
    question: str | None = "question",
    contexts: Place | None = "contexts",
    language: str = "language",
    answer: Place | None = None,
    replace: Replace | None = None,
    **settings: Any,
) -> Callable[[F], F]:
    """Return a decorator that checks what a function returns before its caller sees it.

    The function returns a str, or a value with the answer in it, or is a generator of str. A
    coroutine function or an asynchronous generator needs an `AsyncGuardrailClient`, the others a
    `GuardrailClient`. None, and an answer that is None or blank, are returned as they are.

    Args:
        client: Asks the guard.
        question: Name of the argument that holds the question; None: there is none.
        contexts: Name of the argument that holds the passages. With `answer`, and where no argument
            has that name: the key or attribute of what the function returns, or a function of it.
            None: there are none.
        language: Name of the argument that holds the caller's language, if there is one: which of
            the texts of `fallback` is returned.
        answer: Key or attribute of the answer in what the function returns, or a function of it
            that needs `replace`. None: the function returns the answer itself.
        replace: Returns a value like the given one with another answer.
        **settings: Those of `Route` that do not say where something is: `policy`, `detectors`,
            `mode`, `stop_on`, `on_error`, `fallback`, `mark`, `timeout`, `sentence_deadline_ms`,
            `on_outcome`, `metrics`.

    Raises:
        TypeError: If client and function do not fit, or the function lacks an argument; from a
            call, if what it returned has no answer or passages where they should be.
    """
    if callable(answer) and replace is None:
        raise TypeError("answer: found a function without replace=, expected both")

    def decorate(function: F) -> F:
        own = {
            "question": lambda exchange: exchange.own.get("question"),
            "contexts": None,
            **settings,
        }
        route = Route(path=function.__qualname__, **own)
        arguments = _Arguments(function, question, contexts, language, in_value=answer is not None)
        calls = _Calls(route, arguments, answer, replace)
        wrapped: F = _wrapped(function, client, calls)
        return wrapped

    return decorate


class _Arguments:
    """Finds question and passages among a function's arguments, or says that they are returned."""

    def __init__(
        self,
        function: Callable[..., Any],
        question: str | None,
        contexts: Place | None,
        language: str,
        *,
        in_value: bool,
    ) -> None:
        self._signature = inspect.signature(function)
        names = self._signature.parameters
        self.returned: Place | None = None
        if in_value and contexts is not None and (callable(contexts) or contexts not in names):
            self.returned, contexts = contexts, None
        for name in (question, contexts):
            if name is not None and name not in names:
                raise TypeError(f"{function.__qualname__} has no argument {name!r}")
        self._question = question
        self._contexts = contexts
        self._language = language

    def exchange(self, path: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exchange:
        """Return what the answer is about."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        found = bound.arguments
        contexts = found.get(str(self._contexts)) if self._contexts else None
        question = found.get(self._question) if self._question else None
        own = {"question": question, "contexts": wire_passages(contexts)}
        return Exchange(path, own={**own, "language": found.get(self._language)})


class _Calls:
    """The common part of every call of a guarded function, whichever its kind."""

    exchange: Exchange

    def __init__(
        self, route: Route, arguments: _Arguments, answer: Place | None, replace: Replace | None
    ) -> None:
        self.route = route
        self._arguments = arguments
        self._answer = answer
        self._replace = replace

    def begun(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Calls:
        """Return one call, which knows what its answer will be about and the caller's language."""
        call = copy.copy(self)
        call.exchange = self._arguments.exchange(self.route.path, args, kwargs)
        call.route = self.route.for_reader(call.exchange)
        return call

    def text(self, value: Any) -> str:
        """Return the answer in what the function returned; empty if there is none."""
        if value is None:
            return ""
        found = value if self._answer is None else find(value, self._answer, "answer")
        if found is None:
            return ""
        if not isinstance(found, str):
            what = type(found).__name__
            raise TypeError(f"{self.route.path}: found {what}, expected str; answer= says where")
        return found

    def asking(self, value: Any) -> dict[str, Any]:
        """Return what to tell the guard about the answer in a value."""
        if self._arguments.returned is not None:
            passages = find(value, self._arguments.returned, "contexts")
            self.exchange.own["contexts"] = wire_passages(passages)
        include = ("spans", "redacted_answer")
        about = self.route.about(self.exchange)
        return {**about, "include": include, "timeout": self.route.timeout}

    def streaming(self) -> dict[str, Any]:
        """Return what to tell the guard about pieces."""
        route = self.route
        return {
            **route.about(self.exchange),
            "mode": route.mode,
            "stop_on": route.stop_on,
            "on_error": route.on_error,
            "timeout": route.timeout,
            "sentence_deadline_ms": route.sentence_deadline_ms,
        }

    def judged(self, value: Any, result: CheckResult) -> Any:
        """Return what the caller gets for a verdict."""
        text = self.text(value)
        outcome, shown = decided(self.route, self.route.path, text, result)
        self.route.report(outcome)
        values = redacted_values(text, result) if outcome.shown == "redacted" else []
        stopped = [text] if outcome.shown == "replaced" else []
        return self._put(value, text, shown, Withheld(stopped, values))

    def unjudged(self, value: Any, error: GuardrailError) -> Any:
        """Return what the caller gets without a verdict."""
        outcome = unchecked(self.route, self.route.path, error)
        LOG.warning("answer not checked, %s: %s", outcome.shown, outcome.error)
        self.route.report(outcome)
        text = self.text(value)
        if outcome.shown == "as_is":
            return value
        return self._put(value, text, self.route.fallback_for(outcome), Withheld([text]))

    def _put(self, value: Any, text: str, shown: str, withheld: Withheld) -> Any:
        if self._answer is None:
            return shown
        if shown == text:
            return value
        if self._replace is not None:
            return self._replace(value, shown)
        return with_answer(value, self._answer, shown, withheld)

    def ended(self, stream: Any) -> str:
        """Return what follows the last piece of a stream that came to its end."""
        outcome = ended(self.route.path, stream)
        self.route.report(outcome)
        return self.route.fallback_for(outcome) if outcome.shown == "replaced" else ""

    def broken(self, error: GuardrailError) -> str:
        """Return what follows the last piece of a stream that cannot be judged to its end."""
        outcome = AnswerOutcome(self.route.path, "replaced", None, error.code)
        LOG.warning("stream not checked to its end, replaced: %s", error.code)
        self.route.report(outcome)
        return self.route.fallback_for(outcome)


def _wrapped(function: Any, asked: Any, calls: _Calls) -> Any:
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    expected = AsyncGuardrailClient if is_async else GuardrailClient
    client: Any = asked
    if not isinstance(asked, expected):
        found = type(asked).__name__
        raise TypeError(f"{function.__qualname__}: found {found}, expected {expected.__name__}")
    with_circuit(client)

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        call = calls.begun(args, kwargs)
        value = function(*args, **kwargs)
        answer = call.text(value)
        if not answer.strip():
            return value
        asking = call.asking(value)
        try:
            with call.route.timed():
                result = client.check(answer, **asking)
        except GuardrailError as error:
            return call.unjudged(value, error)
        return call.judged(value, result)

    @functools.wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        call = calls.begun(args, kwargs)
        value = await function(*args, **kwargs)
        answer = call.text(value)
        if not answer.strip():
            return value
        asking = call.asking(value)
        try:
            with call.route.timed():
                result = await client.check(answer, **asking)
        except GuardrailError as error:
            return call.unjudged(value, error)
        return call.judged(value, result)

    @functools.wraps(function)
    def written(*args: Any, **kwargs: Any) -> Iterator[str]:
        call = calls.begun(args, kwargs)
        pieces = function(*args, **kwargs)
        times = call.route.begun()
        with client.check_stream(pieces, **call.streaming()) as stream:
            try:
                for text in stream:
                    times.shown()
                    yield text
                last = call.ended(stream)
            except GuardrailError as error:
                last = call.broken(error)
            finally:
                times.ended(stream.waited)
            if last:
                yield last

    @functools.wraps(function)
    async def awaited_pieces(*args: Any, **kwargs: Any) -> AsyncIterator[str]:
        call = calls.begun(args, kwargs)
        pieces = function(*args, **kwargs)
        stream = client.check_stream(pieces, **call.streaming())
        times = call.route.begun()
        async with stream:
            try:
                async for text in stream:
                    times.shown()
                    yield text
                last = call.ended(stream)
            except GuardrailError as error:
                last = call.broken(error)
            finally:
                times.ended(stream.waited)
            if last:
                yield last

    if inspect.isasyncgenfunction(function):
        return awaited_pieces
    if is_async:
        return awaited
    return written if inspect.isgeneratorfunction(function) else plain

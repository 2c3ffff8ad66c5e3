"""One request and its response, and what finds things in them: pointer, JMESPath, callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs


@dataclass(slots=True)
class Exchange:
    """The facts known about one request when its answer is to be checked.

    Attributes:
        path: Of the request.
        query: Its query parameters, the first value of each.
        request: Its JSON; None if it has none.
        response: The response's JSON; None in a stream.
        own: What the application put into `scope["guardrail"]`, or `environ["guardrail"]`.
    """

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    request: Any = None
    response: Any = None
    own: MutableMapping[str, Any] = field(default_factory=dict)


Finder = str | Callable[[Exchange], Any]
"""Where something is: `/json/pointer`, a JMESPath, `query:name`, or a function of the exchange.

A `request:` or `response:` in front says in which document to look.
"""


def queried(query_string: str) -> dict[str, str]:
    """Return the first value of each query parameter."""
    return {key: values[0] for key, values in parse_qs(query_string).items()}


def compiled(finder: Finder, document: str) -> Callable[[Exchange], Any]:
    """Return a finder as a function; what is not there is None.

    Args:
        finder: As the application wrote it.
        document: `request` or `response`, for a finder that names none.

    Raises:
        ValueError: If a JMESPath cannot be read.
        ModuleNotFoundError: If it needs jmespath and that is not installed.
    """
    if callable(finder):
        return finder
    kind, colon, rest = finder.partition(":")
    if colon and kind == "query":
        return lambda exchange: exchange.query.get(rest)
    if colon and kind in ("request", "response"):
        document, finder = kind, rest
    look = _pointer(finder) if finder == "" or finder.startswith("/") else _jmespath(finder)
    return lambda exchange: look(getattr(exchange, document))


def _pointer(pointer: str) -> Callable[[Any], Any]:
    """Return a function that follows an RFC 6901 pointer."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]

    def look(value: Any) -> Any:
        for part in parts:
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
                value = value[int(part)]
            else:
                return None
        return value

    return look


def _jmespath(expression: str) -> Callable[[Any], Any]:
    try:
        import jmespath  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a finder that is no JSON pointer needs jmespath: "
            "pip install 'rag-guardrail-client[jmespath]'"
        ) from error
    search: Callable[[Any], Any] = jmespath.compile(expression).search
    return search

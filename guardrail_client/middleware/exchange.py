"""One request and its response, and what finds things in them: pointer, JMESPath, callable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

MAX_LANGUAGES = 8
"""That a reader asks for and that are looked at."""
MAX_TAG = 35
"""Letters of a language's tag, as RFC 5646 says that there may be."""


@dataclass(slots=True)
class Exchange:
    """The facts known about one request when its answer is to be checked.

    Attributes:
        path: Of the request.
        query: Its query parameters, the first value of each.
        request: Its JSON; None if it has none.
        response: The response's JSON; None in a stream.
        own: What the application put into `scope["guardrail"]`, or `environ["guardrail"]`.
        accepted: The request's `Accept-Language`.
    """

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    request: Any = None
    response: Any = None
    own: MutableMapping[str, Any] = field(default_factory=dict)
    accepted: str = ""

    @property
    def languages(self) -> list[str]:
        """Return tags of the reader's languages in lower case, the best first, `de` behind `de-at`.

        The application's word under `language` comes before the request's header.
        """
        said = self.own.get("language")
        tags = [said] if isinstance(said, str) else _by_quality(self.accepted)
        found: list[str] = []
        for tag in (tag.strip().lower().replace("_", "-") for tag in tags[:MAX_LANGUAGES]):
            if _is_tag(tag):
                found += [tag, tag.partition("-")[0]]
        return list(dict.fromkeys(found))


def _is_tag(tag: str) -> bool:
    language, *rest = tag.split("-")
    plain = tag.isascii() and len(tag) <= MAX_TAG and language.isalpha() and len(language) > 1
    return plain and all(part.isalnum() for part in rest)


def _by_quality(header: str) -> list[str]:
    """Return the tags of a header, those that are wanted most first."""
    found = []
    for part in header.split(",")[:MAX_LANGUAGES]:
        tag, _, rest = part.partition(";")
        try:
            quality = float(rest.strip().removeprefix("q=") or 1)
        except ValueError:
            quality = 0.0
        if quality > 0:
            found.append((quality, tag))
    return [tag for _, tag in sorted(found, key=lambda pair: -pair[0])]


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

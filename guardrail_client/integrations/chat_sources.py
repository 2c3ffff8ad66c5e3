"""Passages among what a model is asked with; the same rule as the service's dialects have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guardrail_client.passages import wire_passages

CONTEXTS_HEADER = "x-guardrail-contexts"
"""A JSON list of passages; goes no further than here."""
OWN_FIELD = "guardrail"
"""Of a request's body, with `contexts`; goes no further than here."""
ROLES = ("system", "developer", "tool", "function")
SPEAKERS = (*ROLES, "user", "assistant")
TAGS = ("context", "contexts", "document", "documents", "passage", "passages", "source", "sources")
_LONGEST_TAG = 500
Place = tuple[int, int]


class WrongPassages(ValueError):
    """Passages that a request names and that are none. The message holds no text of it."""


@dataclass(frozen=True)
class ChatRule:
    """The places of passages among messages.

    A message of one of `roles` holds its passages between tags; one without tags is a passage as a
    whole, unless a user wrote it.

    Raises:
        ValueError: If there is no such role, or a text stands where a list of them should.
    """

    roles: Sequence[str] = ROLES
    tags: Sequence[str] = TAGS

    def __post_init__(self) -> None:
        """Refuse what would find no passage."""
        for name in ("roles", "tags"):
            if isinstance(found := getattr(self, name), str):
                raise ValueError(f"{name}: found {found!r}, expected a list of texts")
        if unknown := [role for role in self.roles if role not in SPEAKERS]:
            raise ValueError(f"roles: found {unknown[0]!r}, expected some of {', '.join(SPEAKERS)}")


@dataclass(frozen=True)
class ChatSources:
    """A request as it goes on, and the passages that it brought.

    Attributes:
        body: Without what is the guard's alone.
        contexts: As the service takes them.
    """

    body: bytes
    contexts: list[Any]


def chat_sources(body: bytes, header: str | None, rule: ChatRule) -> ChatSources:
    """Return what a request brought: in its own field, else in the header, else in its messages.

    Raises:
        WrongPassages: If the field or the header holds something else than passages.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return ChatSources(body, [])
    own = document.pop(OWN_FIELD, None)
    if own is not None:
        body = json.dumps(document).encode()
        return ChatSources(body, _named(own, OWN_FIELD))
    if header is not None:
        try:
            listed = json.loads(header)
        except (ValueError, RecursionError):
            raise WrongPassages(f"{CONTEXTS_HEADER}: expected a JSON list") from None
        return ChatSources(body, _named({"contexts": listed}, CONTEXTS_HEADER))
    return ChatSources(body, list(message_passages(_messages(document), rule)))


def _named(own: Any, where: str) -> list[Any]:
    if not isinstance(own, dict) or set(own) != {"contexts"}:
        raise WrongPassages(f'{where}: expected {{"contexts": [...]}}')
    try:
        return list(wire_passages(own["contexts"], f"{where}.contexts"))
    except TypeError as error:
        raise WrongPassages(str(error)) from None


def _messages(document: Mapping[str, Any]) -> list[Any]:
    """Return the messages of a chat, a response or a completion."""
    if isinstance(document.get("messages"), list):
        return list(document["messages"])
    found = [{"role": "system", "content": document.get("instructions")}]
    given = document.get("input", document.get("prompt"))
    for item in given if isinstance(given, list) else [{"role": "user", "content": given}]:
        if isinstance(item, Mapping) and item.get("type") == "function_call_output":
            found.append({"role": "tool", "content": item.get("output")})
        elif isinstance(item, Mapping):
            found.append(dict(item))
    return found


def message_passages(messages: Sequence[Any], rule: ChatRule) -> Iterator[str]:
    """Yield the passages of messages, in their order."""
    for message in messages:
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in rule.roles:
            continue
        text = _words(message.get("content"))
        found = list(_tagged(text, rule.tags))
        yield from (text[start:end] for start, end in found)
        if not found and role != "user" and text.strip():
            yield text


def _words(content: Any) -> str:
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(part for part in parts if isinstance(part, str))


def _tagged(text: str, tags: Sequence[str]) -> Iterator[Place]:
    """Yield the places between the innermost tags; an element that does not end is none."""
    for start, end in _elements(text, 0, len(text), tags):
        for begin, stop in list(_elements(text, start, end, tags)) or [(start, end)]:
            if text[begin:stop].strip():
                yield begin, stop


def _elements(text: str, at: int, end: int, tags: Sequence[str]) -> Iterator[Place]:
    closes: dict[str, int] = {}
    while (opened := text.find("<", at, end)) >= 0:
        at = opened + 1
        name = next((tag for tag in tags if _opens(text, at, tag)), None)
        if name is None or (begin := text.find(">", at, min(end, at + _LONGEST_TAG))) < 0:
            continue
        mark = f"</{name}>"
        if closes.get(name, 0) <= begin:
            closes[name] = text.find(mark, begin, end) % (end + 1)  # none: where nothing is
        stop = closes[name]
        if stop == end:
            continue
        yield begin + 1, stop
        at = stop + len(mark)


def _opens(text: str, at: int, tag: str) -> bool:
    return text.startswith(tag, at) and text[at + len(tag) : at + len(tag) + 1] in {">", " ", "\n"}

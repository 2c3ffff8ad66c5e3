"""Finds the question and the passages among the messages that a model was asked with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

Speaker = Literal["system", "developer", "tool", "function", "user", "assistant"]
_LONGEST_TAG = 500
"""Characters of a tag with its attributes: searching further for its end would take long."""
_TAGS = ("context", "contexts", "document", "documents", "passage", "passages", "source", "sources")


class PassageRule(BaseModel):
    """The places of passages among messages.

    A message of one of `roles` holds its passages between tags; one without tags is a passage as a
    whole, unless a user wrote it: nobody is evidence for their own claims.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    roles: list[Speaker] = Field(["system", "developer", "tool", "function"], max_length=6)
    tags: list[str] = Field(list(_TAGS), max_length=20)


class AnswerSources(NamedTuple):
    """The question and the passages that an answer is judged by."""

    question: str | None
    contexts: tuple[str, ...]

    @property
    def size(self) -> int:
        """The code points of all."""
        return len(self.question or "") + sum(map(len, self.contexts))


def sources(messages: Sequence[Mapping[str, Any]], rule: PassageRule) -> AnswerSources:
    """Return the last user message without its passages, and the passages of all messages.

    Pictures are left out: they are no evidence that is read here, so a verdict can only be harder.
    """
    question, contexts = None, []
    for message in messages:
        role = message.get("role")
        if role != "user" and role not in rule.roles:
            continue
        text = _words(message.get("content"))
        found = list(tagged(text, rule.tags)) if role in rule.roles else []
        contexts += [text[start:end] for start, end, _ in found]
        if role == "user":
            question = _without(text, [outer for _, _, outer in found]).strip() or question
        elif not found and text.strip():
            contexts.append(text)
    return AnswerSources(question, tuple(contexts))


def _words(content: Any) -> str:
    """Return the texts of a message's content."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(part for part in parts if isinstance(part, str))


Place = tuple[int, int]


def tagged(text: str, tags: Sequence[str]) -> Iterator[tuple[int, int, Place]]:
    """Yield the texts between the innermost tags, and the place of the outermost element of each.

    Each text is read once from its beginning; an element that does not end is no element.
    """
    for start, end, outer in _elements(text, 0, len(text), tags):
        inner = [place[:2] for place in _elements(text, start, end, tags)]
        for begin, stop in inner or [(start, end)]:
            if text[begin:stop].strip():
                yield begin, stop, outer


def _elements(
    text: str, at: int, end: int, tags: Sequence[str]
) -> Iterator[tuple[int, int, Place]]:
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
        yield begin + 1, stop, (opened, stop + len(mark))
        at = stop + len(mark)


def _opens(text: str, at: int, tag: str) -> bool:
    return text.startswith(tag, at) and text[at + len(tag) : at + len(tag) + 1] in {">", " ", "\n"}


def _without(text: str, places: Sequence[Place]) -> str:
    kept, at = [], 0
    for start, end in dict.fromkeys(places):
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]])

"""Retrieved passages as applications hold them, and as the service takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class PageContent(Protocol):
    """A document of LangChain."""

    @property
    def page_content(self) -> str:
        """The text."""


class Content(Protocol):
    """A document of Haystack."""

    @property
    def content(self) -> str | None:
        """The text; None for a document that is no text."""


class GetContent(Protocol):
    """A node of LlamaIndex, with or without a score."""

    def get_content(self, *args: Any, **kwargs: Any) -> str:
        """Return the text."""


Passage = str | Mapping[str, Any] | PageContent | Content | GetContent
"""A retrieved text: alone, as `{"id": ..., "text": ...}`, or as a document of LangChain, LlamaIndex
or Haystack. A pair of a document and its score counts as the document."""

_TEXT_NAMES = ("text", "page_content", "content")
_ID_NAMES = ("id", "id_", "node_id")


def wire_passages(value: Any, name: str = "contexts") -> list[str | dict[str, str]]:
    """Return passages as the service takes them; None is no passages.

    Args:
        value: A list, a tuple or another collection of `Passage`.
        name: What to call them in messages.

    Raises:
        TypeError: If one of them is something else. Passages that were left out would change the
            verdict. The message names the place and the type, never the text.
    """
    if value is None:
        return []
    # A str is an iterable of str: without this, every letter would become a passage.
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{name}: found {type(value).__name__}, expected a list of passages")
    return [_wire_passage(item, f"{name}[{index}]") for index, item in enumerate(value)]


def _wire_passage(item: Any, place: str) -> str | dict[str, str]:
    if isinstance(item, str):
        return item
    if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[1], int | float):
        return _wire_passage(item[0], place)
    text, name = _mapped(item) if isinstance(item, Mapping) else _duck_typed(item)
    if not isinstance(text, str):
        found = type(item).__name__
        raise TypeError(
            f"{place}: found {found} without a text, expected str, a mapping with 'text', "
            "or a document of LangChain, LlamaIndex or Haystack"
        )
    return {"text": text} if name is None else {"id": str(name), "text": text}


def _mapped(item: Mapping[str, Any]) -> tuple[Any, Any]:
    text = next((item[key] for key in _TEXT_NAMES if isinstance(item.get(key), str)), None)
    return text, item.get("id")


def _duck_typed(item: Any) -> tuple[Any, Any]:
    get_content = getattr(item, "get_content", None)
    name = next((found for key in _ID_NAMES if (found := getattr(item, key, None))), None)
    if callable(get_content):
        return get_content(), name
    texts = (getattr(item, key, None) for key in _TEXT_NAMES)
    return next((text for text in texts if isinstance(text, str)), None), name

"""Finds answer and passages in a guarded function's result, and puts another answer in."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from guardrail_client.middleware.withheld import Withheld

Place = str | Callable[[Any], Any]
"""A key or an attribute of what was returned, or a function of it."""
Replace = Callable[[Any, str], Any]
"""Returns a value like the given one with another answer."""
_NOTHING: Any = object()
DEPTH = 6
"""Of values in one another that are looked into."""


def find(value: Any, place: Place, name: str) -> Any:
    """Return what is at a place.

    Raises:
        TypeError: If nothing is. The message names the place and the type, never the text.
    """
    if callable(place):
        return place(value)
    found = value.get(place, _NOTHING) if isinstance(value, Mapping) else _NOTHING
    if found is _NOTHING and not isinstance(value, Mapping):
        found = getattr(value, place, _NOTHING)
    if found is _NOTHING:
        what = type(value).__name__
        raise TypeError(f"{name}: found {what} without {place!r}, expected it as key or attribute")
    return found


def with_answer(value: Any, place: Place, text: str, withheld: Withheld) -> Any:
    """Return a copy of a value with another answer.

    Nothing else in it says what was withheld; passages, for instance, lose redacted values.

    Args:
        value: What the function returned; not changed.
        place: Key or attribute of the answer.
        text: The other answer.
        withheld: What may not be said.
    """
    name = str(place)
    if isinstance(value, Mapping):
        return _with_key(value, name, text, withheld)
    found = _attributes(value) or _own(value)
    attributes = {key: item for key, item in found.items() if key != name}
    return _with_attributes(value, _changes(attributes, withheld, DEPTH) | {name: text})


def _with_key(value: Mapping[str, Any], name: str, text: str, withheld: Withheld) -> Any:
    rest = {key: item for key, item in value.items() if key != name}
    found = cleaned(rest, withheld)
    ordered = {key: text if key == name else found and found.get(key) for key in value}
    if type(value) is dict:
        return ordered
    changed: Any = copy.copy(value)
    for key, item in ordered.items():
        changed[key] = item
    return changed


def cleaned(value: Any, withheld: Withheld, left: int = DEPTH) -> Any:
    """Return a value in which nothing says what is withheld; itself if nothing does.

    Collections, mappings, dataclasses, models of pydantic and documents are looked into, down to
    `left` of them in one another; what cannot be said otherwise is None, and so is a value of
    another kind that says it when it is printed.
    """
    if isinstance(value, str | int | float):
        return withheld.removed_from(value)
    if isinstance(value, bytes | bytearray):
        return None if withheld.is_in(bytes(value).decode("utf-8", "replace")) else value
    if isinstance(value, Mapping):
        if any(withheld.is_in(str(key)) for key in value):
            return None
        changes = _changes(value, withheld, left)
        return {**value, **changes} if changes else value
    if isinstance(value, list | tuple | set | frozenset):
        items = [cleaned(item, withheld, left) for item in value]
        items = withheld.without_pieces(items)
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    attributes = _attributes(value) if left else {}
    if not attributes:
        return None if withheld.is_in(_said_by(value)) else value
    changes = _changes(attributes, withheld, left - 1)
    try:
        return _with_attributes(value, changes) if changes else value
    except (AttributeError, TypeError, ValueError):  # it cannot be copied so
        return None


def _said_by(value: Any) -> str:
    """Return what a value of another kind says when it is printed, such as a path or a decimal."""
    try:
        return str(value)
    except (AttributeError, RuntimeError, TypeError, ValueError):  # of somebody else's class
        return ""


def _changes(found: Mapping[Any, Any], withheld: Withheld, left: int) -> dict[Any, Any]:
    new = {key: cleaned(item, withheld, left) for key, item in found.items()}
    return {key: item for key, item in new.items() if item is not found[key]}


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of a value that holds data: a dataclass, a model, a document."""
    if isinstance(value, type):
        return {}
    if dataclasses.is_dataclass(value):
        return {one.name: getattr(value, one.name, None) for one in dataclasses.fields(value)}
    if names := getattr(value, "_fields", None):
        return {name: getattr(value, name) for name in names}
    is_data = callable(getattr(value, "model_copy", None)) or any(
        isinstance(getattr(value, name, None), str) for name in ("text", "page_content", "content")
    )
    return _own(value) if is_data else {}


def _own(value: Any) -> dict[str, Any]:
    own = getattr(value, "__dict__", {})
    return {key: item for key, item in own.items() if not key.startswith("_")}


def _with_attributes(value: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy of a value with other attributes."""
    if callable(made := getattr(value, "model_copy", None)):  # pydantic
        return made(update=dict(changes))
    if callable(made := getattr(value, "_replace", None)):  # named tuples
        return made(**changes)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **changes)
    changed = copy.copy(value)
    for name, item in changes.items():
        setattr(changed, name, item)
    return changed

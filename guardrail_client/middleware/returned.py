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

    In a mapping, nothing else says what was withheld; passages, for instance, lose redacted values.

    Args:
        value: What the function returned; not changed.
        place: Key or attribute of the answer.
        text: The other answer.
        withheld: What may not be said.
    """
    name = str(place)
    if isinstance(value, Mapping):
        return _with_key(value, name, text, withheld)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{name: text})
    for method in ("model_copy", "_replace"):  # pydantic, named tuples
        if callable(made := getattr(value, method, None)):
            return made(update={name: text}) if method == "model_copy" else made(**{name: text})
    changed = copy.copy(value)
    setattr(changed, name, text)
    return changed


def _with_key(value: Mapping[str, Any], name: str, text: str, withheld: Withheld) -> Any:
    rest = {key: item for key, item in value.items() if key != name}
    try:
        cleaned = withheld.removed_from(rest)
    except ValueError:  # a key says it
        cleaned = {}
    ordered = {key: text if key == name else cleaned.get(key) for key in value}
    if type(value) is dict:
        return ordered
    changed: Any = copy.copy(value)
    for key, item in ordered.items():
        changed[key] = item
    return changed

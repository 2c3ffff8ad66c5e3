"""Lists and objects in a table's cell: JSON, or what Python's `str` makes of them."""

from __future__ import annotations

import ast
import io
import json
import tokenize
import warnings
from typing import Any

MAX_CHARACTERS = 1_000_000
"""Of a cell in Python's notation; JSON has no limit. A hundred passages have about a tenth."""
MAX_DEPTH = 20
_WORDS = frozenset({"True", "False", "None"})
_BLANK = frozenset({tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER})
_UNREADABLE = (ValueError, SyntaxError, TypeError, RecursionError, MemoryError)


def parsed(text: str) -> list[Any] | dict[Any, Any]:
    """Return the list or object that a text holds.

    Raises:
        ValueError: If it holds none, or one that is too long or too deep. Texts beside each other
            without a comma are refused: Python would join them, and numpy means several.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = _literal(text.strip())
    if not isinstance(found, list | dict):
        raise ValueError("neither a list nor an object")
    return found


def is_json(value: Any) -> bool:
    """Return whether strict JSON can hold a value and gives it back as it was."""
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (ValueError, TypeError, RecursionError):
        return False


def _literal(text: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        raise ValueError("too long")
    try:
        _check(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes that Python does not know
            return ast.literal_eval(text)
    except (*_UNREADABLE, tokenize.TokenError) as error:
        raise ValueError("no literal") from error


def _check(text: str) -> None:
    """Raise unless a text is made of what a list needs, and not nested too deeply to be read."""
    depth, before = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _BLANK:
            continue
        now = token.string if token.type == tokenize.OP else tokenize.tok_name[token.type]
        depth += (now in "([{") - (now in ")]}")
        known = now in ("STRING", "NUMBER", *"()[]{},:-") or token.string in _WORDS
        if not known or depth > MAX_DEPTH or now == before in ("STRING", "-"):
            raise ValueError("no list of texts, numbers and objects")
        before = now

"""Parses JSON as the standard has it, and refuses what two parsers may read differently.

Refused beyond syntax errors: NaN and Infinity (not JSON), numbers a double cannot hold (readers
round or reject them), a name that occurs twice in one object (RFC 8259 leaves the meaning open, so
what a guard approved may not be what the application reads), and nesting beyond 32 levels.
"""

import json
from typing import Any

MAX_DEPTH = 32
"""Validation recurses over the value: 32 levels below a recursive schema take about 400 of
Python's 1,000 stack frames."""


class StrictJsonError(ValueError):
    """A text is not acceptable JSON. `position` is a code point where one is known."""

    def __init__(self, label: str, position: int | None = None) -> None:
        super().__init__(label)
        self.label = label
        self.position = position


def parse_json(text: str) -> Any:
    """Return the value a text stands for.

    Raises:
        StrictJsonError: If it is not JSON in the sense of this module; never with the text.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except json.JSONDecodeError as error:
        raise StrictJsonError("json_parse_error", error.pos) from None
    except RecursionError:
        raise StrictJsonError("json_too_deep") from None
    _refuse_depth(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise StrictJsonError("json_duplicate_name")
    return value


def _constant(name: str) -> Any:
    raise StrictJsonError("json_not_a_number")


def _integer(digits: str) -> int:
    _float(digits)  # before int(), which is quadratic and gives up after 4,300 digits
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if value in {float("inf"), float("-inf")}:
        raise StrictJsonError("json_number_out_of_range")
    return value


def _refuse_depth(value: Any) -> None:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise StrictJsonError("json_too_deep")

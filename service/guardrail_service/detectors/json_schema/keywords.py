"""JSON Schema keywords that cannot run away: linear patterns, counted steps, no quadratic search.

The `jsonschema` library runs `pattern` in a backtracking engine, compares array items pairwise and
follows references without bound. Every keyword here spends from one budget per validation; a
schema and a value that need more raise, which is an error and never a verdict.
"""

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend as _extend

from guardrail_service.detectors.shared.caller_patterns import CallerPattern
from guardrail_service.errors import ScoringError

MAX_STEPS = 100_000
"""0.2 to 2 s; an array of 1,000 records with ten checked fields each takes 55,000 (0.12 s)."""

_CHARS_PER_STEP = 100  # an error message quotes the value: its length costs time
_MATCH_PER_STEP = 5_000  # RE2 instructions * characters of one match

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]


class StepBudget:
    """Steps one validation may still take.

    Raises:
        ScoringError: From `spend`, when none are left.
    """

    def __init__(self, value: Any, steps: int = MAX_STEPS) -> None:
        self._left = steps
        self._sizes = _sizes(value)

    def spend(self, steps: int) -> None:
        """Take steps off what is left."""
        self._left -= steps
        if self._left < 0:
            raise ScoringError(
                f"json_schema: validation takes more than {MAX_STEPS} steps; "
                "expected a schema that checks each part of the answer a few times"
            )

    def size(self, value: Any) -> int:
        """Return about how many characters a part of the value has."""
        return len(value) if isinstance(value, str) else self._sizes.get(id(value), 1)


BUDGET: ContextVar[StepBudget] = ContextVar("json_schema_budget")
"""The running validation's budget; the library copies validators, so they cannot carry it."""


def _sizes(value: Any) -> dict[int, int]:
    """Return characters by id of every array and object, without recursion."""
    pending, parents = [value], []
    while pending:
        node = pending.pop()
        if isinstance(node, (dict, list)):
            parents.append(node)
            pending.extend(node.values() if isinstance(node, dict) else node)
    sizes: dict[int, int] = {}
    for node in reversed(parents):
        parts = [*node, *node.values()] if isinstance(node, dict) else node
        sizes[id(node)] = 2 + sum(
            len(part) if isinstance(part, str) else sizes.get(id(part), 4) for part in parts
        )
    return sizes


def _counted(name: str, keyword: Keyword) -> Keyword:
    """Return a keyword that pays for its own breadth, for the items it visits and its errors."""

    def counted(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        budget = BUDGET.get()
        visited = len(instance) if name in _VISITS and isinstance(instance, (dict, list)) else 0
        budget.spend(1 + _breadth(value) + visited)
        for error in keyword(validator, value, instance, schema):
            budget.spend(budget.size(instance) // _CHARS_PER_STEP)
            yield error

    return counted


_VISITS = frozenset({"items", "contains", "additionalProperties", "propertyNames"})


def _breadth(value: Any) -> int:
    if isinstance(value, list):
        return len(value)
    if isinstance(value, dict):
        return sum(len(part) if isinstance(part, list) else 1 for part in value.values())
    return 0


@lru_cache(maxsize=512)
def compiled_pattern(regex: str) -> CallerPattern:
    """Return a compiled pattern; PatternError if RE2 rejects it."""
    return CallerPattern(regex)


def _occurs(regex: str, text: str) -> bool:
    pattern = compiled_pattern(regex)
    BUDGET.get().spend(1 + len(text) * pattern.program_size // _MATCH_PER_STEP)
    return pattern.occurs_in(text)


def _pattern(validator: Any, regex: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _occurs(regex, instance):
        yield ValidationError("pattern")


def _pattern_properties(
    validator: Any, patterns: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for regex, subschema in patterns.items():
        for name, value in instance.items():
            if _occurs(regex, name):
                yield from validator.descend(value, subschema, path=name, schema_path=regex)


def _additional_properties(
    validator: Any, subschema: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    named = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for name, value in instance.items():
        if name in named or any(_occurs(regex, name) for regex in patterns):
            continue
        if subschema is False:
            yield ValidationError("additionalProperties")
            return
        yield from validator.descend(value, subschema, path=name)


def _unique_items(
    validator: Any, wanted: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not wanted or not isinstance(instance, list):
        return
    BUDGET.get().spend(BUDGET.get().size(instance) // _CHARS_PER_STEP)
    if len({_hashable(item) for item in instance}) < len(instance):
        yield ValidationError("uniqueItems")


def _hashable(value: Any) -> Any:
    """Return a key that is equal for equal JSON values: 1 is 1.0, and true is not 1."""
    if isinstance(value, dict):
        return "object", frozenset((name, _hashable(part)) for name, part in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_hashable, value))
    return (type(value), value) if isinstance(value, bool) else value


_STOCK: Mapping[str, Any] = Draft202012Validator.VALIDATORS
_OURS: Mapping[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
extend: Any = _extend  # published without types
BoundedValidator = extend(
    Draft202012Validator,
    {name: _counted(name, keyword) for name, keyword in {**_STOCK, **_OURS}.items()},
)
"""Draft 2020-12 with the keywords of this module. A schema handed to it must not name `$schema`:
the library would switch to its own class there."""

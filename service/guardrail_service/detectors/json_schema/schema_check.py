"""Decides whether a JSON Schema may be used, before any answer meets it, and runs it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from guardrail_service.detectors.json_schema.keywords import (
    BUDGET,
    BoundedValidator,
    StepBudget,
    compiled_pattern,
)
from guardrail_service.detectors.shared.caller_patterns import PatternError
from guardrail_service.errors import ScoringError

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_NODES = 2_000  # checking a schema costs 0.1 ms per node; a repeated one is checked once
MAX_DEPTH = 32
MAX_PATTERNS = 64

_UNUSED = ("dependencies", "additionalItems", "$recursiveRef")
_REFUSED = {
    **dict.fromkeys(_UNUSED, "no keyword of older drafts, which 2020-12 ignores"),
    **dict.fromkeys(
        ("unevaluatedProperties", "unevaluatedItems"),
        "additionalProperties or items (unevaluated* cannot be bounded)",
    ),
    "$schema": "$schema at the top only",
    "$id": "$id at the top only",
}
_ONE = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
_REFERENCES = ("$ref", "$dynamicRef")


_KEYWORDS = frozenset(Draft202012Validator.VALIDATORS) | {*_LISTS, *_MAPS, *_REFERENCES, "$schema"}


class SchemaDefinitionError(ValueError):
    """A schema that cannot be used: where (JSON pointer), what was found, what was expected.

    The schema may come with a request, so the message shows its keywords and indices only; a name
    that it defines is `*`.
    """

    def __init__(self, where: str, found: str, expected: str) -> None:
        super().__init__(f"{_shown(where)[:200] or '/'}: found {found}; expected {expected}")
        self.where = where


def _shown(pointer: str) -> str:
    steps = pointer.split("/")
    return "/".join(s if not s or s.isdecimal() or s in _KEYWORDS else "*" for s in steps)


@dataclass(frozen=True, slots=True)
class Violation:
    """The first rule a value breaks.

    `path` is a JSON pointer into the value; a name that the schema does not define is `*`.
    """

    path: str
    keyword: str


class CheckedSchema:
    """A schema that is known to be well-formed, closed, and without endless references."""

    def __init__(self, schema: dict[str, Any], names: frozenset[str]) -> None:
        self._validator = BoundedValidator(schema, registry=Registry())
        self._names = names

    def violation(self, value: Any) -> Violation | None:
        """Return the first rule the value breaks, or None.

        Raises:
            ScoringError: If finding out takes too many steps or too deep a recursion.
        """
        token = BUDGET.set(StepBudget(value))
        try:
            error = next(self._validator.iter_errors(value), None)
        except RecursionError:
            raise ScoringError(
                "json_schema: validation recurses too deeply; expected a flatter schema"
            ) from None
        finally:
            BUDGET.reset(token)
        return None if error is None else self._described(error)

    def _described(self, error: ValidationError) -> Violation:
        path = "".join(f"/{self._step(step)}" for step in error.absolute_path)
        return Violation(path, str(error.validator or "false"))

    def _step(self, step: str | int) -> str:
        if isinstance(step, int):
            return str(step)
        return step.replace("~", "~0").replace("/", "~1") if step in self._names else "*"


def check_schema(schema: dict[str, Any]) -> CheckedSchema:
    """Return a schema ready to run; equal schemas share one.

    Raises:
        SchemaDefinitionError: If it is not a usable Draft 2020-12 schema. References may only
            point into the schema itself and nothing is ever fetched; patterns must compile in
            RE2; size, depth and number of patterns are bounded; a cycle of references that
            consumes no part of the answer is refused.
    """
    _refuse_size(schema)
    try:
        text = json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError):
        raise SchemaDefinitionError("", "a value that is not JSON", "JSON values only") from None
    return _checked(text)


@lru_cache(maxsize=64)
def _checked(text: str) -> CheckedSchema:
    schema: dict[str, Any] = json.loads(text)
    dialect = schema.pop("$schema", DIALECT)
    if not isinstance(dialect, str) or dialect.rstrip("#") != DIALECT:
        raise SchemaDefinitionError("/$schema", "another dialect", DIALECT)
    schema.pop("$id", None)  # so that every reference is relative to this schema
    walk = _Walk(schema)
    return CheckedSchema(schema, frozenset(walk.names))


def _refuse_size(schema: Any) -> None:
    nodes, level = 0, [schema]
    for _ in range(MAX_DEPTH + 1):
        nodes += len(level)
        if nodes > MAX_NODES:
            raise SchemaDefinitionError("", f"more than {MAX_NODES} nodes", "a smaller schema")
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise SchemaDefinitionError("", f"more than {MAX_DEPTH} levels", "a flatter schema")


class _Walk:
    """Visits every subschema, and whatever a reference makes one, exactly once."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.names: set[str] = set()
        self._patterns: set[str] = set()
        self._seen: set[int] = set()
        self._in_place: dict[int, set[int]] = {}
        self._references: list[tuple[str, dict[str, Any], str]] = []
        self._resolver = Registry().resolver_with_root(DRAFT202012.create_resource(root))
        self._enter("", root)
        while self._references:
            self._follow(*self._references.pop())
        self._refuse_cycles()

    def _enter(self, pointer: str, schema: Any) -> None:
        """Check one schema against the metaschema and visit what is in it."""
        try:
            # No format checker: it would run `pattern` through a backtracking compiler.
            Draft202012Validator.check_schema(schema, format_checker=FormatChecker(()))
        except SchemaError as error:
            where = pointer + "".join(f"/{step}" for step in error.absolute_path)
            raise SchemaDefinitionError(
                where, f"a bad {error.validator}", "Draft 2020-12"
            ) from None
        pending = [(pointer, schema)]
        while pending:
            where, node = pending.pop()
            if isinstance(node, dict) and id(node) not in self._seen:
                self._seen.add(id(node))
                self._visit(where, node)
                pending.extend((where + path, child) for path, _, child in _subschemas(node))

    def _visit(self, pointer: str, schema: dict[str, Any]) -> None:
        for keyword, expected in _REFUSED.items():
            if keyword in schema:
                raise SchemaDefinitionError(f"{pointer}/{keyword}", keyword, expected)
        self.names.update(schema.get("properties", {}), schema.get("required", ()))
        if "pattern" in schema:
            self._compile(f"{pointer}/pattern", schema["pattern"])
        for regex in schema.get("patternProperties", {}):
            self._compile(f"{pointer}/patternProperties", regex)
        self._in_place[id(schema)] = {
            id(child) for _, in_place, child in _subschemas(schema) if in_place
        }
        self._references += [
            (f"{pointer}/{keyword}", schema, keyword)
            for keyword in _REFERENCES
            if keyword in schema
        ]

    def _compile(self, pointer: str, regex: str) -> None:
        self._patterns.add(regex)
        if len(self._patterns) > MAX_PATTERNS:
            raise SchemaDefinitionError(pointer, f"more than {MAX_PATTERNS} patterns", "fewer")
        try:
            compiled_pattern(regex)
        except PatternError as error:
            found = f"{error.reason} at position {error.position}"
            raise SchemaDefinitionError(pointer, found, "an RE2 pattern") from None

    def _follow(self, pointer: str, schema: dict[str, Any], keyword: str) -> None:
        target = self._target(pointer, schema[keyword])
        self._in_place[id(schema)].add(id(target))
        if id(target) not in self._seen:
            self._enter(pointer, target)

    def _target(self, pointer: str, reference: str) -> Any:
        expected = "a reference to a part of this schema, starting with #"
        if not reference.startswith("#"):
            raise SchemaDefinitionError(pointer, "a reference to somewhere else", expected)
        try:
            target = self._resolver.lookup(reference).contents
        except (Unresolvable, ValueError, TypeError):
            raise SchemaDefinitionError(pointer, "a reference to nothing", expected) from None
        if not isinstance(target, (dict, bool)):
            raise SchemaDefinitionError(
                pointer, "a reference to something else", "a schema"
            ) from None
        return target

    def _refuse_cycles(self) -> None:
        try:
            TopologicalSorter(self._in_place).prepare()
        except CycleError:
            raise SchemaDefinitionError(
                "", "references that lead back without end", "a part of the answer in between"
            ) from None


def _subschemas(schema: dict[str, Any]) -> Iterator[tuple[str, bool, Any]]:
    """Yield pointer, whether it applies to the same part of the value, and subschema."""
    for keyword in _ONE:
        if keyword in schema:
            yield f"/{keyword}", keyword in _IN_PLACE, schema[keyword]
    for keyword in _LISTS:
        for index, child in enumerate(schema.get(keyword, ())):
            yield f"/{keyword}/{index}", keyword in _IN_PLACE, child
    for keyword in _MAPS:
        for name, child in schema.get(keyword, {}).items():
            yield f"/{keyword}/{name}", keyword in _IN_PLACE, child

"""The condition language of text matching: from text to a tree that judges texts, with positions.

    "15,969" AND (regexp("[Mm]illion") OR word("m")) AND NOT "Real"

A subset of AIP-160 with the precedence NOT > AND > OR. Operands:

- `"text"`: the text occurs, case-sensitive. `\\"` is a quote and `\\\\` a backslash; a backslash
  before any other character is itself.
- `regexp("…")`: google-re2 finds a match. The pattern is taken as written; `\\"` is a quote.
- `word("text")`: the text occurs and stands alone, so that "22" is not found in "2022" or "22.5".

Any whitespace may stand between tokens. The empty condition always holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, v_args

from guardrail_service.detectors.shared.caller_patterns import CallerPattern, PatternError
from guardrail_service.detectors.text_matching.condition_tree import (
    Condition,
    Group,
    Node,
    Not,
    Operand,
    stands_alone,
)

MAX_CHARS = 10_000
MAX_OPERANDS = 256
MAX_DEPTH = 64  # nested NOT, AND and OR; keeps the walk over the tree far from the stack's end
MAX_PROGRAM = 5_000  # RE2 instructions of all regexp operands together, see caller_patterns

_GRAMMAR = r"""
start: either?
either: both (_OR both)*
both: inverse (_AND inverse)*
?inverse: _NOT inverse -> negation
    | STRING -> contains
    | REGEXP _LPAR STRING _RPAR -> regexp
    | WORD _LPAR STRING _RPAR -> word
    | _LPAR either _RPAR -> group
_OR: "OR"
_AND: "AND"
_NOT: "NOT"
REGEXP: "regexp"
WORD: "word"
_LPAR: "("
_RPAR: ")"
STRING: /"(?:[^"\\]|\\[\s\S])*"/
%ignore /\s+/
"""
_NAMES = {
    "STRING": "a string in double quotes",
    "REGEXP": "regexp(",
    "WORD": "word(",
    "_NOT": "NOT",
    "_AND": "AND",
    "_OR": "OR",
    "_LPAR": '"("',
    "_RPAR": '")"',
    "$END": "the end",
}


class ConditionError(ValueError):
    """A condition that cannot be used; `column` is 1-based. The message never quotes the text."""

    def __init__(self, column: int, found: str, expected: str) -> None:
        super().__init__(f"column {column}: found {found}; expected {expected}")
        self.column = column


@lru_cache(maxsize=256)
def parse_condition(text: str) -> Condition:
    """Return the compiled condition; equal texts share one.

    Raises:
        ConditionError: If the text is no condition, with the column and what was expected there,
            or if it is longer, deeper or costlier than the limits of this module.
    """
    if len(text) > MAX_CHARS:
        raise ConditionError(MAX_CHARS + 1, "more text", f"at most {MAX_CHARS} characters")
    try:
        root: Any = _PARSER.parse(text)
    except UnexpectedInput as error:
        raise _explained(text, error) from None
    if root is not None and root.operands > MAX_OPERANDS:
        raise ConditionError(1, f"{root.operands} operands", f"at most {MAX_OPERANDS}")
    if root is not None and root.depth > MAX_DEPTH:
        raise ConditionError(1, f"nesting of {root.depth}", f"at most {MAX_DEPTH}")
    if root is not None and root.program_size > MAX_PROGRAM:
        raise ConditionError(1, "regexps that are too large together", "smaller ones")
    return Condition(root)


def from_constraints(constraints: Sequence[str | Sequence[str]]) -> str:
    """Return the condition for a legacy constraint list.

    Args:
        constraints: All must hold; of an inner list one must. A string is searched for as it is,
            or as a pattern after the prefix `REGEXP:`.

    Raises:
        ValueError: If an inner list is empty: nothing could satisfy it.

    Source:
        H2O Eval Studio, text matching; the strings of its own tests.
    """
    return " AND ".join(
        _operand(item) if isinstance(item, str) else _alternatives(item) for item in constraints
    )


def _alternatives(items: Sequence[str]) -> str:
    if not items:
        raise ValueError("constraints: found an empty inner list; expected at least one string")
    joined = " OR ".join(map(_operand, items))
    return f"({joined})" if len(items) > 1 else joined


def _operand(constraint: str) -> str:
    pattern = constraint.removeprefix("REGEXP:")
    if pattern == constraint:
        escaped = constraint.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return f'regexp("{_quotes_escaped(pattern)}")'


def _quotes_escaped(pattern: str) -> str:
    out = []
    behind_backslash = False
    for character in pattern:
        out.append('\\"' if character == '"' and not behind_backslash else character)
        behind_backslash = character == "\\" and not behind_backslash
    return "".join(out)


def _explained(text: str, error: UnexpectedInput) -> ConditionError:
    token = getattr(error, "token", None)
    end = token is not None and token.type == "$END"
    position = len(text) if end else int(error.pos_in_stream or 0)
    if isinstance(error, UnexpectedCharacters) and text[position] == '"':
        return ConditionError(position + 1, "a quote that is never closed", "a closing quote")
    found = "an unknown word or character" if token is None else _NAMES[token.type]
    accepted = _accepted(text[:position])
    expected = [label for name, label in _NAMES.items() if name in accepted]
    return ConditionError(position + 1, found, " or ".join(expected))


def _accepted(prefix: str) -> set[str]:
    """Return the terminals that may follow a prefix which is well-formed so far."""
    parser = _PARSER.parse_interactive(prefix)
    parser.exhaust_lexer()
    accepted: set[str] = parser.accepts()  # type: ignore[no-untyped-call]  # lark has no type here
    return accepted


@v_args(inline=True)
class _Build(Transformer[Token, Any]):
    """Turns grammar rules into nodes, bottom-up while parsing, so nesting costs no stack."""

    def start(self, node: Node | None = None) -> Node | None:
        return node

    def either(self, *parts: Node) -> Node:
        return _grouped(False, parts)

    def both(self, *parts: Node) -> Node:
        return _grouped(True, parts)

    def group(self, node: Node) -> Node:
        return node

    def negation(self, part: Node) -> Node:
        return Not(part, part.depth + 1, part.operands, part.program_size)

    def contains(self, token: Token) -> Node:
        wanted = _unescaped(token)
        return Operand(_column(token), lambda text: wanted in text)

    def word(self, keyword: Token, token: Token) -> Node:
        wanted = _unescaped(token)
        if not wanted.strip():
            raise ConditionError(_column(token), "an empty word", "a word")
        return Operand(_column(keyword), lambda text: stands_alone(wanted, text))

    def regexp(self, keyword: Token, token: Token) -> Node:
        try:
            pattern = CallerPattern(token[1:-1])
        except PatternError as error:
            column = _column(token) + error.position
            raise ConditionError(column, error.reason, "an RE2 pattern") from None
        return Operand(_column(keyword), pattern.occurs_in, program_size=pattern.program_size)


def _grouped(every: bool, parts: tuple[Node, ...]) -> Node:
    if len(parts) == 1:
        return parts[0]
    return Group(
        every,
        parts,
        depth=1 + max(part.depth for part in parts),
        operands=sum(part.operands for part in parts),
        program_size=sum(part.program_size for part in parts),
    )


def _column(token: Token) -> int:
    return (token.start_pos or 0) + 1


def _unescaped(token: Token) -> str:
    out, escaped = [], False
    for character in token[1:-1]:
        if escaped and character not in '"\\':
            out.append("\\")
        escaped = character == "\\" and not escaped
        if not escaped:
            out.append(character)
    return "".join(out)


_PARSER = Lark(_GRAMMAR, parser="lalr", transformer=_Build())

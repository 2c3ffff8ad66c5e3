"""The tree of a parsed condition: it judges texts and names the operand that decided."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operand:
    """A leaf: something that occurs in a text or does not. `column` is where it begins."""

    column: int
    occurs_in: Callable[[str], bool]
    depth: int = 0
    operands: int = 1
    program_size: int = 0


@dataclass(frozen=True, slots=True)
class Not:
    """True where its part is false."""

    part: Node
    depth: int
    operands: int
    program_size: int


@dataclass(frozen=True, slots=True)
class Group:
    """AND (`every`) or OR over two parts or more."""

    every: bool
    parts: tuple[Node, ...]
    depth: int
    operands: int
    program_size: int


Node = Operand | Not | Group


@dataclass(frozen=True, slots=True)
class Failure:
    """The operand that decided against a text: its number from the left and its column, from 1."""

    operand: int
    column: int


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition; `root` is None for the empty one."""

    root: Node | None

    def failure(self, texts: Sequence[str]) -> Failure | None:
        """Return why the texts fail, or None if they pass.

        An operand occurs in the texts if it occurs in one of them. Of an AND the first part that
        fails is named, of an OR its first part, of a NOT the operand that occurs.
        """
        if self.root is None:
            return None
        decisive = _decisive(self.root, texts, wanted=True)
        if decisive is None:
            return None
        return Failure(list(_operands(self.root)).index(decisive) + 1, decisive.column)


def _decisive(node: Node, texts: Sequence[str], wanted: bool) -> Operand | None:
    """Return the operand that keeps a node from being `wanted`, or None if the node is that."""
    if isinstance(node, Operand):
        holds = any(node.occurs_in(text) for text in texts)
        return None if holds == wanted else node
    if isinstance(node, Not):
        return _decisive(node.part, texts, not wanted)
    against = (_decisive(part, texts, wanted) for part in node.parts)
    if node.every == wanted:  # every part has to be as wanted
        return next((operand for operand in against if operand is not None), None)
    first = None
    for operand in against:  # one such part is enough
        if operand is None:
            return None
        first = first or operand
    return first


def _operands(node: Node) -> Iterator[Operand]:
    if isinstance(node, Operand):
        yield node
        return
    for part in (node.part,) if isinstance(node, Not) else node.parts:
        yield from _operands(part)


def stands_alone(word: str, text: str) -> bool:
    """Return whether a word occurs in a text with no letter, digit or mark going on beside it."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not _continues(text, at, -1) and not _continues(text, end - 1, 1):
            return True
        at = text.find(word, at + 1)
    return False


def _continues(text: str, at: int, step: int) -> bool:
    """Return whether the word goes on past its edge at `at`, looking in the direction of `step`."""
    beside = _at(text, at + step)
    if beside.isalnum() or beside == "_" or (beside and unicodedata.combining(beside) > 0):
        return True
    # 15,969 and 22.5 are one number each
    return beside in {".", ","} and text[at].isdigit() and _at(text, at + 2 * step).isdigit()


def _at(text: str, index: int) -> str:
    return text[index] if 0 <= index < len(text) else ""

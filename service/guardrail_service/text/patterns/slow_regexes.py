"""Refuse regular expressions whose find-all is more than linear in the text.

RE2 makes one search linear. Finding *all* matches is not: a pattern such as `a*b|a` reads to the
end of "aaaa..." before it settles for each single "a". This happens where text far behind the end
of a match could still change the match, so this module looks for exactly that, and for repeats
without an upper bound, which are the way to write such a pattern.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from guardrail_service.text.patterns.search import compile_regex

LOOKAHEAD = 128
"""Code points behind a match that may still change it: a search reads at most these again."""
_PUMP = 2 * LOOKAHEAD
_ALPHABET = [chr(c) for c in range(0x20, 0x7F)] + ["\n", "\t", "é", "ß", "号"]
_PROBES = ("", " ", "a", "Z", "0", "_", "-", "@", "\n")


def unbounded_repeat(regex: str) -> int | None:
    """Return the position of the first `*`, `+` or `{n,}` of a pattern, or None.

    A pattern without one matches a bounded number of characters, so it is linear by construction.
    """
    for position, atom in _tokens(regex):
        if atom in ("*", "+") or (atom.startswith("{") and atom.endswith(",}")):
            return position
    return None


def superlinear(regex: str, *, ignore_case: bool = False) -> str | None:
    """Return why finding all matches may take more than linear time, or None.

    Long strings are generated from the pattern's own atoms (each repeated, behind the atoms before
    it), the first match is taken, and then text is appended. A match that changes although it
    ended more than `LOOKAHEAD` characters earlier proves that a search reads far past its result.
    Deterministic: no clock is involved.
    """
    compiled = compile_regex(regex, "pattern", ignore_case)
    samples = _representatives(regex, ignore_case)
    tails = _tails(samples)
    for text in _adversarial(samples):
        first = _first(compiled, text)
        if first is None or len(text.encode()) - first[1] <= LOOKAHEAD:
            continue
        for tail in tails:
            if _first(compiled, text + tail) != first:
                return f"a match depends on text more than {LOOKAHEAD} characters behind it"
    return None


def _first(compiled: Any, text: str) -> tuple[int, int] | None:
    match = compiled.search(text.encode())
    return match.span() if match else None


def _adversarial(samples: list[str]) -> Iterator[str]:
    """Yield strings in which one atom is repeated, behind some or all of the atoms before it."""
    for index, pumped in enumerate(samples):
        for begin in {0, max(0, index - 1), index}:
            yield "".join(samples[begin:index]) + pumped * _PUMP
        yield "".join(samples[: index + 1]) + (pumped + " ") * _PUMP
    yield "".join(samples) * (_PUMP // max(1, len(samples)) + 1)


def _tails(samples: list[str]) -> list[str]:
    """Return what is appended: single characters, and every rest of the pattern."""
    rests = ["".join(samples[index:]) for index in range(len(samples))]
    return [*dict.fromkeys([*_PROBES[1:], *samples, *rests])]


def _representatives(regex: str, ignore_case: bool) -> list[str]:
    """Return one character (or literal) for every atom of the pattern that stands for one."""
    found: list[str] = []
    for _, atom in _tokens(regex):
        if atom in _OPERATORS or atom[0] == "{" or atom.startswith("(?"):
            continue
        found.extend(_matching(atom, ignore_case))
    return found or ["a"]


_OPERATORS = frozenset({"*", "+", "?", "(", ")", "|", "^", "$", r"\b", r"\B", r"\A", r"\z"})


def _matching(atom: str, ignore_case: bool) -> list[str]:
    """Return the first character that an atom matches, if any."""
    compiled = compile_regex(atom, "atom", ignore_case)
    return next(([c] for c in _ALPHABET if compiled.fullmatch(c.encode())), [atom[:1]])


def _tokens(regex: str) -> Iterator[tuple[int, str]]:
    """Yield the atoms and operators of an RE2 pattern with their positions."""
    position = 0
    while position < len(regex):
        end = _token_end(regex, position)
        yield position, regex[position:end]
        position = end


def _token_end(regex: str, position: int) -> int:
    character = regex[position]
    if character == "\\":
        return _escape_end(regex, position)
    if character == "[":
        return _class_end(regex, position)
    if regex.startswith("(?", position):
        return _group_end(regex, position)
    if character == "{":
        end = regex.find("}", position)
        body = regex[position + 1 : end] if end > 0 else ""
        if body and body[0].isdigit() and body.replace(",", "", 1).isdigit():
            return end + 1
    return position + 1


def _escape_end(regex: str, position: int) -> int:
    following = regex[position + 1 : position + 2]
    if following == "Q":
        end = regex.find(r"\E", position)
        return len(regex) if end < 0 else end + 2
    if following in ("p", "P", "x") and regex[position + 2 : position + 3] == "{":
        return regex.index("}", position) + 1
    if following == "x":
        return position + 4
    return position + (3 if following in ("p", "P") else 2)


def _class_end(regex: str, position: int) -> int:
    """Return the end of a character class; `]` first in it is a literal."""
    cursor = position + 1
    if regex[cursor : cursor + 1] == "^":
        cursor += 1
    if regex[cursor : cursor + 1] == "]":
        cursor += 1
    while cursor < len(regex) and regex[cursor] != "]":
        if regex[cursor] == "\\":
            cursor = _escape_end(regex, cursor)
        elif regex.startswith("[:", cursor):
            cursor = regex.find(":]", cursor) + 2
        else:
            cursor += 1
    return cursor + 1


def _group_end(regex: str, position: int) -> int:
    """Return the end of `(?:`, `(?i)`, `(?i:`, `(?P<name>` or `(?<name>`."""
    stop = ">" if regex[position + 2 : position + 3] in ("P", "<") else ":)"
    cursor = position
    while cursor < len(regex) and regex[cursor] not in stop:
        cursor += 1
    return cursor + 1

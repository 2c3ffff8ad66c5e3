"""Describes one kind of secret, and names the alphabets that patterns are written in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from guardrail_service.text.patterns.search import Pattern

Severity = Literal["critical", "high", "medium"]


@dataclass(frozen=True, slots=True)
class SecretKind:
    """One row of the published table; several patterns may lead to one kind.

    Attributes:
        id: Label of the spans and stem of the placeholder.
        what: The secret in the reader's words.
        severity: What a thief can do with it: run a cloud account, use one service, try a guess.
        pattern: Where to look. Its id is the kind, or `kind/variant`.
        entropy: Fewest bits per character of a real one; 0 where the format says enough.
        check: Name of the further test in `secrets.py` that a match has to pass.
        closed: Whether a match must not touch further letters or digits.
        rank: 3 to 0, from "only this provider writes so" to "looks like a password"; of two
            overlapping findings the higher rank stays, then the longer.
    """

    id: str
    what: str
    severity: Severity
    pattern: Pattern
    entropy: float = 0.0
    check: str = ""
    closed: bool = True
    rank: int = 2


def kind(
    name: str,
    what: str,
    regex: str,
    *keywords: str,
    severity: Severity = "high",
    entropy: float = 2.5,
    check: str = "",
    group: int = 0,
    ignore_case: bool = False,
    closed: bool = True,
    rank: int = 2,
    gate: str = "",
) -> SecretKind:
    """Return one row; without keywords, the literal that the pattern starts with is the keyword."""
    words = keywords or (_literal_prefix(regex),)
    pattern = Pattern(name, regex, words, group=group, ignore_case=ignore_case, gate=gate)
    return SecretKind(name.partition("/")[0], what, severity, pattern, entropy, check, closed, rank)


def alnum(low: int, high: int | None = None) -> str:
    """Return a run of ASCII letters and digits."""
    return "[A-Za-z0-9]" + _repeat(low, high)


def word(low: int, high: int | None = None) -> str:
    """Return a run of letters, digits, `_` and `-`, the alphabet of base64url."""
    return "[A-Za-z0-9_-]" + _repeat(low, high)


def base64(low: int, high: int | None = None) -> str:
    """Return a run of standard base64 without its padding."""
    return "[A-Za-z0-9+/]" + _repeat(low, high)


def hexa(low: int, high: int | None = None) -> str:
    """Return a run of lower-case hexadecimal digits."""
    return "[0-9a-f]" + _repeat(low, high)


UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def _repeat(low: int, high: int | None) -> str:
    return f"{{{low}}}" if high is None else f"{{{low},{high}}}"


def _literal_prefix(regex: str) -> str:
    end = next((i for i, c in enumerate(regex) if not (c.isalnum() or c in "_-")), len(regex))
    if end < 3 or regex[end : end + 1] in ("?", "{", "*"):
        raise ValueError(f"{regex!r} starts with no literal of three characters: name a keyword")
    return regex[:end].lower()

"""Find secrets in a text: patterns, then checks, then one finding for each stretch of text."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from guardrail_service.detectors.secrets.checks import entropy, has_crc32, is_placeholder
from guardrail_service.detectors.secrets.kinds import SecretKind
from guardrail_service.detectors.secrets.patterns import KINDS, PATTERNS, ROWS
from guardrail_service.detectors.secrets.spans import CHECKS, Located, is_closed
from guardrail_service.text.patterns.search import Match, PatternSet, Prepared

_BY_PATTERN = {row.pattern.id: row for row in ROWS}


class SecretFinding(NamedTuple):
    """One secret; offsets are code points [start, end). It never holds the secret's text."""

    start: int
    end: int
    type: str
    rank: int
    severity: str


@cache
def engine() -> PatternSet:
    """Return the compiled patterns, shared by all threads of the process."""
    return PatternSet(PATTERNS)


def find(text: str | Prepared, *, certificates: bool = False) -> list[SecretFinding]:
    """Return the secrets of a text in reading order, none overlapping another.

    Args:
        text: Any text; surrogates and control characters are fine.
        certificates: Count public certificates too.
    """
    source = text if isinstance(text, Prepared) else Prepared(text)
    found = candidates(source.text, engine().scan(source))
    return resolve(f for f in found if certificates or f.type != "certificate")


def candidates(text: str, matches: Iterable[Match]) -> list[SecretFinding]:
    """Return the matches that pass their checks; they may overlap each other.

    A match inside an earlier finding of its own pattern is skipped, since checks may extend a
    finding: without this, a long run of token starts would be read again for each of them.
    """
    found = []
    read: dict[str, int] = {}
    for match in matches:
        if match.start < read.get(match.pattern, 0):
            continue
        row = _BY_PATTERN[match.pattern]
        located = _locate(text, match, row)
        if located is not None:
            read[match.pattern] = located.end
            found.append(_finding(located, row))
    return found


def _locate(text: str, match: Match, row: SecretKind) -> Located | None:
    _, start, end = match
    if row.closed and not is_closed(text, start, end):
        return None
    if row.entropy and not _is_random(text[start:end], row.entropy):
        return None
    return CHECKS[row.check](text, start, end) if row.check else Located(start, end)


def _is_random(value: str, least: float) -> bool:
    return entropy(value) >= least and not is_placeholder(value)


def _finding(located: Located, row: SecretKind) -> SecretFinding:
    kind = located.kind or row.id
    rank = row.rank if located.rank is None else located.rank
    return SecretFinding(located.start, located.end, kind, rank, KINDS[kind][1])


def resolve(found: Iterable[SecretFinding]) -> list[SecretFinding]:
    """Return findings of which no two overlap, in reading order.

    The more specific kind stays (the higher rank), then the longer finding, then the earlier one.
    """
    kept: list[SecretFinding] = []
    for finding in sorted(found, key=lambda f: (-f.rank, f.start - f.end, f.start, f.type)):
        at = bisect_left(kept, (finding.start,))
        before = kept[at - 1].end if at else 0
        after = kept[at].start if at < len(kept) else finding.end
        if before <= finding.start and finding.end <= after:
            insort(kept, finding)
    return kept


def checksum(kind: str, value: str) -> bool | None:
    """Return whether a token's published checksum holds; None for kinds without one.

    A wrong checksum is no reason to let a token pass: it may have been mistyped by a model.
    """
    if kind == "github_token":
        return has_crc32(value, value[:4])
    return has_crc32(value, "npm_") if kind == "npm_token" and value[:4] == "npm_" else None

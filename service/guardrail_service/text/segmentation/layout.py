"""Cuts a text into units by its lines: paragraphs, items, headings, table rows, code lines.

Works on lines only; what happens inside a line of prose is decided in `sentences.py`.
"""

# Punctuation of every script is what this file is about.
# ruff: noqa: RUF001

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple

from guardrail_service.text.segmentation.abbreviations import LINE_JOINERS

OPENERS = frozenset("\"'“”‘’«»‹›„‚([{<*_`~¿¡「『（《〈【\u200b\u200e\u200f\u2060\ufeff")
TERMINATORS = frozenset(".!?…‼⁇⁈⁉。！？｡．؟۔।॥։።፧។៕။")
_BULLETS = frozenset("-*+–—·")
TIGHT_BULLETS = frozenset("•‣◦▪●○⁃∙■□➢✓✔")
_CONTINUES = frozenset(",;-–—(&/،、，")
_DELIMITER_ROW = frozenset("|:-+ \t")
_MARKER_ROOM = 8  # "(viii) " is the longest marker looked for
_WIDE = 0x2E80  # first code point of the CJK blocks; their glyphs are two columns wide
_WRAP_WIDTH = 40  # narrower blocks are verse, addresses or labels, not wrapped prose
_WRAP_SHARE = 0.6  # a list of long labels has one longest line, so 1 of 2 must not be enough


class LineKind(Enum):
    """The kinds of lines."""

    TEXT = auto()
    ITEM = auto()
    WHOLE = auto()  # heading, table row, code line: one unit, never cut or joined
    BARE = auto()  # no letter and no digit: rules, table delimiters, closing braces
    FENCE_OPEN = auto()
    FENCE_CLOSE = auto()


_PROSE = (
    LineKind.TEXT,
    LineKind.ITEM,
)  # a tuple: looked up by identity, four times faster than a set


class Line(NamedTuple):
    """One non-blank line; `start`, `end` exclude surrounding whitespace, `body` skips a marker."""

    number: int
    start: int
    end: int
    body: int
    kind: LineKind
    hard_break: bool


@dataclass(slots=True)
class Unit:
    """A stretch of whole lines. Prose is cut further, from `body` on."""

    start: int
    end: int
    body: int
    prose: bool


def units(text: str) -> list[Unit]:
    """Return the units of `text` in order; they hold all its non-whitespace characters."""
    lines = _mark_tables(text, list(_lines(text)))
    out: list[Unit] = []
    for run in _runs(lines):
        _add_run(text, run, out)
    return out


def first_letter(text: str, start: int, end: int) -> int:
    """Return the offset of the first character that is neither space nor opener, or `end`."""
    while start < end and (text[start].isspace() or text[start] in OPENERS):
        start += 1
    return start


def starts_lower(text: str, at: int, end: int) -> bool:
    """Return whether the word at `at` is lower-case; "iOS" and "macOS" count as capitalised."""
    if at >= end or not text[at].islower():
        return False
    for char in text[at + 1 : min(end, at + 4)]:
        if not char.isalpha():
            break
        if char.isupper():
            return False
    return True


def _lines(text: str) -> Iterator[Line]:
    fence = ""
    offset = 0
    for number, raw in enumerate(text.splitlines(keepends=True)):
        body = raw.strip()
        if body:
            start = offset + raw.index(body[0])
            end = start + len(body)
            kind, skip, fence = _classify(body, fence)
            hard_break = raw.rstrip("\r\n").endswith("  ")
            yield Line(number, start, end, start + skip, kind, hard_break)
        offset += len(raw)


def _classify(line: str, fence: str) -> tuple[LineKind, int, str]:
    """Return the kind, the length of the list marker and the fence that is open afterwards."""
    mark = line[:3]
    if fence:
        if mark == fence and not line.strip(fence[0]):
            return LineKind.FENCE_CLOSE, 0, ""
        return (LineKind.WHOLE if _has_word(line) else LineKind.BARE), 0, fence
    if mark in {"```", "~~~"} and "`" not in line[3:]:
        return LineKind.FENCE_OPEN, 0, mark
    if not _has_word(line):
        return LineKind.BARE, 0, ""
    if _is_heading(line) or _is_row(line):
        return LineKind.WHOLE, 0, ""
    quote = len(line) - len(line.lstrip("> ")) if line[0] == ">" else 0
    marker = _marker(line[quote : quote + _MARKER_ROOM])
    if marker:
        return LineKind.ITEM, quote + marker, ""
    return LineKind.TEXT, quote, ""


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _is_heading(line: str) -> bool:
    if line[0] != "#":
        return False
    level = len(line) - len(line.lstrip("#"))
    return level <= 6 and line[level : level + 1].isspace()


def _is_row(line: str) -> bool:
    if line[0] in "|│┃":
        return line.count(line[0]) > 1
    return line.count(" | ") > 1 or line.count("\t") > 1


def _is_delimiter(line: str) -> bool:
    return "|" in line and "-" in line and _DELIMITER_ROW.issuperset(line)


def _mark_tables(text: str, lines: list[Line]) -> list[Line]:
    """Mark the rows of tables without outer bars: the lines around a `--- | ---` line."""
    inside = False
    for i, line in enumerate(lines):
        if line.kind is LineKind.BARE and _is_delimiter(text[line.start : line.end]):
            inside = True
            if i and _is_loose_row(text, lines[i - 1], line):
                lines[i - 1] = lines[i - 1]._replace(kind=LineKind.WHOLE)
        elif inside and _is_loose_row(text, line, lines[i - 1]):
            lines[i] = line._replace(kind=LineKind.WHOLE)
        else:
            inside = False
    return lines


def _is_loose_row(text: str, line: Line, beside: Line) -> bool:
    near = abs(line.number - beside.number) == 1
    return near and line.kind is not LineKind.BARE and text.find("|", line.start, line.end) >= 0


def _marker(head: str) -> int:
    """Return the length of the list marker that `head` starts with, or 0."""
    if head[:1] in TIGHT_BULLETS:
        return 1
    first, gap, _ = head.partition(" ") if " " in head else head.partition("\t")
    if not gap:
        return 0
    if first in _BULLETS:
        return len(first) + 1
    core = first[:-1].removeprefix("(")
    if core.isdecimal() and len(core) <= 3 and first[-1:] in {".", ")"}:
        return len(first) + 1
    is_letter = len(core) == 1 and core.isalpha()
    is_roman = core != "" and set("ivx").issuperset(core)
    return len(first) + 1 if first[-1:] == ")" and (is_letter or is_roman) else 0


def _runs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Group lines that no blank line separates."""
    run: list[Line] = []
    for line in lines:
        if run and line.number != run[-1].number + 1:
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _add_run(text: str, run: list[Line], out: list[Unit]) -> None:
    wrapped = _is_wrapped(text, run)
    lead: int | None = None  # start of lines waiting for the unit below them
    previous: Line | None = None  # the prose line above, if one can still be continued
    first = len(out)
    for line in run:
        has_unit = len(out) > first and lead is None
        if line.kind is LineKind.FENCE_OPEN or (line.kind is LineKind.BARE and not has_unit):
            lead = line.start if lead is None else lead
            previous = None
            continue
        if line.kind in (LineKind.BARE, LineKind.FENCE_CLOSE) and has_unit:
            out[-1].end = line.end
            previous = None
            continue
        if previous and line.kind is LineKind.TEXT and _joins(text, previous, line, wrapped):
            out[-1].end = line.end
        else:
            start = line.start if lead is None else lead
            prose = line.kind in _PROSE
            out.append(Unit(start, line.end, line.body, prose))
            lead = None
        previous = line if line.kind in _PROSE else None
    if lead is not None:
        out.append(Unit(lead, run[-1].end, lead, prose=False))


def _joins(text: str, above: Line, line: Line, wrapped: bool) -> bool:
    """Return whether `line` continues the sentence or paragraph of the line above it."""
    at = first_letter(text, line.body, line.end)
    if starts_lower(text, at, line.end):
        return True
    last = text[above.end - 1]
    if last in TERMINATORS or last in _CONTINUES:
        return True
    if above.hard_break or last in ":：":
        return False
    tail = text[max(above.body, above.end - 12) : above.end].split()
    if tail and tail[-1] in LINE_JOINERS:
        return True
    return wrapped


def _is_wrapped(text: str, run: Sequence[Line]) -> bool:
    """Return whether the lines look filled: the next word would not have fitted on most.

    Two lines are enough where letters have no case, because there case gives no hint.
    """
    if len(run) < 2 or not all(line.kind in _PROSE for line in run):
        return False
    at = first_letter(text, run[1].body, run[1].end)
    cased = at < run[1].end and text[at].upper() != text[at].lower()
    if len(run) < 3 and (cased or text[at : at + 1].isdecimal()):
        return False
    wide = text[at : at + 1] >= chr(_WIDE)
    room = max(line.end - line.start for line in run)
    if room * (2 if wide else 1) < _WRAP_WIDTH:
        return False
    full = sum(
        a.end - a.start + (1 if wide else 1 + _word_length(text, b)) > room
        for a, b in pairwise(run)
    )
    return full >= _WRAP_SHARE * (len(run) - 1)


def _word_length(text: str, line: Line) -> int:
    space = text.find(" ", line.body, line.end)
    return (space if space >= 0 else line.end) - line.body

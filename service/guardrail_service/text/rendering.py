"""Read a text as a chat page shows it, and know where each part of the page came from.

Markdown and HTML marks are taken out, entities and escapes read, numbers that go on in the next
table cell or line put together, digits and addresses in words written out. Linear in the text; it
renders nothing else, and judges nothing.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from guardrail_service.text.budget import in_time
from guardrail_service.text.decoding.confusables import INVISIBLE
from guardrail_service.text.offsets import Edit, Edited
from guardrail_service.text.patterns.search import Prepared, compile_regex, encodable

_TAGS = (
    "a|abbr|b|big|blockquote|br|center|cite|code|dd|del|div|dl|dt|em|font|h[1-6]|hr|i|img|ins|kbd"
    "|label|li|mark|nobr|ol|p|pre|q|s|samp|section|small|span|strike|strong|sub|sup|table|tbody|td"
    "|tfoot|th|thead|tr|tt|u|ul|var|wbr"
)
_BREAKS = frozenset(
    ("br", "dd", "div", "dl", "dt", "hr", "li", "ol", "p", "pre", "table", "td", "th", "tr", "ul")
)
"""Tags that a page shows as a gap."""
_UNSEEN = "".join(f"\\x{{{ord(c):x}}}" for c in sorted(INVISIBLE) if not "\ud800" <= c <= "\udfff")
_DIGIT_WORDS = {
    "zero": "0",
    "oh": "0",
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
}
_WORD = "(?:" + "|".join(_DIGIT_WORDS) + ")"
_MARK = compile_regex(
    rf"(?i:</?(?:{_TAGS})(?:[\s/][^<>]{{0,400}})?>)|<!--[^<>]{{0,400}}-->"
    r"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"
    rf"|[{_UNSEEN}]"
    r"|\\[!-/:-@\[-`{-~]|`{1,16}|\*{1,3}|_{1,3}|~~|!?\[|\]\([^()\n]{0,600}\)"
    r"|\r?\n[ \t]{0,40}\r?\n",
    "marks of a page",
)
_GAP = compile_regex(
    r"(?:[ \t]{0,8}\r?\n?[ \t]{0,8}\|){1,6}[ \t]{0,8}"
    r"|[ \t]{0,8}\r?\n[ \t]{0,8}(?:[-*+>][ \t]{1,4})?",
    "end of a cell or line",
)
_SPELT_DIGITS = compile_regex(
    rf"(?i:\bplus[ ,]{{1,2}})?(?i:\b{_WORD}\b)(?:[ ,.-]{{1,3}}(?i:{_WORD}\b)){{6,39}}"
    r"|\+?\b[0-9](?:[ ,.-]{1,3}[0-9]\b){7,39}",
    "spelt digits",
)
_SPELT_MAIL = compile_regex(
    r"(?i)\b[a-z0-9_-]{1,40}(?: (?:dot|punkt|underscore|dash) [a-z0-9_-]{1,40}){0,4}"
    r" at [a-z0-9-]{2,40}(?: (?:dot|punkt) [a-z0-9-]{2,24}){1,4}\b",
    "spelt address",
)
_CUES = ("mail", "address", "contact", "write to", "reach", "send")
"""Words, one of which announces an address whose first part is one word."""
_CUE_REACH = 60
_SIGNS = {"dot": ".", "punkt": ".", "underscore": "_", "dash": "-", "at": "@"}

MARKED = compile_regex(
    rf"[*_`~<&\\{_UNSEEN}]|\]\(|[0-9][ \t]*(?:\r?\n|\|)|(?i: (?:dot|punkt) )"
    rf"|(?i:\b{_WORD}[ ,.-]{{1,3}}{_WORD}[ ,.-]{{1,3}}{_WORD}\b)"
    r"|[0-9][ ,.-]{1,3}[0-9][ ,.-]{1,3}[0-9][ ,.-]{1,3}[0-9][ ,.-]",
    "sign of a mark",
)
"""Occurs wherever a page shows something else than the text; looking for it costs microseconds."""


@dataclass(frozen=True, slots=True)
class Page:
    """A text as a page shows it, and the way back.

    Attributes:
        text: The words as shown.
        marks: Without marks; None where there are none.
        joined: `marks` with numbers that go on in another cell or line put together, and digits
            and addresses in words written out; None where there are none.
        opened: Where an opening mark ends -> where it begins, and its partner's end.
        closed: Where a closing mark begins -> where its partner begins, and its own end.
    """

    text: str
    marks: Edited | None
    joined: Edited | None
    opened: Mapping[int, tuple[int, int]]
    closed: Mapping[int, tuple[int, int]]

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return the part of the original text that a non-empty part of the page comes from.

        A mark beside it is part of it if the mark's partner is.
        """
        if self.joined:
            start, end = self.joined.before(start, end)
        if self.marks:
            start, end = self.marks.before(start, end)
        while end in self.closed and start <= self.closed[end][0]:
            end = self.closed[end][1]
        while start in self.opened and self.opened[start][1] <= end:
            start = self.opened[start][0]
        return start, end

    def changed(self, start: int, end: int) -> bool:
        """Return whether a part of the page is written differently in the original text."""
        if self.guessed(start, end):
            return True
        if self.joined:
            start, end = self.joined.before(start, end)
        return self.marks is not None and self.marks.touched(start, end)

    def guessed(self, start: int, end: int) -> bool:
        """Return whether a part of the page was put together from words, cells or lines."""
        return self.joined is not None and self.joined.touched(start, end)


def shown(text: str) -> str:
    """Return a part of a text as a page shows it, without its marks."""
    seen = page(text) if MARKED.search(encodable(text).encode()) else None
    return seen.text if seen else text


def page(text: str) -> Page | None:
    """Return what a page shows of a text; None if that is the text itself."""
    edits, pairs = _edits(text)
    marks = Edited(text, edits) if edits else None
    plain = marks.text if marks else text
    joints = list(_ordered([*_gaps(plain), *_spelt(plain)]))
    joined = Edited(plain, joints) if joints else None
    seen = joined.text if joined else plain
    if seen == text:
        return None
    opened = {inner: (opening, closing) for opening, inner, _, closing in pairs}
    closed = {outer: (opening, closing) for opening, _, outer, closing in pairs}
    return Page(seen, marks, joined, opened, closed)


class _Marks:
    """One walk over the marks of a text, which pairs them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.edits: list[Edit] = []
        self.pairs: list[tuple[int, int, int, int]] = []
        self._open: dict[str, tuple[int, int]] = {}
        self._brackets: list[tuple[int, int]] = []
        self._ticks: Counter[str] = Counter()
        self._code: tuple[str, int, int] | None = None

    def read(self, tokens: list[tuple[int, int]]) -> None:
        """Note what to take out for each mark [start, end)."""
        self._ticks = Counter(self.text[a:b] for a, b in tokens if self.text[a] == "`")
        for start, end in tokens:
            run = self.text[start:end]
            if run[0] == "`":
                self._backticks(run, start, end)
            elif run.isspace():
                self._open.clear()  # emphasis ends with its paragraph
            elif self._code is None:
                self._mark(run, start, end)

    def _backticks(self, run: str, start: int, end: int) -> None:
        self._ticks[run] -= 1
        if self._code is None and self._ticks[run] > 0:
            self._code = (run, start, end)
        elif self._code is not None and self._code[0] == run:
            self._pair(self._code[1:], (start, end))
            self._code = None

    def _mark(self, run: str, start: int, end: int) -> None:
        first = run[0]
        if first in "*_~":
            self._emphasis(run, start, end)
        elif first == "<":
            name = run[1:-1].strip("/ ").partition(" ")[0].lower()
            self.edits.append(Edit(start, end, "\n" if name in _BREAKS else ""))
        elif first == "&":
            plain = html.unescape(run)
            if plain != run:
                self.edits.append(Edit(start, end, "" if plain in INVISIBLE else plain))
        elif first == "\\":
            self.edits.append(Edit(start, start + 1, ""))
        elif run.endswith("["):
            self._brackets.append((start, end))
        elif first == "]":
            if self._brackets:
                self._pair(self._brackets.pop(), (start, end))
        else:
            self.edits.append(Edit(start, end, ""))

    def _emphasis(self, run: str, start: int, end: int) -> None:
        before, after = self.text[max(0, start - 1) : start], self.text[end : end + 1]
        inside = run[0] == "_" and before.isalnum() and after.isalnum()
        if inside:
            return
        if run in self._open and before and not before.isspace():
            self._pair(self._open.pop(run), (start, end))
        elif after and not after.isspace():
            self._open[run] = (start, end)

    def _pair(self, opening: tuple[int, int], closing: tuple[int, int]) -> None:
        self.edits += [Edit(*opening, ""), Edit(*closing, "")]
        self.pairs.append((*opening, *closing))


def _edits(text: str) -> tuple[list[Edit], list[tuple[int, int, int, int]]]:
    """Return what to take out of a text, in order, and the marks that belong together."""
    source = Prepared(text)
    tokens = [
        (source.code_point(match.start()), source.code_point(match.end()))
        for match in in_time(_MARK.finditer(source.data))
    ]
    marks = _Marks(text)
    marks.read(tokens)
    return sorted(marks.edits), marks.pairs


def _gaps(text: str) -> Iterator[Edit]:
    """Yield edits that put a number together with its end in the next cell or line."""
    source = Prepared(text)
    for match in in_time(_GAP.finditer(source.data)):
        start, end = source.code_point(match.start()), source.code_point(match.end())
        if text[max(0, start - 1) : start].isdigit() and text[end : end + 1].isdigit():
            yield Edit(start, end, " ")


def _spelt(text: str) -> Iterator[Edit]:
    """Yield edits for digits and addresses in words."""
    source = Prepared(text)
    for match in in_time(_SPELT_DIGITS.finditer(source.data)):
        run = match.group().decode("utf-8", "replace")
        number = _number(run)
        if number:
            start = source.code_point(match.start())
            yield Edit(start, start + len(run), number)
    for match in in_time(_SPELT_MAIL.finditer(source.data)):
        run = match.group().decode("utf-8", "replace")
        start = source.code_point(match.start())
        before = text[max(0, start - _CUE_REACH) : start].lower()
        if run[run.index(" ") :].startswith(" at ") and not any(cue in before for cue in _CUES):
            continue  # "we are at example dot com"
        address = "".join(_SIGNS.get(word.lower(), word) for word in run.split(" "))
        yield Edit(start, start + len(run), address)


def _ordered(edits: list[Edit]) -> Iterator[Edit]:
    """Yield edits in order, of overlapping ones the first."""
    position = 0
    for edit in sorted(edits):
        if edit.start >= position:
            yield edit
            position = edit.end


def _number(run: str) -> str:
    """Return the digits of a run of digits; none for a mere count such as `1, 2, 3`."""
    words = "".join(c if c.isalnum() or c == "+" else " " for c in run.lower()).split()
    plus = words[0] == "plus" or words[0].startswith("+")
    digits = "".join(_DIGIT_WORDS.get(word, word.strip("+")) for word in words if word != "plus")
    steps = {int(b) - int(a) for a, b in pairwise(digits)}
    return "" if len(steps) == 1 else ("+" if plus else "") + digits

"""The claims of an answer, and their words as a model reads them."""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import re2

from guardrail_service.detectors import groundedness
from guardrail_service.detectors.facts.amounts import stems
from guardrail_service.detectors.groundedness import claims, read_with_question
from guardrail_service.detectors.no_answer.detector import claims_nothing
from guardrail_service.detectors.no_answer.speech import unusual
from guardrail_service.text.budget import BETWEEN_LOOKS, check_time, in_time
from guardrail_service.text.patterns.search import encodable
from guardrail_service.text.sample import SegmentedSample, Window
from guardrail_service.text.segmentation.sentences import Sentence

READING_VERSION = "rag-guardrail-reading/5"
"""Part of the evidence fingerprint: whoever changes a rule of this file changes scores and
thresholds."""
MIN_CLAIM_CHARS = 25
"""Groundedness needs longer pieces; a model that reads does not, and a short invented sentence must
not hide in its neighbour. On the choosing half of models/thresholds/answers.jsonl the ROC area is
.914, .921, .918 and .911 at 15, 25, 35 and 50."""


class AnswerClaims(NamedTuple):
    """An answer's claims.

    Attributes:
        stated: Without courtesy and remarks on what the passages do not say.
        judged: Those of them that a model reads: not lines of mere code.
        layout: The answer's lines that stand in a table or in code.
    """

    stated: tuple[Sentence, ...]
    judged: tuple[Sentence, ...]
    layout: AnswerLayout


def claims_of(sample: SegmentedSample) -> AnswerClaims:
    """Return the answer's claims."""
    return sample.once("claims read", lambda: _claims(sample))


def _claims(sample: SegmentedSample) -> AnswerClaims:
    layout = layout_of(sample.answer)
    cut = claims(sample, MIN_CLAIM_CHARS)
    if layout.read:
        cut = tuple(_with_rows(cut, sample.answer, layout))
    stated = tuple(
        piece
        for piece in in_time(cut, 8)
        if not (is_about_sources(piece.text) or is_only_opaque(piece.text))
    )
    judged = tuple(piece for piece in stated if laid_out(piece.text, piece.start, layout))
    return AnswerClaims(stated, judged, layout)


def _with_rows(cut: Sequence[Sentence], answer: str, layout: AnswerLayout) -> Iterator[Sentence]:
    """Yield claims; a lead-in above a table's headings belongs to the first row."""
    start: int | None = None
    for piece in cut:
        start = piece.start if start is None else start
        whole = Sentence(start, piece.end, answer[start : piece.end])
        read = laid_out(whole.text, start, layout)
        if read != whole.text and read.endswith(":") and piece is not cut[-1]:
            continue
        yield whole
        start = None


def claim_texts(
    sample: SegmentedSample, claimed: AnswerClaims, windows: Sequence[Window]
) -> tuple[str, ...]:
    """Return the answer's claims as the model reads them, one per window of what is judged."""
    _, judged, layout = claimed
    texts = [laid_out(window.text, window.start, layout) for window in windows]
    if len(windows) == len(judged) == 1:
        piece = replace(judged[0], text=texts[0])
        texts = [read_with_question(sample, (piece,), groundedness.ROLE) or texts[0]]
    bracketed = any(has_bracketed_numbers(passage.text) for passage in sample.sample.contexts)
    return tuple(
        _read(sample, text, window.text, keep_brackets=bracketed)
        for text, window in zip(in_time(texts, 8), windows, strict=True)
    )


class Unsaid(NamedTuple):
    """The words of a text that neither passages nor question have, counted.

    Attributes:
        words: How many there are.
        of: How many of its words could be among them.
    """

    words: int
    of: int


class ReadText(NamedTuple):
    """The words of a window of a claim as a model reads them, and counts about them.

    Attributes:
        text: The words.
        opaque: Code points of the window in words that are left out as opaque.
        unsaid: Words that neither the passages nor the question have.
    """

    text: str
    opaque: int
    unsaid: Unsaid


def read_texts(
    sample: SegmentedSample, claimed: AnswerClaims, windows: Sequence[Window]
) -> list[ReadText]:
    """Return what is read of each window of what is judged."""
    texts = claim_texts(sample, claimed, windows)
    opaque = opaque_characters(window.text for window in windows)
    return list(map(ReadText, texts, opaque, unsaid(sample, texts)))


def _read(sample: SegmentedSample, text: str, submitted: str, *, keep_brackets: bool) -> str:
    """Return a claim's words; as submitted where nothing else is left or it got too long."""
    words = without_gaps(without_layout(text, keep_brackets=keep_brackets), sample.sample.question)
    if words == submitted or not any(map(str.isalnum, words)):
        return submitted
    fits = len(sample.windows_of(groundedness.ROLE, (Sentence(0, len(words), words),))) == 1
    return words if fits else submitted


class AnswerLayout(NamedTuple):
    """The lines of an answer that stand in a table or in code.

    Attributes:
        read: What is read of a line, by the offset of its first character: a table's row under its
            headings, the prose in a line of code. Empty where the line says nothing by itself.
        length: How many code points such a line has; a window may hold only a part of it.
        unread: How many code points of code are not read.
    """

    read: dict[int, str]
    length: dict[int, int]
    unread: int


def layout_of(text: str) -> AnswerLayout:
    """Return the lines of an answer that are not read as they stand."""
    layout = _Lines()
    lines = list(_ink(text))
    fence, is_code = "", False
    header: tuple[str, ...] | None = None
    for number, (start, line) in enumerate(in_time(lines)):
        mark = line[:3]
        if fence:
            if mark == fence and not line.strip(fence[0]):
                layout.code(start, line, "", is_code=is_code)
                fence = ""
            elif is_code:
                layout.code(start, line, prose_in_code(line), is_code=True)
        elif mark in _FENCES and "`" not in line[3:]:
            fence, is_code = mark, line[3:].strip().split(" ")[0].lower() in _PROGRAMMING
            layout.code(start, line, "", is_code=is_code)
        elif header is not None and "|" in line:
            if not _is_delimiter(line):
                layout.row(start, line, header)
        else:
            header = _header(line, *lines[number + 1 : number + 3])
            if header is not None:
                layout.heading(start, line, *lines[number + 1])
    return AnswerLayout(layout.read, layout.length, layout.unread)


class _Lines:
    """Collects what is read of an answer's lines."""

    def __init__(self) -> None:
        self.read: dict[int, str] = {}
        self.length: dict[int, int] = {}
        self.unread = 0

    def code(self, start: int, line: str, prose: str, *, is_code: bool) -> None:
        if is_code:
            self._put(start, line, prose)
            self.unread += len(line) - len(prose)

    def row(self, start: int, line: str, header: tuple[str, ...]) -> None:
        self._put(start, line, under(header, _cells(line)))

    def heading(self, start: int, line: str, at: int, delimiter: str) -> None:
        self._put(start, line, "")
        self._put(at, delimiter, "")

    def _put(self, start: int, line: str, read: str) -> None:
        self.read[start] = read
        self.length[start] = len(line)


def laid_out(text: str, start: int, layout: AnswerLayout) -> str:
    """Return what is read of a part of the answer that begins at `start`.

    A row of a table stands under its headings and code is left out but for its prose; other lines,
    and those of which the part holds only a piece, stay as they are.
    """
    if not layout.read:
        return text
    kept: list[str] = []
    changed = False
    for at, line in _ink(text):
        here = start + at
        if layout.length.get(here) != len(line):
            kept.append(line)
            continue
        changed = True
        if layout.read[here]:
            kept.append(layout.read[here])
    return "\n".join(kept) if changed else text


def under(header: tuple[str, ...], cells: tuple[str, ...]) -> str:
    """Return a table's row as words: every cell behind the heading of its column."""
    headings = (*header, *("",) * len(cells))
    pairs = zip(headings, cells, strict=False)
    return ", ".join(f"{name} {cell}".strip() for name, cell in pairs if _says(cell))


def prose_in_code(line: str) -> str:
    """Return what a line of code tells people: comments, strings of several words, plain prose."""
    line = _plain(line)
    comment = _COMMENT.search(line)
    code = line[: comment.start()] if comment else line
    told = [found.group()[1:-1] for found in _STRING.finditer(code)]
    told += [comment.group(1)] if comment else []
    rest = _blanked(_STRING, code)
    if _PROSE_LINE.search(rest) and _FUNCTION_WORD.search(rest):
        return line
    return " ".join(filter(_is_prose, told))


def _is_prose(text: str) -> bool:
    """Return whether a string or comment tells people something: no header, query or path."""
    if _IN_QUERIES.search(text) is not None:
        return False
    words = [word for word in text.split() if _PROSE_WORD.fullmatch(word.strip(".,;:!?()'"))]
    return len(words) >= LEAST_WORDS


def _ink(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that is not blank, without the blanks around it, and its offset."""
    offset = 0
    for raw in text.splitlines(keepends=True):
        if line := raw.strip():
            yield offset + raw.index(line[0]), line
        offset += len(raw)


def _header(
    line: str, delimiter: tuple[int, str] = (0, ""), row: tuple[int, str] = (0, "")
) -> tuple[str, ...] | None:
    """Return the headings that a line holds if a delimiter and a row stand below it."""
    is_header = "|" in line and _is_delimiter(delimiter[1]) and "|" in row[1]
    return _cells(line) if is_header else None


def _is_delimiter(line: str) -> bool:
    return "-" in line and "|" in line and _DELIMITER.issuperset(line)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip("|").split("|"))


def _says(cell: str) -> bool:
    return any(map(str.isalnum, cell))


_FENCES = frozenset(("```", "~~~"))
_DELIMITER = frozenset("|:-+ \t")
_LANGUAGES = (
    "bash sh shell zsh fish console terminal powershell ps1 bat cmd python py python3 javascript js"
    " typescript ts jsx tsx java kotlin scala c cpp c++ cs csharp go golang rust rs ruby rb php"
    " perl r sql mysql postgresql swift lua dart dockerfile makefile cmake http curl graphql hcl"
    " terraform"
)
_PROGRAMMING = frozenset(_LANGUAGES.split())
"""Languages of code blocks that no model of ours reads. Data (JSON, YAML, CSV) and blocks without a
language are read like any text: what they say may be wrong."""
_COMMENT = re2.compile(r"(?:^|\s)(?:#+|//+|--|/\*+|\*|<!--|;+|%+|(?i:rem))\s+(.+)")
_STRING = re2.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
_IN_QUERIES = re2.compile(r"[={}$<>]|\b(?:SELECT|INSERT|UPDATE|DELETE|WHERE|FROM)\b")
_PROSE_WORD = re2.compile(r"\pL\p{Ll}*(?:['\x{2019}-]\p{Ll}+)*")
_PROSE_LINE = re2.compile(r"(?:^|[\s(])\pL\p{Ll}*(?:,? \pL\p{Ll}*){4,}")
_FUNCTION_WORD = re2.compile(
    r"(?i)\b(?:the|a|an|is|are|was|were|you|your|will|can|must|every|each|they|we|our|may|has|have)\b"
)
_SOURCES = (
    r"(?:the|this|these|your|any|provided|given|available|retrieved) (?:[a-z-]+ ){0,2}"
    r"(?:documents?|documentation|passages?|texts?|sources?|contexts?|excerpts?|materials?)"
)
_SAY = (
    r"(?:say|mention|give|state|specify|contain|include|describe|provide|cover|tell|indicate|list|"
    r"name|explain|address|discuss)"
)
_APOSTROPHE = r"['\x{2019}]"
_ABOUT_SOURCES = re2.compile(
    rf"(?i)\b{_SOURCES}(?: [a-z-]+){{0,3}} "
    rf"(?:(?:do|does|did)(?: not|n{_APOSTROPHE}t) (?:[a-z]+ ){{0,1}}{_SAY}|"
    rf"only (?:[a-z]+ ){{0,1}}{_SAY}s?|gives? no|contains? no|says? nothing)\b"
    rf"|\b(?:could not|couldn{_APOSTROPHE}t|cannot|can{_APOSTROPHE}t|unable to) "
    r"(?:find|tell|say|see)\b"
    rf".*\b{_SOURCES}\b"
    rf"|\bis not part of {_SOURCES}\b"
)
"""A sentence about what the passages lack: no passage can support it, and it claims nothing that
could be wrong. `claims` leaves out those that stand for the whole answer; these remain. "The
document does not allow refunds" is a claim and stays one."""
_MORE = re2.compile(
    r"(?i)[.!?;:\x{2013}\x{2014}]\s|\b(?:but|however|although|though|yet|while|still|except|"
    r"instead|generally|typically|usually|probably|likely|so|therefore|thus|hence|meaning)\b|,\s*which\b"
)
"""A claim may follow such a remark: "..., but the fee is 30 euros"."""
_JOINTS = re2.compile(r"(?i),\s+(?:(?:and|or)\s+)?|,?\s+(?:because|since)\s+")
_AND = re2.compile(r"(?i)\s+and\s+")
_ASKED = "who|whom|whose|what|when|where|which|why|how|whether|if"
_ASKS = re2.compile(rf"(?i)\b(?:{_ASKED})\b")
_ASKING = re2.compile(rf"(?i)(?:{_ASKED}|nor|not|or|any|no)\b")
_STATES = re2.compile(
    r"(?i)\pN|\b(?:is|are|was|were|has|have|had|will|would|can|could|may|might|must|should|does|do|"
    r"did|gets?|got|costs?|closes?|opens?|receives?|pays?|takes?|lasts?|begins?|starts?|ends?|"
    r"includes?|offers?|needs?|allows?|gives?|provides?|charges?|requires?|runs?|comes?|goes|makes?|"
    r"became|becomes?|remains?|stays?|works?|means|says|shows?|won|lost|died|said)\b"
)
"""After a comma or "and" a remark may name one more thing that is lacking ("fees, and pets"), ask
one more thing ("and what it costs") or state something ("and it costs five euros"): a claim. Behind
"whether" the "and" belongs to the question."""
_LAYOUT = re2.compile(r"(?m)^\s*(?:\d{1,3}[.)]|[-+•*])\s+|[{}\[\]\"*`#|_]+")
_CITATION = re2.compile(r"\[\d{1,3}\]")
"""List markers, markup, JSON's signs, citation marks, and opaque words such as base64: none of them
is in the passages, none of them claims anything, and a list's "4." would be an invented number."""
_BRACKETED = re2.compile(r"[\pL,]\s+\[\d{1,3}\]\s+\pL")
"""A passage may put its numbers in brackets ("notice of [60] days"): then they are no citations."""
_LONG = re2.compile(r"[^\s\p{Z}]{32,}")
_WORD_LIKE = re2.compile(r"\pL?\p{Ll}+")
_UNCASED = re2.compile(r"\p{Lo}")
"""Scripts without capital letters; some of them are written without blanks."""
_PATH = 3
_PARTS = re2.compile(r"[\pL\pN]+")
_LEAST_PARTS = 5
"""A long word is opaque unless it has as many parts like words: "every-guest-receives-a-car" is
text, an address on the Web is not."""
LEAST_WORDS = 3
"""Words a piece with an opaque word needs besides it to claim something."""


def is_about_sources(text: str) -> bool:
    """Return whether a sentence only says what the passages do not tell."""
    plain = _plain(text)
    if _ABOUT_SOURCES.search(plain) is None or _MORE.search(plain) is not None:
        return False
    first, *others = _JOINTS.split(plain)
    if _ASKS.search(first) is None:
        others += _AND.split(first)[1:]
    return not any(
        _STATES.search(part) and not (_ASKING.match(part) or _ABOUT_SOURCES.search(part))
        for part in others
    )


def without_gaps(text: str, question: str | None) -> str:
    """Return a sentence without clauses that only say what the sources lack.

    "The page names the fees, but says nothing about dogs": no passage supports its second half.
    """
    if _DENIES.search(text) is None:
        return text
    for joint in reversed(list(_GAP_JOINTS.finditer(text))):
        behind = text[joint.end() :]
        if _DENIES.search(behind) is not None and claims_nothing(behind, question):
            text = text[: joint.start()]
    for joint in _GAP_JOINTS.finditer(text):
        ahead = text[: joint.start()]
        if _DENIES.search(ahead) is not None and claims_nothing(ahead, question):
            return text[joint.end() :]
    return text


_DENIES = re2.compile(rf"(?i)\b(?:no|not|nothing|neither|never|none)\b|n{_APOSTROPHE}t\b")
_GAP_JOINTS = re2.compile(r"(?i)(?:,|;|\s\x{2013})?\s(?:but|and|although|though|yet|while)\s|;\s")


def is_only_opaque(text: str) -> bool:
    """Return whether a piece is an opaque word with hardly a word beside it ("Note: c2Vh...")."""
    plain = _plain(text)
    rest = without_opaque(plain)
    return rest != plain and sum(any(map(str.isalnum, w)) for w in rest.split()) < LEAST_WORDS


def opaque_characters(texts: Iterable[str]) -> list[int]:
    """Return, of each text, how many code points lie in words that are left out as opaque."""
    return [
        sum(len(word) for word in _LONG.findall(_plain(text)) if _is_opaque(word)) for text in texts
    ]


_QUOTES_AND_DASHES = (
    "\u2018\u2019\u201c\u201d\u201e\u2013\u2014\u2026\u2022\u00b7\u00d7\u20ac\u00a3\u00b0"
)


def unsaid(sample: SegmentedSample, texts: Sequence[str]) -> list[Unsaid]:
    """Return how many words of each text neither the passages nor the question have.

    Words of courtesy and of talk about an answer do not count: whoever invents something names it.
    """
    given = sample.sample
    own = [_words(text) for text in texts]
    words = unusual([word for found in own for word in found if len(word) >= _LEAST_LETTERS])
    if not words:
        return [Unsaid(0, 0)] * len(texts)
    found = stems([*words, *_words(given.question or "")])
    passages = tuple(passage.text for passage in given.contexts)
    is_kept = sum(map(len, passages)) <= KEPT_CHARS
    said = (_kept_stems if is_kept else _stems_in_time)(passages).union(found[len(words) :])
    new = {word for word, stem in zip(words, found, strict=False) if stem not in said}
    every = frozenset(words)
    return [
        Unsaid(sum(word in new for word in found), sum(word in every for word in found))
        for found in own
    ]


def _stems_of(texts: Iterable[str]) -> frozenset[str]:
    """Return the stems of some texts' words."""
    return frozenset(stems({word for text in texts for word in _words(text)}))


def _stems_in_time(texts: tuple[str, ...]) -> frozenset[str]:
    return _stems_of(in_time(texts, 8))


KEPT_PASSAGES, KEPT_CHARS = 64, 10_000
"""The same passages come again with the next answer."""
_kept_stems = lru_cache(KEPT_PASSAGES)(_stems_of)


def _words(text: str) -> list[str]:
    """Return a text's words in lower case; RE2 takes forty times as long for a passage."""
    return text.lower().translate(_NO_LETTERS).split()


_NO_LETTERS = dict.fromkeys(map(ord, string.punctuation + string.digits + _QUOTES_AND_DASHES), " ")
_LEAST_LETTERS = 3


def without_opaque(text: str) -> str:
    """Return a text with blanks in place of its opaque words."""
    for word in filter(_is_opaque, _LONG.findall(text)):
        check_time()
        text = text.replace(word, " ")
    return text


def _is_opaque(word: str) -> bool:
    """Return whether a long run without blanks is no text."""
    if "://" in word or word.startswith("www.") or word.count("/") >= _PATH:
        return True
    if _UNCASED.search(word) is not None:
        return False
    alike = 0
    for part in in_time(_PARTS.finditer(word)):
        alike += _WORD_LIKE.fullmatch(part.group()) is not None
        if alike >= _LEAST_PARTS:
            return False
    return True


def without_layout(text: str, *, keep_brackets: bool) -> str:
    """Return a text's words without opaque ones, list markers, markup and citation marks.

    Args:
        text: A claim.
        keep_brackets: Whether numbers in brackets are amounts and not citations.
    """
    plain = without_opaque(_plain(text))
    if not keep_brackets:
        plain = _blanked(_CITATION, plain)
    return " ".join(_blanked(_LAYOUT, plain).split())


def _blanked(regex: Any, text: str) -> str:
    """Return a text with a blank in place of every match."""
    kept: list[str] = []
    start = 0
    for count, found in enumerate(regex.finditer(text), 1):
        if not count % BETWEEN_LOOKS:
            check_time()
        kept.append(text[start : found.start()])
        start = found.end()
    return " ".join((*kept, text[start:]))


def has_bracketed_numbers(text: str) -> bool:
    """Return whether a passage puts its numbers in brackets."""
    return _BRACKETED.search(_plain(text)) is not None


def _plain(text: str) -> str:
    """Return a text that RE2 takes."""
    return text if text.isascii() else encodable(text)

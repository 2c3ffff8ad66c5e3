"""What an answer says that claims nothing: remarks about the passages, opaque words, layout.

All of it enters the evidence fingerprint by `detector.READING_VERSION`: whoever changes a rule here
changes scores and thresholds.
"""

from __future__ import annotations

import re2

from guardrail_service.text.patterns.search import encodable

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
"""What may follow such a remark is a claim again: "..., but the fee is 30 euros"."""
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


def is_only_opaque(text: str) -> bool:
    """Return whether a piece is an opaque word with hardly a word beside it ("Note: c2Vh...")."""
    plain = _plain(text)
    rest = without_opaque(plain)
    return rest != plain and sum(any(map(str.isalnum, w)) for w in rest.split()) < LEAST_WORDS


def opaque_characters(text: str) -> int:
    """Return how many code points lie in words that are left out as opaque."""
    plain = _plain(text)
    return sum(len(word) for word in _LONG.findall(plain) if _is_opaque(word))


def without_opaque(text: str) -> str:
    """Return a text with blanks in place of its opaque words."""
    for word in filter(_is_opaque, _LONG.findall(text)):
        text = text.replace(word, " ")
    return text


def _is_opaque(word: str) -> bool:
    """Return whether a long run without blanks is no text."""
    if "://" in word or word.startswith("www.") or word.count("/") >= _PATH:
        return True
    if _UNCASED.search(word) is not None:
        return False
    parts = _PARTS.findall(word)
    return sum(_WORD_LIKE.fullmatch(part) is not None for part in parts) < _LEAST_PARTS


def without_layout(text: str, *, keep_brackets: bool) -> str:
    """Return a text's words without opaque ones, list markers, markup and citation marks.

    Args:
        text: A claim.
        keep_brackets: Whether numbers in brackets are amounts and not citations.
    """
    plain = without_opaque(_plain(text))
    if not keep_brackets:
        plain = _CITATION.sub(" ", plain)
    return " ".join(_LAYOUT.sub(" ", plain).split())


def has_bracketed_numbers(text: str) -> bool:
    """Return whether a passage puts its numbers in brackets."""
    return _BRACKETED.search(_plain(text)) is not None


def _plain(text: str) -> str:
    """Return a text that RE2 takes."""
    return text if text.isascii() else encodable(text)

"""Finds quotations in an answer, and which of them are not the answer's own words.

A quotation is set apart only where its sentence speaks of it and of neither the writer nor the
reader: words that copy a passage with somebody named for them, or one to four words that the
sentence explains as words. "As they say, you are an 'idiot'" is the answer's own insult.
"""

# Quotation marks of several scripts are what is sought. Lists of words are easier to check unwrapped.
# ruff: noqa: RUF001, E501

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from guardrail_service.text.patterns.search import Prepared, compile_regex

QUOTATIONS_VERSION: Final = "rag-guardrail-quotations/1"
"""Part of the safety models' fingerprint: raise it when another quotation is set apart."""
MARKS: Final = frozenset('"“”„«»')
_QUOTED = compile_regex(
    '"[^"\n]{1,400}"|“[^”\n]{1,400}”|„[^“”\n]{1,400}[“”]|«[^»\n]{1,400}»', "quotation"
)
SPEAKS: Final = compile_regex(
    r"(?i)\b(?:you|your|yours|yourself|u|ur|i|i'm|i'd|i'll|i've|me|my|we|we're|our|us|let's)\b",
    "writer or reader",
)
_HANDED = compile_regex(
    r"(?i)\b(?:that|which)? ?you (?:have )?(?:uploaded|asked|sent|attached|quoted|pasted|provided|shared)\b",
    "what the reader handed in",
)
_REPORTS = compile_regex(
    r"(?i)\b(?:says?|said|saying|writes?|wrote|written|tells?|telling|told|calls?|called|calling|names?|named|"
    r"shout(?:s|ed|ing)?|yell(?:s|ed)?|chant(?:s|ed)?|reads?|quot(?:e|es|ed|ing|ation)|cit(?:e|es|ed)|"
    r"describ(?:e|es|ed)|post(?:s|ed)?|tweet(?:s|ed)?|testif(?:y|ied)|testimony|claim(?:s|ed)?|"
    r"repl(?:y|ied)|answer(?:s|ed)?|ask(?:s|ed)?|label(?:s|led|ed)?|referred|mock(?:s|ed)?|insult(?:s|ed)?|"
    r"according|messages?|letters?|e-?mails?|comments?|reviews?|leaflets?|pamphlets?|posters?|banners?|signs?|"
    r"slogans?|graffiti|diary|recording|transcript|minutes|complaint|indictment|verdict|passages?|text|"
    r"contains?|begins|remarks?|lines?|lyrics?|song|novel|play|film|poem|speech|headline|title)\b",
    "report",
)
_OF_WORDS = compile_regex(
    r"(?i)\b(?:words?|terms?|expressions?|phrases?|names?|titles?|slurs?|insults?|nouns?|verbs?|"
    r"adjectives?|abbreviations?|acronyms?|spell(?:ed|ing)|slang|synonyms?|dictionary|glossary|etymology|"
    r"means|meant|meaning|derogatory|offensive|obsolete|outdated|dated|linguists?|translat(?:e|es|ed|ion)|"
    r"songs?|albums?|films?|movies?|novels?|books?|series|band|musical|sitcom|hit|track|single|poem|"
    r"painting|dish|breed|position|crossword|clue|filter|blocked|blocks?|allow list|word list)\b",
    "talk about words",
)
_JUDGES = compile_regex(
    r"(?i)\b(?:right|best|only|correct|proper|perfect|fitting|one|other) (?:word|name|term|expression)|"
    r"\b(?:word|name|term|expression)s? (?:for|that (?:fits|describes))\b|\bin a word\b|\bin (?:other|plain) words\b",
    "a word that is used, not explained",
)
MOST_WORDS = 4
"""Words of a quotation that a sentence may explain."""
LEAST_LETTERS = 3
_FAR = 200
_STOPS = (". ", "! ", "? ", ".\n", "\n")


class Quotation(NamedTuple):
    """The inside of a quotation, [start, end) in the text, without its marks."""

    start: int
    end: int


def quotations(text: str) -> Iterator[Quotation]:
    """Yield quotations in order; marks of one kind pair up within a line."""
    source = Prepared(text)
    for match in _QUOTED.finditer(source.data):
        yield Quotation(source.code_point(match.start()) + 1, source.code_point(match.end()) - 1)


def set_apart(text: str, passages: Sequence[str]) -> list[Quotation]:
    """Return the quotations that are not the answer's own words.

    Args:
        text: The answer.
        passages: What it was written from; without any, only single words are set apart.
    """
    found = [q for q in quotations(text) if q.end - q.start >= LEAST_LETTERS]
    sources: list[str] = []
    apart = []
    for quotation in found:
        around = _around(text, quotation, found)
        data = _HANDED.sub(b"", Prepared(around).data)
        if not around.strip() or SPEAKS.search(data):
            continue
        quoted = text[quotation.start : quotation.end]
        if _is_word(quoted) and _OF_WORDS.search(data) and not _JUDGES.search(data):
            apart.append(quotation)
        elif passages and _REPORTS.search(data):
            sources = sources or [_folded(passage) for passage in passages]
            wanted = _folded(quoted).strip(" .,;:!?…")
            if wanted and any(wanted in source for source in sources):
                apart.append(quotation)
    return apart


def is_reported(text: str, start: int) -> bool | None:
    """Return whether the quotation around a place is ascribed to anybody or spoken about.

    For rules that only add findings: what they leave, the model still judges.

    Returns:
        None where the place is in no quotation.
    """
    found = list(quotations(text))
    for quotation in found:
        if quotation.start <= start < quotation.end:
            data = _HANDED.sub(b"", Prepared(_around(text, quotation, found)).data)
            goes_on = text[quotation.end + 1 : quotation.end + 12].lstrip(" ,")[:1].islower()
            told = bool(_REPORTS.search(data) or _OF_WORDS.search(data)) or goes_on
            return told and not SPEAKS.search(data)
    return None


def _is_word(quoted: str) -> bool:
    return len(quoted.split()) <= MOST_WORDS and not quoted.rstrip().endswith(("!", "?"))


def _around(text: str, quotation: Quotation, all_of_them: Sequence[Quotation]) -> str:
    """Return the rest of the sentence that a quotation stands in, without other quotations."""
    low, high = max(0, quotation.start - _FAR), quotation.end + _FAR
    before, behind = text[low : quotation.start - 1], text[quotation.end + 1 : high]
    for other in all_of_them:
        if low <= other.start - 1 and other.end < quotation.start:
            size = other.end - other.start
            before = before[: other.start - low] + " " * size + before[other.end - low :]
    stops = [before.rfind(stop) + len(stop) for stop in _STOPS if stop in before]
    start = max(stops, default=0)
    ended = text[quotation.start : quotation.end].rstrip()[-1:] in ".!?"
    if ended and behind.lstrip()[:1].isupper():
        behind = ""
    ends = [at for stop in _STOPS if (at := behind.find(stop)) >= 0]
    return f"{before[start:]} {behind[: min(ends, default=len(behind))]}"


def _folded(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())

"""Finds claims that are copied whole from a passage, so that no model has to read them.

A claim is settled if its words are those of one whole sentence of a passage, or of whole sentences
that follow each other there. Everything that could make the copy mean something else leaves the
claim to the model (`QuotedPassage.may_begin`, `is_plain`). Not seen, here or by the model:
what the answer's own neighbouring sentences make of the copy, and that another passage says
otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import re2

from guardrail_service.detectors.groundedness import read_with_question
from guardrail_service.inference.models.lexical import STOP
from guardrail_service.text.cached import cached_property
from guardrail_service.text.patterns.search import encodable
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.text.segmentation.sentences import Sentence
from guardrail_service.types import Role

GATE_VERSION: Final = "rag-guardrail-verbatim/2"
"""Part of the evidence fingerprint: whoever changes a rule here changes scores and thresholds."""
SUPPORT: Final = 0.99
"""P(supported) of a settled claim. Not 1: a copied sentence can still be out of place."""
LEAST_WORDS = 4
"""Shorter claims ("He did not.", "Five euros.") hang on what stands around them."""
CANDIDATES = 16
"""Places looked at for a claim; only texts that repeat themselves have more that begin alike."""
_KEY_WORDS = 4
_KEY_CHARS = 80
_SHORT = 3
"""Words of at most so many letters keep their case: "mW" is no "MW", "US" is no "us"."""
_QUOTES = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"')
)
_PAIRED = (("\u201c", "\u201d"), ("\u00ab", "\u00bb"), ("\u201e", "\u201c"), ("(", ")"))
_QUOTE_MARKS = frozenset("\"'\u201c\u201d\u201e\u201f\u00ab\u00bb\u2018\u2019")
_ENDS = frozenset(".!")
_NO_STATEMENT = ("?", "|", "...", "\u2026")
_SIGNS = ".!,;:"
_EMPHASIS = "*_"
_BULLETS = frozenset(("-", "+", "*", "\u2013", "\u2022", "\u00b7"))
_LINKS = (
    "so then thus therefore hence otherwise instead however moreover furthermore additionally"
    " similarly likewise consequently also too but and or nor yet still though both neither either"
    " one ones other others another again above below following not no yes which who whose whom"
    " whereas meanwhile afterwards finally that hers theirs"
)
_LINKING = frozenset(_LINKS.split())
"""A sentence that begins with one of these goes on from the one before. "No" and "not" may also
begin a statement ("No dogs are allowed."): only with a sign behind them they are an answer."""
_STATING = frozenset(("no", "not"))
_REFERENCES = (
    "he she it they him her them his its their this these those here such same former latter"
    " example instance"
)
_REFERRING = frozenset(_REFERENCES.split())
"""A sentence with one of these among its first words takes its sense from the one before."""
_REFERRING_WORDS = 3
_BE = frozenset(("is", "are", "was", "were"))
_DOUBT = re2.compile(
    r"(?i)\b(?:myths?|misconceptions?|fallac(?:y|ies)|rumou?r(?:s|ed)?|hoax(?:es)?|false(?:ly)?|"
    r"untrue|incorrect(?:ly)?|wrong(?:ly)?|mistaken(?:ly)?|not true|not the case|debunk\w*|"
    r"dispro\w+|refut\w+|retract\w*|alleg\w+|purported\w*|suppos\w+|hypothe\w+|imagin\w+|"
    r"fiction\w*|pretend\w*|satir\w+|contrary|misleading|no longer|obsolete|outdated|superseded|"
    r"repealed|invalid|used to be|den(?:y|ies|ied|ying|ials?)|"
    r"disput\w+|contradict\w*|not so|(?:the|as) follow(?:ing|s))\b|~~|```|<(?:del|s|strike|!--)"
)
"""A passage with one of these may quote what it denies, so it settles nothing."""


class Copy(NamedTuple):
    """The place of a word-for-word copy: passage `context`, code points [start, end)."""

    context: int
    start: int
    end: int


class Words(NamedTuple):
    """A sentence's words without layout, and whether it ends like a statement."""

    words: tuple[str, ...]
    ended: bool


class OpenMarks(NamedTuple):
    """Quotation marks so far, and of each sort of pair how many more were opened than closed."""

    quotes: int
    pairs: tuple[int, ...]

    def after(self, text: str) -> OpenMarks:
        """Return the same behind a text."""
        pairs = (
            more + text.count(opens) - text.count(closes)
            for more, (opens, closes) in zip(self.pairs, _PAIRED, strict=True)
        )
        return OpenMarks(self.quotes + text.count('"'), tuple(pairs))

    def are_closed(self) -> bool:
        """Return whether nothing is open."""
        return self.quotes % 2 == 0 and all(more <= 0 for more in self.pairs)


class QuotedPassage:
    """One passage's sentences, looked at only as far as some claim begins like them."""

    def __init__(self, text: str, sentences: Sequence[Sentence]) -> None:
        self.text = text
        self.sentences = sentences
        self._words: dict[int, Words] = {}

    def words(self, place: int) -> Words:
        """Return a sentence's words."""
        if place not in self._words:
            self._words[place] = _words(self.sentences[place].text)
        return self._words[place]

    @cached_property
    def is_doubtful(self) -> bool:
        """Return whether the passage speaks of things that are not so."""
        return _DOUBT.search(encodable(self.text)) is not None

    def is_plain(self, place: int) -> bool:
        """Return whether a sentence states something.

        It is no question, no part of a quotation or a bracket, no table row and not broken off.
        """
        text = self.sentences[place].text
        if text[0] in _QUOTE_MARKS or any(sign in text for sign in _NO_STATEMENT):
            return False
        return self.words(place).ended and self._begins_outside[place] and _is_balanced(text)

    @cached_property
    def _begins_outside(self) -> list[bool]:
        """Return for each sentence whether no quotation and no bracket is open where it begins."""
        found, end, open_marks = [], 0, OpenMarks(0, (0,) * len(_PAIRED))
        for sentence in self.sentences:
            open_marks = open_marks.after(self.text[end : sentence.start])
            end = sentence.start
            found.append(open_marks.are_closed())
        return found

    def may_begin(self, place: int) -> bool:
        """Return whether a sentence says the same without the one before it."""
        text = self.sentences[place].text
        words = self.words(place).words
        if _is_item(text) or (text[0].islower() and not self.text.islower()):
            return False
        if place and self.sentences[place - 1].text.rstrip(_EMPHASIS)[-1:] in (":", "?"):
            return False
        first = [word.strip(_SIGNS).lower() for word in words[:_REFERRING_WORDS]]
        if first[:1] == ["there"] and not _BE.intersection(first[1:2]):
            return False
        states = first[:1] and first[0] in _STATING and words[0][-1].isalpha()
        return bool(states or _LINKING.isdisjoint(first[:1])) and _REFERRING.isdisjoint(first)

    def end_of(self, claim: tuple[str, ...], place: int) -> int | None:
        """Return the last sentence of the run from `place` on that has a claim's words, or None."""
        at = 0
        for last in range(place, len(self.sentences)):
            words = self.words(last).words
            if not _same(claim[at : at + len(words)], words, at + len(words) == len(claim)):
                return None
            if not self.is_plain(last):
                return None
            at += len(words)
            if at == len(claim):
                return last
        return None


def copies(
    sample: SegmentedSample, pieces: tuple[Sentence, ...], role: Role
) -> tuple[Copy | None, ...]:
    """Return for each claim where a passage says it word by word, None where a model must read it.

    Args:
        sample: The answer with its passages.
        pieces: The answer's claims, in order.
        role: Whose windows decide whether a short answer is read with its question.
    """
    return tuple(_copies(sample, pieces, role))


def _copies(
    sample: SegmentedSample, pieces: tuple[Sentence, ...], role: Role
) -> Iterator[Copy | None]:
    sources = [
        QuotedPassage(passage.text, sentences)
        for passage, sentences in zip(sample.sample.contexts, sample.context_sentences, strict=True)
    ]
    is_alone = len(pieces) == 1
    with_question = is_alone and read_with_question(sample, pieces, role) is not None
    begins = _begins(sources)
    before: tuple[int, int] | None = None  # the passage sentence that the claim before ended with
    end = 0
    for piece in pieces:
        if sample.answer[end : piece.start].strip():
            before = None
        end = piece.end
        found = _found(piece.text, sources, begins, before)
        if found and with_question and not _names_all(sample.sample.question or "", piece.text):
            found = None
        before = None if found is None else (found[0], found[2])
        yield found and _copy(sources, *found)


def _found(
    text: str,
    sources: Sequence[QuotedPassage],
    begins: dict[tuple[str, ...], list[tuple[int, int]]],
    before: tuple[int, int] | None,
) -> tuple[int, int, int] | None:
    """Return the passage and the first and last sentence that have a claim's words."""
    if "?" in text:
        return None
    claim = _words(_unquoted(text), cites=True).words
    places = begins.get(_key(text), [])[:CANDIDATES]
    if before is not None:
        places = [(before[0], before[1] + 1), *places]
    for context, place in places if len(claim) >= LEAST_WORDS else ():
        source = sources[context]
        if place >= len(source.sentences) or source.is_doubtful:
            continue
        follows = before == (context, place - 1)
        if (follows or source.may_begin(place)) and (
            last := source.end_of(claim, place)
        ) is not None:
            return context, place, last
    return None


def _copy(sources: Sequence[QuotedPassage], context: int, first: int, last: int) -> Copy:
    sentences = sources[context].sentences
    return Copy(context, sentences[first].start, sentences[last].end)


def _begins(sources: Sequence[QuotedPassage]) -> dict[tuple[str, ...], list[tuple[int, int]]]:
    """Return the sentences by how they begin."""
    found: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for context, source in enumerate(sources):
        for place, sentence in enumerate(source.sentences):
            key = _key(source.text[sentence.start : sentence.start + _KEY_CHARS])
            found.setdefault(key, []).append((context, place))
    return found


def _key(text: str) -> tuple[str, ...]:
    """Return the letters of a text's first words; equal for equal sentences, whatever their layout.

    A text with fewer words than this has another key than a longer one that begins with it, and is
    left to the model.
    """
    found: list[str] = []
    for word in text[:_KEY_CHARS].split():
        letters = word if word.isalpha() else "".join(filter(str.isalpha, word))
        if letters:
            found.append(letters.lower())
            if len(found) == _KEY_WORDS:
                break
    return tuple(found)


def _words(text: str, *, cites: bool = False) -> Words:
    """Return a text's words without list markers, citation marks and emphasis.

    Quotation marks are one sort each; the sign that ends the text is taken off.

    Args:
        text: A claim or a passage sentence.
        cites: Whether a mark right behind a word ("per night[1]") or before the final sign is a
            citation, too. In a passage it may be what tells "a[1]" from "a[2]", so there it stays.
    """
    words: list[str] = []
    found = text.translate(_QUOTES).split()
    for place, word in enumerate(found):
        if word.isalnum():
            plain = word
        else:
            is_last = cites and place == len(found) - 1
            ends = is_last or bool(words and words[-1][-1] in _ENDS)
            plain = _plain(word, cites, ends)
        if plain in _ENDS and words:
            words[-1] += plain
        elif plain:
            words.append(plain)
    if words and (words[0] in _BULLETS or _is_number_mark(words[0])):
        words = words[1:]
    if not words:
        return Words((), False)
    last, ended = _without_end(words[-1])
    return Words((*words[:-1], last), ended)


def _plain(word: str, cites: bool, ends: bool) -> str:
    """Return a word without emphasis and citation marks; "" if nothing else was there.

    A mark that is a word of its own is a citation only where a sentence `ends`; elsewhere it may be
    a number in brackets ("notice of [60] days"). One star behind a number is part of it ("5*").
    """
    body = word.rstrip(_SIGNS)
    signs = word[len(body) :]
    while body.endswith("]") and (at := body.rfind("[")) >= 0:
        if not body[at + 1 : -1].replace(",", "").isdigit():
            break
        if (at and body[at - 1].isalnum() and not cites) or (not at and not ends):
            break
        body = body[:at]
    if body[-1:] == "*" and body[-2:-1].isdigit():
        return body + signs
    return (body.strip(_EMPHASIS) or body) + signs


def _is_number_mark(word: str) -> bool:
    return word[-1] in ".)" and word[:-1].isdigit() and len(word) <= 4


def _without_end(word: str) -> tuple[str, bool]:
    """Return a last word without what ends the sentence, and whether that ends a statement."""
    closers = len(word) - len(word.rstrip("\"')" + _EMPHASIS))
    body, tail = (word[:-closers], word[-closers:]) if closers else (word, "")
    bare = body.rstrip(".!")
    return bare + tail.strip(_EMPHASIS), bare != body and bool(bare)


def _same(claim: tuple[str, ...], words: tuple[str, ...], is_last: bool) -> bool:
    """Return whether a part of a claim has a sentence's words, and ends like one."""
    if not words or len(claim) != len(words):
        return False
    last, ended = (claim[-1], True) if is_last else _without_end(claim[-1])
    if not ended:
        return False
    return all(
        own == other or _differs_in_case(own, other, number == 0)
        for number, (own, other) in enumerate(zip((*claim[:-1], last), words, strict=True))
    )


def _differs_in_case(own: str, other: str, is_first: bool) -> bool:
    """Return whether two words are one; short ones and ones with digits keep their case."""
    if own.lower() != other.lower() or any(map(str.isdigit, own)):
        return False
    if is_first and own[1:] == other[1:]:
        return True
    return sum(map(str.isalpha, own)) > _SHORT


def _unquoted(text: str) -> str:
    """Return a claim without the quotation marks around it: the passage is what it quotes."""
    plain = text.translate(_QUOTES).strip()
    if len(plain) > 2 and plain[0] == plain[-1] == '"' and plain.count('"') == 2:
        return plain[1:-1]
    return plain


def _is_item(text: str) -> bool:
    first = text.split(None, 1)[0]
    return first in _BULLETS or first[0] in "\u2022\u25e6\u25aa\u25cf" or _is_number_mark(first)


def _is_balanced(text: str) -> bool:
    """Return whether a text leaves no quotation and no bracket open."""
    return OpenMarks(0, (0,) * len(_PAIRED)).after(text).are_closed()


def _names_all(question: str, claim: str) -> bool:
    """Return whether a claim has every content word of its question, whatever their endings.

    "Ten euros per person." is a whole sentence somewhere and still no answer to what the sauna
    costs.
    """
    own = _content(claim)
    return all(any(_akin(word, other) for other in own) for word in _content(question))


def _content(text: str) -> list[str]:
    words = "".join(c.lower() if c.isalnum() else " " for c in text).split()
    return [word for word in words if word not in STOP]


def _akin(word: str, other: str) -> bool:
    least = min(len(word), len(other))
    return word == other or (least >= 4 and word[:least] == other[:least])

"""Recognises answers that abstain in every clause; in doubt, an answer does not abstain.

Calling a claim an abstention would keep it from being checked, so each rule errs the other way:
a clause that is not recognised, a number that the question does not have, or a gap in the sources
that nobody asked about makes the answer an answer. See docs/decisions/0003-abstention-by-rules.md.
"""

# Full-width and typographic punctuation is what the rules look for.
# ruff: noqa: RUF001

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import re2

from guardrail_service.detectors.no_answer import courtesy, gaps, phrases
from guardrail_service.detectors.no_answer.speech import Speech, speech
from guardrail_service.detectors.registry import (
    Detector,
    DetectorSpec,
    Listing,
    MetricSpec,
    Parameters,
    detector,
)
from guardrail_service.text.budget import check_time, in_time
from guardrail_service.text.patterns.search import encodable
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.text.segmentation.sentences import Sentence
from guardrail_service.types import Coverage, Direction, Outcome, RowOutput, Span


def abstains(sample: SegmentedSample) -> bool:
    """Return whether the whole answer abstains; then there is no claim to check.

    An abstention followed by claims is not one. Refusals count: they claim nothing either.
    """
    sentences = [sentence.text for sentence in sample.raw_answer_sentences]
    return sample.once("abstains", lambda: is_abstention(sentences, sample.sample.question))


class NoAnswerParameters(Parameters):
    """There is nothing to set."""


@detector
class NoAnswer(Detector[NoAnswerParameters]):
    """Reports abstentions. It gates nothing: an honest "I do not know" is not a fault."""

    spec = DetectorSpec(
        id="no_answer",
        version="rules/1",
        aliases=("open_rag_eval:no_answer",),
        summary="Does the answer attempt to answer? (reported)",
        metrics=(MetricSpec("answered", Direction.HIGHER, boolean=True),),
        inputs=frozenset({"question", "answer"}),
        listing=Listing(
            title="No answer",
            tags=("rule-based", "nist:valid-reliable"),
            original="J",
            surrogate="phrases of abstention in place of a judge",
        ),
    )
    parameters = NoAnswerParameters

    def reduce(
        self,
        sample: SegmentedSample,
        outputs: Sequence[RowOutput],
        parameters: NoAnswerParameters,
    ) -> Outcome:
        """Return 0.0 if the whole answer abstains and 1.0 if it does not."""
        abstained = abstains(sample)
        span = Span(0, len(sample.answer), "abstention", 0.0, "answered")
        return Outcome.evaluated(
            {"answered": float(not abstained)},
            (span,) if abstained else (),
            Coverage.whole(sample.sample),
        )


MAX_SENTENCES = 6  # the longest abstention of the labelled sets has three
MAX_SENTENCE_CHARS = 400
MAX_CLAUSE_CHARS = 160
_SHORT_TAIL = 3  # words after "and" that can only be a noun: "prices and fees"
_MAX_SOFTENERS = 4  # "so, unfortunately, based on the passages, ..."
_STEM = 4  # letters two forms of one word share: "mention", "mentioned"

_QUESTION_WORDS = (
    "(?:what|who|whom|whose|when|where|why|which|how|wer|wen|wem|was|wann|wo|warum|wie|"
    "welche[rsnm]?|qui|quoi|que|quel(?:le)?s?|quand|où|pourquoi|comment|combien|qué|quién|cuándo|"
    "dónde|cuál|cómo|cuánt[oa]s?|chi|che|cosa|quando|dove|perché|quale?|come|quant[oaie]|quem|"
    "qual|onde|como|quant[oa]s?|wat|wanneer|waar|waarom|welke?|hoe)"
)
_QUESTION_WORDS_UNSPACED = (
    "何|誰|いつ|どこ|なぜ|どの|いくら|どう|は$|什么|谁|哪|为什么|怎|多少|几|多长"
)
_POLAR = (
    "(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might|must) .*"
)
_ABOUT_SOURCES = (
    "mention|contain|specif|includ|missing|lack|omit|erwähn|enthalt|enthält|contien|contém|"
    "mencion|menzion|vermeld|bevat|記載|言及|書かれ|提到|提及|包含"
)
_GENERIC = (
    "info[a-zóõçã]*|details?|data|answers?|question|questão|domanda|pregunta|frage|vraag|about|"
    "regarding|concerning|this|that|these|those|your|with|from|enough|sufficient|specific|"
    "relevant|necessary|needed|anything|something|provided|given|available|determine|respond|"
    "context[a-z]*|kontext[a-z]*|passages?|documents?|documentation|texts?|sources?|articles?|"
    "materials?|excerpts?|snippets?|search|results|knowledge|base|supplied|retrieved|exact|"
    "exactly|topic|subject|what|when|where|which|whose|whether|does|have|been|were|will|would|"
    "there|mention|related|detail|explicitly|directly|darüber|dazu|über|esta|cette|the|and|for|"
    "any|are|was|not|how|who|why|you|can|has|had|its|our|out|all|one|was|der|die|das|des|dem|den|"
    "ein|eine|wie|wer|ist|les|une|est|que|qui|los|las|una|del|por|con|sobre|gli|che|per|uma|dos|"
    "das|het|een|van|wat|over|sur|pour|[提供情報資料文書脈所给定的档件上下信息内容中里关]"
)


def _any(alternatives: Iterable[str]) -> Any:
    """Compile phrases; what an open end stands for becomes a group."""
    options = re2.Options()
    options.log_errors = False
    joined = "|".join(f"(?:{alternative})" for alternative in alternatives)
    return re2.compile(joined.replace("…", "((?: .*)?)").replace("§", "(.*)"), options)


_KEPT_CLAUSES = 256
"""An answer's clauses are looked at for abstention and again for claims."""
_CHUNK = 20
"""Phrases in one automaton; RE2 gives each 8 MiB and is ten times slower where they do not do."""


class _Phrases:
    """Many phrases, looked for a chunk at a time."""

    def __init__(self, alternatives: Sequence[str]) -> None:
        self._chunks = [
            _any(alternatives[start : start + _CHUNK])
            for start in range(0, len(alternatives), _CHUNK)
        ]
        self._kept = lru_cache(_KEPT_CLAUSES)(self._found)

    def fullmatch(self, clause: str) -> Any:
        """Return the match of the first chunk that has one, or None."""
        return (self._kept if len(clause) <= MAX_CLAUSE_CHARS else self._found)(clause)

    def _found(self, clause: str) -> Any:
        found = (chunk.fullmatch(clause) for chunk in self._chunks)
        return next((match for match in found if match is not None), None)


_SELF = _any((*phrases.SELF, *phrases.FRAGMENT))
_SOURCE = _any(phrases.SOURCE)
_MORE_SELF = _Phrases(gaps.MORE_SELF)
_MORE_SOURCE = _Phrases(gaps.MORE_SOURCE)
_CLAIM = _any(phrases.CLAIM)
_COURTESY = _Phrases((*phrases.COURTESY, *courtesy.COURTESY))
_SOFTENER = re2.compile(
    rf"(?:(?:{'|'.join((*phrases.SOFTENER, *gaps.MORE_SOFTENER))})(?: |$)"
    rf"|(?:{'|'.join((*phrases.SOFTENER_UNSPACED, *gaps.MORE_SOFTENER_UNSPACED))}))"
)
_STATES = re2.compile(gaps.STATES)
_ASKS = re2.compile(gaps.ASKS)
_OPEN = _any([f"(?:.* |¿)?{_QUESTION_WORDS}(?: .*)?", f".*(?:{_QUESTION_WORDS_UNSPACED}).*"])
_CLOSED = _any([_POLAR, f".*(?:{_ABOUT_SOURCES}).*"])
_GENERIC_WORD = _any([_GENERIC])
_WORD = re2.compile(r"\p{Han}|\p{Katakana}+|[\p{Latin}\p{Cyrillic}\p{Greek}]{3,}")
_NUMBER = re2.compile(r"\pN+")
_BREAK = re2.compile(
    r"\s*[;:()\[\]{}、，；：（）—–|\n]\s*|,\s+|\s-+\s|"
    r"\s(?:but|however|although|though|because|since|except|instead|without|unless|while|whereas|"
    r"yet|therefore|only|apart from|other than|aber|jedoch|sondern|weil|mais|cependant|pero|porque|"
    r"ma|però|mas|porém|maar|echter|omdat)\s"
)
_READ_AS = (
    (" only", re2.compile(r"\b(i|we|i can|we can|i could|i'd|i would) only\b"), r"\1 just"),
    (" ma", re2.compile(r"\b(nie|czy) ma\b"), r"\1 jest"),
    (" mais", re2.compile(r"\b(em|há|tem|tiver) mais\b"), r"\1 outra"),
)
"""Words that begin another clause elsewhere ("only", Italian "ma", French "mais") and not here."""
_EMBEDDED = _any(
    [  # what is asked may follow a comma in German and Polish
        "(?:wann|wer|wem|wen|wessen|wie|was|wo|wohin|woher|warum|weshalb|ob|welche[rsnm]?|"
        "ile|czy|kiedy|gdzie|kto|jak|jaki[emj]?|jaka|któr[yae]|dlaczego) .*"
    ]
)
_LEADING = re2.compile("(?:(?:so|and|but|or|und|aber|et|mais|y|e|en|maar|ma|pero|mas) )+")
_YES_OR_NO = frozenset(("yes", "no", "yeah", "yep", "nope"))
_ASSENTS = _YES_OR_NO | {"sure", "certainly", "absolutely", "of course", "definitely"}
_ASSENTS |= {"ok", "okay", "alright", "right", "great", "perfect", "wonderful", "lovely"}
"""These say nothing, unless they answer a question; yes and no only beside courtesy."""
_YES_OR_NO_WANTED = re2.compile(
    r"^(?:(?:hi|hello|hey|so|and|but|or|ok|please|well|also)[ ,!]+(?:there[ ,!]+)?)*"
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might|must|am) "
    r"|\b(?:can|may|could|should|do|am|will) i\b|\b(?:is|are) (?:it|there|they)\b"
)
_TO_THE_SPEAKER = re2.compile(
    r"^[^?]{0,20}\b(?:"
    r"are you (?:there|here|a|an|the|real|human|able|still|sure|awake|listening|online)"
    r"|(?:can|could|would|will) you (?:please )?(?:help|assist|hear|understand|do|speak|write"
    r"|explain|summari[sz]e|list|give|show|describe|translate|compare))\b"
)
_ASKS_IF = re2.compile(r"\b(?:if|whether)\b")
_ASCII_DIGITS = frozenset("0123456789")
_DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_BEHIND_SIGNS = " \t\r\n\"'”’)*_"
_PICTOGRAPH = re2.compile(r"[\p{So}\p{Sk}\x{200d}\x{fe0f}]+")
_EDGES = " \t\r\n.,!?…。！？*_#>`~\"'“”‘’«»•-"


def is_abstention(sentences: Iterable[str], question: str | None) -> bool:
    """Return whether every clause abstains or is courtesy, and at least one abstains.

    Args:
        sentences: The sentences of the answer.
        question: What was asked. Without it, a gap in the sources counts only if it is said in
            general terms ("the documents do not contain this information").
    """
    asked = _asked(question)
    abstains = False
    for number, sentence in enumerate(sentences):
        if number >= MAX_SENTENCES or len(sentence) > MAX_SENTENCE_CHARS:
            return False
        for clause in _clauses(sentence):
            if len(clause) > MAX_CLAUSE_CHARS or not asked.has_numbers_of(clause):
                return False
            if _lacks_answer(clause, asked):
                abstains = True
                continue
            if _COURTESY.fullmatch(clause):
                continue
            kind = speech(clause, asks=_asks(sentence), beyond=asked.beyond)
            if kind is None or (kind is Speech.LACKS and not asked.is_about(clause)):
                return False
            abstains = abstains or kind is Speech.LACKS
    return abstains


def is_courtesy(sentence: str) -> bool:
    """Return whether a sentence is politeness only ("I hope this helps!"): it claims nothing."""
    is_polite = False
    for clause in _clauses(sentence):
        if len(clause) > MAX_CLAUSE_CHARS or not _COURTESY.fullmatch(clause):
            return False
        is_polite = True
    return is_polite or (len(sentence) <= MAX_CLAUSE_CHARS and _is_softener(sentence))


def claiming(sentences: Iterable[Sentence], question: str | None) -> list[Sentence]:
    """Return those of an answer's sentences that claim something."""
    return [one for one in in_time(sentences, 8) if not claims_nothing(one.text, question)]


def claims_nothing(sentence: str, question: str | None) -> bool:
    """Return whether a sentence holds nothing to check: courtesy, an abstention, or a gap.

    A gap ("the documents mention no pool") need not be in what was asked: no passage can support
    that sentence, and it says nothing of the world.
    """
    if len(sentence) > MAX_SENTENCE_CHARS:
        return False
    is_short = len(question or "") <= MAX_SENTENCE_CHARS
    return (_known_to_claim_nothing if is_short else _claims_nothing)(sentence, question)


def _claims_nothing(sentence: str, question: str | None) -> bool:
    asked = _asked(question)
    is_empty = True
    for clause in _clauses(sentence):
        if len(clause) > MAX_CLAUSE_CHARS or not asked.has_numbers_of(clause):
            return False
        if clause in _ASSENTS and not asked.wants_yes_or_no:
            is_empty = is_empty and clause in _YES_OR_NO
            continue
        if not (
            _COURTESY.fullmatch(clause)
            or _lacks_answer(clause, asked)
            or _is_gap(clause)
            or speech(clause, asks=_asks(sentence), beyond=asked.beyond)
        ):
            return False
        is_empty = False
    return not is_empty or _is_softener(sentence)


KEPT_SENTENCES = 1_024
"""Several detectors and evaluators ask of the same sentence; 1,024 take at most 1 MB."""
_known_to_claim_nothing = lru_cache(KEPT_SENTENCES)(_claims_nothing)


def _asks(sentence: str) -> bool:
    return sentence.rstrip(_BEHIND_SIGNS).endswith(("?", "？"))


def _is_softener(sentence: str) -> bool:
    """Return whether nothing is left of a sentence without what may come before one: "Sorry!"."""
    return any(map(str.isalpha, sentence)) and not any(_clauses(sentence))


class _Question:
    """The question, as far as the rules need to know it."""

    def __init__(self, text: str | None) -> None:
        self._text = _plain(text or "")
        self._stems = {word[:_STEM] for word in _WORD.findall(self._text)}
        self.wants_yes_or_no = _YES_OR_NO_WANTED.search(self._text) is not None and not (
            _TO_THE_SPEAKER.search(self._text) and not _ASKS_IF.search(self._text)
        )
        self._is_open = bool(_OPEN.fullmatch(self._text)) and not _CLOSED.fullmatch(self._text)

    def beyond(self, words: Sequence[str]) -> list[str]:
        """Return those of some words of which the question has no form."""
        own = self._text.split()
        return [
            w for w in words if (w not in own if len(w) < _STEM else w[:_STEM] not in self._stems)
        ]

    def has_numbers_of(self, clause: str) -> bool:
        """Return whether every number of a clause occurs in the question."""
        if clause.isascii() and _ASCII_DIGITS.isdisjoint(clause):
            return True
        return all(number in self._text for number in _NUMBER.findall(clause))

    def is_about(self, subject: str) -> bool:
        """Return whether a gap concerning `subject` is a gap in what was asked.

        True if the subject names nothing in particular, or if the question is open (not yes/no,
        not about what the sources contain) and has at least half of the subject's words.
        """
        words = [word for word in _WORD.findall(subject) if not _GENERIC_WORD.fullmatch(word)]
        if not words:
            return True
        known = sum(word[:_STEM] in self._stems for word in words)
        return self._is_open and 2 * known >= len(words)


_KEPT_QUESTIONS = 64
_known_question = lru_cache(_KEPT_QUESTIONS)(_Question)


def _asked(text: str | None) -> _Question:
    """Return a question as the rules read it, read once while it is remembered."""
    return (_known_question if len(text or "") <= MAX_SENTENCE_CHARS else _Question)(text)


def _lacks_answer(clause: str, asked: _Question) -> bool:
    if _CLAIM.fullmatch(clause):
        return False
    if _SELF.fullmatch(clause) or _is_open(clause, _MORE_SELF):
        return True
    found = _SOURCE.fullmatch(clause) or _MORE_SOURCE.fullmatch(clause)
    return found is not None and asked.is_about(_held(found))


def _is_gap(clause: str) -> bool:
    """Return whether a clause only says that the sources lack something, whatever was asked."""
    if _CLAIM.fullmatch(clause):
        return False
    return any(_is_open(clause, phrases) for phrases in (_SOURCE, _MORE_SOURCE))


def _is_open(clause: str, phrases: Any) -> bool:
    """Return whether a clause is one of some phrases, and its open ends state nothing."""
    found = phrases.fullmatch(clause)
    return found is not None and not any(_states(part) for part in found.groups() if part)


def _states(part: str) -> bool:
    """Return whether an open end states something: a verb outside what is asked."""
    asks = _ASKS.search(part)
    return _STATES.search(part[: asks.start()] if asks else part) is not None


def _held(found: Any) -> str:
    return " ".join(filter(None, found.groups()))


def _clauses(sentence: str) -> Iterator[str]:
    """Yield clauses without softeners and connectives in front; empty ones are left out."""
    yield from filter(None, map(_bare, _joined_clauses(_plain(sentence))))


def _joined_clauses(text: str) -> Iterator[str]:
    clause: str | None = None
    for part in _parts(_unbroken(text)):
        if clause is not None and _EMBEDDED.fullmatch(part):
            clause += " " + part
            continue
        for conjunct in _conjuncts(part):
            if clause is not None:
                yield clause
            clause = conjunct
    if clause is not None:
        yield clause


def _unbroken(text: str) -> str:
    for part, words, other in _READ_AS:
        if part in text:
            text = words.sub(other, text)
    return text


def _parts(text: str) -> Iterator[str]:
    """Yield what is between breaks, one after the other: most readers need the first few."""
    start = 0
    for found in _BREAK.finditer(text):
        check_time()
        yield text[start : found.start()]
        start = found.end()
    yield text[start:]


def _conjuncts(clause: str) -> Iterator[str]:
    head, joined, tail = clause.partition(" and ")
    while joined and len(tail.split(None, _SHORT_TAIL)) > _SHORT_TAIL:
        check_time()
        yield head
        clause = tail
        head, joined, tail = clause.partition(" and ")
    yield clause


def _bare(clause: str) -> str:
    """Return a clause without what may come before it."""
    clause = clause.strip(_EDGES)
    for _ in range(_MAX_SOFTENERS):
        start = _LEADING.match(clause) or _SOFTENER.match(clause)
        if start is None or not start.end():
            break
        clause = clause[start.end() :].strip(_EDGES)
    return clause


def _plain(text: str) -> str:
    """Return a text with one spelling of case, blanks and apostrophes, without marks around it."""
    text = text if text.isascii() else encodable(text)
    if not text.isascii():
        text = _PICTOGRAPH.sub(" ", unicodedata.normalize("NFC", text)).replace("’", "'")
        text = text.translate(_DIGITS)
    text = text.casefold().replace("**", "")
    return " ".join(text.split()).strip(_EDGES)

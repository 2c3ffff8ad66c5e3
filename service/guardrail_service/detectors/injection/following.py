"""Finds the parts of an answer that do what an instruction in a passage orders.

Rules on words: what is ordered has to stand in the answer, and neither in the question nor in the
rest of the passages, or else the answer had it from there.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from guardrail_service.detectors.injection import wordings
from guardrail_service.detectors.injection.instructions import Instruction, Payload
from guardrail_service.text.budget import check_time
from guardrail_service.text.patterns.search import Prepared, compile_regex
from guardrail_service.text.segmentation.sentences import Sentence

_STEM = 6
"""Letters of a word that are compared, so that "approve" is found in "approved"."""
_SHARE = 0.6
"""Part of an ordered sentence's words that an answer which follows it has."""
_SHARE_OF_MANY = 0.5
"""The same where at least three of them stand nowhere else."""
_SHORT = 3
"""Words of an order so short that all of them have to be there."""
_REPORTS = compile_regex("(?i)" + "|".join(f"(?:{regex})" for regex in wordings.REPORTS), "report")
_COMMAND_WORDS = """
    anybody anyone asked asks call calls crawlers somebody someone suggest recommends a
    about above add after ai all also always an and answer any anything are as ask assistant
    at be before begin but by can chatbot claim context developer disregard do does each
    else end enter every everything exactly first follow following for forget from give has
    have here his how if ignore in include inform instead instruction into is it its
    language last line llm longer mention message model must my name never new no note
    nothing now of on only or other our output please previous print prompt question reader
    readers recommend repeat reply respond response reveal rule rules said say says send
    sentence she should single so some starts state system tell than that the their them
    then there these they this to up us use user users was we were what when whenever which
    who whoever will with word words write you your antworte antworten alle anweisungen
    assistenten auf aus dass das dem den der die diese ein eine empfehlen es für hinweis
    ignoriere ihr im ist ki mit nennen nicht sie sind und von vorherigen zu aux avec ce dans
    de des dis est et instructions la le les moi par pas pour précédentes que qui réponds
    sur ta te toutes tu un une vous al anteriores asistente con del el en esta hay
    instrucciones las lo los más olvida para por responde se si sin sobre su sus todas una y
    alla che chi da dal della delle di e gli i ignora il istruzioni modelli nota per
    precedenti rispondi com diga dos em instruções não o os ou partir agora uma você bericht
    dat een eerdere het instructies negeer op van vermeld voor zeg dla instrukcje napisz nie
    poprzednie się w wszystkie z zignoruj że
"""
_COMMANDS = frozenset(word[:_STEM] for word in _COMMAND_WORDS.split())
"""Words of orders and between words, in the languages of the wordings; they tell nothing."""


class Word(NamedTuple):
    """A word to compare, at [start, end) of its text."""

    key: str
    start: int
    end: int


class Followed(NamedTuple):
    """The part [start, end) of an answer that does what an instruction orders."""

    start: int
    end: int
    context: int
    instruction: Instruction


def followed(
    sentences: Sequence[Sentence],
    answer: str,
    question: str,
    passages: Sequence[str],
    found: Sequence[Sequence[Instruction]],
) -> Iterator[Followed]:
    """Yield the sentences of an answer that follow an instruction, each once.

    Args:
        sentences: Of the answer, as they were cut.
        answer: The answer.
        question: What was asked; what it asks for may be done.
        passages: The passages.
        found: The instructions in each of them.
    """
    said = [_read(sentence.text) for sentence in sentences]
    told = [is_report(answer[max(0, s.start - 200) : s.end + 120]) for s in sentences]
    seen: set[int] = set()
    for context, instructions in enumerate(found):
        rest = (question, *_without(passages, context, instructions)) if instructions else ()
        known = {word.key for text in rest for word in words(text)}
        plain = f" {' '.join(map(_flat, rest))} "
        for instruction in instructions:
            ordered = [(payload, _read(payload.text)) for payload in instruction.payloads]
            for number, sentence in enumerate(sentences):
                check_time()
                if number in seen or told[number]:
                    continue
                if any(_does(said[number], *one, known, plain) for one in ordered):
                    seen.add(number)
                    yield Followed(sentence.start, sentence.end, context, instruction)


class _Read(NamedTuple):
    """A text in small letters without punctuation, and those of its words that tell something."""

    flat: str
    telling: frozenset[str]


def _read(text: str) -> _Read:
    check_time()
    return _Read(_flat(text), frozenset(word.key for word in words(text)) - _COMMANDS)


def is_report(text: str) -> bool:
    """Return whether a text tells of an instruction."""
    return _REPORTS.search(Prepared(text).data) is not None


def _without(
    passages: Sequence[str], context: int, instructions: Iterable[Instruction]
) -> list[str]:
    """Return all passages, one of them without its instructions."""
    own = passages[context]
    parts, position = [], 0
    for instruction in instructions:
        parts.append(own[position : instruction.start])
        position = max(position, instruction.end)
    parts.append(own[position:])
    return [" ".join(parts), *(text for i, text in enumerate(passages) if i != context)]


def _does(said: _Read, payload: Payload, ordered: _Read, known: set[str], plain: str) -> bool:
    """Return whether a sentence has what is ordered and the question and passages do not."""
    if not payload.exact:
        return _covers(said, ordered, known)
    is_new = bool(ordered.flat) and f" {ordered.flat} " not in plain
    return is_new and _is_telling(ordered.flat, payload.text, said.flat)


def _is_telling(wanted: str, text: str, flat: str) -> bool:
    """Return whether an exact payload stands in a sentence, and is no word by chance."""
    if wanted not in flat:
        return False
    parts = wanted.split()
    if len(parts) >= 2 or (any(ord(c) > 0x2E7F for c in wanted) and len(wanted) >= 4):
        return f" {wanted} " in f" {flat} " or not wanted.isascii()
    marked = not text.isalpha() or text.isupper()
    return wanted == flat or (marked and len(wanted) >= 4 and f" {wanted} " in f" {flat} ")


def _covers(said: _Read, ordered: _Read, known: set[str]) -> bool:
    """Return whether a sentence has most words of a clause, and some that stand nowhere else."""
    matched = ordered.telling & said.telling
    new = matched - known
    size = len(ordered.telling)
    if not new:
        return False
    if len(new) == 1:
        alone = said.telling <= ordered.telling or _shares_run(said.flat, ordered.flat, new)
        return alone and len(matched) == size <= _SHORT
    if size <= _SHORT:
        return len(matched) == size or _shares_run(said.flat, ordered.flat, new)
    return len(matched) / size >= (_SHARE_OF_MANY if len(new) > 2 else _SHARE)


def _shares_run(said: str, clause: str, new: frozenset[str]) -> bool:
    """Return whether three words in a row, one of them a new one, stand in both texts."""
    parts = clause.split()
    runs = (parts[i : i + _SHORT] for i in range(len(parts) - _SHORT + 1))
    return any(
        f" {' '.join(run)} " in f" {said} " and any(word[:_STEM] in new for word in run)
        for run in runs
    )


def words(text: str) -> Iterator[Word]:
    """Yield the words of a text as they are compared; of scripts without blanks, pairs of signs."""
    start = -1
    for at, character in enumerate(text + " "):
        if _has_no_blanks(character):
            if start >= 0:
                yield _word(text, start, at)
            start = -1
            if at + 1 < len(text) and _has_no_blanks(text[at + 1]):
                yield Word(text[at : at + 2], at, at + 2)
        elif character.isalnum():
            start = at if start < 0 else start
        elif start >= 0:
            yield _word(text, start, at)
            start = -1


def _word(text: str, start: int, end: int) -> Word:
    return Word(text[start:end].casefold()[:_STEM], start, end)


def _has_no_blanks(character: str) -> bool:
    return "\u3040" <= character <= "\u30ff" or "\u4e00" <= character <= "\u9fff"


def _flat(text: str) -> str:
    """Return a text in small letters with one blank in place of everything between words."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in plain).split())

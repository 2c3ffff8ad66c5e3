"""Collects the plain statements of chunks, with their places, their clauses and what is a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import re2

from guardrail_offline.generation import english_words as words
from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_offline.generation.clauses import Clause, plain_sentence, read_clause
from guardrail_offline.generation.generated import SourceSpan
from guardrail_offline.perturbation.lexicon import lexicon
from guardrail_service.detectors.facts.read import read
from guardrail_service.text.language import identify
from guardrail_service.text.segmentation.sentences import split_sentences

_WORD = re2.compile(r"\p{L}+(?:['’-]\p{L}+)*")  # noqa: RUF001
_NAME = re2.compile(r"\p{L}[\p{L}\p{N}_'’-]*")  # noqa: RUF001
_COMMON_ENDS = (
    "tion", "tions", "ment", "ments", "ness", "ity", "ities", "ship", "ance", "ence", "ees",
    "ings", "sis", "ism", "ology", "graphy", "ics", "ures", "ages", "ants", "ents", "ers", "ors",
)  # fmt: skip


@dataclass(frozen=True)
class Statement:
    """A sentence that stands by itself.

    Attributes:
        line: On one line.
        span: Its place.
        chunk: Where it stands.
        title: How to name its document.
        section: The heading above it, where the document is long; empty in others.
        clause: Its parts; None where the rules are not sure of them.
    """

    line: str
    span: SourceSpan
    chunk: DocumentChunk
    title: str
    clause: Clause | None
    section: str = ""

    @property
    def scope(self) -> str:
        """Return what ties a question to the document: subjects that are no names need it."""
        return "" if self.clause is not None and self.clause.named else self.according

    @property
    def according(self) -> str:
        """Return "According to TITLE, ", of a long document with the section before it."""
        inside = f'"{self.section}" in ' if self.section else ""
        return f'According to {inside}"{self.title}", '


class Wordbook:
    """The words of a corpus: which capitalised ones are names.

    Args:
        texts: All texts.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._lower: set[str] = set()
        self._capital: set[str] = set()
        for text in texts:
            for found in _WORD.finditer(text):
                word = found[0]
                if word.islower():
                    self._lower.add(word)
                elif text[max(0, found.start() - 2) : found.start()].strip(' \n"“(') not in _STOPS:
                    self._capital.add(word)

    def told(self, word: str) -> bool | None:
        """Return whether a capitalised word is a name; None where the texts do not tell."""
        low = word.lower()
        if low in self._lower or f"{low}s" in self._lower or low.removesuffix("s") in self._lower:
            return False
        return True if word in self._capital else None

    def is_name(self, word: str, sure: bool = False, near: Wordbook | None = None) -> bool:
        """Return whether a capitalised first word keeps its capital inside a sentence.

        Args:
            word: With punctuation, if it has any.
            sure: Only if the texts tell that it is a name.
            near: Of the same document, which is asked first.
        """
        word = word.strip(",.'’")  # noqa: RUF001
        if word.endswith(("'s", "’s")):  # noqa: RUF001
            return self.is_name(word[:-2], sure, near)
        for book in (near, self):
            if book is not None and (told := book.told(word)) is not None:
                return told
        return not sure and not _is_common(word.lower())


_STOPS = frozenset(("", ".", "!", "?", ":", "|", "-", "*", "•"))


@lru_cache(4096)
def _is_common(low: str) -> bool:
    if low.endswith(_COMMON_ENDS) or low in words.verb_forms():
        return True
    known = lexicon("shipped")
    return bool(known.others(low, "synonyms") or known.others(low, "antonyms"))


def statements_of(
    chunks: Sequence[DocumentChunk], titles: dict[str, str], book: Wordbook | None = None
) -> list[Statement]:
    """Return the plain English statements of chunks, in order.

    Args:
        chunks: Of one corpus.
        titles: How to name a document, by id.
        book: Knows the corpus' names; made of the chunks if None.
    """
    known = book or Wordbook(chunk.text for chunk in chunks)
    by_document: dict[str, list[str]] = {}
    for chunk in chunks:
        by_document.setdefault(chunk.document, []).append(chunk.text)
    near = {document: Wordbook(texts) for document, texts in by_document.items()}
    found = []
    for chunk in chunks:
        if not is_english(chunk.text):
            continue
        for line, start, end in _sentences(chunk):
            inside = chunk.text[start - chunk.start : end - chunk.start]
            span = SourceSpan(chunk.document, start, end, inside, chunk.id)
            clause = read_clause(line, partial(known.is_name, near=near[chunk.document]))
            title = titles[chunk.document]
            section = _section(chunk, title, len(by_document[chunk.document]))
            found.append(Statement(line, span, chunk, title, clause, section))
    return found


def _section(chunk: DocumentChunk, title: str, chunks: int) -> str:
    """Return the heading that tells where in a long document a sentence stands."""
    heading = " ".join(chunk.heading.split())
    usable = 0 < len(heading) <= 80 and '"' not in heading and heading != title
    return heading if usable and chunks > _SHORT_DOCUMENT else ""


_SHORT_DOCUMENT = 12
"""Chunks up to which "the fee" of a document is likely to be one thing."""


def is_english(text: str) -> bool:
    """Return whether a text is in English, or too short to tell."""
    language = identify(text)
    return language is None or language.code == "en"


def _sentences(chunk: DocumentChunk) -> Iterator[tuple[str, int, int]]:
    """Yield plain sentences of prose with their places in the document."""
    for block in chunk.blocks:
        if block.kind not in ("paragraph", "item"):
            continue
        text = chunk.text[block.start - chunk.start : block.end - chunk.start]
        for sentence in split_sentences(text):
            at = sentence.start
            for piece in sentence.text.split("; "):
                line = plain_sentence(_alone(piece) if at > sentence.start else _plain(piece))
                if line is not None:
                    yield line, block.start + at, block.start + at + len(piece)
                at += len(piece) + 2


def _plain(piece: str) -> str:
    """Return a sentence without remarks in parentheses; a part of one gets a full stop."""
    text = _REMARK.sub("", piece.strip())
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


def _alone(piece: str) -> str:
    """Return a later part of a sentence as one of its own."""
    text = _plain(piece)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


_REMARK = re2.compile(r" \([^()]{1,80}\)")


def titles_of(documents: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return how to name each document: its title if it is short and its own, else its id.

    Args:
        documents: Ids with titles.
    """
    listed = [
        (id, " ".join(title.replace('"', "'").split()).rstrip(".:")) for id, title in documents
    ]
    counts: dict[str, int] = {}
    for _, title in listed:
        counts[title] = counts.get(title, 0) + 1
    return {id: t if t and len(t) <= 80 and counts[t] == 1 else id for id, t in listed}


def names_in(line: str, book: Wordbook) -> list[tuple[int, int]]:
    """Return the places of names in a sentence: runs of capitalised words, not at its beginning."""
    found: list[tuple[int, int]] = []
    for match in _NAME.finditer(line):
        word = match[0]
        if not word[0].isupper() or not match.start() or word.lower() in words.POINTING:
            continue
        if found and line[found[-1][1] : match.start()] == " ":
            found[-1] = (found[-1][0], match.end())
        else:
            found.append((match.start(), match.end()))
    first = line.partition(" ")[0]
    if found and found[0][0] == len(first) + 1 and first.lower() not in words.DETERMINERS:
        found.pop(0)  # the rest of a name that begins the sentence
    dates = [(fact.start, fact.end) for fact in read(line).facts]
    return [
        (start, end)
        for start, end in found
        if end - start > 2 and not any(a < end and start < b for a, b in dates)
    ]

"""Makes pairs of both signs from whole documents, by the same operations on either side.

A supported claim of a document, or one of its sentences, is shortened, joined or written otherwise
and stays true. With its support deleted, with another subject, name or number of the document,
or against another document it is not supported. Operations return None where a text offers nothing.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

import edits
from edits import content
from texts import Pair

Draw = random.Random
Operation = Callable[[str, Sequence[str], Draw], str | None]
"""From a claim and its document's sentences."""

SIZES = (1, 3, 6, 10, 20, 40, 80)
"""Sentences of the document that claims are read against."""
SHORTEST, LONGEST = 30, 260
"""Characters of a claim that is changed."""
SUPPORT = 0.34
"""A sentence with so many of a claim's content words may support it, and goes with its support."""
LEFT = 0.6
"""So many of its content words may be left in the passage when a claim's support is gone."""
LEAST = 3
"""Sentences of a document."""
CLAIMS = 3
"""Claims of one document made together."""
_LEADS = (
    "According to the text, ", "According to the passage, ", "The article says that ",
    "The document states that ", "In summary, ", "In short, ", "It is reported that ",
    "Based on the passage, ", "Here is a summary: ", "To sum up, ", "The report says ",
)  # fmt: skip
_VERB = re.compile(
    r" (was|is|were|are|has|have|had|will|would|can|could|said|says|became|made|took|won|lost|began"
    r"|opened|joined|received|announced|told|added|reported|died|found) "
)
_PRONOUN = re.compile(r"(?i)(?:it|he|she|they|we|you|i|this|that|these|those|there|who|which)\b")
_TRAILING = re.compile(
    r"(?:,? (?:because|after|before|when|while|since|during|in|at|with|for|by|on|near|from|despite"
    r"|following|alongside)|, (?:the|an?)) [^,.;:()\"]{4,70}\.?$"
)
_ASIDE = re.compile(r" \([^()]{3,80}\)|, (?!and |or |but )[^,.;:\"]{4,70},(?= [a-z])")
_ASKS = re.compile(r"(?i)(?:who|what|when|where|which|how|why)\b|.*\?")
_SENTENCE = re.compile(r"[A-Z\d].*[.!?]$", re.DOTALL)
_SUBJECT = re.compile(r"[^,\"\u201c]{4,60}")
_PLACE = re.compile(r"(?:in|at|from|near|to|of) $")


def held(claim: str, sentence: str) -> float:
    """Return the share of a claim's content words that a sentence holds."""
    wanted = content(claim)
    return len(wanted & content(sentence)) / max(1, len(wanted))


def shorten(text: str, _own: Sequence[str], rng: Draw) -> str | None:
    """Return the text without an aside, a bracket or its last phrase."""
    found = [*_ASIDE.finditer(text), *_TRAILING.finditer(text)]
    found = [hit for hit in found if hit.start() >= SHORTEST and " not " not in hit.group()]
    if not found:
        return None
    hit = rng.choice(found)
    end = "." if text.endswith(".") and hit.end() == len(text) else ""
    return text[: hit.start()] + end + text[hit.end() :]


def join(text: str, own: Sequence[str], rng: Draw) -> str | None:
    """Return the text with another sentence of its document."""
    second = rng.choice(own)
    if second == text or max(len(text), len(second)) > 130 or _PRONOUN.match(second):
        return None
    one, two = (text, second) if rng.random() < 0.5 else (second, text)
    return f"{one.rstrip('. ')}{rng.choice((', and ', '; ', ', while ', '. '))}{two}"


def reformat(text: str, own: Sequence[str], rng: Draw) -> str | None:
    """Return the text with numbers, dates or words written otherwise."""
    changed = re.sub(r"(\d),(\d{3})", rng.choice((r"\1 \2", r"\1\2")), text)
    changed = re.sub(r"(\d) ?%", rng.choice((r"\1 per cent", r"\1 percent", r"\1 %")), changed)
    changed = re.sub(r"([$\u00a3\u20ac])(\d)", r"\1 \2", changed)
    if changed == text or rng.random() < 0.3:
        changed = edits.reword(changed, own, rng) or changed
    return changed if changed != text else None


def fuse(text: str, own: Sequence[str], rng: Draw) -> str | None:
    """Return what one sentence of the document says, of another one's subject."""
    verb = _VERB.search(text)
    if not verb or len(text) - verb.end() < 12:
        return None
    for sentence in rng.sample(own, len(own)):
        other = _VERB.search(sentence)
        if not other or other.group() != verb.group():
            continue
        subject, mine = sentence[: other.start()], text[: verb.start()]
        apart = not (content(subject) & content(mine)) and subject not in text
        if apart and is_plain(sentence) and _SUBJECT.fullmatch(subject):
            return subject + text[verb.start() :]
    return None


def another_name(text: str, own: Sequence[str], rng: Draw) -> str | None:
    """Return the text with a name replaced by one of the same kind from its document."""
    found = [(n, _is_place(n, (text,))) for n in edits.names(text) if _is_name(n, (text,))]
    others = {n for s in own for n in edits.names(s) if n not in text and _is_name(n, own)}
    for name, is_place in rng.sample(found, len(found)):
        fits = [
            n for n in sorted(others)
            if not content(n) & content(text) and _is_place(n, own) == is_place
            and abs(len(n.split()) - len(name.split())) <= 1
        ]  # fmt: skip
        if fits:
            return text.replace(name, rng.choice(fits))
    return None


def _is_name(name: str, texts: Sequence[str]) -> bool:
    """Return whether capitals are more than those of a sentence's beginning."""
    return " " in name or any(text.find(name) > 0 for text in texts)


def _is_place(name: str, texts: Sequence[str]) -> bool:
    at = next((text.find(name) for text in texts if name in text), 0)
    text = next((text for text in texts if name in text), "")
    return bool(_PLACE.search(text[:at]))


def another_number(text: str, own: Sequence[str], rng: Draw) -> str | None:
    """Return the text with a number that stands elsewhere in its document."""
    hits = list(edits.NUMBER.finditer(text))
    held_here = {hit.group() for hit in hits}
    for hit in rng.sample(hits, len(hits)):
        others = {
            n.group().rstrip(",") for s in own for n in edits.NUMBER.finditer(s)
            if n.group() not in held_here and abs(len(n.group()) - len(hit.group())) <= 1
        }  # fmt: skip
        if others:
            return text[: hit.start()] + rng.choice(sorted(others)) + text[hit.end() :]
    return edits.exchange_numbers(text, own, rng)


KEEPING: dict[str, tuple[Operation, float]] = {
    "shorten": (shorten, 3.0), "join": (join, 1.5), "reformat": (reformat, 2.0),
}  # fmt: skip
"""Operations under which a claim stays true, and how often each is tried."""
CHANGING: dict[str, tuple[Operation, float, int]] = {
    "fuse": (fuse, 1.6, 3), "name": (another_name, 1.6, 3),
    "number": (another_number, 1.4, 1),
}  # fmt: skip
"""Operations after which a claim is not supported, how often each is tried, and the label."""
DELETED, ELSEWHERE = 2.4, 0.5
"""How often a claim loses its support instead, or is read against another document."""


def dress(text: str, rng: Draw) -> str:
    """Return the text as other tools write it: tokens apart, lower case, led in."""
    if rng.random() < 0.1:
        if text.split(" ", 1)[0] in edits.OPENING:
            text = text[0].lower() + text[1:]
        text = rng.choice(_LEADS) + text
    if rng.random() < 0.1:
        text = " ".join(re.sub(r"([.,;:!?()\"]|'s\b)(?!\d)", r" \1 ", text).split())
    return text.lower() if rng.random() < 0.08 else text


def without_support(claim: str, own: Sequence[str]) -> list[str] | None:
    """Return the document without what may support the claim, or None if too much of it is left."""
    kept = [s for s in own if held(claim, s) < SUPPORT]
    if not 2 <= len(kept) < len(own) or held(claim, " ".join(kept)) > LEFT:
        return None
    return kept


def passage(own: Sequence[str], needed: Sequence[str], rng: Draw) -> list[str]:
    """Return some sentences of the document, in order, with those that claims need."""
    most = rng.choice(SIZES)
    kept = set(needed) | set(rng.sample(own, min(len(own), max(0, most - len(needed)))))
    return [s for s in own if s in kept]


def support_of(claim: str, own: Sequence[str], claimed: bool) -> list[str]:
    """Return the sentences that a claim may rest on: more of them where people wrote it."""
    ranked = sorted(own, key=lambda s: -held(claim, s))
    return ranked[:6] if claimed else ranked[:2]


def is_plain(sentence: str) -> bool:
    """Return whether a document's sentence says something by itself."""
    return bool(_SENTENCE.match(sentence)) and not _PRONOUN.match(sentence)


def kept_true(base: str, own: Sequence[str], rng: Draw) -> tuple[str, str]:
    """Return the name of an operation and a claim that is true if the base is."""
    names = list(KEEPING)
    for name in rng.choices(names, [KEEPING[n][1] for n in names], k=2):
        found = KEEPING[name][0](base, own, rng) if rng.random() < 0.75 else None
        if found:
            return name, found
    return "same", base


def made_false(base: str, own: Sequence[str], rng: Draw) -> tuple[str, str, int] | None:
    """Return the name of an operation, a claim that the document does not support, its label."""
    names = list(CHANGING)
    for name in rng.choices(names, [CHANGING[n][1] for n in names], k=4):
        operation, _, label = CHANGING[name]
        found = operation(base, own, rng)
        if found and found != base and len(found) <= 2 * LONGEST:
            return name, found, label
    return None


def document_pairs(pairs: list[Pair], count: int, rng: Draw) -> list[Pair]:
    """Return pairs made from the documents of written pairs, about as many of either sign."""
    documents: dict[tuple[str, ...], list[str]] = {}
    for pair in pairs:
        if len(pair["sentences"]) >= LEAST:
            claims = documents.setdefault(tuple(pair["sentences"]), [])
            if pair["label"] == 0 and not _ASKS.match(pair["claim"]):
                claims.append(pair["claim"])
    every = list(documents)
    made: list[Pair] = []
    for _ in range(count):
        if len(every) < 2 or len(made) >= count:
            break
        own, other = rng.sample(every, 2)
        made += _of_document(own, documents[own], other, rng)
    return made


def _of_document(
    own: tuple[str, ...], claims: list[str], other: tuple[str, ...], rng: Draw
) -> list[Pair]:
    bases: dict[str, bool] = {}
    for _ in range(CLAIMS):
        claimed = bool(claims) and rng.random() < 0.5
        base = rng.choice(claims if claimed else own)
        if SHORTEST <= len(base) <= LONGEST and (claimed or is_plain(base)):
            bases[base] = claimed
    needed = [s for base, claimed in bases.items() for s in support_of(base, own, claimed)]
    shown = passage(own, needed, rng)
    made: list[Pair] = []

    def add(kind: str, claim: str, sentences: Sequence[str], label: int) -> None:
        made.append({"source": f"doc_{kind}", "claim": dress(claim, rng),
                     "sentences": list(sentences), "label": label})  # fmt: skip

    for base in bases:
        kind, true = kept_true(base, shown, rng)
        add(kind, true, shown, 0)
        draw = rng.random() * (DELETED + ELSEWHERE + sum(w for _, w, _ in CHANGING.values()))
        if draw < DELETED:
            left = without_support(true, own)
            if left:
                add("deleted", true, left, 2)
        elif draw < DELETED + ELSEWHERE:
            add("elsewhere", true, other, 2)
        elif false := made_false(base, own, rng):
            add(false[0], false[1], shown, false[2])
    return made

"""Finds instructions to a model in a text, and what they order.

A wording that is only quoted (documentation, reports, code) is none. The text is read as a person
or a model would read it: without invisible signs, with look-alike and spelt letters in words.
"""

# Full-width and typographic punctuation is what the rules look for.
# ruff: noqa: RUF001

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from guardrail_service.detectors.injection import wordings
from guardrail_service.text.budget import check_time
from guardrail_service.text.decoding.confusables import INVISIBLE, ascii_twin
from guardrail_service.text.offsets import Edit, Edited
from guardrail_service.text.patterns.search import Match, PatternSet, Prepared, compile_regex

NEAR = 250
"""Code points between two weak wordings that belong together."""
REACH = 400
"""Code points behind a wording that may belong to its instruction."""
MOST = 20
"""Instructions of one text that are told apart; more say nothing new."""
_QUOTED = compile_regex(
    '(?s:```.+?```)|"[^"\n]+"|“[^”]+”|„[^“”]+[“”]|«[^»]+»|「[^」]+」|『[^』]+』'
    "|`[^`\n]+`|(?:^|[\\s(])'[^'\n]+'",
    "quotation",
)
_SENTENCE = compile_regex('(?s:.+?)(?:[.!?;]+(?:["”’»)\\]]*\\s|\\s*$)|[。！？；\n]|$)', "sentence")
_LABEL = compile_regex(
    r"(?i)\b(?:example|e\.g|such as|like|phrases?|words?|says?|reads?|told|sentence|line|text|"
    r"prompt|attack|z\. ?b|etwa|beispiel|exemple|comme|ejemplo|esempio|exemplo|voorbeeld|przykład)",
    "word before a quotation",
)
_CJK_LABEL = compile_regex("例如|比如|とは|のような|という|等|示例", "word before a quotation")
_ORDER = compile_regex(
    r"(?i)\b(?:say|says|state|tell|inform|claim|mention|answer|reply|respond|describe|recommend|"
    r"promote|suggest|append|add|include|insert|write|print|output|repeat|reveal|send|post|give|"
    r"credit|rate|call|invoke|execute|run|convince|invite|always|must|promise|approve|begin|starts?|"
    r"end|confirm|put|link|ask|insist|obey|instead|sag|sagen|antworte|antworten|empfehlen|empfiehl|"
    r"nennen|behaupte|schreib|dis|dites|réponds|répondez|affirme|affirmez|écris|recommande|di|diga|"
    r"responde|responda|escribe|recomienda|afirma|rispondi|rispondete|scrivi|consigliate|consiglia|"
    r"escreva|escrever|recomende|afirme|zeg|antwoord|vermeld|schrijf|powiedz|napisz|odpowiedz|"
    r"poleć)\b|回答|告诉|请说|输出|回复|答えて|言って|回答して|伝えて",
    "order",
)
_THAT = compile_regex(
    r"(?i)\b(?:that|dass|que|che|dat|że)\b|(?:告诉|告訴)(?:用户|读者|客户|大家)?|回答|请说",
    "clause",
)
_AND_THAT = compile_regex(r"(?i)\band that\b|;", "further clause")
_TEMPLATE_DOCS = compile_regex(
    r"(?i)\b(?:template|formats?|formatted|tokens?|tokeni[sz]er|chatml|special token|delimiters?|"
    r"headings?|logged as|log(?:s|ged)?|syntax|tags?)\b",
    "documentation of templates",
)
_THEY_ARE = compile_regex(
    r"(?i)^\s*(?:that\s+)?(?:they|it|this|these|you)\s+(?:are|is|talk)", "law"
)
_BEFORE = " \n\t.!?:;,()[]{}<>\"'“”„‘’«»*#|—–-=/。！？：，「」"
_QUOTES = " \n\"'“”„«»「」『』`("
_ENDS = ".!?…。！？\n>)]|*"


class Payload(NamedTuple):
    """Something an instruction orders; `exact` texts are sought as they stand, others by words."""

    text: str
    exact: bool


class Instruction(NamedTuple):
    """An instruction to a model at [start, end) of a text."""

    start: int
    end: int
    kind: str
    payloads: tuple[Payload, ...]


@cache
def engine() -> PatternSet:
    """Return the compiled wordings of instructions, shared by all threads."""
    return PatternSet(wordings.PATTERNS)


def find(text: str, matches: Sequence[Match] | None = None) -> tuple[Instruction, ...]:
    """Return the instructions to a model in a text, in order, none overlapping.

    Args:
        text: A passage or an answer.
        matches: What `engine` finds in it, if the caller has that already.
    """
    found = engine().scan(text) if matches is None else matches
    odd = [match for match in found if match.pattern.startswith("odd:")]
    if not odd:
        return tuple(_instructions(text, found))
    shown = readable(text, odd)
    hidden = any(match.pattern == "odd:tags" for match in odd)
    seen = list(_instructions(shown.text, engine().scan(shown.text)))
    if hidden:
        seen += [_tagged(match, shown, text) for match in odd if match.pattern == "odd:tags"]
    return tuple(_merged(_placed(item, shown) for item in seen))


def readable(text: str, odd: Sequence[Match]) -> Edited:
    """Return the text as a reader sees it, and the way back.

    Args:
        text: The text.
        odd: The matches of the `odd:` patterns in it.
    """
    edits = []
    for start, end in _words_to_change(text, odd):
        check_time()
        if (plain := _plain(text[start:end])) != text[start:end]:
            edits.append(Edit(start, end, plain))
    return Edited(text, edits)


def _words_to_change(text: str, odd: Sequence[Match]) -> Iterator[tuple[int, int]]:
    done = 0
    for name, start, end in odd:
        if start < done:
            continue
        if name in ("odd:invisible", "odd:mixed"):
            while start > done and not text[start - 1].isspace():
                start -= 1
            while end < len(text) and not text[end].isspace():
                end += 1
        done = end
        yield start, end


def _plain(word: str) -> str:
    if any("\U000e0020" <= c <= "\U000e007e" for c in word):
        return "".join(ascii_twin(c) or c for c in word if c not in INVISIBLE)
    word = "".join(c for c in word if c not in INVISIBLE)
    if not word.isascii():
        return "".join(_latin(c) for c in word)
    letters = "".join(c for c in word if c not in " .-_*")
    if len(letters) * 2 - 1 == len(word.rstrip(".")):
        return letters if "." in word[:-1] else letters + word[2 * len(letters) - 1 :]
    for one in "il":
        plain = word.lower().translate(str.maketrans("01345$@", f"o{one}eassa"))
        if plain in wordings.LEET_WORDS:
            return plain
    return word


def _latin(character: str) -> str:
    twin = ascii_twin(character)
    return twin if twin and character.isalpha() else character


def _placed(item: Instruction, shown: Edited) -> Instruction:
    start, end = shown.before(item.start, item.end)
    touched = shown.touched(item.start, item.end) and item.kind != "hidden"
    kind = "obfuscated" if touched else item.kind
    return item._replace(start=start, end=end, kind=kind)


def _tagged(match: Match, shown: Edited, text: str) -> Instruction:
    said = "".join(ascii_twin(c) or "" for c in text[match.start : match.end])
    at = max(shown.text.find(said), 0)
    return Instruction(at, at + len(said), "hidden", (Payload(said, exact=False),))


class _Wording(NamedTuple):
    start: int
    end: int
    kind: str
    is_sure: bool


def _instructions(text: str, matches: Sequence[Match]) -> Iterator[Instruction]:
    used = list(_used(text, matches))
    starting: dict[int, _Wording] = {}
    for wording in (*_paired(used), *(wording for wording in used if wording.is_sure)):
        other = starting.get(wording.start, wording)
        starting[wording.start] = wording._replace(end=max(wording.end, other.end))
    until = found = 0
    for wording in sorted(starting.values()):
        check_time()
        if wording.start < until:
            continue
        until = _end(text, wording)
        payloads = tuple(_payloads(text, wording.start, until, wording.kind))
        yield Instruction(wording.start, until, wording.kind, payloads)
        found += 1
        if found == MOST:
            return


def _paired(wordings: Sequence[_Wording]) -> Iterator[_Wording]:
    """Yield unsure wordings that stand near one of another kind."""
    weak = [wording for wording in wordings if not wording.is_sure]
    for i, one in enumerate(weak):
        near = (other for other in weak[i + 1 : i + 9] if other.start - one.end <= NEAR)
        if any(other.kind != one.kind for other in near):
            yield one


def _used(text: str, matches: Iterable[Match]) -> Iterator[_Wording]:
    """Yield the wordings of instructions that are meant, and not quoted or described."""
    found = sorted({_wording(text, m) for m in matches if m.pattern[:5] in ("sure:", "weak:")})
    if not found:
        return
    quotes = [(place.start, place.end) for place in _matches(_QUOTED, text)]
    has_docs = _TEMPLATE_DOCS.search(Prepared(text).data) is not None
    at = 0
    for wording in found:
        check_time()
        while at < len(quotes) and quotes[at][1] <= wording.start:
            at += 1
        is_inside = at < len(quotes) and quotes[at][0] <= wording.start
        if (
            is_inside
            and not _is_style(text, wording, quotes[at][0])
            and (_is_mentioned(text, *quotes[at]))
        ):
            continue
        if wording.kind == "template" and (has_docs or not _is_apart(text, wording.start)):
            continue
        if wording.kind == "to_model" and _is_law(text[wording.end : wording.end + 40]):
            continue
        yield wording


def _is_style(text: str, wording: _Wording, quote: int) -> bool:
    """Return whether a quotation is an attribute of hidden text: `style="display:none"`."""
    return wording.kind == "hidden" and text[max(0, quote - 1) : quote] == "="


def _wording(text: str, match: Match) -> _Wording:
    sure, kind, _ = match.pattern.split(":")
    start = match.start
    if kind not in ("hidden", "template"):
        start = match.end - len(text[start : match.end].lstrip(_BEFORE))
    return _Wording(start, match.end, kind, sure == "sure")


def _is_apart(text: str, start: int) -> bool:
    """Return whether a mark of a template stands between sentences, not in one."""
    before = text[max(0, start - 20) : start].rstrip(" ")
    return not before or before[-1] in _ENDS or text[start].isspace()


def _is_law(behind: str) -> bool:
    """Return whether models are told to say that they are models."""
    return _THEY_ARE.search(Prepared(behind).data) is not None


def _is_mentioned(text: str, start: int, end: int) -> bool:
    """Return whether a quotation is a part of a sentence about it."""
    quoted = text[start:end].lstrip()
    if quoted[:1] in "`":
        return True
    before = text[max(0, start - 120) : start + (text[start].isspace())]
    line = before.rsplit("\n", 1)[-1]
    for short in ("e.g.", "i.e.", "E.g.", "z. B.", "p. ex."):
        line = line.replace(short, "such as")
    for stop in (". ", "! ", "? ", "。"):
        line = line.rsplit(stop, 1)[-1]
    lead = line.strip()
    if lead.endswith((".", "!", "?", "。")):
        lead = ""
    data = Prepared(lead).data
    if lead[-1:] in "(=" and lead:
        return True
    goes_on = text[end : end + 12].lstrip(" ")[:1]
    if goes_on.islower() or (goes_on and goes_on in "のとは这等"):
        return True
    if not lead:
        return False
    enough = len(lead.split()) >= 3 or (len(lead) >= 4 and not lead.isascii())
    return enough or bool(_LABEL.search(data)) or bool(_CJK_LABEL.search(data))


def _end(text: str, wording: _Wording) -> int:
    """Return where the instruction ends that begins with a wording."""
    start, end, kind, _ = wording
    limit = max(end, min(len(text), start + REACH))
    if kind == "hidden":
        closing = (text.find(mark, end, limit) for mark in ("-->", "</", "\n)"))
        return min([at for at in closing if at >= 0], default=limit)
    reach = max(end, start + 1)
    missed = 0
    for a, b in _sentences(text, start, limit):
        if a <= end or kind == "template" or _orders(text[a:b]):
            reach, missed = max(reach, b), 0
        elif missed:
            break
        else:
            missed += 1
    return reach


def _orders(sentence: str) -> bool:
    return _ORDER.search(Prepared(sentence).data) is not None


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for m in _matches(_SENTENCE, text[start:end]):
        yield start + m.start, start + m.end


class _Place(NamedTuple):
    start: int
    end: int


def _matches(regex: object, text: str) -> Iterator[_Place]:
    source = Prepared(text)
    for count, match in enumerate(regex.finditer(source.data), 1):  # type: ignore[attr-defined]
        if not count % 64:
            check_time()
        yield _Place(source.code_point(match.start()), source.code_point(match.end()))


def _payloads(text: str, start: int, end: int, kind: str) -> Iterator[Payload]:
    part = text[start:end]
    for place in _matches(_QUOTED, part):
        yield Payload(
            part[place.start : place.end].strip(" \n\"'“”„«»「」『』`(").strip(), exact=True
        )
    for code in codes(part):
        yield Payload(code, exact=True)
    whole = kind in ("template", "hidden")
    for a, b in _sentences(text, start, end):
        if text[a:b].strip() and (whole or a == start or _orders(text[a:b])):
            yield from (Payload(clause, exact=False) for clause in _clauses(text[a:b]))


def _clauses(sentence: str) -> Iterator[str]:
    """Yield a sentence, and what stands in it behind its first order and behind a "that"."""
    yield sentence
    for regex in (_ORDER, _THAT):
        first = next(iter(_matches(regex, sentence)), None)
        if first is not None and first.end < len(sentence):
            yield sentence[first.end :]
    parts = list(_matches(_AND_THAT, sentence))
    ends = [place.start for place in parts[1:]] + [len(sentence)]
    for place, end in zip(parts, ends, strict=False):
        yield sentence[place.end : end]  # "say that it is the best and that the others are closed"


def codes(text: str) -> Iterator[str]:
    """Yield addresses, numbers of seven digits and more, and tokens that are no words."""
    digits: list[str] = []
    for raw in text.split():
        word = raw.strip("\"'“”„«»「」『』`()[]<>{},;:.!?*。！？，")
        bare = word.replace("-", "").replace("/", "").replace("+", "")
        if bare.isdigit() and not _is_score(word):
            digits.append(word)
            continue
        if sum(map(len, digits)) >= 7:
            yield " ".join(digits)
        digits = []
        if _is_score(word):
            yield word
            continue
        mixed = any(c.isdigit() for c in word) and any(c.isalpha() for c in word)
        linked = any(c in word for c in "@/_=") or "." in word.strip(".")
        if len(word) >= 5 and word.isascii() and (mixed or linked) and any(map(str.isalpha, word)):
            yield word
    if sum(map(len, digits)) >= 7:
        yield " ".join(digits)


def _is_score(word: str) -> bool:
    """Return whether a word is a mark such as "10/10"."""
    got, sign, most = word.partition("/")
    return bool(sign) and got.isdecimal() and most.isdecimal() and len(word) >= _SCORE


_SCORE = 3


def _merged(items: Iterable[Instruction]) -> Iterator[Instruction]:
    ordered = sorted(items, key=lambda item: (item.start, -item.end))
    kept: list[Instruction] = []
    for item in ordered:
        if kept and item.start < kept[-1].end:
            last = kept[-1]
            kept[-1] = last._replace(
                end=max(last.end, item.end), payloads=(*last.payloads, *item.payloads)
            )
        else:
            kept.append(item)
    return iter(kept)

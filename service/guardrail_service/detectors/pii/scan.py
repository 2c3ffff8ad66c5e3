"""Find personal data in a text: shapes, what announces them, checks, and one finding per place."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from guardrail_service.detectors.pii import checks
from guardrail_service.detectors.pii import phone as pii_phone
from guardrail_service.detectors.pii.checks import Check, alnum, public_ip
from guardrail_service.detectors.pii.data_types import TYPES, Finding
from guardrail_service.detectors.pii.national import NATIONAL
from guardrail_service.detectors.pii.refine import refine
from guardrail_service.detectors.pii.rules import (
    ANNOUNCED,
    BARE,
    CUES,
    FORMS,
    OTHER,
    RULES,
    PiiRule,
)
from guardrail_service.text.patterns.search import Match, PatternSet, compile_regex

_FOLD = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-"),
    **dict.fromkeys("\u00a0\u2007\u2009\u202f\u3000", " "),
    **{chr(0xFF10 + n): str(n) for n in range(10)},
    **{chr(0x0660 + n): str(n) for n in range(10)},
    "\uff20": "@",
    "\uff0e": ".",
    "\uff0b": "+",
    "\u2019": "'",
}
"""Typographic twins that language models like to write, one code point for one."""
_BEFORE, _AFTER = 80, 40
"""How far a cue may stand before and behind what it announces, in code points."""
_REACH = {"phone": (40, 2), "date_of_birth": (50, 20), "bank_account": (40, 25)}
_PHONES = frozenset({"phone_plus", "phone_nanp", "phone_trunk", "digits"})
_SHAPES = frozenset(rule.shape for rule in RULES if rule.announced)
_DATES = frozenset({"date", "date_in_words"})
_DENIABLE = (_PHONES | {rule.shape for rule in RULES if rule.plain}) - {"digits"}
"""Forms of digits only, which "order" or "part number" in front turns into something else."""
_UNANNOUNCED = 100
"""Distance of plain digits that nothing announces: what is announced comes first."""
_QUESTION = 60
"""Distance that a cue in the question counts as."""
_SHORT_ANSWER = 200
"""Answers up to this length are read as a reply to the cue in their question."""
_THOUSANDS_REACH, _UNIT_REACH = 16, 5
_OTHER_REACH = 24
_TAX_GROUPS = compile_regex(
    r"\d{10,11}|\d{2,3} ?/ ?\d{3} ?/ ?\d{5}|\d{3} ?/ ?\d{4} ?/ ?\d{4}|\d{5} ?/ ?\d{5}"
    r"|\d{2,3} \d{3} \d{5}|\d{4} ?0 ?\d{3} ?\d{4} ?\d",
    "tax groups",
)
"""A German tax number: of each state, or the thirteen digits of all of them."""
_BLANKS_REACH = 16
"""How near its cue must be where blanks group it, as they do in telephone numbers."""

_ORDER = {type_: index for index, type_ in enumerate(TYPES)}


@cache
def _sets() -> tuple[PatternSet, PatternSet]:
    """Return the set scanned always, and the one scanned when something is announced."""
    return PatternSet((*FORMS, *CUES)), PatternSet(ANNOUNCED)


@cache
def _forms() -> Mapping[str, tuple[PiiRule, ...]]:
    """Return what each form that stands alone may mean."""
    rules = [rule for rule in RULES if not rule.announced]
    return {
        shape: tuple(r for r in rules if r.shape == shape) for shape in {r.shape for r in rules}
    }


@cache
def _announceable() -> Mapping[tuple[str, int], tuple[PiiRule, ...]]:
    """Return what each announced form may mean, by shape and number of letters and digits."""
    found = defaultdict[tuple[str, int], list[PiiRule]](list)
    for rule in RULES:
        if rule.announced:
            for length in rule.lengths:
                found[rule.shape, length].append(rule)
    return {key: tuple(rules) for key, rules in found.items()}


def warm_up() -> None:
    """Compile the patterns now instead of at the first request."""
    _sets()
    _forms()
    _announceable()


def fold(text: str) -> str:
    """Return the text with typographic hyphens, blanks and digits as ASCII; the length stays."""
    if text.isascii():
        return text
    for fancy, plain in _FOLD.items():
        text = text.replace(fancy, plain)
    return text


def find(
    text: str,
    regions: Sequence[str] = pii_phone.REGIONS,
    question: str = "",
    *,
    private_ips: bool = False,
) -> list[Finding]:
    """Return the personal data in a text, at most one finding for any place."""
    return resolve(candidates(text, regions, question, private_ips=private_ips))


def candidates(
    text: str,
    regions: Sequence[str] = pii_phone.REGIONS,
    question: str = "",
    *,
    private_ips: bool = False,
) -> Iterator[Finding]:
    """Yield everything a text may hold; findings may overlap.

    Args:
        text: What to search.
        regions: Whose national telephone forms count without context.
        question: What a short text answers; its words announce what the text says.
        private_ips: Whether addresses count that name no host on the public network.
    """
    folded = fold(text)
    always, announced = _sets()
    forms, cues = _split(always.scan(folded))
    forms = [m for m in forms if m.pattern != BARE or _numbers(folded[m.start : m.end])]
    asked = _asked(question) if len(text) <= _SHORT_ANSWER else frozenset()
    shapes: list[Match] = []
    if cues or asked or any(m.pattern in _DENIABLE for m in forms):
        shapes = announced.scan(folded)
    context = _Context(folded, cues, asked, shapes, regions, private_ips)
    found = [finding for match in (*forms, *shapes) for finding in context.read(match)]
    yield from found
    for piece in pieces(folded):
        clear = not any(f.start < piece.end and piece.start < f.end for f in found)
        finding = read(piece, question) if clear else None
        if finding is not None:
            yield finding


def resolve(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings that do not overlap, in the order of the text.

    Of overlapping ones the longest stays; then the validated one; then any type rather than a
    telephone number; then the one nearest to the words that announce it; then the type listed
    first, custom types before all.
    """
    ranked = sorted(findings, key=_rank)
    kept: list[Finding] = []
    starts: list[int] = []
    for finding in ranked:
        at = bisect_left(starts, finding.start)
        if at and kept[at - 1].end > finding.start:
            continue
        if at < len(kept) and kept[at].start < finding.end:
            continue
        kept.insert(at, finding)
        starts.insert(at, finding.start)
    return kept


def _rank(finding: Finding) -> tuple[int, bool, bool, int, int, int]:
    type_, start, end, validated, distance = finding
    return start - end, not validated, type_ == "phone", distance, _ORDER.get(type_, -1), start


def _numbers(digits: str) -> bool:
    """Return whether bare digits pass the checks of any type; in most texts none do."""
    return any(rule.check is None or rule.check(digits) for rule in _forms()[BARE])


def _split(matches: Iterable[Match]) -> tuple[list[Match], list[Match]]:
    forms: list[Match] = []
    cues: list[Match] = []
    for match in matches:
        (cues if match.pattern.startswith("cue:") else forms).append(match)
    return forms, cues


def _asked(question: str) -> frozenset[str]:
    matches = _sets()[0].scan(fold(question)) if question else ()
    return frozenset(m.pattern[4:] for m in matches if m.pattern.startswith("cue:"))


class _Context:
    """The cues of one text, and what a match means among them."""

    def __init__(
        self,
        text: str,
        cues: Iterable[Match],
        asked: frozenset[str],
        candidates: Iterable[Match],
        regions: Sequence[str],
        private_ips: bool,
    ) -> None:
        self._text = text
        self._private_ips = private_ips
        self._asked = asked
        self._regions = regions
        self._cues: dict[str, tuple[list[int], list[int]]] = {}
        others = (m for m in candidates if m.pattern == OTHER)
        for match in sorted((*cues, *others), key=lambda m: m.start):
            starts, ends = self._cues.setdefault(match.pattern[4:], ([], []))
            starts.append(match.start)
            ends.append(match.end)

    def read(self, match: Match) -> Iterator[Finding]:
        """Yield everything a match may be."""
        if match.pattern in _PHONES:
            yield from self._phone(match)
        for rule in _forms().get(match.pattern, ()):
            finding = self._form(rule, match)
            if finding is not None:
                yield finding
        if match.pattern in _SHAPES:
            yield from self._announced(match)

    def _form(self, rule: PiiRule, match: Match) -> Finding | None:
        near = self._distance(rule.type, match.start, match.end) is not None
        if near and rule.plain and rule.shape != "card_plain":
            return None  # announced: the longer search weighs the words
        span = refine(self._text, match, announced=near)
        if span is None or (rule.plain and not near and self._is_other(span[0])):
            return None
        value = self._text[span[0] : span[1]]
        if rule.check is not None and not rule.check(value):
            return None
        if rule.type == "ip_address" and not self._private_ips and not public_ip(value):
            return None
        distance = _UNANNOUNCED if rule.plain and not near else 0
        return Finding(rule.type, *span, rule.validated, distance)

    def _announced(self, match: Match) -> Iterator[Finding]:
        shape, start, end = match
        value = self._text[start:end]
        if shape == "digits" and self._is_time(value, end):
            return
        compact = alnum(value)
        for rule in _announceable().get((shape, len(compact)), ()):
            if rule.type not in self._cues and rule.type not in self._asked:
                continue
            distance = self._distance(rule.type, start, end)
            if distance is None or self._something_else(start, distance):
                continue
            if rule.type == "de_tax_number" and not self._is_tax_number(value, start, distance):
                continue
            if rule.check is None or rule.check(value if shape in _DATES else compact):
                yield Finding(rule.type, start, end, rule.validated, distance)

    def _phone(self, match: Match) -> Iterator[Finding]:
        shape, start, end = match
        value = self._text[start:end]
        distance = self._distance("phone", start, end)
        if shape == "phone_plus":
            kept = pii_phone.international(value)
            if kept and (value.startswith("+") or not self._is_other(start)):
                yield Finding("phone", start, start + kept, True)
        elif shape == "digits":
            if distance is not None and self._phone_announced(match, value, distance):
                yield Finding("phone", start, end, False, distance)
        elif self._phone_national(match, value):
            yield Finding("phone", start, end, True)

    def _phone_national(self, match: Match, value: str) -> bool:
        return (
            not _joined(self._text, match.start, match.end)
            and not self._is_time(value, match.end)
            and not self._is_other(match.start)
            and pii_phone.national(value, self._regions)
        )

    def _phone_announced(self, match: Match, value: str, distance: int) -> bool:
        if pii_phone.thousands(value) and distance > self._thousands_reach(match):
            return False
        return (
            pii_phone.announced(value)
            and not self._is_time(value, match.end)
            and not _joined(self._text, match.start, match.end)
            and not self._something_else(match.start, distance)
        )

    def _is_time(self, value: str, end: int) -> bool:
        """Return whether it reads as a date, or minutes follow: `08/24 16` of `08/24 16:25`."""
        after = self._text[end : end + 2]
        return pii_phone.is_date(value) or (after[:1] == ":" and after[1:].isdigit())

    def _thousands_reach(self, match: Match) -> int:
        """Return how near a cue of `1 234 567` must be: nearer where a unit may follow."""
        unit = self._text[match.end : match.end + 2].strip()[:1].isalpha()
        return _UNIT_REACH if unit else _THOUSANDS_REACH

    def _distance(self, type_: str, start: int, end: int) -> int | None:
        """Return how far the nearest cue of a type is, or None where none is near enough."""
        before, after = _REACH.get(type_, (_BEFORE, _AFTER))
        found = [_QUESTION] if type_ in self._asked else []
        if type_ in self._cues:
            starts, ends = self._cues[type_]
            at = bisect_left(starts, start)
            if at and start - ends[at - 1] <= before:
                found.append(max(0, start - ends[at - 1]))
            if at < len(starts) and starts[at] - end <= after:
                found.append(max(0, starts[at] - end) + 1)
        return min(found, default=None)

    def _is_tax_number(self, value: str, start: int, distance: int) -> bool:
        """Return whether it is grouped as German tax numbers are, and no word names it a phone's.

        Those numbers have no check digit that could be told without the office's state.
        """
        if not _TAX_GROUPS.fullmatch(value) or (" " in value and distance > _BLANKS_REACH):
            return False
        return "/" in value or not self._is_between("phone", start, distance)

    def _is_between(self, type_: str, start: int, distance: int) -> bool:
        """Return whether a cue of a type stands before a place, nearer than a distance."""
        starts, ends = self._cues.get(type_, ([], []))
        at = bisect_left(starts, start)
        return bool(at) and max(0, start - ends[at - 1]) < distance

    def _something_else(self, start: int, distance: int) -> bool:
        """Return whether a nearer word says that it is an order number, a version or the like."""
        other = self._last_other(start)
        return other is not None and other < distance and other <= _OTHER_REACH

    def _is_other(self, start: int) -> bool:
        other = self._last_other(start)
        return other is not None and other <= _OTHER_REACH

    def _last_other(self, start: int) -> int | None:
        if "other" not in self._cues:
            return None
        starts, ends = self._cues["other"]
        at = bisect_left(starts, start)
        return max(0, start - ends[at - 1]) if at else None


def _joined(text: str, start: int, end: int) -> bool:
    """Return whether a hyphen, point, slash, underscore or comma ties it to more digits."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    behind = len(before) == 2 and (
        (before[1] in "-./_" and before[0].isalnum()) or (before[1] == "," and before[0].isdigit())
    )
    return behind or (len(after) == 2 and after[0] in "-._/" and after[1].isdigit())


_LONGEST = 100
"""A longer text is not a list of bare values: it says something."""
_PIECE = compile_regex(r"[0-9A-Za-z+(][0-9A-Za-z+()./: -]{5,28}[0-9A-Za-z)]", "value")
_BETWEEN = compile_regex(r"\s*[,;\n]\s*(?:and\s+)?|\s+(?:and|und|et|y|e|i|og|en)\s+", "between")
_EDGES = " \t\r\n.,;:!?\"'`*_()[]<>"
_SIZES = range(7, 20)
_UNCHECKED = frozenset(
    {"cu_ni", "de_tax_number", "id_nik", "in_pan", "in_voter", "my_nric", "pk_cnic"}
)
"""Numbers without a check digit: a date or a place of issue is not enough here."""
_STRONG = (
    "tr_tckn", "no_fnr", "be_nn", "br_cpf", "fr_nir", "cn_ric", "za_id", "ro_cnp", "si_emso",
    "se_personnummer", "pl_pesel", "bg_egn", "is_kennitala", "ee_ik", "gr_amka", "es_nif",
    "es_nie", "sg_nric", "de_social_security", "kr_rrn",
)  # fmt: skip
"""Numbers that a random one of their length is in at most one case of twenty, rarest first."""


class Piece(NamedTuple):
    """One value of a text that consists of values; offsets are code points [start, end)."""

    value: str
    start: int
    end: int


class _Kind(NamedTuple):
    type: str
    check: Check


def pieces(text: str) -> tuple[Piece, ...]:
    """Return the values a text consists of; none if it says anything else.

    In a text that is nothing but values, check digits may announce a type: "44051401458" as a whole
    answer is more telling than the same digits in prose, and has no words that could announce or
    deny anything. Only the question could: if there was one and it named no type, a single check
    digit, which one number in ten has by chance, is not enough.
    """
    if len(text) > _LONGEST or not text.isascii():
        return ()
    if 3 * sum(map(text.count, "0123456789")) < len(text.strip()):
        return ()  # words; spares short prose the searches below
    found, start = [], 0
    for end, following in _cuts(text):
        piece = _piece(text, start, end)
        if piece is None:
            return ()
        found.append(piece)
        start = following
    return tuple(found)


def read(piece: Piece, question: str = "") -> Finding | None:
    """Return what a value most likely is, by its length and check digits.

    Args:
        piece: A value.
        question: What the text answers; if there is one, a single check digit is not enough.
    """
    type_ = _type(piece.value, trusting=not question)
    return None if type_ is None else Finding(type_, piece.start, piece.end, True)


def _type(value: str, *, trusting: bool) -> str | None:
    compact = alnum(value)
    if _timestamp(compact) or len(set(compact)) == 1:
        return None
    strong, weak = _kinds(len(compact)) if _printed(value) else ((), ())
    found = next((type_ for type_, check in strong if check(compact)), None)
    if found is None and trusting:
        weak_ones = (type_ for type_, check in weak if check(compact))
        found = "phone" if pii_phone.anywhere(value) else next(weak_ones, None)
    return found


def _printed(value: str) -> bool:
    """Return whether it is one word, or groups as identity numbers are printed.

    Not so are dates, ranges of years, postcodes (12345-6789), groups of 3-2-4 (security numbers
    have their own rules), and anything with points, slashes or more than one kind of separator.
    """
    separators = {c for c in value if not c.isalnum()}
    if not separators:
        return True
    sizes = tuple(len(group) for group in value.replace("-", " ").split(" "))
    return (
        separators in ({" "}, {"-"})
        and (sizes == (3, 3, 3) or not pii_phone.thousands(value))
        and not pii_phone.is_date(value)
        and max(sizes) > 2
        and sizes not in ((3, 2, 4), (4, 4), (5, 4))
    )


def _cuts(text: str) -> Iterator[tuple[int, int]]:
    """Yield where a value ends and where the next one starts."""
    for between in _BETWEEN.finditer(text.rstrip(_EDGES)):
        yield between.span()
    yield len(text), len(text)


def _piece(text: str, start: int, end: int) -> Piece | None:
    raw = text[start:end]
    value = raw.strip(_EDGES) if raw.count("(") == 0 else raw.strip().rstrip(".,;:!?")
    digits = sum(c.isdigit() for c in value)
    if not _PIECE.fullmatch(value) or digits < 6 or len(alnum(value)) not in _SIZES:
        return None
    start += raw.index(value)
    return Piece(value, start, start + len(value))


def _timestamp(number: str) -> bool:
    """Return whether it may be seconds or milliseconds since 1970, from 2014 to 2033."""
    return number.isdigit() and len(number) in (10, 13) and "14" <= number[:2] <= "19"


@cache
def _kinds(size: int) -> tuple[Sequence[_Kind], Sequence[_Kind]]:
    """Return what a value of so many letters and digits may be: on strong evidence, on weak."""
    numbers = {n.id: n for n in NATIONAL if n.id not in _UNCHECKED and size in n.lengths}
    kinds = {id_: _Kind(id_, checks.national(n.module)) for id_, n in numbers.items() if n.module}
    strong = [kinds.pop(id_) for id_ in _STRONG if id_ in kinds]
    weak = list(kinds.values())
    if size == 9:
        weak = [_Kind("us_routing", checks.routing), _Kind("passport", checks.de_document), *weak]
    return strong, [*weak, _Kind("credit_card", checks.card_in_context)]

"""Read a text that is nothing but one value, or several: then check digits may announce a type.

"44051401458" as a whole answer is more telling than the same digits in prose, and has no words
that could announce or deny anything. Only the question could: if there was one and it named no
type, a single check digit, which one number in ten has by chance, is not enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from guardrail_service.detectors.pii import checks
from guardrail_service.detectors.pii import phone as pii_phone
from guardrail_service.detectors.pii.checks import Check, alnum
from guardrail_service.detectors.pii.data_types import Finding
from guardrail_service.detectors.pii.national import NATIONAL
from guardrail_service.text.patterns.search import compile_regex

_LONGEST = 100
"""Longer texts say something."""
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
    """Return the values a text consists of; none if it says anything else."""
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

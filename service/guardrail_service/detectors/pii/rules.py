"""Patterns of personal data: forms that stand alone, words that announce, forms they announce."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from guardrail_service.detectors.pii import checks, streets
from guardrail_service.detectors.pii.checks import Check
from guardrail_service.detectors.pii.national import NATIONAL, National
from guardrail_service.text.patterns.search import Pattern


@dataclass(frozen=True, slots=True)
class PiiRule:
    """The meaning of a match of one shape.

    Attributes:
        type: Published type id.
        shape: Id of the pattern that proposes it.
        check: What must hold of the matched text; None where the form is all there is.
        lengths: How many letters and digits it may have; read for announced forms only.
        announced: Whether a cue of the type must stand nearby.
        validated: Whether the check verifies more than the form.
        plain: Whether it is digits only, so that "order" in front makes it something else.
    """

    type: str
    shape: str
    check: Check | None = None
    lengths: tuple[int, ...] = ()
    announced: bool = False
    validated: bool = True
    plain: bool = False


_LEFT = "(?:^|[^0-9A-Za-z])"
_RIGHT = "(?:$|[^0-9A-Za-z])"
_EXTENSION = r"(?: ?(?:x|ext\.?) ?\d{1,6})?"


def _alone(core: str) -> str:
    """Return a pattern for a whole word; underscores around it (Markdown) do not hide it."""
    return rf"(?:\b|_)({core})" + ("" if core.endswith(r"\)") else r"(?:\b|_)")


def _cue(type_: str, words: str) -> Pattern:
    """Return a pattern for words that announce a type.

    The gate looks for the words alone: with what stands beside them, hyperscan took 1.4 s instead
    of 0.8 s at every start for all patterns of personal data.
    """
    regex = rf"{_LEFT}(?:{words}){_RIGHT}"
    return Pattern(f"cue:{type_}", regex, ignore_case=True, gate=f"(?:{words})")


def _apart(core: str, joints: str, digit: str = r"\d") -> str:
    """Return a pattern for a whole word that is not a stretch of a longer row of groups.

    "12-12-12-12-12" holds no date, though "12-12-12" is one. It also bounds the cost of text that
    is nothing but groups of digits: such a row has no match, where it had one every few characters.

    Args:
        core: What to find.
        joints: Characters that join groups, escaped for a class.
        digit: What a group consists of, as part of a class.
    """
    before = rf"(?:^|_|[^\w{joints}]|(?:^|[^{digit}])[{joints}])"
    return rf"{before}({core})(?:$|_|[^\w{joints}]|[{joints}](?:[^{digit}]|$))"


def _form(number: National) -> str:
    """Return the pattern of a number's printed forms; groups of digits only must stand apart."""
    forms = "|".join(number.forms)
    return _apart(forms, r" \-") if number.id in _GROUPS_ONLY else _alone(forms)


_GROUPS_ONLY = frozenset({"ca_sin", "in_aadhaar", "uk_nhs"})
"""Numbers printed in groups of equal looks, of which a longer row may be a table or a card."""
_IBAN_LENGTHS = {
    15: "NO", 16: "BE", 18: "DK|FI|FK|FO|GL|NL|SD", 19: "MK|SI",
    20: "AT|BA|EE|KZ|LT|LU|MN|XK", 21: "CH|HR|LI|LV", 22: "BG|BH|CR|DE|GB|GE|IE|ME|RS|VA",
    23: "AE|GI|IL|IQ|OM|SO|TL", 24: "AD|CZ|DZ|ES|MD|PK|RO|SA|SE|SK|TN|VG", 25: "LY|PT|ST",
    26: "IS|TR", 27: "BI|DJ|FR|GR|IT|MC|MR|SM", 28: "AL|AZ|BY|CY|DO|GT|HU|LB|NI|PL|SV",
    29: "BR|EG|PS|QA|UA", 30: "JO|KW|MU", 31: "MT|SC", 32: "LC", 33: "RU",
}  # fmt: skip
"""Length by country; source: SWIFT's IBAN registry."""
_IBAN = "|".join(
    rf"(?:{countries})\d{{2}}(?:[ -]?[A-Z0-9]){{{size - 4}}}"
    for size, countries in _IBAN_LENGTHS.items()
)
_LOCAL = r"[A-Za-z0-9._%+'\x{80}-\x{10FFFF}-]{1,64}"
_LABEL = r"[A-Za-z0-9\x{80}-\x{10FFFF}-]{1,63}"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_QUAD = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_MBI_LETTER = "[AC-HJKMNP-RT-Y]"
_MBI_EITHER = "[0-9AC-HJKMNP-RT-Y]"
_MBI_PARTS = (
    rf"[1-9]{_MBI_LETTER}{_MBI_EITHER}\d",
    rf"{_MBI_LETTER}{_MBI_EITHER}\d",
    rf"{_MBI_LETTER}{{2}}\d\d",
)
_MBI = "".join(_MBI_PARTS) + "|(?i:" + "-".join(_MBI_PARTS) + ")"
_USER = (
    r"""\b(?:user[ _-]?name|user[ _-]?id|login(?:[ _-](?:name|id))?|screen[ _-]?name|handle|"""
    r"""benutzername|nutzername|nom d'utilisateur|nombre de usuario|account name)\b["'`*]{0,3}"""
    r"""[ \t]{0,3}(?::|=|\bis\b)[ \t]{0,3}["'`*@]{0,3}([A-Za-z0-9][A-Za-z0-9._-]{1,30}"""
    r"""[A-Za-z0-9])"""
)

BARE = "bare"
FORMS: tuple[Pattern, ...] = (
    Pattern("email", rf"{_LOCAL}@(?:{_LABEL}\.){{1,6}}"
                     r"(?:[A-Za-z]{2,24}|xn--[A-Za-z0-9-]{2,40})", ("@",),
            gate=r"[\w.%+'\x{80}-\x{10FFFF}-]@[0-9A-Za-z\x{80}-\x{10FFFF}-]"),
    Pattern("email_spelled",
            r"\b([a-z0-9._%+-]{1,64} ?[\[({] ?at ?[\])}] ?[a-z0-9-]{1,63}"
            r"(?: ?(?:\.|[\[({] ?dot ?[\])}]) ?[a-z0-9-]{2,63}){1,3})\b",
            ("at",), group=1, ignore_case=True, gate=r"[a-z0-9] ?[\[({] ?at ?[\])}] ?[a-z0-9]"),
    Pattern("phone_plus", _LEFT + rf"((?:\+|00)[1-9](?:[ .()/-]{{0,3}}\d){{6,14}}{_EXTENSION})",
            group=1),
    Pattern("phone_nanp",
            _LEFT + r"((?:1[ .-])?(?:[2-9]\d{2}[ .-]|\([2-9]\d{2}\)[ .-]{0,2})"
            rf"[2-9]\d{{2}}[ .-]\d{{4}}{_EXTENSION})(?:\b|_)", group=1),
    Pattern("phone_trunk", _LEFT + r"(\(?0\d{1,5}\)?(?:[ ./-]{1,2}\d{2,8}){1,5})(?:\b|_)", group=1),
    Pattern("card_plain", _alone(r"(?:[2-6]\d{12,18}|1800\d{11}|9792\d{12}|8[12]\d{14})"), group=1),
    Pattern("card_grouped",
            _alone(r"[2-9]\d{3}[ .-]\d{4}[ .-]\d{4}[ .-]\d{4}(?:[ .-]\d{3})?"
                   r"|3[47]\d{2}[ .-]\d{6}[ .-]\d{5}|3[0689]\d{2}[ .-]\d{6}[ .-]\d{4}"), group=1),
    Pattern(BARE, _alone(r"\d{11}|\d{13}"), group=1),
    Pattern("iban", _alone(_IBAN), group=1, ignore_case=True,
            gate=r"[A-Z]{2}\d{2}[ -]?[A-Z0-9]"),
    Pattern("ssn", _alone(r"\d{3}-\d{2}-\d{4}|\d{3}\.\d{2}\.\d{4}|\d{3} \d{2} \d{4}"), group=1),
    Pattern("ip4", _apart(_QUAD, r"."), group=1),
    Pattern("ip6", r"(?:[0-9A-Fa-f]{1,4}:|::)(?::?[0-9A-Fa-f]{1,4}:{1,2}){1,7}"
                   r"(?:[0-9A-Fa-f]{1,4})?(?:(?:\.\d{1,3}){3})?", (":",)),
    Pattern("mac", _apart(r"[0-9A-F]{2}(?::[0-9A-F]{2}){5}|[0-9A-F]{2}(?:-[0-9A-F]{2}){5}"
                          r"|[0-9A-F]{4}\.[0-9A-F]{4}\.[0-9A-F]{4}", r":.\-", "0-9A-F"),
            (":", "-", "."), group=1, ignore_case=True),
    Pattern("bitcoin", r"\b(?:[13][1-9A-HJ-NP-Za-km-z]{25,34}"
                       r"|(?:bc1|BC1)[02-9A-HJ-NP-Za-hj-np-z]{11,71})\b"),
    Pattern("ethereum", r"\b0x[0-9a-fA-F]{40}\b", ("0x",)),
    Pattern("uk_driving_licence",
            r"\b([A-Z]{2,5}9{0,3}\d[0156]\d[0-3]\d{2}[A-Z][A-Z9]\d[A-Z]{2})\b", group=1,
            gate=r"\d[0156]\d[0-3]\d{2}[A-Z][A-Z9]\d[A-Z]{2}"),
    Pattern("us_mbi", _alone(_MBI), group=1),
    Pattern("username", _USER, ("user", "login", "screen", "handle", "nutzername", "account"),
            group=1, ignore_case=True),
    *streets.PATTERNS,
    *(Pattern(f"form:{n.id}", _form(n), group=1, ignore_case=n.ignore_case,
              gate=n.gate or "|".join(n.forms))
      for n in NATIONAL if n.forms),
)  # fmt: skip
"""Forms that count wherever they stand."""

_CUES = {
    "phone": r"(?:tele)?phone|tel|call(?:s|ed|ing|er)?|mobile|cell|fax|whats ?app|sms|contact|dial"
    r"|reach(?:ed)?|ring|answering|desk|office|hotline|messages? (?:to|me)|text (?:me|us|him|her)"
    r"|registered|telefon|telepono|cep(?: no| tel)?|handy|rufnummer|téléphone"
    r"|portable|m[oó]vil|tel[eé]fono|celular|cellulare|电话|手机|電話",
    "credit_card": r"(?:credit|debit|bank|payment)? ?cards?|cc|visa|mastercard|amex|maestro"
    r"|kreditkarte|carte|tarjeta|carta di credito|cart[aã]o",
    "us_ssn": r"ssn|social security|social sec|soc sec",
    "us_itin": r"itin|taxpayer identification|individual taxpayer",
    "passport": r"passports?|pass(?:-?nr\.?|nummer)|reisepass(?:nummer)?|passeport|pasaporte"
    r"|passaporto|passaporte|travel document|personalausweis(?:nummer)?"
    r"|ausweis(?:-?nr\.?| nr\.?|nummer)|identity card|carta d'identit[aà]|여권(?:번호)?|旅券"
    r"|护照|паспорт",
    "driving_licence": r"(?:driver'?s?|driving)[- ]?licen[cs]e|dl (?:no|number)"
    r"|licen[cs]e (?:no|number)|f(?:ü|ue)hrerschein(?:nummer|-?nr\.?)?|fahrerlaubnis"
    r"|운전면허|permis de conduire|patente|licencia de conducir|driver licen[cs]e",
    "date_of_birth": r"born|births?|birth ?da(?:te|y)|d\.?o\.?b|geboren|geburtsdatum|geb"
    r"|n[eé]e? le|naissance|naci(?:do|da|ó|miento)|nat[oa] (?:il|a)|nascita|nascimento"
    r"|geboortedatum|bday",
    "medical_record_number": r"mrn|medical record|patient(?:'s)? (?:id|no|number)"
    r"|patienten-?(?:id|nummer)|chart (?:no|number)|health record|hospital (?:no|number)",
    "bank_account": r"(?:bank|checking|savings|current)? ?(?:account|acct|a/c)"
    r"(?: (?:no|number|num|#|is|ending))?|kontonummer|konto-?nr|compte|cuenta|conto corrente"
    r"|rekening(?:nummer)?",
    "us_routing": r"routing|aba|rtn|transit",
    "ip_address": r"ip(?:v4)?(?: address)?|addr(?:ess)?|host|server|ping|client_ip|remote",
}
CUES: tuple[Pattern, ...] = tuple(
    _cue(type_, words) for type_, words in (*_CUES.items(), *((n.id, n.cue) for n in NATIONAL))
)
"""Words that announce a type; a match is where they stand."""

OTHER = "cue:other"
_OTHER = (
    r"order|invoice|ticket|tracking|part|serial|skus?|isbn|issn|ean|upc|gtin|versions?|release|ref"
    r"|reference|case|article|model|build|revision|doi|pmid|pmcid|patent|rfc|page|item|product|lot"
    r"|batch|po|flight|grant|arxiv|section|chapter|confirmation|booking|commit|timestamp|epoch"
    r"|barcode|transaction|shipment|imei|bestellnummer|rechnung|auftrag|artikelnummer|commande"
    r"|facture|pedido|factura|ordine|fattura|population|revenue|total|ndc|cas|vin|cusip|isin|lei|p/n|s/n|inv|hash|checksum|grid"
    r"|coordinates|standard|iso|din"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th|\.)?"
ANNOUNCED: tuple[Pattern, ...] = (
    Pattern("token", _alone(r"(?:[A-Za-z]{1,6}-?\d[0-9A-Za-z]{2,17}|\d[0-9A-Za-z]{4,17})"
                          r"(?:-[0-9A-Za-z]{1,8}){0,4}"),
            group=1),
    Pattern("digits", rf"(?:\b|[+(])\d[\d ().\\/-]{{4,20}}\d{_EXTENSION}(?:\b|_)"),
    Pattern("date", _apart(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}", r"/.\-"), group=1),
    Pattern("date_in_words",
            rf"\b(?:{_DAY} (?:of |de )?[A-Za-z\x{{C0}}-\x{{17F}}]{{3,10}}\.?,? (?:de )?\d{{4}}"
            rf"|[A-Za-z]{{3,10}}\.? {_DAY},? \d{{4}})\b"),
    Pattern(OTHER, rf"\b(?:{_OTHER})(?:\b|_)", ignore_case=True),
)  # fmt: skip
"""Forms that count only where a cue stands nearby, and the words that say it is something else."""


def _digits(least: int) -> Check:
    """Return a check for a code with at least so many digits."""
    return lambda value: sum(c.isdigit() for c in value) >= least


def _bare(number: National, check: Check | None) -> Check:
    """Return a check that also wants the right length and digits that are not all the same."""
    return lambda value: (
        len(value) == number.bare
        and checks.may_be(number.id, value)
        and len(set(value)) > 1
        and (check is None or check(value))
    )


def _national_rules(number: National) -> Iterator[PiiRule]:
    check = checks.national(number.module) if number.module else None
    if number.forms:
        yield PiiRule(number.id, f"form:{number.id}", check, plain=number.id in _GROUPS_ONLY)
    if number.bare:
        yield PiiRule(number.id, BARE, _bare(number, check), plain=True)
    if number.lengths:
        for shape in ("token", "digits"):
            yield PiiRule(number.id, shape, check, number.lengths, announced=True)


_CODES = {
    "passport": (5, 6, 12),
    "driving_licence": (4, 5, 18),
    "medical_record_number": (5, 5, 14),
    "bank_account": (6, 6, 18),
}
"""Codes with no check digit: digits at least; letters and digits at least and at most."""

RULES: tuple[PiiRule, ...] = (
    PiiRule("email", "email", validated=False),
    PiiRule("email", "email_spelled", validated=False),
    PiiRule("credit_card", "card_plain", checks.card, plain=True),
    PiiRule("credit_card", "card_grouped", checks.card),
    *(PiiRule("credit_card", shape, checks.card_in_context, tuple(range(12, 20)), announced=True)
      for shape in ("token", "digits")),
    PiiRule("iban", "iban", checks.iban),
    PiiRule("us_ssn", "ssn", checks.ssn),
    PiiRule("us_itin", "ssn", checks.itin),
    *(PiiRule(type_, shape, check, (9,), announced=True)
      for type_, check in (("us_ssn", checks.ssn), ("us_itin", checks.itin),
                           ("us_routing", checks.routing))
      for shape in ("token", "digits")),
    PiiRule("ip_address", "ip4", checks.address),
    PiiRule("ip_address", "ip6", checks.address),
    PiiRule("mac_address", "mac", checks.mac),
    PiiRule("crypto_wallet", "bitcoin", checks.bitcoin),
    PiiRule("crypto_wallet", "ethereum", validated=False),
    PiiRule("driving_licence", "uk_driving_licence", validated=False),
    PiiRule("us_mbi", "us_mbi", validated=False),
    PiiRule("username", "username", validated=False),
    *(PiiRule("street_address", p.id, validated=False) for p in streets.PATTERNS),
    *(PiiRule(type_, shape, _digits(least), tuple(range(low, high + 1)), announced=True,
           validated=False)
      for type_, (least, low, high) in _CODES.items() for shape in ("token", "digits")),
    *(PiiRule("date_of_birth", shape, checks.birth_date, tuple(range(4, 21)), announced=True)
      for shape in ("date", "date_in_words")),
    *(rule for number in NATIONAL for rule in _national_rules(number)),
)  # fmt: skip
"""Meaning of the shapes, except telephone numbers, which `_pii/scan.py` reads."""

PATTERNS: tuple[Pattern, ...] = (*FORMS, *CUES, *ANNOUNCED)
"""Every pattern this detector runs."""

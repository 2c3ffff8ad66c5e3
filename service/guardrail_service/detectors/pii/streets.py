"""Patterns of street addresses, by language."""

from __future__ import annotations

from guardrail_service.text.patterns.search import Pattern

_UPPER = r"[A-Z\x{C0}-\x{DE}\x{100}-\x{17F}]"
r"""Capitals of Latin alphabets. Ranges, because `\p{Lu}` made hyperscan compile for seconds."""
_WORD = rf"{_UPPER}[A-Za-z'.\x{{C0}}-\x{{17F}}-]{{0,24}}"
_PARTICLE = (
    r"(?:(?:del?|della|delle|dei|degli|di|d[ao]|d[ao]s|las?|los|el|les?|du|des|van|von) |[dl]')"
)
_ENGLISH = (
    "Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Place|Pl|Square|Sq"
    "|Terrace|Way|Parkway|Pkwy|Highway|Hwy|Crescent|Close|Gardens|Mews|Circle|Cir|Trail|Row|Alley"
)
_FLAT = r"(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Flat)\.? ?[A-Za-z0-9-]{1,6})?"
_GERMANIC = (
    "straße|strasse|weg|platz|allee|gasse|damm|ufer|laan|straat|gade|gatan|vägen|katu|gracht"
)
_FRENCH = "rue|avenue|boulevard|chemin|allée|impasse|place|quai"
ROMANCE = (
    "Via|Viale|Piazza|Corso|Largo|Calle|Avenida|Paseo|Plaza|Carrer|Rua|Travessa|Praça|Rue|Avenue"
    "|Boulevard"
)

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "street_en",
        rf"\b\d{{1,6}}[A-Z]?,? (?:[NSEW]\.? )?(?:{_WORD}|\d{{1,3}}(?:st|nd|rd|th))"
        rf"(?: {_WORD}){{0,2}} (?:{_ENGLISH})\b{_FLAT}",
        tuple(_ENGLISH.split("|")),
        gate=rf" (?:{_ENGLISH})\b",
    ),
    Pattern(
        "street_de",
        rf"{_UPPER}[a-z\x{{DF}}-\x{{17F}}-]{{2,24}}(?:{_GERMANIC}|str\.) \d{{1,4}}(?: ?[a-h]\b)?",
        (*_GERMANIC.split("|"), "str."),
        gate=rf"(?:{_GERMANIC}|str\.) \d",
    ),
    Pattern(
        "street_fr",
        rf"\b\d{{1,4}}(?: ?(?:bis|ter))?,? (?:{_FRENCH}|{_FRENCH.title()}) {_PARTICLE}{{0,3}}"
        rf"{_WORD}(?:[ -]{_WORD}){{0,2}}",
        tuple(_FRENCH.split("|")),
        gate=rf" (?:{_FRENCH}|{_FRENCH.title()}) ",
    ),
    Pattern(
        "street_romance",
        rf"\b(?:{ROMANCE}|Av\.|ul\.) {_PARTICLE}{{0,3}}{_WORD}(?: {_PARTICLE}?{_WORD}){{0,3}}"
        r",? (?:n[º°.] ?)?\d{1,5}\b",
        (*ROMANCE.split("|"), "av.", "ul."),
        gate=rf"\b(?:{ROMANCE}|Av\.|ul\.) ",
    ),
    Pattern("post_box", r"\bP\.? ?O\.? Box \d{1,6}\b", ("box",), ignore_case=True),
    Pattern(
        "military_post",
        r"\b(?:(?:PSC|CMR|Unit) \d{1,5},? Box \d{1,5}[ ,\n]{1,3})?(?:APO|FPO|DPO),? A[AEP] \d{5}\b",
        ("apo", "fpo", "dpo"),
    ),
)

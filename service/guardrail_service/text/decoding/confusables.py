"""Characters that a reader takes for an ASCII one, or does not see at all.

Compatibility forms (full-width, mathematical, circled, superscript) and the digits of other
scripts come from the Unicode data of the interpreter; the letters below have no such relation to
the Latin ones they look like. Not here: sequences that look alike only together (`rn` and `m`).
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_HOMOGLYPHS = str.maketrans(
    # Cyrillic, then Greek, then Armenian and Cherokee capitals that are drawn as Latin ones.
    "АВЕЅІЈКМНОРСТУХаеіјорсухѕԁԛԝһӏЗΑΒΕΖΗΙΚΜΝΟΡΤΥΧαινορυՕՍօսհցոᎪᏴᏟᎬᎻᎫᏦᏞᎷΟᏢᎡᏚᎢᏙᎳᏃ",  # noqa: RUF001
    "ABESIJKMHOPCTYXaeijopcyxsdqwhl3ABEZHIKMNOPTYXaivopuOUouhgnABCEHJKLMOPRSTVWZ",
)
_PUNCTUATION = {
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2212": "-", "\u2215": "/",
    "\u2024": ".", "\u3002": ".", "\ufe52": ".", "\u0589": ":", "\ua789": ":", "\u2044": "/",
}  # fmt: skip

INVISIBLE = frozenset(
    map(
        chr,
        (
            0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0,
            *range(0x180B, 0x180E), *range(0x200B, 0x2010), *range(0x202A, 0x202F),
            *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0),
        ),
    )
)  # fmt: skip
"""Characters without a glyph of their own: joiners, marks of direction, variation selectors."""


@lru_cache(maxsize=8192)
def ascii_twin(character: str) -> str | None:
    """Return the ASCII text a character is drawn as, or None if it has none or is ASCII itself.

    The tag characters of plane 14, which show nothing and have carried hidden text, count too.
    """
    if character.isascii():
        return None
    code = ord(character)
    if 0xE0020 <= code <= 0xE007E:
        return chr(code - 0xE0000)
    if character in _PUNCTUATION:
        return _PUNCTUATION[character]
    glyph = character.translate(_HOMOGLYPHS)
    if glyph.isascii():
        return glyph
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    compatible = unicodedata.normalize("NFKC", character)
    short = compatible.isascii() and compatible.isprintable() and 0 < len(compatible) <= 4
    return compatible if short else None

"""Runs of characters that are text in another alphabet: base64, base32, hexadecimal, numbers.

Each finder returns where a run stands and what it says. Every run is read a bounded number of
times, so the work is linear in the text.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import NamedTuple

from guardrail_service.text.budget import in_time
from guardrail_service.text.patterns.search import Prepared, compile_regex


class Block(NamedTuple):
    """A run [start, end) in code points, and its text; None if it looks encoded and is not."""

    start: int
    end: int
    codec: str
    text: str | None


_Decoder = Callable[[str], str | None]

_FORMS = (
    (
        "base64",
        r"(?:[A-Za-z0-9+/]{40,100}\r?\n)+[A-Za-z0-9+/]{2,100}={0,2}"
        r"|[A-Za-z0-9+/_-][a-z]{0,30}[A-Z0-9][A-Za-z0-9+/_-]{3,}={0,2}",
    ),
    ("base32", r"[A-Z2-7]{16,}={0,6}|[a-z2-7]{16,}={0,6}"),
    ("hex", r"(?:0[xX])?[0-9A-Fa-f]{12,}"),
    ("hex", r"\b(?:(?:0[xX])?[0-9A-Fa-f]{2}[ ,:;|\n\t-]{1,3}){5,}(?:0[xX])?[0-9A-Fa-f]{2}\b"),
    ("charcode", r"\b(?:[0-9]{2,3}[ ,;|\n\t-]{1,3}){5,}[0-9]{2,3}\b"),
    ("charcode", r"\b(?:[cC]hr\([0-9]{2,3}\)[ +.,&|]{0,4}){5,}"),
    ("codepoint", r"(?:U\+[0-9A-Fa-f]{4,6}[ ,;]{0,3}){5,}"),
    ("binary", r"\b(?:[01]{8}[ ,\n]{0,2}){6,}"),
)
"""Base64: wrapped lines, or one run with a capital or digit in it, so that words are not even
looked at."""
(_, _BASE64), *_NUMBER_RUNS = ((codec, compile_regex(regex, codec)) for codec, regex in _FORMS)
ANY_BLOCK = compile_regex("|".join(f"(?:{regex})" for _, regex in _FORMS), "block")
"""Occurs wherever `blocks` finds something; most texts have none, and one search tells."""
_SEPARATORS = " ,;:.+&|\n\t-"
_ALNUM_RUN = compile_regex(r"[A-Za-z0-9]{8,}", "piece")
_MIN_BASE64 = 8
"""Characters; they hold the six of the shortest address, `a@b.co`."""
_MIN_SHIFTED = 20
"""Characters; a run glued to a word is tried at the other three alignments from here on."""
_MIN_CLAIM = 16
"""Characters of a run whose form claims an encoding, so that failing to decode it is told."""


def blocks(text: str) -> Iterator[Block]:
    """Yield the runs of a text that decode to text, and those that claim to and do not."""
    source = Prepared(text)
    yield from _base64_blocks(source)
    for codec, regex in _NUMBER_RUNS:
        for match in in_time(regex.finditer(source.data)):
            run = match.group().decode("ascii").rstrip(_SEPARATORS)
            start = source.code_point(match.start())
            decoded = _DECODERS[codec](run)
            if decoded is not None:
                yield Block(start, start + len(run), codec, decoded)
            elif run[:2] in ("0x", "0X") and len(run) >= _MIN_CLAIM and len(run) % 2:
                yield Block(start, start + len(run), codec, None)


def _base64_blocks(source: Prepared) -> Iterator[Block]:
    for match in in_time(_BASE64.finditer(source.data)):
        run = match.group().decode("ascii")
        if len(run) < _MIN_BASE64:
            continue
        start = source.code_point(match.start())
        if start and source.text[start - 1] == "\\" and run[0] in "nrt":
            run, start = run[1:], start + 1
        found = _aligned(run)
        if found is not None:
            skipped, decoded = found
            codec = "base64url" if "-" in run or "_" in run else "base64"
            yield Block(start + skipped, start + len(run), codec, decoded)
            continue
        pieces = list(_pieces(run))
        for offset, piece, decoded in pieces:
            yield Block(start + offset, start + offset + len(piece), "base64", decoded)
        if not pieces and _claims_base64(run):
            yield Block(start, start + len(run), "base64", None)


def _claims_base64(run: str) -> bool:
    """Return whether a run looks like base64, as no name does, and has the wrong length for it."""
    return (
        run.endswith("=")
        and len(run) >= _MIN_CLAIM
        and len(run) % 4 > 0
        and any(c.isdigit() for c in run)
        and any(c.islower() for c in run)
        and any(c.isupper() for c in run)
    )


def _aligned(run: str) -> tuple[int, str] | None:
    """Return how many characters before the encoded part there are, and what it says."""
    for skipped in range(4 if len(run) >= _MIN_SHIFTED else 1):
        decoded = _from_base64(run[skipped:])
        if decoded is not None:
            return skipped, decoded
    return None


def _pieces(run: str) -> Iterator[tuple[int, str, str]]:
    """Yield the parts between `/`, `-`, `_` and `+` that decode by themselves, as in an address."""
    for match in _ALNUM_RUN.finditer(run.encode()):
        piece = match.group().decode("ascii")
        if len(piece) == len(run.rstrip("=")):
            return
        decoded = None if piece[1:].islower() else _from_base64(piece)
        if decoded is not None:
            yield match.start(), piece, decoded


def _from_base64(run: str) -> str | None:
    plain = run.replace("\n", "").replace("\r", "").rstrip("=")
    if len(plain) % 4 == 1:
        return None
    plain = plain.replace("-", "+").replace("_", "/")
    try:
        return readable(binascii.a2b_base64(plain + "=" * (-len(plain) % 4), strict_mode=True))
    except binascii.Error:
        return None


def _from_base32(run: str) -> str | None:
    plain = run.rstrip("=").upper()
    if len(plain) % 8 in (1, 3, 6):
        return None
    try:
        return readable(base64.b32decode(plain + "=" * (-len(plain) % 8)))
    except binascii.Error:
        return None


def _from_hex(run: str) -> str | None:
    digits = "".join(c for c in run.replace("0x", "").replace("0X", "") if c.isalnum())
    return None if len(digits) % 2 else readable(bytes.fromhex(digits))


def _from_numbers(run: str) -> str | None:
    spaced = "".join(c if c.isdigit() else " " for c in run)
    return _from_codes([int(number) for number in spaced.split()])


def _from_code_points(run: str) -> str | None:
    parts = run.replace(",", " ").replace(";", " ").replace("U+", " ").split()
    return _from_codes([int(part, 16) for part in parts])


def _from_codes(codes: list[int]) -> str | None:
    valid = all(code < 0x110000 and not 0xD800 <= code < 0xE000 for code in codes)
    return _printable("".join(map(chr, codes))) if valid else None


def _from_binary(run: str) -> str | None:
    digits = "".join(c for c in run if c in "01")
    return readable(bytes(int(digits[i : i + 8], 2) for i in range(0, len(digits), 8)))


_DECODERS: dict[str, _Decoder] = {
    "base32": _from_base32,
    "hex": _from_hex,
    "charcode": _from_numbers,
    "codepoint": _from_code_points,
    "binary": _from_binary,
}


def readable(data: bytes) -> str | None:
    """Return bytes as text if they are text: UTF-8, or UTF-16 as PowerShell encodes it."""
    if data[1::2].count(0) * 2 > len(data) - 2 and len(data) % 2 == 0 and len(data) >= 8:
        return _printable(data.decode("utf-16-le", "replace"))
    try:
        return _printable(data.decode())
    except UnicodeDecodeError:
        return None


def _printable(text: str) -> str | None:
    """Return the text unless it has characters that no text has."""
    plain = text.translate(_LINE_BREAKS)
    return text if len(text) >= 4 and plain.isprintable() and "\ufffd" not in text else None


_LINE_BREAKS = {ord(c): " " for c in "\n\r\t\u200b\u200c\u200d\u2060\ufeff\u00a0\u2028\u3000\u2003"}

"""Single characters written in another way: %40, &#64;, \\u0040, invisible and look-alike ones.

Each finder returns the edits that undo one way of writing over a whole text, so that a number or
an address of which only a part is disguised is read in one piece.
"""

from __future__ import annotations

import html
import string
from collections.abc import Callable, Iterator

from guardrail_service.text.decoding.confusables import INVISIBLE, ascii_twin
from guardrail_service.text.offsets import Edit
from guardrail_service.text.patterns.search import Prepared, compile_regex

_PERCENT = compile_regex(r"(?:%[0-9A-Fa-f]{2})+", "percent")
_ENTITY = compile_regex(
    r"&(?:#[0-9]{1,10}|#[xX][0-9A-Fa-f]{1,8}|[A-Za-z][A-Za-z0-9]{1,30});", "entity"
)
_ESCAPE = compile_regex(
    r"(?:\\u[0-9A-Fa-f]{4}|\\u\{[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8}|\\x[0-9A-Fa-f]{2}|\\[0-3][0-7]{2})+",
    "escape",
)
_ROT13 = str.maketrans(
    string.ascii_letters,
    "nopqrstuvwxyzabcdefghijklmNOPQRSTUVWXYZABCDEFGHIJKLM",
)
_ROT13_TOKEN = compile_regex(
    r"[!-~]{0,64}@[!-~]{3,128}|[A-Za-z0-9_+/=.~-]{16,}", "token that may be rotated"
)
_LEET_DIGIT = dict(zip("OoQDIl|!ZzEASsGbTBgq", "00001111223455667899", strict=True))
_LEET_NUMBER = compile_regex(
    r"\b[0-9OoQDIl|!ZzEASsGbTBgq](?:[ -]?[0-9OoQDIl|!ZzEASsGbTBgq]){8,33}\b", "number with letters"
)
_LEET_LETTER = str.maketrans("01345789$!", "oleastbgsi")
_LEET_MAIL = compile_regex(r"[A-Za-z0-9._%+$!-]{1,64}@[A-Za-z0-9.$!-]{3,80}", "address with digits")


def percent(text: str) -> Iterator[Edit | None]:
    """Yield edits for `%40`; None for bytes that are no UTF-8."""
    if "%" not in text:
        return
    source = Prepared(text)
    for match in _PERCENT.finditer(source.data):
        start = source.code_point(match.start())
        run = match.group()
        try:
            yield Edit(
                start, start + len(run), bytes.fromhex(run.decode().replace("%", "")).decode()
            )
        except UnicodeDecodeError:
            if len(run) > len("%AB"):
                yield None


def entities(text: str) -> Iterator[Edit | None]:
    """Yield edits for `&#64;`, `&#x40;` and `&commat;`; None for numbers that are no character."""
    if "&" not in text:
        return
    source = Prepared(text)
    for match in _ENTITY.finditer(source.data):
        start = source.code_point(match.start())
        run = match.group().decode("ascii")
        plain = html.unescape(run)
        if plain == "\ufffd":
            yield None
        elif plain != run:
            yield Edit(start, start + len(run), plain)


def escapes(text: str) -> Iterator[Edit | None]:
    r"""Yield edits for `\u0040`, `\u{40}`, `\U00000040`, `\x40` and `\100`."""
    if "\\" not in text:
        return
    source = Prepared(text)
    for match in _ESCAPE.finditer(source.data):
        start = source.code_point(match.start())
        run = match.group().decode("ascii")
        plain = _unescaped(run)
        yield None if plain is None else Edit(start, start + len(run), plain)


def _unescaped(run: str) -> str | None:
    units = []
    for part in run.split("\\")[1:]:
        octal = part[0] not in "uUx"
        code = int(part, 8) if octal else int(part[1:].strip("{}"), 16)
        if code >= 0x110000:
            return None
        units.append(chr(code))
    try:
        return "".join(units).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return None


def invisible(text: str) -> Iterator[Edit | None]:
    """Yield edits that take characters without a glyph out."""
    if text.isascii() or INVISIBLE.isdisjoint(text):
        return
    yield from (Edit(i, i + 1, "") for i, c in enumerate(text) if c in INVISIBLE)


def look_alikes(text: str) -> Iterator[Edit | None]:
    """Yield edits that put the ASCII character there that a reader sees."""
    if text.isascii():
        return
    twins = {character: twin for character in set(text) if (twin := ascii_twin(character))}
    if twins:
        for index, character in enumerate(text):
            if character in twins:
                yield Edit(index, index + 1, twins[character])


def rotated(text: str) -> Iterator[Edit | None]:
    """Yield edits that rotate every address and every long token by 13 letters."""
    source = Prepared(text)
    for match in _ROT13_TOKEN.finditer(source.data):
        start = source.code_point(match.start())
        run = match.group().decode("ascii")
        plain = run.translate(_ROT13)
        if plain != run:
            yield Edit(start, start + len(run), plain)


def leet(text: str) -> Iterator[Edit | None]:
    """Yield edits for letters that stand for digits in a number, and the reverse in an address."""
    source = Prepared(text)
    if "@" in text:
        for match in _LEET_MAIL.finditer(source.data):
            run = match.group().decode("ascii")
            if any(c in "0134578$!" for c in run.rpartition(".")[2]):
                start = source.code_point(match.start())
                yield Edit(start, start + len(run), run.translate(_LEET_LETTER))
        return
    for match in _LEET_NUMBER.finditer(source.data):
        start, run = _trimmed(source.code_point(match.start()), match.group().decode("ascii"))
        digits = sum(c.isdigit() for c in run)
        letters = sum(c in _LEET_DIGIT for c in run)
        if letters and digits >= letters:
            yield Edit(start, start + len(run), "".join(_LEET_DIGIT.get(c, c) for c in run))


def _trimmed(start: int, run: str) -> tuple[int, str]:
    """Return a number without the words that happen to consist of such letters around it."""
    words = run.replace("-", " ").split(" ")
    while words and not any(map(str.isdigit, words[0])):
        start += len(words[0]) + 1
        run = run[len(words.pop(0)) + 1 :]
    while words and not any(map(str.isdigit, words[-1])):
        run = run[: -len(words.pop()) - 1]
    return start, run


INLINE: dict[str, Callable[[str], Iterator[Edit | None]]] = {
    "percent": percent,
    "html": entities,
    "escape": escapes,
    "zero_width": invisible,
    "confusable": look_alikes,
}
"""Ways of writing that leave no doubt, tried on every layer."""

GUESSES: dict[str, Callable[[str], Iterator[Edit | None]]] = {"rot13": rotated, "leet": leet}
"""Ways that turn any text into another; what they reveal counts only if it is verified."""

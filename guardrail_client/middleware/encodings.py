"""Reads what a string says when its escapes and encodings are undone. Pure, linear in its size."""

from __future__ import annotations

import base64
import html
import quopri
import string
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

DEPTH = 3
"""Encodings in one another that are undone."""
MAX_VIEWS = 32
"""Of one string; two encodings in each other have at most a handful."""
MAX_BLANKS = 3
"""In what a name says; more of them are a sentence."""
BEGINNING, ODD = 4096, 8
"""Bytes of which not more than one in eight may be none of a text."""
MAX_WORDS = 6
"""Of letters alone in the code of an error."""
MAX_NAME = 256
"""Letters of a name whose views are kept in memory."""
SHORTEST = 8
"""Letters of base64 or digits that are read: six or four letters of text."""
_ALPHABET = frozenset(string.ascii_letters + string.digits + "+/-_")
_MARKS_ARE_BLANK = dict.fromkeys(map(ord, "-_+./:=@,#$"), " ")
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_LAYOUT = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def views(text: str) -> Iterator[str]:
    """Yield a text, and what it says when it is decoded, also several times.

    Backslash escapes, HTML's entities, percent-encoding, quoted-printable, hexadecimal and base64:
    also that of addresses, with or without its padding, over several lines, inside of other text.
    """
    return _opened(text, lambda one: (*_decoded(one), *_inside(one)))


def readings(text: str) -> Iterator[str]:
    """Yield those of the views that say all of a text, not only what stands somewhere in it."""
    return _opened(text, _decoded)


def _opened(text: str, decoded: Callable[[str], Iterable[str]]) -> Iterator[str]:
    level, seen = [text], {text}
    yield text
    for _ in range(DEPTH):
        level = [*dict.fromkeys(view for one in level for view in decoded(one))]
        level = [view for view in level if view and view not in seen][: MAX_VIEWS - len(seen)]
        seen.update(level)
        yield from level


def _decoded(text: str) -> Iterator[str]:
    """Yield what a text says if one encoding is undone."""
    if "&" in text:
        yield html.unescape(text)
    if "\\" in text:
        yield _unescaped(text)
    if "%" in text or "+" in text:
        yield urllib.parse.unquote_plus(text)
    if _is_quoted(text):
        yield _read(quopri.decodestring(text.encode("utf-8", "replace")))
    whole = "".join(text.split())
    if len(whole) >= SHORTEST and not set(whole.rstrip("=")) - _ALPHABET:
        yield _read(_from_base64(whole))
    digits = whole.replace(":", "").replace("-", "")
    if len(digits) >= SHORTEST and not set(digits) - _HEXADECIMAL:
        yield _read(bytes.fromhex(digits[: len(digits) // 2 * 2]))


def _is_quoted(text: str) -> bool:
    codes = (after[:2] for after in text.split("=")[1:])
    return any(c[:1] in ("\r", "\n") or (len(c) == 2 and not set(c) - _HEXADECIMAL) for c in codes)


def _inside(text: str) -> Iterator[str]:
    """Yield what the parts of a text that look like base64 say."""
    runs = [run for run in text.translate(_OTHERS_ARE_BLANK).split() if len(run) >= SHORTEST]
    if found := [part for run in runs if run != text for part in _parts(run)]:
        yield "\n".join(_read(_from_base64(part)) for part in found)


class _Blanks(dict[int, str]):
    """Blanks for all letters but those of base64."""

    def __missing__(self, letter: int) -> str:
        return chr(letter) if chr(letter) in _ALPHABET else " "


_OTHERS_ARE_BLANK = _Blanks()


def _parts(run: str) -> Sequence[str]:
    """Return a run of base64's letters, and the steps of a path that it may be."""
    steps = run.split("/")
    return [run, *(step for step in steps if len(step) >= SHORTEST)] if steps[1:] else steps


def _from_base64(text: str) -> bytes:
    """Return bytes from base64 of either alphabet; the letter too many is left away."""
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    plain = plain[:-1] if len(plain) % 4 == 1 else plain
    return base64.b64decode(plain + "=" * (-len(plain) % 4))


def _read(data: bytes) -> str:
    """Return bytes as text: UTF-8, or UTF-16 of letters of one byte; empty if neither."""
    plain = data.replace(b"\0", b"")
    beginning = plain[:BEGINNING].decode("utf-8", "replace")
    if beginning.count("\N{REPLACEMENT CHARACTER}") * ODD > len(beginning):
        return ""
    return plain.decode("utf-8", "replace")


def views_of_name(name: str) -> tuple[str, ...]:
    """Return the views of a name, such as an identifier that every event says."""
    return _kept_views(name) if len(name) <= MAX_NAME else tuple(views(name))


@lru_cache(maxsize=512)
def _kept_views(name: str) -> tuple[str, ...]:
    return tuple(views(name))


def hides_a_sentence(name: str) -> bool:
    """Return whether a name is an encoded sentence."""
    return any(_is_sentence(line) for view in views_of_name(name)[1:] for line in view.split("\n"))


def _is_sentence(text: str) -> bool:
    """Return whether a text can be read, and most of its words are letters."""
    words = text.split(" ") if text.isprintable() else []
    spelled = sum(word.strip(string.punctuation).isalpha() for word in words)
    return len(words) > MAX_BLANKS + 1 and 2 * spelled > len(words)


def is_slug(name: str) -> bool:
    """Return whether a name is a sentence with other marks in place of its blanks."""
    return sum(word.isalpha() for word in name.translate(_MARKS_ARE_BLANK).split()) > MAX_WORDS


def from_codes(numbers: Sequence[int]) -> str:
    """Return what an array of numbers says if they are bytes or code points; empty if not."""
    if not numbers or not all(0 <= number < 0x110000 for number in numbers):
        return ""
    if max(numbers) < 256:
        return _read(bytes(numbers))
    return "".join(map(chr, numbers))


def _unescaped(text: str) -> str:
    """Return a text with its backslash escapes read, as far as they can be."""
    first, *rest = text.split("\\")
    return first + "".join(map(_read_escape, rest))


def _read_escape(text: str) -> str:
    """Return what stands behind a backslash, the escape's own letters read."""
    for letter, digits in (("u", 4), ("x", 2)):
        code = text[1 : 1 + digits]
        if text.startswith(letter) and len(code) == digits and not set(code) - _HEXADECIMAL:
            return chr(int(code, 16)) + text[1 + digits :]
    return _LAYOUT.get(text[:1], text[:1]) + text[1:]

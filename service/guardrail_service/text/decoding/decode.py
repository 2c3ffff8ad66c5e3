"""Read the texts that a text hides: encoded, disguised, nested. Decodes; judges nothing.

Depth, layers and decoded characters are bounded, so 100 KB of nested payloads take linear time.
A search that met a bound says so: `Search.complete` is False, and no caller may call it clean.
"""

from __future__ import annotations

import html
import string
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from guardrail_service.text.budget import check_time, in_time
from guardrail_service.text.decoding.blocks import ANY_BLOCK, blocks
from guardrail_service.text.decoding.confusables import INVISIBLE, ascii_twin
from guardrail_service.text.offsets import Edit, Edited
from guardrail_service.text.patterns.search import Prepared, compile_regex

_Finder = Callable[[str], Iterator[Edit | None]]

MAX_DEPTH = 3
MAX_LAYERS = 4_096
MAX_GROWTH = 12
"""Decoded characters in all, as a multiple of the text's length."""
MIN_DECODED = 65_536
"""Decoded characters that even the shortest text may have."""
_CHARS_BETWEEN_LOOKS = 4_096
_MIN_NESTED = 12
"""Characters of a further layer below which reaching the greatest depth loses nothing."""


@dataclass(frozen=True)
class Layer:
    """One decoded text.

    Attributes:
        start: Where the encoded part begins in the original text, in code points.
        end: Where it ends.
        codecs: How it was encoded, outermost first.
        text: What it says. For a disguise of single characters this is the whole text around it,
            too; `reveals` tells what it adds.
    """

    start: int
    end: int
    codecs: tuple[str, ...]
    text: str = field(repr=False)
    parent: Layer | None = field(default=None, repr=False)
    edited: Edited | None = field(default=None, repr=False)
    local: tuple[int, int] = (0, 0)

    @property
    def chain(self) -> str:
        """Return the codecs as one word, such as `base64>hex`."""
        return ">".join(self.codecs)

    @property
    def guessed(self) -> bool:
        """Return whether a codec is involved that turns any text into another."""
        return any(codec in GUESSES for codec in self.codecs)

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """Return the part of the original text that a part of this layer comes from."""
        if self.parent is None:
            return start, end
        local = self.edited.before(start, end) if self.edited else self.local
        return self.parent.locate(*local)

    def reveals(self, start: int, end: int) -> bool:
        """Return whether a part of this layer could not be read in the layer around it."""
        return self.edited is None or self.edited.touched(start, end)


@dataclass(frozen=True)
class Search:
    """All layers of a text.

    Attributes:
        layers: Outer ones first.
        complete: False if a bound cut the search; then there may be more.
        failures: Parts that claim an encoding and break its rules.
    """

    layers: tuple[Layer, ...]
    complete: bool
    failures: int


def layers(text: str) -> Iterator[Layer]:
    """Yield every decoded layer of a text, outer ones first; see `search` for what was cut."""
    yield from search(text).layers


def search(text: str) -> Search:
    """Return every decoded layer of a text within the bounds of this module."""
    return _Searching(text).run()


class _Searching:
    """One breadth-first walk."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._left = max(MIN_DECODED, MAX_GROWTH * len(text))
        self._seen = {text}
        self._found: list[Layer] = []
        self._complete = True
        self._failures = 0

    def run(self) -> Search:
        queue = deque([Layer(0, len(self._text), (), self._text)])
        while queue and self._left > 0:
            check_time()
            layer = queue.popleft()
            if len(layer.codecs) == MAX_DEPTH:
                self._complete = self._complete and not self._has_more(layer)
                continue
            for child in self._children(layer):
                if not self._keep(child):
                    break
                queue.append(child)
        return Search(tuple(self._found), self._complete and self._left > 0, self._failures)

    def _keep(self, child: Layer) -> bool:
        self._left -= len(child.text)
        if self._left <= 0 or len(self._found) >= MAX_LAYERS:
            self._complete = False
            return False
        self._found.append(child)
        return True

    def _children(self, layer: Layer) -> Iterator[Layer]:
        yield from self._new(self._block_layers(layer))
        if layer.guessed:
            return
        yield from self._new(self._inline_layers(layer, INLINE))
        yield from self._new(self._inline_layers(layer, GUESSES))

    def _new(self, children: Iterator[Layer]) -> Iterator[Layer]:
        """Yield the layers whose text is new; of blocks all, since their place is."""
        for child in children:
            check_time()
            if child.edited is None or child.text not in self._seen:
                self._seen.add(child.text)
                yield child

    def _block_layers(self, layer: Layer) -> Iterator[Layer]:
        if ANY_BLOCK.search(layer.text.encode("utf-8", "replace")) is None:
            return
        for start, end, codec, text in blocks(layer.text):
            if text is None:
                self._failures += not layer.codecs
                continue
            if not layer.reveals(start, end):
                continue  # the layer around has it, too
            place = layer.locate(start, end)
            codecs = (*layer.codecs, codec)
            yield Layer(*place, codecs, text, parent=layer, local=(start, end))

    def _inline_layers(self, layer: Layer, codecs: dict[str, _Finder]) -> Iterator[Layer]:
        for codec, finder in codecs.items():
            edits = self._edits(layer, finder)
            if edits:
                edited = Edited(layer.text, edits)
                place = layer.locate(edits[0].start, edits[-1].end)
                yield Layer(
                    *place, (*layer.codecs, codec), edited.text, parent=layer, edited=edited
                )

    def _edits(self, layer: Layer, finder: _Finder) -> list[Edit]:
        edits = []
        for edit in finder(layer.text):
            if edit is None:
                self._failures += not layer.codecs
            else:
                edits.append(edit)
        return edits

    def _has_more(self, layer: Layer) -> bool:
        """Return whether a layer at the greatest depth is itself encoded."""
        if any(b.text is not None and b.end - b.start >= _MIN_NESTED for b in blocks(layer.text)):
            return True
        certain = (INLINE[codec] for codec in ("percent", "html", "escape"))
        return any(edit is not None for finder in certain for edit in finder(layer.text))


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
_DIGITS = frozenset("0123456789$!")
_LEET_LETTER = str.maketrans("01345789$!", "oleastbgsi")
_LEET_MAIL = compile_regex(r"[A-Za-z0-9._%+$!-]{1,64}@[A-Za-z0-9.$!-]{3,80}", "address with digits")


def percent(text: str) -> Iterator[Edit | None]:
    """Yield edits for `%40`; None for bytes that are no UTF-8."""
    if "%" not in text:
        return
    source = Prepared(text)
    for match in in_time(_PERCENT.finditer(source.data)):
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
    for match in in_time(_ENTITY.finditer(source.data)):
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
    for match in in_time(_ESCAPE.finditer(source.data)):
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
    for index, character in in_time(enumerate(text), _CHARS_BETWEEN_LOOKS):
        if character in INVISIBLE:
            yield Edit(index, index + 1, "")


def look_alikes(text: str) -> Iterator[Edit | None]:
    """Yield edits that put the ASCII character there that a reader sees."""
    if text.isascii():
        return
    twins = {character: twin for character in set(text) if (twin := ascii_twin(character))}
    if twins:
        for index, character in in_time(enumerate(text), _CHARS_BETWEEN_LOOKS):
            if character in twins:
                yield Edit(index, index + 1, twins[character])


def rotated(text: str) -> Iterator[Edit | None]:
    """Yield edits that rotate every address and every long token by 13 letters."""
    source = Prepared(text)
    for match in in_time(_ROT13_TOKEN.finditer(source.data)):
        start = source.code_point(match.start())
        run = match.group().decode("ascii")
        plain = run.translate(_ROT13)
        if plain != run:
            yield Edit(start, start + len(run), plain)


def leet(text: str) -> Iterator[Edit | None]:
    """Yield edits for letters that stand for digits in a number, and the reverse in an address."""
    if _DIGITS.isdisjoint(text):
        return
    source = Prepared(text)
    if "@" in text:
        for match in in_time(_LEET_MAIL.finditer(source.data)):
            run = match.group().decode("ascii")
            if any(c in "0134578$!" for c in run.rpartition(".")[2]):
                start = source.code_point(match.start())
                yield Edit(start, start + len(run), run.translate(_LEET_LETTER))
        return
    for match in in_time(_LEET_NUMBER.finditer(source.data)):
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

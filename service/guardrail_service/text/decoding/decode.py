"""Read the texts that a text hides: encoded, disguised, nested. Decodes; judges nothing.

Depth, layers and decoded characters are bounded, so 100 KB of nested payloads take linear time.
A search that met a bound says so: `Search.complete` is False, and no caller may call it clean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from guardrail_service.text.decoding.blocks import blocks
from guardrail_service.text.decoding.inline import GUESSES, INLINE
from guardrail_service.text.offsets import Edit, Edited

_Finder = Callable[[str], Iterator[Edit | None]]

MAX_DEPTH = 3
MAX_LAYERS = 4_096
MAX_GROWTH = 12
"""Decoded characters in all, as a multiple of the text's length."""
MIN_DECODED = 65_536
"""Decoded characters that even the shortest text may have."""
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
            if child.edited is None or child.text not in self._seen:
                self._seen.add(child.text)
                yield child

    def _block_layers(self, layer: Layer) -> Iterator[Layer]:
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

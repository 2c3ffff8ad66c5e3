"""Cuts documents into chunks: whole blocks, or whole sentences of long ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from guardrail_offline.generation.extraction import TextBlock
from guardrail_offline.generation.source_documents import SourceDocument
from guardrail_service.text.segmentation.sentences import split_sentences

CHUNK_CHARS = 1200
"""About 250 words: what retrievers commonly index, and what the grounding model reads at once."""


@dataclass(frozen=True)
class DocumentChunk:
    """A stretch of a document.

    Attributes:
        id: The document's id, # and a number from 1.
        document: Id of the document.
        start: Offset in the document's text.
        end: Offset behind it.
        text: The document's text between them.
        page: From 1; None where the document has none.
        heading: The nearest heading before it or in it; empty without one.
        blocks: What stands in it; offsets of the document's text.
    """

    id: str
    document: str
    start: int
    end: int
    text: str
    page: int | None = None
    heading: str = ""
    blocks: tuple[TextBlock, ...] = ()


def chunks_of(documents: Iterable[SourceDocument], chars: int = CHUNK_CHARS) -> list[DocumentChunk]:
    """Return the chunks of all documents that were read, in order.

    Every block is in one chunk or, where it is longer than a chunk, in several, between sentences.
    A heading begins a chunk unless the one before it is small.

    Args:
        documents: Those that were not read give none.
        chars: Longest chunk in code points; a single sentence may be longer.
    """
    found: list[DocumentChunk] = []
    for document in documents:
        begins = [block.start for block in document.blocks if block.kind == "heading"]
        for number, blocks in enumerate(_grouped(_pieces(document, chars), chars), start=1):
            start, end = blocks[0].start, blocks[-1].end
            text = document.text[start:end]
            at = bisect_right(begins, start) - 1
            found.append(
                DocumentChunk(
                    f"{document.id}#{number}",
                    document.id,
                    start,
                    end,
                    text,
                    document.page_of(start),
                    _heading(document, begins, at),
                    tuple(blocks),
                )
            )
    return found


def _heading(document: SourceDocument, begins: list[int], at: int) -> str:
    if at < 0:
        return ""
    block = next(b for b in document.blocks if b.start == begins[at])
    return document.text[block.start : block.end]


def _pieces(document: SourceDocument, chars: int) -> Iterator[TextBlock]:
    """Yield blocks, and runs of sentences of blocks that are too long."""
    for block in document.blocks:
        if block.end - block.start <= chars:
            yield block
            continue
        start = block.start
        end = start
        for sentence in split_sentences(document.text[block.start : block.end]):
            here = block.start + sentence.end
            if here - start > chars and end > start:
                yield TextBlock(start, end, block.kind)
                start = block.start + sentence.start
            end = here
        yield TextBlock(start, end, block.kind)


def _grouped(pieces: Iterable[TextBlock], chars: int) -> Iterator[list[TextBlock]]:
    held: list[TextBlock] = []
    for piece in pieces:
        size = piece.end - held[0].start if held else 0
        begins = piece.kind == "heading" and size > chars // 3
        if held and (size > chars or begins) and any(b.kind != "heading" for b in held):
            yield held
            held = []
        held.append(piece)
    if held:
        yield held

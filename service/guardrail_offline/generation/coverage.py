"""Says how well generated cases cover documents, chunks and topics, in numbers and a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_offline.generation.generated import GeneratedCase
from guardrail_offline.generation.source_documents import SourceDocument

_SIDE, _GAP, _PER_LINE, _LABEL = 14, 2, 40, 210
_SHADES = ("#e8e8e8", "#c6dbef", "#6baed6", "#2171b5", "#08306b")
"""For 0, 1, 2, 3 to 4, and 5 cases and more."""


def coverage_of(
    cases: Sequence[GeneratedCase],
    chunks: Sequence[DocumentChunk],
    documents: Sequence[SourceDocument],
    topics: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return counts and shares: which chunks, documents and topics have cases, by generator.

    Args:
        cases: That passed validation.
        chunks: Of the corpus.
        documents: All, with those that were not read.
        topics: Label of a chunk's topic by the chunk's id.
    """
    of_chunk: Counter[str] = Counter()
    for one in cases:
        of_chunk.update({span.chunk for span in one.spans})
    by_document: dict[str, list[DocumentChunk]] = {
        document.id: [] for document in documents if document.state == "read"
    }
    for chunk in chunks:
        by_document.setdefault(chunk.document, []).append(chunk)
    found: dict[str, Any] = {
        "cases": len(cases),
        "without_source": sum(not one.spans for one in cases),
        "by_generator": dict(sorted(Counter(one.generator for one in cases).items())),
        "chunks": _share([chunk.id for chunk in chunks], of_chunk),
        "documents": {
            id: _share([chunk.id for chunk in listed], of_chunk)
            for id, listed in by_document.items()
        },
        "unread": {d.id: d.state for d in documents if d.state != "read"},
        "cases_of_chunk": {chunk.id: of_chunk[chunk.id] for chunk in chunks},
    }
    if topics:
        labels: dict[str, list[str]] = {}
        for chunk in chunks:
            if chunk.id in topics:
                labels.setdefault(topics[chunk.id], []).append(chunk.id)
        found["topics"] = {label: _share(ids, of_chunk) for label, ids in sorted(labels.items())}
        grid = Counter((one.topic, one.generator) for one in cases if one.topic)
        found["topics_by_generator"] = {
            label: {g: n for (topic, g), n in sorted(grid.items()) if topic == label}
            for label in labels
        }
    return found


def _share(ids: Sequence[str], counts: Mapping[str, int]) -> dict[str, Any]:
    covered = sum(counts.get(id, 0) > 0 for id in ids)
    return {
        "chunks": len(ids),
        "covered": covered,
        "share": round(covered / len(ids), 4) if ids else None,
        "cases": sum(counts.get(id, 0) for id in ids),
    }


def coverage_picture(found: Mapping[str, Any]) -> str:
    """Return an SVG with a square per chunk, document by document; darker ones have more cases."""
    rows: list[str] = []
    y = 34
    for name, share in found["documents"].items():
        ids = [id for id in found["cases_of_chunk"] if id.rpartition("#")[0] == name]
        shown = name if len(name) <= 28 else f"…{name[-27:]}"
        title = f"{shown} {share['covered']}/{share['chunks']}"
        rows.append(f'<text x="8" y="{y + 11}">{escape(title)}</text>')
        for place, id in enumerate(ids):
            x = _LABEL + place % _PER_LINE * (_SIDE + _GAP)
            top = y + place // _PER_LINE * (_SIDE + _GAP)
            count = found["cases_of_chunk"][id]
            rows.append(
                f'<rect x="{x}" y="{top}" width="{_SIDE}" height="{_SIDE}" fill="{_shade(count)}">'
                f"<title>{escape(id)}: {count} cases</title></rect>"
            )
        lines = max(1, -(-len(ids) // _PER_LINE))
        y += lines * (_SIDE + _GAP) + 6
    width = _LABEL + _PER_LINE * (_SIDE + _GAP) + 8
    whole = found["chunks"]
    head = f"{found['cases']} cases; {whole['covered']} of {whole['chunks']} chunks have one"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 8}" '
        f'width="{width}" role="img" font-family="sans-serif" font-size="11">'
        f"<title>{escape(head)}</title>"
        f'<rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text x="8" y="20" font-size="13">{escape(head)}</text>{"".join(rows)}</svg>\n'
    )


def _shade(count: int) -> str:
    return _SHADES[min(count, 3) + (count > 4)]

"""Replace findings in an answer; pure, and the only place where answers are rewritten."""

from __future__ import annotations

from collections.abc import Iterable

from guardrail_service.types import Span


def redact(answer: str, spans: Iterable[Span]) -> str:
    """Return the answer with every span that has a replacement replaced.

    Spans of several detectors may overlap. Overlapping spans are replaced together, once: from the
    first start to the last end, by the replacement of the longest of them (of equally long ones,
    the one that starts first, then the smaller replacement), so nothing of any finding stays
    visible. Spans that only touch are replaced one by one. The order of `spans` does not matter.

    Args:
        answer: The text the spans point into.
        spans: Findings with code-point offsets [start, end). Those without replacement, and empty
            ones, are ignored; offsets outside the answer are cut to it.
    """
    parts: list[str] = []
    position = 0
    for start, end, replacement in _merged(len(answer), spans):
        parts += (answer[position:start], replacement)
        position = end
    return "".join((*parts, answer[position:]))


def _merged(size: int, spans: Iterable[Span]) -> list[tuple[int, int, str]]:
    """Return disjoint stretches with what replaces them, in order."""
    wanted = sorted(
        (max(0, s.start), min(size, s.end), s.replacement)
        for s in spans
        if s.replacement is not None and max(0, s.start) < min(size, s.end)
    )
    merged: list[tuple[int, int, str]] = []
    longest = 0
    for start, end, replacement in wanted:
        if merged and start < merged[-1][1]:
            first, last, shown = merged[-1]
            if end - start > longest:
                longest, shown = end - start, replacement
            merged[-1] = (first, max(last, end), shown)
        else:
            merged.append((start, end, replacement))
            longest = end - start
    return merged

"""Counts how often exact facts flag claims that people labelled, by source and by kind.

Reads the folder that `grounding_sources.py` describes; of records with a `split` only `dev`.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from guardrail_bench.grounding_sources import WrittenAnswer, read_folder
from guardrail_service.detectors.facts.detector import Facts, FactsParameters
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.types import Span

CUT: Final = 0.5
"""The threshold of the preset `balanced`."""
PART: Final = "facts"
"""Name of the part of a page that the report rewrites."""
_Counts = defaultdict[str, list[int]]


def run(folder: Path, limit: int) -> dict[str, Any]:
    """Return records and flagged ones by source, and by kind of fact, supported ones first.

    Args:
        folder: A file of JSON lines a source.
        limit: Records of each source at most, the first ones.

    Raises:
        InputError: If there is no file, or a line is no record.
    """
    by_source: _Counts = defaultdict(lambda: [0, 0, 0, 0])
    by_kind: _Counts = defaultdict(lambda: [0, 0, 0, 0])
    for source, records in read_folder(folder).items():
        for record in records[:limit]:
            bad = not record.answer.supported
            spans = _spans(record)
            flagged = [s for s in spans if s.score is not None and s.score < CUT]
            by_source[source][2 * bad] += 1
            by_source[source][2 * bad + 1] += bool(flagged)
            for kind in {str(s.attributes["kind"]) for s in spans}:
                by_kind[kind][2 * bad] += 1
            for kind in {str(s.attributes["kind"]) for s in flagged}:
                by_kind[kind][2 * bad + 1] += 1
    return {"cut": CUT, "sources": dict(by_source), "kinds": dict(sorted(by_kind.items()))}


def _spans(record: WrittenAnswer) -> tuple[Span, ...]:
    sample = SegmentedSample(record.answer.sample)
    return Facts().reduce(sample, (), FactsParameters()).spans


def _rows(report: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for part in ("sources", "kinds"):
        for name, (good, alarms, bad, found) in report[part].items():
            precision = f"{found / (found + alarms):.2f}" if found + alarms else "-"
            rows.append((name, _of(alarms, good), _of(found, bad), precision))
        good, alarms, bad, found = map(sum, zip(*report[part].values(), strict=True))
        if part == "sources":
            total = f"{found / max(1, found + alarms):.2f}"
            rows.append(("**all sources**", _of(alarms, good), _of(found, bad), total))
    return rows


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({100 * part / whole:.1f} %)" if whole else "")


HEAD: Final = ("source or kind", "supported: flagged", "unsupported: flagged", "precision")


def markdown(report: dict[str, Any]) -> str:
    """Return the report as a Markdown table."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in _rows(report))])


def render(report: dict[str, Any]) -> Table:
    """Return the report as a table for people."""
    table = Table(*HEAD)
    for row in _rows(report):
        table.add_row(*row)
    return table

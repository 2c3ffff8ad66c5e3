"""Reports the scores of written sources: areas by source, cuts from the others, slices, spans.

A cut that is chosen on a source says little about the next one, so what a cut costs on one source
is measured with a cut taken from all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from guardrail_bench.grounding_quality import OURS
from guardrail_bench.grounding_sources import (
    BIGRAMS,
    EMBEDDED,
    WAYS,
    WORDS,
    WrittenScore,
    read_folder,
    sampled,
    scores,
)
from guardrail_bench.output import markdown_table
from guardrail_bench.quality import Array, Bools, auroc

TOGETHER: Mapping[str, str] = dict.fromkeys(("defacto", "fib", "xsumfaith", "frank_val"), "xsum")
"""Sources on the same documents are left out together."""
BUDGETS = (0.05, 0.1)
"""Shares of good records that a cut may flag on the other sources."""
PASSAGE_WORDS = ((0, 100), (101, 250), (251, 600), (601, math.inf))
CLAIMS = ((1, 1), (2, 2), (3, 4), (5, math.inf))
LEAST = 10
"""A source counts in a slice with so many records of either label there."""
DRAWS = 500
NEAR_COPY = 0.9
COPY_WORDS = 5
"""Fewer words hardly have pairs that could be copied."""
HALF = 0.5
PART = "bench quality grounding"
NAMES: Mapping[str, str] = {
    OURS: "ours", WORDS: "word overlap", BIGRAMS: "bigram overlap", EMBEDDED: "groundedness",
}  # fmt: skip


def run(
    folder: Path, pack: str | None, against: str | None, limit: int, kept: Path | None
) -> dict[str, Any]:
    """Return the report on a folder of sources as JSON-ready values.

    Args:
        folder: One file a source.
        pack: The model pack to measure; None: the shipped one.
        against: A second pack, compared draw by draw; None: no comparison.
        limit: Records of each source, half of either label where there are as many.
        kept: Folder that keeps scores by what they depend on, so that they are computed once.

    Raises:
        InputError: If there is no file, or a record is malformed.
    """
    sources = read_folder(folder)
    drawn = [one for records in sources.values() for one in sampled(records, limit)]
    scored, threshold = scores(drawn, pack, kept)
    report = summary(scored, threshold)
    if against is not None:
        report["against"] = {"pack": against, **compared(scores(drawn, against, kept)[0], scored)}
    return report


def summary(scored: Sequence[WrittenScore], threshold: float | None) -> dict[str, Any]:
    """Return the report on scored records as JSON-ready values."""
    parts = by_source(scored)
    return {
        "task": "grounding",
        "records": len(scored),
        "documents": len({(one.source, one.document) for one in scored}),
        "threshold": threshold,
        "sources": {name: _source(name, part, parts) for name, part in parts.items()},
        "macro": {way: _macro(parts, way) for way in WAYS},
        "levels": {
            level: _mean_areas([one for one in scored if one.level == level])
            for level in sorted({one.level for one in scored})
        },
        "caught": {way: {f"{b}": _caught(parts, way, b) for b in BUDGETS} for way in WAYS},
        "slices": {
            "passage_words": _slices(
                scored, PASSAGE_WORDS, lambda one: one.passage_words, threshold
            ),
            "claims": _slices(scored, CLAIMS, lambda one: len(one.claims), threshold),
        },
        "near_copies": _near_copies(scored),
        "spans": _span_rates(scored, threshold),
    }


def by_source(scored: Sequence[WrittenScore]) -> dict[str, list[WrittenScore]]:
    """Return the records of each source that has both labels."""
    parts: dict[str, list[WrittenScore]] = {}
    for one in scored:
        parts.setdefault(one.source, []).append(one)
    return {name: part for name, part in parts.items() if 0 < _bad(part).sum() < len(part)}


def cut_from_others(
    parts: Mapping[str, Sequence[WrittenScore]], source: str, way: str, budget: float
) -> float:
    """Return the cut that flags at most a share of the good records of all other sources.

    Every source weighs the same; sources on the same documents are left out together.
    """
    group = TOGETHER.get(source, source)
    values, weights = [], []
    for name, part in parts.items():
        if TOGETHER.get(name, name) != group:
            good = _support(part, way)[~_bad(part)]
            values.append(good)
            weights.append(np.full(len(good), 1 / len(good)))
    every, weighed = np.concatenate(values), np.concatenate(weights)
    ordered = np.argsort(every, kind="stable")
    share = np.cumsum(weighed[ordered]) / weighed.sum()
    first = int(np.searchsorted(share, budget, side="right"))
    return float(every[ordered[min(first, len(every) - 1)]])


def _source(
    name: str, part: Sequence[WrittenScore], parts: Mapping[str, Sequence[WrittenScore]]
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "records": len(part),
        "supported": int((~_bad(part)).sum()),
        "documents": len({one.document for one in part}),
        "auroc": {way: auroc(-_support(part, way), _bad(part)) for way in WAYS},
        "interval95": _interval(part, OURS),
    }
    if len({TOGETHER.get(other, other) for other in parts}) > 1:
        for budget in BUDGETS:
            cut = cut_from_others(parts, name, OURS, budget)
            flagged = _support(part, OURS) < cut
            found[f"at_{budget}"] = {
                "caught": float(flagged[_bad(part)].mean()),
                "false_flags": float(flagged[~_bad(part)].mean()),
            }
    return found


def _macro(parts: Mapping[str, Sequence[WrittenScore]], way: str) -> dict[str, Any]:
    """Return the mean area over sources, with an interval over draws of whole documents."""
    areas = [auroc(-_support(part, way), _bad(part)) for part in parts.values()]
    draws = [
        [auroc(-_support(part, way)[rows], _bad(part)[rows]) for rows in _draws(part)]
        for part in parts.values()
    ]
    low, high = np.quantile(np.mean(draws, axis=0), [0.025, 0.975])
    return {"value": float(np.mean(areas)), "interval95": [float(low), float(high)]}


def _caught(parts: Mapping[str, Sequence[WrittenScore]], way: str, budget: float) -> dict[str, Any]:
    """Return shares caught and falsely flagged, averaged over sources, cuts from the others."""
    if len({TOGETHER.get(name, name) for name in parts}) < 2:
        return {}
    caught, flagged = [], []
    for name, part in parts.items():
        crossed = _support(part, way) < cut_from_others(parts, name, way, budget)
        caught.append(crossed[_bad(part)].mean())
        flagged.append(crossed[~_bad(part)].mean())
    return {"caught": float(np.mean(caught)), "false_flags": float(np.mean(flagged))}


def _mean_areas(scored: Sequence[WrittenScore]) -> dict[str, Any]:
    """Return each way's area averaged over the sources with enough records of either label."""
    parts = {
        name: part
        for name, part in by_source(scored).items()
        if min(_bad(part).sum(), (~_bad(part)).sum()) >= LEAST
    }
    found: dict[str, Any] = {"records": len(scored), "sources": len(parts)}
    if parts:
        found["auroc"] = {
            way: float(np.mean([auroc(-_support(p, way), _bad(p)) for p in parts.values()]))
            for way in WAYS
        }
    return found


def _slices(
    scored: Sequence[WrittenScore],
    ranges: Sequence[tuple[float, float]],
    size: Callable[[WrittenScore], int],
    threshold: float | None,
) -> dict[str, Any]:
    found = {}
    for low, high in ranges:
        part = [one for one in scored if low <= size(one) <= high]
        name = f"{low}" if low == high else f"{low}-{high}" if high < math.inf else f"{low}+"
        found[name] = _mean_areas(part) | _at(part, threshold)
    return found


def _at(part: Sequence[WrittenScore], threshold: float | None) -> dict[str, float]:
    """Return what the threshold flags of some records, by label."""
    bad = _bad(part)
    if threshold is None or not 0 < bad.sum() < len(bad):
        return {}
    flagged = _support(part, OURS) < threshold
    return {"false_flags": float(flagged[~bad].mean()), "caught": float(flagged[bad].mean())}


def _near_copies(scored: Sequence[WrittenScore]) -> dict[str, Any]:
    """Return how many supported records that nearly copy their passage score below one half."""
    part = [
        one
        for one in scored
        if one.supported and one.support[BIGRAMS] >= NEAR_COPY and one.answer_words >= COPY_WORDS
    ]
    below = sum(one.support[OURS] < HALF for one in part)
    return {"records": len(part), "below_half": below}


def _span_rates(scored: Sequence[WrittenScore], threshold: float | None) -> dict[str, Any]:
    """Return how well flagged claims cover the characters labelled unsupported, by source.

    Only unsupported records with labelled parts count. `whole` is what flagging every answer whole
    would have: its recall is 1.
    """
    found: dict[str, Any] = {}
    for name, part in by_source(scored).items():
        labelled = [one for one in part if one.spans and not one.supported]
        if threshold is None or not labelled:
            continue
        hit = flagged = wanted = total = 0
        for one in labelled:
            truth = _characters(one.spans or ())
            shown = _characters([(a, b) for a, b, score in one.claims if score < threshold])
            hit += len(truth & shown)
            flagged += len(shown)
            wanted += len(truth)
            total += len(_characters([(a, b) for a, b, _ in one.claims]) | truth)
        found[name] = {
            "records": len(labelled),
            "precision": hit / flagged if flagged else None,
            "recall": hit / wanted,
            "whole": wanted / total,
        }
    return found


def _characters(spans: Sequence[tuple[int, int]]) -> set[int]:
    return {place for start, end in spans for place in range(start, end)}


def compared(before: Sequence[WrittenScore], after: Sequence[WrittenScore]) -> dict[str, Any]:
    """Return by how much areas differ, with 95 % intervals over the same draws of documents."""
    old, new = by_source(before), by_source(after)
    differences = {}
    for name, part in new.items():
        bad, left, right = _bad(part), _support(old[name], OURS), _support(part, OURS)
        differences[name] = (
            auroc(-right, bad) - auroc(-left, bad),
            [auroc(-right[rows], bad[rows]) - auroc(-left[rows], bad[rows])
             for rows in _draws(part)],
        )  # fmt: skip
    macro = np.mean([draws for _, draws in differences.values()], axis=0)
    return {
        "macro": _difference(float(np.mean([d for d, _ in differences.values()])), macro),
        "sources": {
            name: _difference(d, np.array(rows)) for name, (d, rows) in differences.items()
        },
    }


def _difference(value: float, draws: Array) -> dict[str, Any]:
    low, high = np.quantile(draws, [0.025, 0.975])
    return {"value": value, "interval95": [float(low), float(high)]}


def _interval(part: Sequence[WrittenScore], way: str) -> list[float]:
    support, bad = _support(part, way), _bad(part)
    found = [auroc(-support[rows], bad[rows]) for rows in _draws(part)]
    return [float(value) for value in np.quantile(found, [0.025, 0.975])]


def _draws(part: Sequence[WrittenScore]) -> Iterator[Any]:
    """Yield rows of draws of whole documents that hold both labels; the same for equal parts."""
    rng = np.random.default_rng(0)
    _, inverse = np.unique([one.document for one in part], return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1)
    bad, found = _bad(part), 0
    while found < DRAWS:
        rows = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        if 0 < bad[rows].sum() < len(rows):
            found += 1
            yield rows


def _support(part: Sequence[WrittenScore], way: str) -> Array:
    return np.array([one.support[way] for one in part])


def _bad(part: Sequence[WrittenScore]) -> Bools:
    return np.array([not one.supported for one in part], dtype=bool)


def tables(report: Mapping[str, Any]) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Return headings and rows of each part of a report, by title."""
    found = {
        "By source": _source_table(report),
        "Caught, cuts taken from the other sources": _caught_table(report),
        "By length": _slice_table(report),
    }
    if report["spans"]:
        found["Parts of claims labelled unsupported, by character"] = _span_table(report)
    if "against" in report:
        found[f"Against {report['against']['pack']}"] = _against_table(report["against"])
    return found


def render(report: Mapping[str, Any]) -> list[Table]:
    """Return a report as tables for a terminal."""
    found = []
    for title, (headings, rows) in tables(report).items():
        table = Table(*headings, title=title)
        for row in rows:
            table.add_row(*row)
        found.append(table)
    return found


def markdown(report: Mapping[str, Any]) -> str:
    """Return a report as Markdown."""
    near = report["near_copies"]
    parts = [
        f"{report['records']} records of {report['documents']} documents in "
        f"{len(report['sources'])} sources. Of {near['records']} supported claims that nearly copy "
        f"their passage (at least {COPY_WORDS} words, bigram overlap at least {NEAR_COPY}), "
        f"{near['below_half']} score below {HALF}."
    ]
    for title, (headings, rows) in tables(report).items():
        parts += [f"{title}:", markdown_table(headings, rows)]
    return "\n\n".join(parts)


def _source_table(report: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    headings = ["source", "records", "supported", "documents"]
    headings += [NAMES[way] for way in WAYS]
    rows = []
    for name, part in report["sources"].items():
        counts = [str(part[key]) for key in ("records", "supported", "documents")]
        low, high = part["interval95"]
        areas = [f"{part['auroc'][way]:.3f}" for way in WAYS]
        rows.append([name, *counts, f"{areas[0]} ({low:.3f}-{high:.3f})", *areas[1:]])
    whole = [report["macro"][way] for way in WAYS]
    shown = [f"{m['value']:.3f} ({m['interval95'][0]:.3f}-{m['interval95'][1]:.3f})" for m in whole]
    rows.append(["macro", str(report["records"]), "", str(report["documents"]), *shown])
    for level, part in report["levels"].items():
        areas = [f"{part['auroc'][way]:.3f}" if "auroc" in part else "-" for way in WAYS]
        title = f"macro, level {level} ({part['sources']} sources)"
        rows.append([title, str(part["records"]), "", "", *areas])
    return headings, rows


def _caught_table(report: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    headings = ["way", *(f"{kind} at {b:.0%}" for b in BUDGETS for kind in ("caught", "flagged"))]
    rows = []
    for way in WAYS:
        cells = [report["caught"][way][f"{budget}"] for budget in BUDGETS]
        shown = [_rate(cell.get(key)) for cell in cells for key in ("caught", "false_flags")]
        rows.append([NAMES[way], *shown])
    return headings, rows


def _slice_table(report: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    headings = ["slice", "records", "sources", *(NAMES[way] for way in WAYS)]
    headings += ["false flags at the threshold", "caught"]
    rows = []
    for kind, parts in report["slices"].items():
        for label, part in parts.items():
            areas = [f"{part['auroc'][way]:.3f}" if "auroc" in part else "-" for way in WAYS]
            rates = [_rate(part.get(key)) for key in ("false_flags", "caught")]
            title = f"{kind.replace('_', ' ')} {label}"
            rows.append([title, str(part["records"]), str(part["sources"]), *areas, *rates])
    return headings, rows


def _span_table(report: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            name,
            str(part["records"]),
            *map(_rate, (part["precision"], part["recall"], part["whole"])),
        ]
        for name, part in report["spans"].items()
    ]
    return ["source", "records", "precision", "recall", "precision of flagging everything"], rows


def _against_table(against: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            name,
            f"{part['value']:+.3f} ({part['interval95'][0]:+.3f} to {part['interval95'][1]:+.3f})",
        ]
        for name, part in {**against["sources"], "macro": against["macro"]}.items()
    ]
    return ["source", "difference of areas"], rows


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"

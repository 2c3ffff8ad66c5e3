"""Runs the quality harness on several files: `measure.py --out DIR [--pack P] NAME=FILE ...`.

Writes DIR/NAME.json per file, DIR/tables.md (the tables of docs/quality.md and the model card) and
DIR/scores.png, how scores of supported and unsupported claims spread. A file with several sources
is also measured per source; a claim of `wice*` sources with several passages counts with the best.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_bench.grounding_quality import (
    BASELINES,
    OURS,
    ScoredAnswer,
    growth,
    scored_records,
    summary,
)


def split(path: Path, folder: Path, name: str) -> dict[str, Path]:
    """Return one file per source, grouped where a claim has several passages."""
    opener = gzip.open if path.suffix == ".gz" else open
    rows: dict[str, list[dict[str, Any]]] = {}
    with opener(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            if str(row.get("source", "")).startswith("wice"):
                row["group"] = row["hypothesis"]
            rows.setdefault(str(row.get("source", "all")), []).append(row)
    found = {}
    for source, members in rows.items():
        label = name if len(rows) == 1 else f"{name}.{source}"
        target = folder / f"{label}.jsonl"
        target.write_text("\n".join(map(json.dumps, members)), encoding="utf-8")
        found[label] = target
    return found


def cell(part: dict[str, Any], key: str) -> str:
    """Return a value with its interval."""
    value = part[key]
    low, high = value["interval95"]
    return f"{value['value']:.3f} ({low:.3f}-{high:.3f})"


def tables(reports: dict[str, dict[str, Any]]) -> str:
    """Return the reports as Markdown."""
    lines = [
        "| set | records | ours | word overlap | embedding groundedness | AUPRC | "
        "false flags at recall .8 / .9 | balanced accuracy | ms p50 / p95 |",
        "|" + " --- |" * 9,
    ]
    for name, report in reports.items():
        rates = report["false_flags_at_recall"]
        base = report["baselines"]
        spent = report["ms_per_record"]
        lines.append(
            f"| {name} | {report['records']} | {cell(report, 'auroc')} | "
            + " | ".join(cell(base[b], "auroc") for b in BASELINES)
            + f" | {report['auprc']['value']:.3f} | {rates['0.8']['value']:.2f} / "
            f"{rates['0.9']['value']:.2f} | {report.get('balanced_accuracy', 0):.3f} | "
            f"{spent['p50']:.0f} / {spent['p95']:.0f} |"
        )
    for title, keep in (("development", "dev"), ("evaluation", "eval")):
        part = [r for n, r in reports.items() if n.startswith(keep)]
        if part:
            ours = sum(r["auroc"]["value"] for r in part) / len(part)
            others = [
                sum(r["baselines"][b]["auroc"]["value"] for r in part) / len(part)
                for b in BASELINES
            ]
            lines.append(
                f"| macro, {title} | | {ours:.3f} | " + " | ".join(f"{o:.3f}" for o in others)
                + " | | | | |"
            )  # fmt: skip
    return "\n".join(lines) + "\n"


def growth_table(name: str, rows: list[dict[str, Any]]) -> str:
    """Return how flags change with the number of passages, as Markdown."""
    lines = [
        f"{name}\n",
        "| passages | false flags | caught | AUROC | groundedness: false flags | caught | AUROC |",
        "|" + " --- |" * 7,
    ]
    for row in rows:
        cells = [
            f"{row[kind][key]:.3f}"
            for kind in (OURS, "embedding_groundedness")
            for key in ("false_flags", "caught", "auroc")
        ]
        lines.append(f"| {row['passages']} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def threshold_table(reports: dict[str, dict[str, Any]]) -> str:
    """Return what the shipped threshold flags, as Markdown."""
    lines = ["| set | false flags at the threshold | caught at the threshold |", "|" + " --- |" * 3]
    for name, report in reports.items():
        lines.append(f"| {name} | {report['false_flags']:.3f} | {report['caught']:.3f} |")
    return "\n".join(lines) + "\n"


def slice_table(reports: dict[str, dict[str, Any]]) -> str:
    """Return areas by length of answer and evidence and by passages, as Markdown."""
    lines = ["| set | slice | records | ours | word overlap | groundedness |", "|" + " --- |" * 6]
    for name, report in reports.items():
        for kind, parts in report["slices"].items():
            scored = {label: part for label, part in parts.items() if "auroc" in part}
            for label, part in scored.items() if len(scored) > 1 else ():
                cells = [f"{part['auroc'][way]:.3f}" for way in (OURS, *BASELINES)]
                words = f"{kind.replace('_', ' ')} {label}"
                lines.append(f"| {name} | {words} | {part['records']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw_scores(sets: dict[str, list[ScoredAnswer]], threshold: float | None, path: Path) -> None:
    """Write a histogram per set: scores of supported and unsupported records, and the threshold."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(5, len(sets))
    rows = -(-len(sets) // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(3.2 * columns, 2.4 * rows), squeeze=False
    )
    for axis in axes.flat[len(sets) :]:
        axis.axis("off")
    bins = np.linspace(0, 1, 26)
    for axis, (name, scored) in zip(axes.flat, sets.items(), strict=False):
        for supported, colour in ((True, "tab:blue"), (False, "tab:red")):
            values = [one.support[OURS] for one in scored if one.record.supported == supported]
            axis.hist(values, bins, color=colour, alpha=0.55, density=True)
        if threshold is not None:
            axis.axvline(threshold, color="black", linewidth=1)
        axis.set_title(name, fontsize=9)
        axis.set_yticks([])
    figure.suptitle("P(supported) of the least supported claim: blue supported, red unsupported")
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def draw_growth(found: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Write false flags and catches over the number of passages."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6, 3.6))
    for number, (name, rows) in enumerate(found.items()):
        counts = [row["passages"] for row in rows]
        for key, style in (("false_flags", "-"), ("caught", "--")):
            values = [row[OURS][key] for row in rows]
            axis.plot(counts, values, style, marker="o", color=f"C{number}", label=f"{name}: {key}")
    axis.set(xscale="log", xlabel="passages", xticks=counts, xticklabels=counts, ylim=(0, 1))
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pack")
    parser.add_argument(
        "--growth", nargs="*", default=[], help="names to also try with more passages"
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    reports: dict[str, dict[str, Any]] = {}
    sets: dict[str, list[ScoredAnswer]] = {}
    grown: dict[str, list[dict[str, Any]]] = {}
    threshold = None
    for item in arguments.files:
        name, _, file = item.partition("=")
        for label, path in split(Path(file), arguments.out, name).items():
            sets[label], threshold = scored_records(path, arguments.pack)
            reports[label] = summary(path.name, sets[label], threshold)
            target = arguments.out / f"{label}.json"
            target.write_text(json.dumps(reports[label], indent=1) + "\n", encoding="utf-8")
            print(label, json.dumps(reports[label]["auroc"]), flush=True)
            if label in arguments.growth:
                grown[label] = growth(path, arguments.pack)
    parts = [tables(reports), threshold_table(reports), slice_table(reports)]
    parts += [growth_table(label, rows) for label, rows in grown.items()]
    (arguments.out / "tables.md").write_text("\n".join(parts), encoding="utf-8")
    draw_scores(sets, threshold, arguments.out / "scores.png")
    if grown:
        draw_growth(grown, arguments.out / "growth.png")


if __name__ == "__main__":
    main()

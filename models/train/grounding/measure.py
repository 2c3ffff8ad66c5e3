"""Runs the quality harness on several files: `measure.py --out DIR [--pack P] NAME=FILE ...`.

Writes DIR/NAME.json per file and DIR/tables.md, the tables of docs/quality.md and the model card. A
file with several sources is also measured per source; claims of `wice*` sources with several
passages count with the best one.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

from guardrail_service.bench.grounding_quality import BASELINES, OURS, growth, run


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


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pack")
    parser.add_argument("--growth", nargs="*", default=[], help="names to also try with more passages")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    reports = {}
    text = ""
    for item in arguments.files:
        name, _, file = item.partition("=")
        for label, path in split(Path(file), arguments.out, name).items():
            reports[label] = run(path, arguments.pack)
            target = arguments.out / f"{label}.json"
            target.write_text(json.dumps(reports[label], indent=1) + "\n", encoding="utf-8")
            print(label, json.dumps(reports[label]["auroc"]), flush=True)
            if label in arguments.growth:
                text += "\n" + growth_table(label, growth(path, arguments.pack))
    (arguments.out / "tables.md").write_text(tables(reports) + text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Writes the tables and the plot of docs/quality.md for toxicity and bias: `report.py --out DIR`.

Every set goes through the harness of `guardrail bench quality`, the code that serves. Runs
in the service's environment. Look at evaluation sets once, with the final file.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from guardrail_bench.safety_quality import OURS, run

TARGETS = {
    "Jigsaw test": 0.975, "HateXplain": 0.85, "edos": 0.90, "redditbias": 0.86, "stereoset": 0.70,
    "wiki_npov": 0.84,
}  # fmt: skip
ALARMS = {"toxicity": 0.03, "bias": 0.05}
PARTS = {"edos": "gender", "redditbias": "group", "stereoset": "group", "wiki_npov": "framing"}
TFIDF = "tfidf_logistic"
Report = dict[str, Any]


def share(rate: dict[str, Any] | None) -> str:
    """Return a rate with its interval, in percent."""
    if rate is None:
        return "-"
    low, high = 100 * rate["low"], 100 * rate["high"]
    return f"{100 * rate['value']:.1f} % ({low:.1f}-{high:.1f})"


def area(row: Report | None) -> str:
    """Return a ROC area with its interval."""
    if row is None or row.get("auroc") is None:
        return "-"
    low, high = row["auroc_interval95"]
    return f"{row['auroc']:.3f} ({low:.3f}-{high:.3f})"


def judged(name: str, value: float) -> str:
    """Return how a ROC area stands to its target."""
    if name not in TARGETS:
        return "-"
    missing = TARGETS[name] - value
    return f"{TARGETS[name]}: " + ("met" if missing <= 0 else f"**missed by {missing:.3f}**")


def markdown(head: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a table; `head` has its columns between bars."""
    columns = head.count("|") + 1
    lines = [f"| {head} |", "|" + " --- |" * columns]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def toxicity_table(reports: dict[str, Report]) -> str:
    """Return one row per set."""
    rows = []
    for name, report in reports.items():
        own, rates = report["metrics"]["toxicity"], report["decision"]
        beside = (found.get("toxicity") for found in report["baselines"].values())
        rows.append([
            name, str(own["records"]), str(own["positives"]), area(own), f"{own['auprc']:.3f}",
            *(f"{row['auroc']:.3f}" if row else "-" for row in beside),
            share(rates["recall"]), share(rates["false_flags"]), f"{rates['f1']:.3f}",
            judged(name, own["auroc"]),
        ])  # fmt: skip
    names = " | ".join(next(iter(reports.values()))["baselines"])
    return markdown(
        f"set | texts | toxic | ours | AUPRC | {names} | recall | false flags | F1 | target", rows
    )


def label_table(report: Report) -> str:
    """Return the labels that do not gate."""
    beside = report["baselines"].get(TFIDF, {})
    rows = [
        [label, str(own["positives"]), area(own), f"{own['auprc']:.3f}",
         f"{beside[label]['auroc']:.3f}" if label in beside else "-"]
        for label, own in report["metrics"].items()
        if label != "toxicity" and own["auroc"] is not None
    ]  # fmt: skip
    return markdown(f"label | positives | ours | AUPRC | {TFIDF}", rows)


def by_source(report: Report) -> dict[str, Any]:
    """Return the sources of a bias set whose part of bias is known."""
    found = report["slices"].get("source", {})
    return {name: found[name] for name in found if name in PARTS}


def bias_table(report: Report) -> str:
    """Return one row per source of the bias set."""
    rows = []
    for name, found in by_source(report).items():
        part = PARTS[name]
        areas, whole = found["auroc"][part], found["auroc"]["fairness_bias"]
        rows.append([
            name, str(found["records"]), part, f"{areas[OURS]:.3f}", f"{whole[OURS]:.3f}",
            *(f"{ways[TFIDF]:.3f}" if TFIDF in ways else "-" for ways in (areas, whole)),
            share(found["accuracy"]), share(found["false_flags"]), judged(name, areas[OURS]),
        ])  # fmt: skip
    return markdown(
        "set | texts | part | ours: part | ours: fairness_bias | TF-IDF part | "
        "TF-IDF fairness_bias | right | false flags | target (part)",
        rows,
    )


def neutral_table(reports: dict[str, dict[str, Report]]) -> str:
    """Return the false alarms on sets in which nothing is toxic or biased."""
    rows = []
    for name, by_task in reports.items():
        cells = [name, str(by_task["toxicity"]["records"])]
        for task, most in ALARMS.items():
            rate = by_task[task]["decision"]["false_flags"]
            cells += [share(rate), "met" if rate["value"] <= most else "**missed**"]
        rows.append(cells)
    return markdown(
        "neutral set | texts | toxicity: false flags | target 3 % | bias: false flags | target 5 %",
        rows,
    )


def suite_table(toxicity: Report, bias: Report) -> str:
    """Return the share decided as expected in each class of the functional suite."""
    classes = [report["slices"]["class"] for report in (toxicity, bias)]
    rows = []
    for name in sorted({*classes[0], *classes[1]}):
        cells = [name]
        for found in classes:
            rate = found[name]["accuracy"] if name in found else None
            cells += (
                ["-", "-"] if rate is None else [f"{100 * rate['value']:.0f} %", str(rate["n"])]
            )
        rows.append(cells)
    return markdown("class | toxicity: right | of | bias: right | of", rows)


def draw(
    toxicity: dict[str, Report], bias: Report, suites: tuple[Report, Report], path: Path
) -> None:
    """Write ROC areas beside baseline and target, and the functional suite by class."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    bars = [
        (name, r["metrics"]["toxicity"]["auroc"], r["baselines"].get(TFIDF, {}).get("toxicity"))
        for name, r in toxicity.items()
    ]
    bars = [(name, ours, other and other["auroc"]) for name, ours, other in bars]
    for name, found in by_source(bias).items():
        ways = found["auroc"][PARTS[name]]
        bars.append((name, ways[OURS], ways.get(TFIDF)))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(14, 7))
    for row, (name, ours, other) in enumerate(bars):
        left.barh(row - 0.18, ours, 0.34, color="tab:blue", label=None if row else "ours")
        if other is not None:
            left.barh(row + 0.18, other, 0.34, color="lightgray", label=None if row else "TF-IDF")
        if name in TARGETS:
            left.plot([TARGETS[name]] * 2, [row - 0.4, row + 0.4], color="tab:red")
    left.set(xlim=(0.5, 1), title="ROC area; red: target", yticks=range(len(bars)))
    left.set_yticklabels([name for name, _, _ in bars])
    left.invert_yaxis()
    left.legend()
    cases = [
        (f"{name} ({task})", part["accuracy"]["value"])
        for task, report in zip(("toxicity", "bias"), suites, strict=True)
        for name, part in report["slices"]["class"].items()
    ]
    cases.sort(key=lambda case: -case[1])
    right.barh([name for name, _ in cases], [value for _, value in cases], color="tab:green")
    right.set(xlim=(0, 1), title="functional suite: share decided as expected")
    right.tick_params(axis="y", labelsize=6)
    right.invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def named(items: list[str]) -> dict[str, Path]:
    """Return files by the names given to them."""
    return {name: Path(file) for name, _, file in (item.partition("=") for item in items)}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--toxicity", nargs="+", required=True, metavar="NAME=FILE")
    parser.add_argument("--bias", type=Path, required=True)
    parser.add_argument("--neutral", nargs="+", required=True, metavar="NAME=FILE")
    parser.add_argument("--suite", type=Path, required=True, help="the functional suite")
    parser.add_argument("--toxicity-train", type=Path, required=True, help="for the baselines")
    parser.add_argument("--bias-train", type=Path, required=True, help="for the baselines")
    parser.add_argument("--pack")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    def report(task: str, data: Path, train: list[Path]) -> Report:
        found = run(task, data, arguments.pack, train)
        target = arguments.out / f"{task}-{data.name.partition('.')[0]}.json"
        target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(task, data.name, json.dumps(found["decision"]), flush=True)
        return found

    toxicity = {
        name: report("toxicity", path, [arguments.toxicity_train])
        for name, path in named(arguments.toxicity).items()
    }
    bias = report("bias", arguments.bias, [arguments.bias_train])
    neutral = {
        name: {task: report(task, path, []) for task in ALARMS}
        for name, path in named(arguments.neutral).items()
    }
    suites = (report("toxicity", arguments.suite, []), report("bias", arguments.suite, []))
    tables = [
        toxicity_table(toxicity),
        label_table(next(iter(toxicity.values()))),
        bias_table(bias),
        neutral_table(neutral),
        suite_table(*suites),
    ]
    (arguments.out / "tables.md").write_text("\n".join(tables), encoding="utf-8")
    draw(toxicity, bias, suites, arguments.out / "quality.png")


if __name__ == "__main__":
    main()

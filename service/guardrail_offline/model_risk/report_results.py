"""The middle of the model-risk report: results, people, weaknesses, robustness."""

from __future__ import annotations

from collections.abc import Iterator

from guardrail_offline.model_risk.conclusions import share_cell
from guardrail_offline.model_risk.report_blocks import (
    Block,
    Bullets,
    Cell,
    Paragraph,
    ReportRow,
    ReportSection,
    ReportTable,
    Subsection,
    metric_name,
    row,
    sentence,
)
from guardrail_offline.model_risk.report_charts import (
    adversarial_chart,
    agreement_chart,
    failing_chart,
    grid_chart,
    means_chart,
)
from guardrail_offline.model_risk.report_front import clipped, mean_cell, skipped
from guardrail_offline.model_risk.step_data import MISSING, JsonPlace, WorkflowData

MOST_ROWS = 25
"""Rows of a table; what is left out is said, and stands in the step's file."""
MOST_COLUMNS = 6
"""Columns of a grid that fit a page."""
SHADES = (0.0, 0.05, 0.2, 0.5)
"""Shares of failing cases above which a cell of a grid is the next darker."""
ORIGINS = {
    "calibrated": "labels of people",
    "fitted": "fitted for the shipped models",
    "rule": "the rule's own",
    "yours": "set for this workflow",
    "suite": "the suite's, chosen for other models",
}


def results_section(data: WorkflowData) -> Iterator[Block]:
    """Yield every metric with its interval, and what could not be judged."""
    yield ReportSection(
        "5 Results", ("sr11-7:outcomes-analysis", "nist:measure", "nist:valid-reliable")
    )
    yield from skipped(data, "evaluation")
    found = data.results("evaluation")
    if found.value is None:
        return
    scores = found["scores"]
    yield sentence(
        "The target answered ",
        scores["answered"].number("int"),
        " of ",
        scores["cases"].number("int"),
        " cases. Means and shares are over questions, with 95 % intervals; shares have exact ones "
        "(Clopper and Pearson). A missing value is never a number: it is counted beside the mean.",
    )
    yield from means_chart(found["metrics"])
    yield ReportTable(
        "Metrics of the automated evaluation",
        ("Metric", "Better", "Judged", "Mean (95 % interval)", "Threshold", "Fail (95 % interval)"),
        tuple(_metric_row(one) for one in found["metrics"]),
        (2.3, 0.9, 1.05, 2.4, 1.3, 2.4),
    )
    missing = [
        (f"{metric_name(one)}, ", f"{reason.key}: ", reason.number("int"))
        for one in found["metrics"]
        for reason in one["missing"]
        if reason.value
    ]
    if missing:
        yield sentence("Cases without a value, by metric and reason:")
        yield Bullets(tuple(missing[:MOST_ROWS]))
        yield from _left_out(len(missing), "4-evaluation.json")


def _metric_row(one: JsonPlace) -> ReportRow:
    direction = "higher" if "high" in one["direction"].text else "lower"
    cells = (mean_cell(one), one["threshold"].number("f3"), share_cell(one["failing"]))
    return row(metric_name(one), direction, one["n"].number("int"), *cells, base=one)


def calibration_section(data: WorkflowData, tolerated: float) -> Iterator[Block]:
    """Yield who labelled, how far people and checks agree, and what the thresholds promise."""
    yield ReportSection(
        "6 Human calibration", ("sr11-7:outcomes-analysis", "sr11-7:backtesting", "nist:govern")
    )
    yield from skipped(data, "calibration")
    found = data.results("calibration")
    labels = found["labels"]
    if found.value is None:
        return
    if labels.value is None:
        yield Paragraph(
            (
                "Nobody has labelled any answer. The thresholds below are those the evaluation "
                "began with; cases to label lie in 5-calibration/to_label.csv.",
            ),
            "note",
        )
    else:
        yield sentence(*_labelled(labels))
    yield from failing_chart(found["thresholds"], tolerated)
    yield ReportTable(
        "Thresholds",
        ("Metric", "Decides", "Before", "Now", "Origin", "Promise"),
        tuple(_threshold_row(one) for one in found["thresholds"]),
        (2.4, 1, 0.9, 0.9, 1.9, 2.6),
    )
    judged = [one for one in found["agreement"] if one["after"]["agree"].value]
    if judged:
        yield from agreement_chart(judged)
        yield ReportTable(
            "Agreement of checks and people, before and after calibration",
            ("Metric", "Before (95 % interval)", "Kappa", "After (95 % interval)", "Kappa after"),
            tuple(_agreement_row(one) for one in judged),
            (2.2, 2.4, 0.9, 2.4, 1),
        )
    overruled = list(found["overruled"])
    if overruled:
        yield sentence(
            found["overruled"].number("count"),
            " answers that a check failed were accepted by people; they are in the corpus patch.",
        )


def _labelled(labels: JsonPlace) -> Cell:
    runs: Cell = (
        labels["cases"].number("int"),
        " cases were labelled: ",
        labels["pass"].number("int"),
        " pass, ",
        labels["fail"].number("int"),
        " fail, ",
        labels["abstain"].number("int"),
        " without a decision.",
    )
    kappa = labels["kappa"]["kappa"].number("f2")
    if kappa != MISSING:
        runs = (*runs, " People agree among themselves with kappa ", kappa, ".")
    return runs


def _threshold_row(one: JsonPlace) -> ReportRow:
    promise: Cell = (clipped(one["why"].text, 200) or "none",)
    if one["promise"].value:
        promise = (
            "at most ",
            one["promise"]["alpha"].number("share"),
            " of good answers flagged, wrong with chance ",
            one["promise"]["delta"].number("share"),
        )
    return row(
        metric_name(one),
        "yes" if one["gates"].value else "no",
        one["before"].number("f3"),
        one["threshold"].number("f3"),
        ORIGINS.get(one["origin"].text, one["origin"].text or "none"),
        promise,
        base=one,
    )


def _agreement_row(one: JsonPlace) -> ReportRow:
    return row(
        metric_name(one),
        share_cell(one["before"]["agree"]),
        one["before"]["kappa"].number("f2"),
        share_cell(one["after"]["agree"]),
        one["after"]["kappa"].number("f2"),
        base=one,
    )


def weaknesses_section(data: WorkflowData) -> Iterator[Block]:
    """Yield where the system fails beyond chance, and what failures have in common."""
    yield ReportSection(
        "7 Weaknesses", ("sr11-7:outcomes-analysis", "nist:measure", "nist:explainable")
    )
    yield from skipped(data, "weaknesses")
    found = data.results("weaknesses")
    if found.value is not None:
        yield Subsection("7.1 Kinds of questions that fail more often")
        yield sentence(
            found["family"]["tests"].number("int"),
            " comparisons of one kind of question with all others were tested together (Holm, "
            "family-wise error ",
            found["family"]["alpha"].number("share"),
            "); ",
            found["weak"].number("count"),
            " are beyond chance.",
        )
        weak = list(found["weak"])
        if weak:
            yield ReportTable(
                "Weaknesses beyond chance, the worst first",
                (
                    "Metric",
                    "Where",
                    "Cases",
                    "Fail there (95 % interval)",
                    "Fail elsewhere",
                    "p (Holm)",
                ),
                tuple(_weak_row(one) for one in weak[:MOST_ROWS]),
                (2.3, 2.3, 0.85, 2.2, 1.3, 1),
            )
            yield from _left_out(len(weak), "7-weaknesses.json")
        for grid in found["grid"]:
            yield from _grid(grid)
    yield from _clusters(data)


def _weak_row(one: JsonPlace) -> ReportRow:
    return row(
        metric_name(one),
        where_of(one),
        one["n"].number("int"),
        share_cell(one["failing"]) if one["failing"].value else mean_cell(one["mean"]),
        one["rest"]["failing"]["rate"].number("share"),
        one["p_holm"].number("p"),
        base=one,
    )


def where_of(one: JsonPlace) -> str:
    """Return the kind of question of a weakness."""
    if one["dimension"].value is not None:
        return clipped(f"{one['dimension'].text}: {one['value'].text}", 120)
    pairs = zip(one["dimensions"], one["values"], strict=False)
    return clipped("; ".join(f"{name.text}: {value.text}" for name, value in pairs), 160)


def _grid(grid: JsonPlace) -> Iterator[Block]:
    """Yield a metric's grid: whole where it fits a page, else its cells with failing cases."""
    failing = [
        (topic.text, kind.text, cell)
        for topic, line in zip(grid["rows"], grid["cells"], strict=False)
        for kind, cell in zip(grid["columns"], line, strict=False)
        if cell["failing"].value
    ]
    name = metric_name(grid)
    if not failing:
        if any(cell["failing"].value is not None for line in grid["cells"] for cell in line):
            yield sentence(f"{name}: no case that has both a topic and a kind of question fails.")
    elif len(grid["columns"].value) <= MOST_COLUMNS:
        yield _grid_table(grid)
    else:
        yield from grid_chart(grid)
        failing.sort(key=lambda one: -one[2]["failing"].value / one[2]["n"].value)
        yield ReportTable(
            f"{name}: topics and kinds of questions with cases that fail",
            ("Topic", "Kind of question", "Fail", "Cases", "Mean"),
            tuple(_cell_row(*one) for one in failing[:MOST_ROWS]),
            (3, 2.4, 0.9, 0.9, 1),
        )
        yield from _left_out(len(failing), "7-weaknesses.json")


def _cell_row(topic: str, kind: str, cell: JsonPlace) -> ReportRow:
    shade = _shade(cell["failing"].value / cell["n"].value)
    return row(
        clipped(topic, 80),
        kind.replace("_", " "),
        cell["failing"].number("int"),
        cell["n"].number("int"),
        cell["mean"].number("f3"),
        base=cell,
        shades=(None, None, shade),
    )


def _grid_table(grid: JsonPlace) -> ReportTable:
    columns = [one.text for one in grid["columns"]]
    rows = []
    for name, line in zip(grid["rows"], grid["cells"], strict=False):
        cells: list[Cell] = [(clipped(name.text, 60),)]
        shades: list[int | None] = [None]
        for cell in line:
            failing, n = cell["failing"], cell["n"]
            share = failing.number("share_of", n)
            cells.append(
                ("",) if cell.value is None else (failing.number("int"), " of ", n.number("int"))
            )
            shades.append(None if share == MISSING else _shade(failing.value / n.value))
        rows.append(ReportRow(tuple(cells), line, tuple(shades)))
    head = ("Topic", *(clipped(one.replace("_", " "), 24) for one in columns))
    caption = f"{metric_name(grid)}: failing cases by topic and kind of question"
    return ReportTable(caption, head, tuple(rows), (2.2, *(1.0 for _ in columns)))


def _shade(share: float) -> int:
    return sum(share > bound for bound in SHADES)


def _clusters(data: WorkflowData) -> Iterator[Block]:
    yield Subsection("7.2 Failures that belong together")
    yield from skipped(data, "failures")
    found = data.results("failures")
    if found.value is None:
        return
    yield sentence(
        found["failures"].number("count"),
        " cases fail a deciding check. A random forest groups those that fall into the same "
        "leaves; out of bag it is right for ",
        found["quality"]["oob_accuracy"].number("share"),
        ".",
    )
    clusters = list(found["clusters"])
    if clusters:
        yield ReportTable(
            "Clusters of failures",
            (
                "Cluster",
                "Cases",
                "What is common",
                "Inside (95 % interval)",
                "Outside",
                "Cause, by a person",
            ),
            tuple(_cluster_row(one) for one in clusters[:MOST_ROWS]),
            (1.05, 0.85, 2.7, 2.2, 1.15, 1.8),
        )


def _cluster_row(one: JsonPlace) -> ReportRow:
    first = one["features"][0]
    common = clipped(f"{first['feature'].text}: {first['value'].text}", 160)
    return row(
        one["id"].text,
        one["size"].number("int"),
        common if first.value else "nothing beyond chance",
        share_cell(first["inside"]),
        first["outside"]["rate"].number("share"),
        one["label"].text or "not stated",
        base=one,
    )


def robustness_section(data: WorkflowData) -> Iterator[Block]:
    """Yield what changed questions and adversarial ones do to the scores."""
    yield ReportSection("8 Robustness", ("nist:secure-resilient", "nist:safe", "sr11-7:validation"))
    yield Subsection("8.1 Input variations")
    yield from skipped(data, "variations")
    rates = [one for one in data.results("variations")["rates"] if _is_whole(one)]
    if rates:
        yield sentence(
            "A flip is a metric whose value crosses its threshold when the question is spelled or "
            "worded otherwise. Rates count pairs of a question and its variant."
        )
        yield ReportTable(
            "Flips by perturbation",
            (
                "Metric",
                "Perturbation",
                "Intensity",
                "Flips (95 % interval)",
                "Pairs",
                "Pass to fail",
            ),
            tuple(_flip_row(one) for one in rates[:MOST_ROWS]),
            (2.2, 2, 1.15, 2.3, 0.8, 1),
        )
        yield from _left_out(len(rates), "8-variations.json")
    yield Subsection("8.2 Adversarial inputs")
    yield from skipped(data, "adversarial")
    metrics = list(data.results("adversarial")["metrics"])
    if metrics:
        yield sentence(
            data.results("adversarial")["cases"].number("int"),
            " deliberately misleading, irrelevant or ambiguous questions, against the baseline of "
            "section 5: the distance of the distributions by Kolmogorov and Smirnov and by "
            "Wasserstein, and the shares that fail.",
        )
        yield from adversarial_chart(metrics)
        yield ReportTable(
            "Scores of adversarial questions against the baseline",
            (
                "Metric",
                "KS (95 % interval)",
                "Wasserstein",
                "p (Holm)",
                "Fail before",
                "Fail then",
                "Shifted",
            ),
            tuple(_adversarial_row(one) for one in metrics[:MOST_ROWS]),
            (2.4, 2, 1.6, 1.05, 1, 0.95, 1),
        )
        yield from _left_out(len(metrics), "9-adversarial.json")


def _is_whole(one: JsonPlace) -> bool:
    """Return whether a rate is over all topics and generators."""
    return one["generator"].value is None and one["topic"].value is None


def _flip_row(one: JsonPlace) -> ReportRow:
    return row(
        metric_name(one),
        one["perturbation"].text.replace("_", " "),
        one["intensity"].text,
        share_cell(one["flips"]),
        one["flips"]["n"].number("int"),
        one["pass_to_fail"].number("int"),
        base=one,
    )


def _adversarial_row(one: JsonPlace) -> ReportRow:
    low, high = one["ks_interval95"][0].number("f2"), one["ks_interval95"][1].number("f2")
    ks = one["ks"].number("f2")
    return row(
        metric_name(one),
        (ks,) if MISSING in (low, high) else (ks, " (", low, " to ", high, ")"),
        one["wasserstein"].number("f3"),
        one["p_holm"].number("p"),
        one["failing"]["baseline"]["rate"].number("share"),
        one["failing"]["adversarial"]["rate"].number("share"),
        "yes" if one["shifted"].value else "no",
        base=one,
    )


def _left_out(count: int, file: str) -> Iterator[Block]:
    if count > MOST_ROWS:
        yield Paragraph((f"The other {count - MOST_ROWS} rows stand in {file}.",), "note")

"""What models cost, as a part of a page and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guardrail_bench.document import markdown_table
from guardrail_bench.latency_report import drawing
from guardrail_bench.models import cells, headings

PART = "bench models"
PLOT = "models-cost.png"
UNKNOWN = "a machine that an older version did not name"
PLOTTED = 128
"""Tokens of a row in the picture: a long sentence, or a claim with its evidence."""
Results = Mapping[str, Mapping[str, Any]]


def markdown(results: Results, images: str) -> str:
    """Return the table for a page.

    Args:
        results: What was measured, by model and precision.
        images: Folder of the plot, as the page reaches it.
    """
    table = markdown_table(headings(), map(_row, results.values()))
    return "\n\n".join([_preface(results), table, f"![{PLOT}]({images}/{PLOT})"])


def plot(results: Results, path: Path) -> None:
    """Draw the speed of each architecture in each precision as bars.

    Raises:
        MissingExtra: If matplotlib is not installed.
    """
    speeds = {
        (cost["name"], cost["precision"]): cost["speeds"][str(PLOTTED)]
        for cost in results.values()
        if "refused" not in cost and cost["speeds"][str(PLOTTED)] is not None
    }
    names = list(dict.fromkeys(name for name, _ in speeds))
    precisions = list(dict.fromkeys(precision for _, precision in speeds))
    height = 0.8 / max(1, len(precisions))
    with drawing(path, figsize=(8, max(2.5, 0.75 * len(names) + 1.2))) as axis:
        for place, precision in enumerate(precisions):
            middle = (place - (len(precisions) - 1) / 2) * height
            shown = [(n, speeds[name, precision]) for n, name in enumerate(names)
                     if (name, precision) in speeds]  # fmt: skip
            axis.barh(
                [n + middle for n, _ in shown], [speed for _, speed in shown], height,
                label=precision,
            )  # fmt: skip
        axis.set_yticks(range(len(names)), names, fontsize=8)
        axis.invert_yaxis()
        axis.set(xlabel=f"tokens per millisecond and core, rows of {PLOTTED} tokens")
        axis.figure.legend(fontsize=7, ncols=2, loc="outside upper center")


def _preface(results: Results) -> str:
    """Return where the numbers come from; those of several machines must not be compared."""
    measured = (cost for cost in results.values() if "refused" not in cost)
    machines = list(dict.fromkeys(str(cost.get("machine", UNKNOWN)) for cost in measured))
    if len(machines) > 1:
        listed = "; ".join(machines)
        return f"**Caution.** Measured on several machines; do not compare the rows: {listed}."
    return f"Measured on {machines[0]}." if machines else "Nothing was measured."


def _row(cost: Mapping[str, Any]) -> list[str]:
    """Return as many cells as there are headings, names of what was measured as code."""
    name, *rest = cells(cost)
    row = [name if "refused" in cost else f"`{name}`", *rest]
    return row + [""] * (len(headings()) - len(row))

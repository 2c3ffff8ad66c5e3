"""Writes a workflow as one page that fetches nothing: every step with its pictures and notes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError
from markupsafe import Markup

from guardrail_offline.report.page import environment, frame
from guardrail_offline.runs.shards import whole_file
from guardrail_offline.workflow.definition import read_definition
from guardrail_offline.workflow.folder import STEPS, TITLES, StepRecord, WorkflowFolder
from guardrail_offline.workflow.nine_steps import status
from guardrail_offline.workflow.step_pictures import (
    distribution_curves,
    metric_strips,
    rate_bars,
    topic_map,
    weak_grid,
)
from guardrail_service.errors import ConfigurationError

_MOST_ROWS = 30


def write_page(folder: WorkflowFolder, out: Path) -> None:
    """Write the page of a workflow, whole or not at all.

    Raises:
        ConfigurationError: If a file of the workflow is not readable, or has another shape.
    """
    page = workflow_page(folder)
    with whole_file(out) as stream:
        stream.write(page)


def workflow_page(folder: WorkflowFolder) -> str:
    """Return the page; the same files give the same bytes.

    Raises:
        ConfigurationError: As `write_page`.
    """
    try:
        return _rendered(folder)
    except (LookupError, TypeError, ValueError, AttributeError, UndefinedError) as error:
        expected = "the steps' files as workflow run writes them"
        raise ConfigurationError(str(folder.root), type(error).__name__, expected) from error


def _rendered(folder: WorkflowFolder) -> str:
    definition = read_definition(folder)
    steps = []
    for number, found in enumerate(status(folder.root), start=1):
        record = found.record
        steps.append({
            "number": number,
            "name": found.step,
            "title": TITLES[found.step],
            "state": found.state,
            "why": [str(one) for one in found.why],
            "record": record,
            "pictures": [] if record is None else _pictures(record),
        })  # fmt: skip
    return environment().get_template("workflow.html.j2").render(
        **frame(), definition=definition, steps=steps, most=_MOST_ROWS, count=len(STEPS)
    )  # fmt: skip


def _pictures(record: StepRecord) -> list[Markup]:
    results: Mapping[str, Any] = record.results
    if record.state == "skipped":
        return []
    if record.step == "topics":
        return [topic_map(results)]
    if record.step == "evaluation":
        return [metric_strips(results["metrics"])]
    if record.step == "calibration":
        rates = [(one["metric"], one["failing"]) for one in results["thresholds"] if one["failing"]]
        return [rate_bars(rates, "Failing cases by metric")]
    if record.step == "failures":
        total = sum(one["size"] for one in results["clusters"])
        sizes = [
            (one["label"] or f"group {one['id'] + 1}", _share(one["size"], total))
            for one in results["clusters"]
        ]
        return [rate_bars(sizes, "Failures by group")]
    if record.step == "weaknesses":
        return [weak_grid(grid) for grid in results["grid"]]
    if record.step == "variations":
        rows = [
            (f"{one['metric']}: {one['perturbation']}", one["flips"])
            for one in results["rates"]
            if one["perturbation"]
        ]
        return [rate_bars(rows, "Flips by perturbation")]
    if record.step == "adversarial":
        return [distribution_curves(one) for one in results["metrics"]]
    return []


def _share(size: int, total: int) -> dict[str, Any]:
    from guardrail_offline.workflow.score_table import rate

    return rate(size, total)

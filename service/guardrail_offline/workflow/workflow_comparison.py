"""Two or more workflows side by side: scores with paired intervals, verdicts, weaknesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guardrail_offline.runs.paired import sign_test
from guardrail_offline.runs.run_comparison import compare_runs
from guardrail_offline.workflow.evaluation import RUN
from guardrail_offline.workflow.folder import StepName, WorkflowFolder
from guardrail_offline.workflow.people_thresholds import failed_metrics
from guardrail_offline.workflow.score_table import ScoreTable, rate, read_table
from guardrail_service.errors import ConfigurationError


def compare(before: WorkflowFolder, others: Sequence[WorkflowFolder]) -> list[dict[str, Any]]:
    """Return how each of some workflows differs from a first one.

    Scores are paired by case, as `guardrail compare` does, and corrected over all of them. Verdicts
    are paired by key and question, each by the thresholds of its own workflow. Weaknesses are those
    of one and not of the other.

    Raises:
        ConfigurationError: If an evaluation is missing, or they have no case in common.
    """
    for folder in (before, *others):
        if folder.record("evaluation") is None:
            raise ConfigurationError(str(folder.root), "no 4-evaluation.json", "a finished step 4")
    runs = compare_runs(_run(before), [_run(folder) for folder in others])
    return [
        {
            "before": before.root.name,
            "after": folder.root.name,
            "scores": found.as_json(),
            "verdicts": _verdicts(before, folder),
            "thresholds": _thresholds(before, folder),
            "weaknesses": _weaknesses(before, folder),
        }
        for folder, found in zip(others, runs, strict=True)
    ]


def _run(folder: WorkflowFolder) -> Any:
    return folder.step_folder("evaluation") / RUN


def _verdicts(before: WorkflowFolder, after: WorkflowFolder) -> dict[str, Any] | None:
    """Return how many cases fail in each, of those that both have; None without thresholds."""
    one, other = _failing(before), _failing(after)
    if one is None or other is None:
        return None
    both = sorted(one.keys() & other.keys())
    if not both:
        return None
    mended = sum(one[key] and not other[key] for key in both)
    broken = sum(other[key] and not one[key] for key in both)
    return {
        "cases": len(both),
        "failing_before": rate(sum(one[key] for key in both), len(both)),
        "failing_after": rate(sum(other[key] for key in both), len(both)),
        "mended": mended,
        "broken": broken,
        "p": sign_test(mended, broken),
    }


def _failing(folder: WorkflowFolder) -> dict[tuple[str, str], bool] | None:
    found = folder.record("calibration")
    if found is None:
        return None
    table: ScoreTable = read_table(_run(folder))
    failed = failed_metrics(table, found.results["thresholds"])
    return {
        (str(case["key"]), str(case.get("input"))): bool(names)
        for case, names in zip(table.cases, failed, strict=True)
    }


def _part(folder: WorkflowFolder, step: StepName, part: str) -> Sequence[Mapping[str, Any]]:
    record = folder.record(step)
    found: Sequence[Mapping[str, Any]] = () if record is None else record.results.get(part, ())
    return found


def _thresholds(before: WorkflowFolder, after: WorkflowFolder) -> list[dict[str, Any]]:
    """Return the metrics whose thresholds differ."""
    sides = [
        {one["metric"]: one["threshold"] for one in _part(folder, "calibration", "thresholds")}
        for folder in (before, after)
    ]
    return [
        {"metric": name, "before": sides[0].get(name), "after": sides[1].get(name)}
        for name in sorted({*sides[0], *sides[1]})
        if sides[0].get(name) != sides[1].get(name)
    ]


def _weaknesses(before: WorkflowFolder, after: WorkflowFolder) -> dict[str, list[str]]:
    sides = [{_place(one): one["words"] for one in _part(f, "weaknesses", "weak")}
             for f in (before, after)]  # fmt: skip
    return {
        "gone": [words for place, words in sides[0].items() if place not in sides[1]],
        "new": [words for place, words in sides[1].items() if place not in sides[0]],
        "both": [words for place, words in sides[1].items() if place in sides[0]],
    }


def _place(one: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what tells a weak cell from others: metric, dimensions and values."""
    names = one.get("dimensions") or [one["dimension"]]
    values = one.get("values") or [one["value"]]
    return (str(one["metric"]), *map(str, (*names, *values)))

"""The log of a run: how many cases each evaluator judged, how long it took, and what went wrong."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np

from guardrail_offline.report.run_data import EvaluatorData, RunData

_MOST_ERRORS = 20
_LONGEST_KEY = 200


def run_log(run: RunData) -> list[str]:
    """Return the lines of all evaluators."""
    return [line for data in run.evaluators.values() for line in evaluator_log(run, data)]


def evaluator_log(run: RunData, data: EvaluatorData) -> list[str]:
    """Return the lines of one evaluator; no texts, and of keys what fits on a line."""
    primary = data.values[data.primary.key]
    judged = int((~np.isnan(primary)).sum())
    lines = [f"INFO {data.id}: {judged} of {len(run.cases)} cases have {data.primary.key}"]
    for times in run.timings:
        if entry := times.get(data.id):
            lines.append(
                f"INFO {data.id}: {entry['cpu_s']:.3f} s of processor time for "
                f"{entry['cases']} cases"
            )
    reasons = Counter(reason for reason in data.reasons[data.primary.key] if reason)
    lines += [
        f"WARNING {data.id}: {count} cases without a value: {reason}"
        for reason, count in reasons.most_common()
    ]
    errors = list(data.errors.items())
    for place, reason in errors[:_MOST_ERRORS]:
        key = json.dumps(str(run.cases[place]["key"])[:_LONGEST_KEY])
        lines.append(f"ERROR {data.id}: case {key}: {reason}")
    if len(errors) > _MOST_ERRORS:
        lines.append(f"ERROR {data.id}: {len(errors) - _MOST_ERRORS} more")
    return lines

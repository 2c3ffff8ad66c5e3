"""Puts several runs side by side: their models and cases carry the name of their run in front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from guardrail_offline.datasets.cases import Model
from guardrail_offline.report.run_data import Column, EvaluatorData, RunData
from guardrail_service.errors import ConfigurationError

_MODEL_NAMES = ("model", "other")
_CASE_NAMES = ("source", "variant", "case")
_CASE_LISTS = ("row_keys", "test_case_keys")


def side_by_side(runs: Sequence[RunData]) -> RunData:
    """Return several runs as one: models and cases carry the name of their run in front.

    An evaluator that a run lacks has no value for its cases.
    """
    if len(runs) == 1:
        return runs[0]
    names = _distinct([run.folders[0] for run in runs])
    ids = dict.fromkeys(name for run in runs for name in run.evaluators)
    cases = [
        _moved(case, name) for run, name in zip(runs, names, strict=True) for case in run.cases
    ]
    models = [
        Model(f"{name}/{model.key}", f"{name} / {model.title or model.key}")
        for run, name in zip(runs, names, strict=True)
        for model in run.models
    ]
    return replace(
        runs[0],
        cases=cases,
        models=tuple(models),
        evaluators={name: _joined(name, runs, names) for name in ids},
        manifests=[manifest for run in runs for manifest in run.manifests],
        problems=_named(runs, names, "problems", "problem_attrs"),
        insights=_named(runs, names, "insights", "attrs"),
        flips=_flips(runs, names),
        notes=tuple(dict.fromkeys(note for run in runs for note in run.notes)),
        folders=tuple(names),
        timings=tuple(one for run in runs for one in run.timings),
        judges=tuple(one for run in runs for one in run.judges),
        samples=tuple(one for run in runs for one in run.samples),
    )


def _moved(case: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return {**case, "key": f"{name}/{case['key']}", "model_key": f"{name}/{case['model_key']}"}


def _named(
    runs: Sequence[RunData], names: Sequence[str], kind: str, attributes: str
) -> list[Mapping[str, Any]]:
    """Return problems or insights that say of which run they are."""
    return [
        {
            **one,
            "description": f"{name}: {one.get('description', '')}",
            attributes: _led(one.get(attributes) or {}, name),
        }
        for run, name in zip(runs, names, strict=True)
        for one in getattr(run, kind)
    ]


def _flips(runs: Sequence[RunData], names: Sequence[str]) -> dict[str, Any]:
    return {
        kind: [
            _led(one, name)
            for run, name in zip(runs, names, strict=True)
            for one in run.flips.get(kind, ())
        ]
        for kind in ("rates", "flips")
    }


def _led(finding: Mapping[str, Any], run: str) -> dict[str, Any]:
    """Return a finding whose models and cases are those of the runs together."""
    found = dict(finding)
    for name in (*_MODEL_NAMES, *_CASE_NAMES):
        if isinstance(found.get(name), str):
            found[name] = f"{run}/{found[name]}"
    for name in _CASE_LISTS:
        if isinstance(found.get(name), list):
            found[name] = [f"{run}/{key}" for key in found[name]]
    return found


def _distinct(names: Sequence[str]) -> list[str]:
    return [
        name if names.count(name) == 1 else f"{name} ({place})"
        for place, name in enumerate(names, start=1)
    ]


def _joined(evaluator: str, runs: Sequence[RunData], names: Sequence[str]) -> EvaluatorData:
    having = [run.evaluators[evaluator] for run in runs if evaluator in run.evaluators]
    if len({data.about.get("backend") == "judge" for data in having}) > 1:
        found = "by a judge in one run and without in another"
        raise ConfigurationError(f"report: {evaluator}", found, "runs with one backend")
    if any(data.about.get("embeddings") != having[0].about.get("embeddings") for data in having):
        found = "with other embeddings in another run"
        raise ConfigurationError(f"report: {evaluator}", found, "runs with one embedding model")
    first = having[0]
    values: dict[str, Column] = {}
    reasons: dict[str, list[str | None]] = {}
    for metric in first.metrics:
        parts: list[Column] = []
        why: list[str | None] = []
        for run in runs:
            data = run.evaluators.get(evaluator)
            if data is not None and metric.key in data.values:
                parts.append(data.values[metric.key])
                why += data.reasons[metric.key]
            else:
                parts.append(np.full(len(run.cases), np.nan))
                why += ["not_in_this_run"] * len(run.cases)
        values[metric.key], reasons[metric.key] = np.concatenate(parts), why
    spans: dict[int, Sequence[Mapping[str, Any]]] = {}
    errors: dict[int, str] = {}
    before = 0
    for run in runs:
        if data := run.evaluators.get(evaluator):
            spans |= {before + place: meta for place, meta in data.spans.items()}
            errors |= {before + place: why for place, why in data.errors.items()}
        before += len(run.cases)
    boards = tuple(
        _renamed(board, name)
        for run, name in zip(runs, names, strict=True)
        if evaluator in run.evaluators
        for board in run.evaluators[evaluator].boards
    )
    return replace(first, values=values, reasons=reasons, spans=spans, boards=boards, errors=errors)


def _renamed(board: Mapping[str, Any], run: str) -> Mapping[str, Any]:
    """Return a board whose models carry the name of their run."""
    rows = [{**row, "model": f"{run}/{row['model']}"} for row in board["rows"]]
    confusion = {f"{run}/{model}": cells for model, cells in board.get("confusion", {}).items()}
    return {**board, "rows": rows} | ({"confusion": confusion} if confusion else {})

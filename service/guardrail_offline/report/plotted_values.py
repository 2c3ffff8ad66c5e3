"""Reads what box plots show: metrics of runs, and Open RAG Eval's CSV files of both evaluators."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_offline.report.run_data import RunData, read_run_data
from guardrail_service.errors import ConfigurationError, choices

Numbers = np.ndarray[Any, np.dtype[np.float64]]
TREC = {
    "mean_umbrela_score": "retrieval_score_mean_umbrela_score",
    "vital_nuggetizer_score": "generation_score_vital_nuggetizer_score",
    "hallucination_score": "generation_score_hallucination_score",
    "citation_f1_score": "generation_score_citation_f1_score",
}
"""Metrics of Open RAG Eval's evaluator `trec` by their columns."""
CONSISTENCY = "consistency_"
"""So begin the columns of its evaluator `consistency`: values and statistics of reruns."""
_LARGEST = {"mean_umbrela_score": 3.0}
"""Open RAG Eval divides by these, so that every index is within 0 and 1."""
_ANSWERED = "generation_score_no_answer_score"
OPEN_RAG_EVAL = "open_rag_eval.csv"


@dataclass(frozen=True)
class PlottedValues:
    """One metric of one model or file.

    Attributes:
        name: What it is called below its box.
        values: Finite values.
        asked: How many there would be if every question had one.
    """

    name: str
    values: Numbers
    asked: int


def of_run(run: RunData, evaluator: str) -> dict[str, list[PlottedValues]]:
    """Return the metrics of one evaluator, each with a sample per model.

    Raises:
        ConfigurationError: If the run has no such evaluator.
    """
    data = run.evaluators.get(evaluator)
    if data is None:
        raise ConfigurationError(
            "--evaluator", repr(evaluator), choices(evaluator, run.evaluators, "evaluator")
        )
    owners = np.array([case["model_key"] for case in run.cases], dtype=object)
    found = {}
    for metric in data.metrics:
        column = data.values[metric.key]
        found[metric.key] = [
            _sample(model.title, column[owners == model.key]) for model in run.models
        ]
    return found


def of_csv(paths: Sequence[Path]) -> dict[str, list[PlottedValues]]:
    """Return the metrics of Open RAG Eval's `trec`, each with a sample per file.

    Where a query was run several times its runs are values of their own.

    Raises:
        ConfigurationError: If a file cannot be read or has none of the columns.
    """
    found: dict[str, list[PlottedValues]] = {}
    for path in paths:
        folder = path.parent.name if path.name == OPEN_RAG_EVAL else path.stem
        for model, rows in _by_model(_rows(path)).items():
            name = " / ".join(filter(None, (folder if len(paths) > 1 or not model else "", model)))
            for metric, sample in _of_rows(rows, name, path):
                found.setdefault(metric, []).append(sample)
    if not found:
        raise ConfigurationError(str(paths[0]), "no column of trec", ", ".join(TREC.values()))
    return found


def _by_model(rows: Sequence[Mapping[str, str]]) -> dict[str, list[Mapping[str, str]]]:
    found: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        found.setdefault(row.get("model") or "", []).append(row)
    return found


def _of_rows(
    rows: Sequence[Mapping[str, str]], name: str, path: Path
) -> Iterator[tuple[str, PlottedValues]]:
    told = [cell for cell in _cells(rows, _ANSWERED) if cell]
    if told:
        share = sum('"yes"' in cell for cell in told) / len(told)
        name += f"\n{share:.0%} answered"
    for metric, column in TREC.items():
        cells = _cells(rows, column)
        values = np.array([_number(cell, path) for cell in cells], dtype=np.float64)
        if len(values):
            known = values[np.isfinite(values)]
            yield metric, PlottedValues(name, known, max(len(known), len(told) or len(values)))


def _cells(rows: Sequence[Mapping[str, str]], column: str) -> list[str]:
    """Return the cells of a column and of its runs."""
    return [cell or "" for row in rows for key, cell in row.items() if (key or "").endswith(column)]


def of_consistency(path: Path) -> dict[str, list[PlottedValues]]:
    """Return how stable reruns are by metric, each with a sample per model.

    Beside the spread (`std`) the consistency-adjusted index: the mean divided by 1 + `std`.

    Raises:
        ConfigurationError: If the run has no question with several answers.
    """
    where = path / "run_consistency.json"
    found: dict[str, dict[str, list[float]]] = {}
    try:
        for one in json.loads(where.read_text("utf-8")):
            name = f"{one['evaluator']}.{one['metric']}"
            for metric, value in ((name, one["adjusted"]), (f"{name}: std", one["std"])):
                of_model = found.setdefault(metric, {})
                of_model.setdefault(str(one["model"]), []).append(float(value))
    except (OSError, ValueError, KeyError, TypeError) as error:
        expected = "a run that answered a question three times or more"
        raise ConfigurationError(str(where), type(error).__name__, expected) from error
    return {
        metric: [_sample(model, np.array(values)) for model, values in models.items()]
        for metric, models in found.items()
    }


def of_consistency_csv(paths: Sequence[Path]) -> dict[str, list[PlottedValues]]:
    """Return the consistency-adjusted index of each query by metric, with a sample per file.

    Raises:
        ConfigurationError: If a file cannot be read or has no column of `consistency`.
    """
    found: dict[str, list[PlottedValues]] = {}
    for path in paths:
        rows = _rows(path)
        for column in rows[0] if rows else ():
            if (column or "").startswith(CONSISTENCY):
                metric = column.removeprefix(CONSISTENCY)
                values = np.array([_index(row[column], metric, path) for row in rows])
                found.setdefault(metric, []).append(_sample(path.stem, values))
    if not found:
        raise ConfigurationError(str(paths[0]), "no column of consistency", f"{CONSISTENCY}...")
    return found


def _index(cell: str | None, metric: str, path: Path) -> float:
    if not cell:
        return float("nan")
    try:
        index = float(json.loads(cell)["stats"]["consistency_adjusted_index"])
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(str(path), type(error).__name__, "values and stats") from error
    return index / _LARGEST.get(metric, 1.0)


def of_scores_csv(paths: Sequence[Path], evaluator: str) -> dict[str, list[PlottedValues]]:
    """Return an evaluator's metrics from `scores.csv` of runs, each with a sample per model.

    Raises:
        ConfigurationError: If a file cannot be read or has no column of the evaluator.
    """
    found: dict[str, list[PlottedValues]] = {}
    prefix = f"{evaluator}."
    for path in paths:
        by_model: dict[str, list[Mapping[str, str]]] = {}
        for row in _rows(path):
            by_model.setdefault(row.get("model_key") or "", []).append(row)
        for model, rows in by_model.items():
            name = " / ".join(filter(None, (path.stem if len(paths) > 1 else "", model)))
            for column in rows[0]:
                if (column or "").startswith(prefix):
                    values = np.array([_number(row[column] or "", path) for row in rows])
                    metric = column.removeprefix(prefix)
                    found.setdefault(metric, []).append(_sample(name or path.stem, values))
    if not found:
        raise ConfigurationError(str(paths[0]), f"no column of {evaluator}", f"{prefix}METRIC")
    return found


def samples(sources: Sequence[Path], evaluator: str) -> dict[str, list[PlottedValues]]:
    """Return what is to be plotted of folders of runs, or of CSV files.

    Args:
        sources: Folders of runs, or Open RAG Eval's CSV files.
        evaluator: `trec`, `consistency`, or an evaluator of ours.
    """
    tables = [_table(path) for path in sources]
    if evaluator == "consistency":
        files = [path for path in sources if not path.is_dir()]
        return of_consistency_csv(files) if files else of_consistency(sources[0])
    if evaluator == "trec":
        return of_csv(tables)
    if all(path.suffix.lower() == ".csv" and path.is_file() for path in sources):
        return of_scores_csv(sources, evaluator)
    found: dict[str, list[PlottedValues]] = {}
    for path in sources:
        run = read_run_data(path)
        for metric, of_metric in of_run(run, evaluator).items():
            prefix = f"{path.name} / " if len(sources) > 1 else ""
            found.setdefault(metric, []).extend(
                PlottedValues(prefix + one.name, one.values, one.asked) for one in of_metric
            )
    return found


def _sample(name: str, values: Numbers) -> PlottedValues:
    return PlottedValues(name, values[np.isfinite(values)], len(values))


def _table(path: Path) -> Path:
    return path / OPEN_RAG_EVAL if path.is_dir() else path


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            return list(csv.DictReader(lines))
    except (OSError, ValueError, csv.Error) as error:
        raise ConfigurationError(str(path), type(error).__name__, "Open RAG Eval's CSV") from error


def _number(cell: str, path: Path) -> float:
    try:
        return float(cell) if cell else float("nan")
    except ValueError as error:
        raise ConfigurationError(str(path), "a score that is no number", "a number") from error

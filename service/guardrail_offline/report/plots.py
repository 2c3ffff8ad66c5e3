"""Box plots of a run, or of Open RAG Eval's CSV files, as PNG or SVG.

The only file of the report that imports matplotlib.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from guardrail_offline.report.run_data import RunData, read_run_data
from guardrail_offline.runs.paired import mean_interval
from guardrail_service.errors import ConfigurationError, choices

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = np.ndarray[Any, np.dtype[np.float64]]
TREC = {
    "mean_umbrela_score": "retrieval_score_mean_umbrela_score",
    "vital_nuggetizer_score": "generation_score_vital_nuggetizer_score",
    "hallucination_score": "generation_score_hallucination_score",
    "citation_f1_score": "generation_score_citation_f1_score",
}
"""Metrics of Open RAG Eval's evaluator `trec` by their columns."""
_ANSWERED = "generation_score_no_answer_score"
_PER_ROW = 3
OPEN_RAG_EVAL = "open_rag_eval.csv"
_NAME_LENGTH = 24


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
    """Return the spread of reruns by metric, each with a sample per model.

    Raises:
        ConfigurationError: If the run has no question with several answers.
    """
    where = path / "run_consistency.json"
    try:
        records = json.loads(where.read_text("utf-8"))
        found: dict[str, dict[str, list[float]]] = {}
        for one in records:
            of_metric = found.setdefault(f"{one['evaluator']}.{one['metric']}", {})
            of_metric.setdefault(str(one["model"]), []).append(float(one["std"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        expected = "a run that answered a question three times or more"
        raise ConfigurationError(str(where), type(error).__name__, expected) from error
    return {
        f"{metric}: std": [_sample(model, np.array(stds)) for model, stds in models.items()]
        for metric, models in found.items()
    }


def samples(sources: Sequence[Path], evaluator: str) -> dict[str, list[PlottedValues]]:
    """Return what is to be plotted of folders of runs, or of CSV files.

    Args:
        sources: Folders of runs, or Open RAG Eval's CSV files.
        evaluator: `trec`, `consistency`, or an evaluator of ours.
    """
    tables = [_table(path) for path in sources]
    if evaluator == "consistency":
        return of_consistency(sources[0])
    if evaluator == "trec" or all(path.is_file() for path in sources):
        return of_csv(tables)
    found: dict[str, list[PlottedValues]] = {}
    for path in sources:
        run = read_run_data(path)
        for metric, of_metric in of_run(run, evaluator).items():
            prefix = f"{path.name} / " if len(sources) > 1 else ""
            found.setdefault(metric, []).extend(
                PlottedValues(prefix + one.name, one.values, one.asked) for one in of_metric
            )
    return found


def draw(
    metrics: Mapping[str, Sequence[PlottedValues]], out: Path, only: Sequence[str] = ()
) -> None:
    """Write box plots: a picture per metric, a box per sample, with mean, median and interval.

    Args:
        metrics: Samples by metric.
        out: `.png` or `.svg`.
        only: Names of metrics; all if empty.

    Raises:
        ConfigurationError: If a metric is not there, or the ending is another one.
        ImportError: If matplotlib is not installed.
    """
    for name in only:
        if name not in metrics:
            raise ConfigurationError(
                "--metrics-to-plot", repr(name), choices(name, metrics, "metric")
            )
    if out.suffix.lower() not in (".png", ".svg"):
        raise ConfigurationError("--output-file", repr(out.suffix), ".png or .svg")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [name for name in metrics if not only or name in only]
    across, down = min(_PER_ROW, len(shown)), -(-len(shown) // _PER_ROW)
    boxes = max(len(metrics[name]) for name in shown)
    size = (across * max(3.6, 0.8 * boxes + 1.6), 3.6 * down)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    for place, name in enumerate(shown, start=1):
        _boxes(figure.add_subplot(down, across, place), name, metrics[name])
    metadata = {"Date": None} if out.suffix.lower() == ".svg" else {"Software": None}
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        figure.savefig(temporary, format=out.suffix.lower()[1:], dpi=120, metadata=metadata)
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)


def _boxes(axes: Axes, name: str, found: Sequence[PlottedValues]) -> None:
    axes.set_title(_shown(name), fontsize=10, parse_math=False)
    places = range(1, len(found) + 1)
    having = [(place, one) for place, one in zip(places, found, strict=True) if len(one.values)]
    for place, one in having:
        axes.boxplot([one.values], positions=[place], widths=0.5, showfliers=False)
        mean = float(one.values.mean())
        ends = mean_interval(one.values) or (mean, mean)
        axes.errorbar(
            [place], [mean], yerr=[[mean - ends[0]], [ends[1] - mean]], fmt="D", capsize=4
        )
        median = float(np.median(one.values))
        axes.annotate(
            f"mean {mean:.2f}\nmedian {median:.2f}", (place + 0.28, mean), (3, 0),
            textcoords="offset points", fontsize=7,
        )  # fmt: skip
    names = [f"{_shown(one.name)}\n{len(one.values)} of {one.asked}" for one in found]
    axes.set_xticks(list(places), names, fontsize=8, parse_math=False)
    axes.set_xlim(0.4, len(found) + 0.9)


def _shown(name: str) -> str:
    """Return a name that is short, and has no letters that only steer a terminal or a renderer."""
    letters = "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in name)
    return letters if len(letters) <= 2 * _NAME_LENGTH else letters[: 2 * _NAME_LENGTH] + "..."


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

"""The suite from Python: `evaluate` as Ragas has it, and H2O's client."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from guardrail_offline.datasets.cases import Case, models_of
from guardrail_offline.datasets.columns import RowPlace
from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.datasets.suites import RecordReader
from guardrail_offline.evaluators.backends import choice_of
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.configured import Configured, configure
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.evaluators.result import Result
from guardrail_offline.evaluators.shared.claim_scores import harmonic_mean
from guardrail_offline.h2o_client import Client as Client
from guardrail_offline.hosts.opening import HostChoice
from guardrail_offline.judge.judge_client import Judge, open_judge
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.judge.results import Asks
from guardrail_offline.runs.bounds import BoundCheck, bounds_of, checks
from guardrail_offline.runs.judge_runs import ask_about
from guardrail_offline.runs.leaderboards import leaderboard
from guardrail_offline.runs.shards import by_group
from guardrail_offline.runs.totals import EvaluatorTally
from guardrail_offline.runs.worker import models_for, needs_models, score
from guardrail_service.errors import MissingExtra

QUICKSTART = ("context_relevancy", "faithfulness", "answer_relevancy")
"""Metrics of Ragas' quickstart, for which a dataset needs no expected answers."""
RAGAS_SCORE = "ragas_score"


class Scores(Mapping[str, float | None]):
    """Mean of each metric over the cases that have a value; None where none has.

    Metrics that exist only for cases together, such as F1 of a classification, are of all of them.

    Attributes:
        rows: A mapping per case: its key, and each metric's value or None.
        missing: Of each metric, how many cases have no value, by reason.
        ignored: Columns of the dataset that nothing read.
        adjusted: The means with the worst value for every case that was not answered: no answer,
            an error, or an abstention from a question that has one. A metric without a worst end,
            and one that silence does not make worse, is as it is.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        missing: Mapping[str, Any],
        ignored: Iterable[str] = (),
        together: Mapping[str, float] | None = None,
        adjusted: Mapping[str, float | None] | None = None,
    ) -> None:
        self.rows = tuple(rows)
        self.missing = dict(missing)
        self.ignored = tuple(ignored)
        keys = [key for key in (rows[0] if rows else {}) if key != "key"]
        self._means = {key: _mean(row[key] for row in rows) for key in keys} | dict(together or {})
        self.adjusted = self._means | dict(adjusted or {})

    def __getitem__(self, key: str) -> float | None:
        return self._means[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._means)

    def __len__(self) -> int:
        return len(self._means)

    def __repr__(self) -> str:
        cells = (f"{k!r}: {'None' if v is None else f'{v:.3f}'}" for k, v in self._means.items())
        return "{" + ", ".join(cells) + "}"

    def to_arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table`, a column per metric."""
        import pyarrow as pa

        return pa.Table.from_pylist([dict(row) for row in self.rows])

    def to_pandas(self) -> Any:
        """Return the rows as a `pandas.DataFrame`.

        Raises:
            MissingExtra: If pandas is not installed; nothing else here needs it.
        """
        try:
            return self.to_arrow().to_pandas()
        except ImportError as error:
            raise MissingExtra("pandas") from error

    def harmonic_mean(self, keys: Iterable[str] = QUICKSTART) -> float | None:
        """Return the harmonic mean of some metrics' means; None if one of them has none."""
        values = [self._means[key] for key in keys]
        numbers = [value for value in values if value is not None]
        return harmonic_mean(numbers) if len(numbers) == len(values) else None


def evaluate(
    dataset: Any,
    metrics: Sequence[str] = QUICKSTART,
    *,
    pack: str = "embedded",
    columns: Mapping[str, str] | None = None,
    settings: Iterable[str] = (),
    judge: Asks | JudgeSettings | None = None,
    judge_for: Sequence[str] = (),
    embeddings: HostChoice | None = None,
) -> Scores:
    """Return the scores of a dataset.

    Args:
        dataset: A path, rows as mappings, columns as a mapping of lists, or anything that yields
            rows, such as a `datasets.Dataset`. Columns as in Ragas, Open RAG Eval or H2O.
        metrics: Evaluators, by our id, H2O's or another suite's, such as `ragas:faithfulness`.
        pack: Model pack.
        columns: Column by field of a case, for names of your own: {"answer": "my_col"}.
        settings: Parameters, each `EVALUATOR.key=value`.
        judge: Who judges: its settings, a `Judge`, or anything with its `ask`.
        judge_for: Evaluators that it computes; those that need one if empty.
        embeddings: A served embedding model for answer similarity and answer relevancy; None for
            the pack's.

    Returns:
        A mapping from metric to mean. A metric that two evaluators have is called
        `evaluator.metric`.

    Raises:
        ConfigurationError: If a metric is unknown or a row cannot be read.
    """
    asked, described = _judge(judge)
    choice = choice_of(described, judge_for)
    configured = configure(list(metrics), settings, backends=choice, embeddings=embeddings)
    reader = RecordReader(columns)
    cases = list(_cases(dataset, reader))
    numbered = list(enumerate(cases))
    models = models_for([replace(one, judge=None) for one in configured], pack)
    if asked is not None:
        if isinstance(asked, Judge):
            judged = [one for one in configured if one.judge is not None]
            ordered = [one for group in by_group(numbered) for one in group]
            ask_about(ordered, judged, asked, len(numbered))
        models.judge = asked
    found = score(numbered, configured, models)
    names = _names(configured)
    rows = [
        {"key": case.key} | {name: _value(found[i], *place) for name, place in names.items()}
        for i, case in enumerate(cases)
    ]
    missing = {name: _reasons(found.values(), *place) for name, place in names.items()}
    tallies = {one.id: _tallied(one, found.values()) for one in configured} if cases else {}
    together = {
        name: value
        for name, (evaluator, key) in names.items()
        if evaluator in tallies and key in tallies[evaluator].evaluator.spec.per_model
        and (value := tallies[evaluator].value(_ALL, key)) is not None
    }  # fmt: skip
    adjusted = {
        name: tallies[evaluator].adjusted(_ALL, key)
        for name, (evaluator, key) in names.items()
        if evaluator in tallies
    }
    return Scores(rows, missing, sorted(reader.ignored), together, adjusted)


def _judge(given: Asks | JudgeSettings | None) -> tuple[Asks | None, JudgeSettings | None]:
    """Return who is asked, and what describes it."""
    if given is None:
        return None, None
    if isinstance(given, JudgeSettings):
        return open_judge(given), given
    described = given.settings if isinstance(given, Judge) else JudgeSettings("python:", "own")
    return given, described


_ALL = ""
"""All models of a dataset together."""


def _tallied(one: Configured, results: Iterable[Mapping[str, Result]]) -> EvaluatorTally:
    tally = EvaluatorTally(one)
    for result in results:
        tally.add(_ALL, result[one.id])
    return tally


def check(
    dataset: Any,
    bounds: Iterable[str],
    *,
    min_coverage: float = 1.0,
    settings: Iterable[str] = (),
    load: Callable[[], PackModels] | None = None,
    pack: str = "embedded",
) -> list[BoundCheck]:
    """Return how a dataset stands against bounds such as `faithfulness=.8`; only these are scored.

    Args:
        dataset: As for `evaluate`; a lone mapping of texts is one row.
        bounds: As for `guardrail evaluate --fail-under`.
        min_coverage: Share of the cases that have to have a value.
        settings: Parameters, each `EVALUATOR.key=value`.
        load: Gives the models if some evaluator asks one, so that several calls can share them.
        pack: Model pack, where `load` is not given.

    Raises:
        ConfigurationError: If a bound or a row cannot be read.
    """
    wanted = bounds_of(bounds, CATALOGUE.specs())
    configured = configure([bound.evaluator for bound in wanted], settings)
    cases = list(_cases(dataset, RecordReader()))
    asked = needs_models(one.evaluator.spec for one in configured)
    models = load() if load is not None and asked else models_for(configured, pack)
    found = score(list(enumerate(cases)), configured, models)
    tallies = {one.id: EvaluatorTally(one) for one in configured}
    for index, case in enumerate(cases):
        for name, tally in tallies.items():
            tally.add(case.model, found[index][name])
    known = models_of(cases)
    boards = [leaderboard(tally, known) for tally in tallies.values()]
    return [_with_worst(one, cases, found) for one in checks(wanted, boards, min_coverage)]


_WORST = 3


def _with_worst(
    one: BoundCheck, cases: Sequence[Case], found: Mapping[int, Mapping[str, Result]]
) -> BoundCheck:
    names = {model.key: model.title for model in models_of(cases)}
    values = [
        (case.key, value)
        for index, case in enumerate(cases)
        if names[case.model] == one.model
        and (value := _value(found[index], one.evaluator, one.metric)) is not None
    ]
    values.sort(key=itemgetter(1), reverse=not one.higher_is_better)
    return replace(one, worst=tuple(values[:_WORST]))


def _cases(dataset: Any, reader: RecordReader) -> Iterator[Case]:
    if isinstance(dataset, str | os.PathLike):
        yield from open_lab(Path(dataset), reader=reader).cases()
        return
    rows = _rows_of(dataset) if isinstance(dataset, Mapping) else dataset
    for number, row in enumerate(rows, start=1):
        yield from reader.cases(row, RowPlace("dataset", number))
    reader.finish("dataset")


def _rows_of(columns: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of columns; a mapping without any column of its own is a row itself."""
    if isinstance(columns.get("question", columns.get("answer")), str):
        yield columns
        return
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _names(configured: Sequence[Configured]) -> dict[str, tuple[str, str]]:
    places = [(one.id, key) for one in configured for key in one.evaluator.spec.keys]
    keys = [key for _, key in places]
    return {
        key if keys.count(key) == 1 else f"{evaluator}.{key}": (evaluator, key)
        for evaluator, key in places
    }


def _value(results: Mapping[str, Result], evaluator: str, key: str) -> float | None:
    return results[evaluator].scores[key].value


def _reasons(results: Iterable[Mapping[str, Result]], evaluator: str, key: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for result in results:
        reason = result[evaluator].scores[key].reason
        if reason is not None:
            counts[reason] = counts.get(reason, 0) + 1
    return counts


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None

"""Scores shards in a process of its own: models are loaded once, then shard after shard."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import Array, c_longlong
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import EvaluatorSpec, unmet
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.pack_models import ModelsWithVectors, PackModels, load_models
from guardrail_offline.evaluators.result import Result, dumps, result_json
from guardrail_offline.hosts.log_probabilities import open_language_model
from guardrail_offline.hosts.opening import HostChoice
from guardrail_offline.hosts.text_vectors import open_text_vectors
from guardrail_offline.judge.judge_client import open_reader
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.runs.shard_tallies import RunTallies
from guardrail_offline.runs.shards import (
    Layout,
    ScoredCase,
    by_group,
    read_cases,
    whole_file,
    write_json,
)
from guardrail_service.types import State

BEYOND = "max_dataset_rows"
TIMED_OUT = "timed_out"
Progress = Array[c_longlong]
"""Shared with the process that watches: which evaluator runs, and how many steps have begun."""
EVALUATOR, STEPS = 0, 1
NO_EVALUATOR = -1
Begin = Callable[[int], None]
"""Told which evaluator begins its step: it judges the cases of one question."""


def _unwatched(evaluator: int) -> None:
    """Tell nobody."""


def needs_models(specs: Iterable[EvaluatorSpec]) -> bool:
    """Return whether any evaluator asks a model: without one the pack is not even opened."""
    return any(spec.roles or spec.needs_support for spec in specs)


def models_for(configured: Sequence[Configured], pack: str) -> PackModels:
    """Return the models some evaluators need, and what reads the judge's transcripts."""
    specs = [one.evaluator.spec for one in configured]
    models = load_models(pack) if needs_models(specs) else PackModels({})
    settings = judge_of(configured)
    if settings is not None:
        models.judge = open_reader(settings)
    served = next((one.language_model for one in configured if one.language_model), None)
    if served is not None:
        models.language_model = open_language_model(served)
    compared = embeddings_of(configured)
    if compared is not None:
        models.text_vectors = open_text_vectors(compared)
    return models


def embeddings_of(configured: Iterable[Configured]) -> HostChoice | None:
    """Return the served embedding model of a run; None for none."""
    return next((one.embeddings for one in configured if one.embeddings is not None), None)


def judge_of(configured: Iterable[Configured]) -> JudgeSettings | None:
    """Return who judges in a run, with the place of the transcripts; None for nobody."""
    return next((one.judge for one in configured if one.judge is not None), None)


class ShardJob(NamedTuple):
    """A shard, and the evaluators that hung on it before."""

    shard: int
    without: frozenset[str] = frozenset()


def serve(
    connection: Connection,
    progress: Progress,
    layout: Layout,
    configured: Sequence[Configured],
    pack: str,
) -> None:
    """Score the shards that come over a connection until it closes; the main of a process.

    Each job is answered with how many cases the shard has, or with the error of its file.
    """
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    models = models_for(configured, pack)

    def begin(evaluator: int) -> None:
        progress[EVALUATOR] = evaluator
        progress[STEPS] += 1

    while True:
        try:
            job: ShardJob = connection.recv()
        except EOFError:
            return
        try:
            answer: int | OSError = write_scores(
                layout, job.shard, configured, models, job.without, begin
            )
        except OSError as error:
            answer = error
        connection.send(answer)


class EvaluatorTimes:
    """Measures the processor time of each evaluator; what several share is the first one's.

    Args:
        begin: Told what this is told.
    """

    def __init__(self, begin: Begin) -> None:
        self.spent: dict[int, float] = {}
        self._begin = begin
        self._running = NO_EVALUATOR
        self._since = 0.0

    def begin(self, evaluator: int) -> None:
        """Note that an evaluator begins, or none."""
        now = time.process_time()
        if self._running != NO_EVALUATOR:
            self.spent[self._running] = self.spent.get(self._running, 0.0) + now - self._since
        self._running, self._since = evaluator, now
        self._begin(evaluator)


def write_scores(
    layout: Layout,
    shard: int,
    configured: Sequence[Configured],
    models: PackModels,
    without: Collection[str] = (),
    begin: Begin = _unwatched,
) -> int:
    """Score one shard, write its files and return how many cases it has; the rest is `score`'s."""
    cases = list(read_cases(layout.cases(shard)))
    watch = EvaluatorTimes(begin)
    results = score(cases, configured, models, without, watch.begin)
    spent = {configured[number].id: seconds for number, seconds in sorted(watch.spent.items())}
    tallies = RunTallies(configured)
    for index, case in cases:
        tallies.add(ScoredCase(index, case, results[index]))
    write_json(layout.times(shard), {"cases": len(cases), "cpu_s": spent})
    write_json(layout.tallies(shard), tallies.as_json())
    with whole_file(layout.scores(shard)) as stream:
        for index, case in cases:
            found = {key: result_json(result) for key, result in results[index].items()}
            stream.write(dumps({"index": index, "key": case.key, "results": found}) + "\n")
    return len(cases)


def score(
    cases: Iterable[tuple[int, Case]],
    configured: Sequence[Configured],
    models: PackModels,
    without: Collection[str] = (),
    begin: Begin = _unwatched,
) -> dict[int, dict[str, Result]]:
    """Return every evaluator's result on every case, by the case's place in the lab.

    Question by question, so that a question's passages are encoded once for all its answers.

    Args:
        cases: With their places in the lab.
        configured: What runs.
        models: What can be asked.
        without: Evaluators that do not run, as they hung on these cases.
        begin: Told before each step.
    """
    with _collecting_new():
        return _score(cases, configured, models, without, begin)


@contextmanager
def _collecting_new() -> Iterator[None]:
    """Let the garbage collector pass over what is there already, and look at the rest seldom.

    Models, catalogue and patterns stay, and a row makes thousands of objects that hold no cycle.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


_OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""A few megabytes; CPython looks every 700."""


def _score(
    cases: Iterable[tuple[int, Case]],
    configured: Sequence[Configured],
    models: PackModels,
    without: Collection[str],
    begin: Begin,
) -> dict[int, dict[str, Result]]:
    found: dict[int, dict[str, Result]] = {}
    served = None if models.text_vectors is None else ModelsWithVectors(models, models.text_vectors)
    for group in by_group(cases):
        together = [case for _, case in group]
        views = [CaseView(case, models, together) for case in together]
        compared = [CaseView(case, served, together) for case in together] if served else views
        places = [index for index, _ in group]
        found |= {place: {} for place in places}
        for number, one in enumerate(configured):
            begin(number)
            seen = views if one.embeddings is None else compared
            results = _evaluate(one, places, seen, hung=one.id in without)
            for place, result in zip(places, results, strict=True):
                found[place][one.id] = result
    begin(NO_EVALUATOR)
    return found


def _evaluate(
    one: Configured, places: Sequence[int], views: Sequence[CaseView], *, hung: bool
) -> list[Result]:
    spec = one.evaluator.spec
    reason = unmet(spec, views[0].models)
    if reason is not None:
        return [Result.missing(spec.keys, State.NOT_EVALUATED, reason)] * len(views)
    if hung:
        return [Result.missing(spec.keys, State.ERROR, TIMED_OUT)] * len(views)
    limit = one.common.max_dataset_rows
    inside = [limit is None or place < limit for place in places]
    wanted = [view for view, is_inside in zip(views, inside, strict=True) if is_inside]
    judged = iter(one.evaluator.evaluate(wanted, one.parameters))
    beyond = Result.missing(spec.keys, State.NOT_EVALUATED, BEYOND)
    results = [next(judged) if is_inside else beyond for is_inside in inside]
    if one.common.sentence_level_metrics:
        return results
    return [Result(result.scores, (), result.details) for result in results]


def _leave_with_parent() -> None:
    """End this process when the one that started it is gone: nobody would collect its work."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)

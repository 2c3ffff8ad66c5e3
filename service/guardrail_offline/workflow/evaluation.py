"""Step 4: asks the target the validated cases and scores its answers. Steps 8 and 9 ask as here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from guardrail_offline.datasets.cases import Case, Lab, Model, models_of
from guardrail_offline.datasets.h2o_labs import lab_json
from guardrail_offline.datasets.labs import file_sha256, open_lab
from guardrail_offline.evaluators.backends import choice_of
from guardrail_offline.evaluators.configured import Configured, configure
from guardrail_offline.hosts.asking import Journal, ask_cases
from guardrail_offline.hosts.opening import HostChoice
from guardrail_offline.hosts.targets import TargetSystem, open_target
from guardrail_offline.runs.execution import RunOptions, evaluate_lab
from guardrail_offline.runs.shards import write_json
from guardrail_offline.workflow.definition import TargetChoice, refuse_received
from guardrail_offline.workflow.score_table import (
    MetricColumn,
    ScoreTable,
    mean,
    metric_json,
    rate,
    read_table,
)
from guardrail_offline.workflow.step_engine import StepContext, StepOutcome
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Passage

LAB = "lab.json"
RUN = "run"
_JOURNAL = "answers.jsonl"
_TARGET = "workflow.json: target"
_MODEL = "target"
_SHARD_ROWS = 50
_REPORTED = ("leaderboards.json", "problems.json", "summary.json", "flips.json", "cases.jsonl")


def evaluate(context: StepContext) -> StepOutcome:
    """Return the target's scores on the validated cases; the run lies in the step's folder."""
    source = open_lab(context.folder.step_folder("validation") / LAB)
    cases = answered(context, list(source.cases()))
    run = scored(context, cases)
    table = read_table(run)
    count = sum(case.answer is not None for case in cases)
    problems = context.folder.content(f"{context.relative([run])[0]}/problems.json") or []
    return StepOutcome(
        results={
            "scores": {"sha256": table.digest(), "cases": len(cases), "answered": count},
            "metrics": [_figures(column, table) for column in table.columns.values()],
            "target": target_name(context),
            "problems": len(problems),
        },
        inputs={"cases": len(cases)},
        files=run_files(context, run),
        notes=notes(context, cases),
        judge=judged_by(context),
        timings=_seconds(context),
    )


def answered(context: StepContext, cases: Sequence[Case]) -> list[Case]:
    """Return cases with the target's answers, each asked once and kept as it comes.

    Raises:
        ConfigurationError: If there is no target, or questions are left without a reply.
    """
    chosen = context.definition.target
    open_ = [case for case in cases if case.answer is None]
    if not open_:
        return [_of_target(case) for case in cases]
    if chosen is None:
        found = f"none, and {len(open_)} cases without an answer"
        raise ConfigurationError(_TARGET, found, "guardrail workflow edit --target ...")
    if chosen.answers is not None:
        return [_of_target(case) for case in _given(context, chosen.answers, cases)]
    if chosen.contexts:
        cases = [_with_passages(case) for case in cases]
    with context.bars("asking the target") as (begin, advance):
        begin(len(open_))
        asked = ask_cases(
            cases,
            _target(context, chosen),
            Journal(context.own / _JOURNAL),
            concurrency=context.effort.concurrency,
            contexts=chosen.contexts,
            advance=advance,
        )
    if asked.failed:
        told = ", ".join(f"{count} x {code}" for code, count in asked.failed.items())
        found = f"{sum(asked.failed.values())} questions without a reply ({told})"
        raise ConfigurationError(_TARGET, found, "the same command again, which asks only these")
    return [_of_target(case) for case in asked.cases]


def scored(context: StepContext, cases: Sequence[Case]) -> Path:
    """Return the folder of a finished run over cases, in the step's folder.

    A run that was stopped goes on; one of other cases or evaluators is made anew.
    """
    lab = context.own / LAB
    write_lab(lab, cases, context.definition.name)
    configured = evaluators(context)
    described = [file_sha256(lab), [[one.id, one.as_json()] for one in configured]]
    run = context.fresh(RUN, [*described, context.definition.pack])
    with context.bars("scoring") as (begin, advance):
        options = RunOptions(
            run,
            context.definition.pack,
            context.effort.workers,
            _SHARD_ROWS,
            begin=begin,
            advance=advance,
        )
        evaluate_lab(open_lab(lab), configured, options)
    return run


def evaluators(context: StepContext) -> tuple[Configured, ...]:
    """Return the evaluators of step 4, with the judge where it is to be asked.

    Raises:
        ConfigurationError: If one is not known, or needs a judge and there is none.
    """
    chosen = context.definition.parameters("evaluation")
    judge = context.judge()
    backends = choice_of(judge, chosen.judge_for if judge is not None else ())
    return configure(chosen.evaluators, chosen.settings, backends=backends)


def judged_by(context: StepContext) -> str | None:
    """Return the judge of some evaluator in words; None if none has one."""
    judged = any(one.judge is not None for one in evaluators(context))
    return context.judge_name() if judged else None


def notes(context: StepContext, cases: Sequence[Case]) -> list[str]:
    """Return what a reader of a run has to know."""
    found = []
    judged = [one.id for one in evaluators(context) if one.judge is not None]
    if judged:
        found.append(f"{', '.join(judged)} scored by the judge {context.judge_name()}")
    elif context.definition.judge is not None:
        found.append("the judge was asked nothing: evaluation.judge_for names no evaluator")
    if silent := sum(case.answer is None for case in cases):
        found.append(f"{silent} of {len(cases)} cases have no answer")
    return found


def run_files(context: StepContext, run: Path) -> list[str]:
    """Return the files of a run that a step's file names, relative to the workflow's folder."""
    results = sorted((run / "results").glob("*.json"))
    listed = [run / name for name in _REPORTED if (run / name).exists()]
    return context.relative([context.own / LAB, *listed, *results])


def write_lab(path: Path, cases: Sequence[Case], name: str) -> None:
    """Write cases as a test lab, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, lab_json(Lab(tuple(cases), models_of(cases, _models(cases)), name)))


def target_name(context: StepContext) -> dict[str, Any]:
    """Return who was asked, without anything that a key could stand in."""
    chosen = context.definition.target
    if chosen is None:
        return {"answers": "of the cases"}
    return chosen.model_dump(mode="json", exclude={"key_env"}, exclude_none=True)


def _models(cases: Sequence[Case]) -> list[Model]:
    return [Model(_MODEL, name=_MODEL)] if any(case.model == _MODEL for case in cases) else []


def _with_passages(case: Case) -> Case:
    """Return a case with the passages it was made from, where it has no others."""
    if case.contexts is not None or not case.reference_contexts:
        return case
    return replace(case, contexts=tuple(map(Passage, case.reference_contexts)))


def _of_target(case: Case) -> Case:
    """Return a case of the target. How long an answer took is no result: it never comes again."""
    return replace(case, model=case.model or _MODEL, duration_s=None)


def _target(context: StepContext, chosen: TargetChoice) -> TargetSystem:
    refuse_received(context.definition, "target")
    address = chosen.target
    if chosen.template is not None:
        address = str(context.folder.root / chosen.template)
    if address is None:
        raise ConfigurationError(_TARGET, "nothing", "an address, a template or answers")
    choice = HostChoice(address, chosen.kind, chosen.model, chosen.key_env)
    return open_target(choice)


def _given(context: StepContext, name: str, cases: Sequence[Case]) -> list[Case]:
    """Return cases with answers of a file, found by key and else by question."""
    given = [case for case in open_lab(context.folder.root / name).cases() if case.answer]
    by_key = {case.key: case for case in given}
    by_question = {_words(case.question): case for case in reversed(given)}
    found = []
    for case in cases:
        other = by_key.get(case.key)
        if other is None or _words(other.question) != _words(case.question):
            other = by_question.get(_words(case.question))
        if case.answer is None and other is not None:
            contexts = case.contexts if other.contexts is None else other.contexts
            case = replace(case, answer=other.answer, contexts=contexts)
        found.append(case)
    return found


def _words(question: str) -> str:
    return " ".join(question.split()).casefold()


def _figures(column: MetricColumn, table: ScoreTable) -> dict[str, Any]:
    values = column.values[table.units]
    cut, known = column.metric.threshold, ~np.isnan(values)
    reasons = [column.reasons[place] for place in table.units[~known]]
    bad = None if cut is None else int(column.failing(cut)[table.units].sum())
    return {
        **metric_json(column),
        "low": _end(column.metric.low),
        "high": _end(column.metric.high),
        "threshold": cut,
        "origin": column.origin,
        **mean(values),
        "missing": {str(name): reasons.count(name) for name in sorted(set(map(str, reasons)))},
        "failing": None if bad is None else rate(bad, int(known.sum())),
    }


def _end(value: float) -> float | str:
    return value if np.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def _seconds(context: StepContext) -> dict[str, float]:
    """Return how long the target took for an answer, where it was asked now or before."""
    lines = Journal(context.own / _JOURNAL)
    spent = [one.seconds for one in lines.answers() if one.seconds is not None]
    if not spent:
        return {}
    low, high = np.quantile(np.array(spent), [0.5, 0.95])
    return {"answer_median_s": round(float(low), 4), "answer_p95_s": round(float(high), 4)}

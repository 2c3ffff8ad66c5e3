"""Foretells what a run takes: processor time by evaluator, measured on some questions, and a judge.

Cost of a million rows = processor seconds of a row x 1,000,000 / 3,600 x price of a core's hour,
and tokens of a row x 1,000,000 x price of a token for what a judge is asked.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from guardrail_offline.datasets.cases import Case
from guardrail_offline.datasets.labs import LabSource
from guardrail_offline.datasets.sampled_labs import SampleSize, sampled
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.evaluators.result import dumps, result_json
from guardrail_offline.judge.judge_client import open_reader
from guardrail_offline.runs.judge_estimate import estimate
from guardrail_offline.runs.paired import Numbers, ratio_interval
from guardrail_offline.runs.shard_tallies import RunTallies
from guardrail_offline.runs.shards import ScoredCase, by_group
from guardrail_offline.runs.worker import EvaluatorTimes, judge_of, models_for, score

MEASURED = 60
"""Cases that are measured: seconds with all evaluators."""
MILLION = 1_000_000
_HOUR_S = 3600.0


def cost_of_run(
    lab: LabSource,
    configured: Sequence[Configured],
    pack: str,
    *,
    size: SampleSize | None = None,
    core_hour: float | None = None,
) -> dict[str, Any]:
    """Return what a run over a lab takes, by evaluator and together, and so a million rows.

    Questions are drawn by chance and scored in this process; nothing is written and a judge is not
    asked, so what is computed from its answers is not in the processor time. Work that several
    evaluators share counts for the first one.

    Args:
        lab: What would be evaluated.
        configured: What would run.
        pack: Model pack.
        size: The sample that would be judged; None for the whole lab.
        core_hour: Price of an hour of one core; None for no price.
    """
    seed = 0 if size is None else size.seed
    drawn = sampled(lab, SampleSize(MEASURED, seed))
    cases = list(enumerate(drawn.cases()))
    known = drawn.drawn()
    whole = len(cases) if known is None else known.cases
    rows = whole if size is None else min(whole, size.cases)
    without = [one for one in configured if one.judge is None]
    measured = _measured(cases, without, models_for(without, pack))
    judged = _judged(cases, configured)
    prices = _Prices(measured.cases, len(cases), rows, core_hour)
    beside, asked = measured.beside, judged.get("evaluators", {})
    table = {
        one.id: prices.row(measured.spent.get(one.id), asked.get(one.id)) for one in configured
    }
    together = sum(measured.spent.values(), start=beside)
    return {
        "measured": {"cases": int(measured.cases.sum()), "questions": len(measured.cases)},
        "rows": {"lab": whole, "run": rows},
        "core_hour": core_hour,
        "judge": judged.get("judge"),
        "evaluators": table,
        "everything_else": prices.row(beside, None),
        "together": prices.row(together, judged.get("total")),
    }


class _Measured(NamedTuple):
    """Processor seconds of each question: by evaluator and beside them; and its cases."""

    spent: dict[str, Numbers]
    beside: Numbers
    cases: Numbers


def _measured(
    cases: Sequence[tuple[int, Case]], configured: Sequence[Configured], models: PackModels
) -> _Measured:
    """Score question by question.

    The first one is scored once more before: what is loaded on first use is no cost of a row.
    """
    groups = by_group(cases)
    score(groups[0], configured, models)
    spent: dict[str, Numbers] = {one.id: np.zeros(len(groups)) for one in configured}
    beside: Numbers = np.zeros(len(groups))
    for number, group in enumerate(groups[1:] or groups):
        watch, began = EvaluatorTimes(lambda _: None), time.process_time()
        results = score(group, configured, models, (), watch.begin)
        tallies = RunTallies(configured)
        for index, case in group:
            tallies.add(ScoredCase(index, case, results[index]))
            dumps({key: result_json(one) for key, one in results[index].items()})
        beside[number] = time.process_time() - began - sum(watch.spent.values())
        for place, seconds in watch.spent.items():
            spent[configured[place].id][number] = seconds
    used = len(groups[1:] or groups)
    sizes: Numbers = np.array([len(group) for group in groups[1:] or groups], dtype=np.float64)
    return _Measured({name: one[:used] for name, one in spent.items()}, beside[:used], sizes)


class _Prices(NamedTuple):
    """The measured cases of each question, the rows of a run, and the price of an hour."""

    cases: Numbers
    asked_about: int
    rows: int
    core_hour: float | None

    def row(self, seconds: Numbers | None, judged: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return what a row, the run and a million rows take, of one evaluator or all."""
        found: dict[str, Any] = {}
        cost: float | None = None
        if seconds is not None:
            each = float(seconds.sum() / self.cases.sum())
            cost = None if self.core_hour is None else each * MILLION / _HOUR_S * self.core_hour
            found |= {
                "cpu_s_per_row": each,
                "interval": ratio_interval(seconds, self.cases),
                "cpu_hours_of_run": each * self.rows / _HOUR_S,
                "cpu_hours_per_million": each * MILLION / _HOUR_S,
            }
        told = None
        if judged:
            share = MILLION / self.asked_about
            found |= {
                f"{name}_per_million": judged[name] * share
                for name in ("calls", "prompt_tokens", "completion_tokens")
            }
            told = None if judged.get("cost") is None else judged["cost"] * share
        parts = [one for one in (cost, told) if one is not None]
        unknown = (seconds is not None and cost is None) or (judged and told is None)
        found["cost_per_million"] = None if unknown or not parts else sum(parts)
        million = found["cost_per_million"]
        found["cost_of_run"] = None if million is None else million * self.rows / MILLION
        return found


def _judged(cases: Sequence[tuple[int, Case]], configured: Sequence[Configured]) -> dict[str, Any]:
    """Return what `judge estimate` says of the cases; nothing without a judge."""
    settings = judge_of(configured)
    return {} if settings is None else estimate(cases, configured, open_reader(settings))

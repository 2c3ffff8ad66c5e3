"""Asks the judge everything that a run needs before the run is scored, and counts what it took.

Scoring reads the answers from the transcripts and asks nobody: what was asked before is not asked
again, whichever process scores, and the same transcripts give the same bytes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Any

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.judge_forms import JudgeBacked
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.evaluators.result import Result
from guardrail_offline.hosts.chat import ChatHost
from guardrail_offline.judge.judge_client import (
    Judge,
    JudgeUnusable,
    open_judge,
    open_reader,
    open_store,
)
from guardrail_offline.judge.judge_settings import STORE, JudgeSettings
from guardrail_offline.judge.limits import cost_of
from guardrail_offline.judge.results import TokenUsage
from guardrail_offline.runs.shards import Layout, ShardPlan, by_group, read_cases
from guardrail_offline.runs.worker import judge_of
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.provenance import canonical


@dataclass(frozen=True)
class JudgeProgress:
    """The progress of a judge.

    Attributes:
        cases: Asked about so far.
        of: How many there are.
        calls: Made by this run, in earlier attempts, too.
        cost: Of these calls; None without a price.
        stopped: Why nobody is asked any more; None while somebody is.
    """

    cases: int
    of: int
    calls: int
    cost: float | None
    stopped: str | None = None


def with_transcripts(configured: Sequence[Configured], layout: Layout) -> tuple[Configured, ...]:
    """Return evaluators whose judge has a place for transcripts: its own, or one in the folder.

    With the mode `off` they are kept as long as the run needs them.
    """
    found = []
    for one in configured:
        judge = one.judge
        if judge is not None and judge.mode == "off":
            judge = replace(judge, mode="read-write", store=layout.work / STORE)
        elif judge is not None:
            judge = judge.in_folder(layout.out)
        found.append(replace(one, judge=judge))
    return tuple(found)


def manifest_digest(manifest: Mapping[str, Any]) -> str:
    """Return what tells a run from others that share its transcripts."""
    return hashlib.sha256(canonical(manifest)).hexdigest()


class JudgeRun:
    """The asking of one run; nothing at all if no evaluator has a judge.

    Args:
        layout: Where the run lies.
        plan: Its shards.
        configured: Its evaluators, with a place for transcripts.
        run: Its digest, under which it counts what it spends.
        host: Who answers in the place of the judge's address.
    """

    def __init__(
        self,
        layout: Layout,
        plan: ShardPlan,
        configured: Sequence[Configured],
        run: str,
        host: ChatHost | None = None,
    ) -> None:
        self._layout, self._plan, self._run, self._host = layout, plan, run, host
        self._judged = [one for one in configured if one.judge is not None]
        self._settings = judge_of(configured)

    @property
    def is_replay(self) -> bool:
        """Return whether answers come from transcripts alone."""
        return self._settings is not None and self._settings.mode == "replay"

    def ask(self, told: Callable[[JudgeProgress], None] = lambda _: None) -> None:
        """Ask about every case of the shards that have no scores yet.

        Raises:
            JudgeUnusable: If nothing can be asked, or nobody answered at all; what was answered
                before is kept, and the same command goes on.
            ConfigurationError: If address, key or transcripts cannot be used, or an answer to
                replay was erased.
        """
        if self._settings is None:
            return
        if self._settings.mode == "replay":
            self._refuse_redacted(self._settings)
            return
        if self._settings.store is not None:
            self._settings.store.parent.mkdir(parents=True, exist_ok=True)
        judge = open_judge(self._settings, self._run, self._host)
        try:
            ask_about(self._left(), self._judged, judge, self._plan.cases, told)
        finally:
            if judge.store is not None:
                judge.store.close()

    def _refuse_redacted(self, settings: JudgeSettings) -> None:
        """Read what a replay needs, where some of it may be erased.

        Raises:
            ConfigurationError: If some of it is.
        """
        reader = open_reader(settings)
        try:
            if reader.store is not None and reader.store.has_redacted():
                ask_about(self._left(), self._judged, reader, self._plan.cases)
        finally:
            if reader.store is not None:
                reader.store.close()
        if reader.has_met_redacted:
            raise ConfigurationError(
                f"--judge-store {settings.store}",
                "answers that --redact erased, which cannot be replayed",
                "a store that keeps texts, or --judge-mode read-write, which asks again",
            )

    def close(self) -> None:
        """Erase texts that were not to be kept, and transcripts that were not to stay."""
        settings = self._settings
        if settings is None or settings.store is None or settings.mode == "replay":
            return
        if settings.store == self._layout.work / STORE:
            settings.store.unlink(missing_ok=True)
        elif not settings.keep_texts:
            store = open_store(settings)
            if store is not None:
                store.redact()
                store.close()

    def _left(self) -> Iterator[tuple[int, Case]]:
        """Yield the cases of shards without scores, all of one question after each other."""
        for shard in range(self._plan.shards):
            if not self._layout.scores(shard).exists():
                for group in by_group(read_cases(self._layout.cases(shard))):
                    yield from group


def ask_about(
    cases: Iterable[tuple[int, Case]],
    judged: Sequence[Configured],
    judge: Judge,
    of: int,
    told: Callable[[JudgeProgress], None] = lambda _: None,
) -> None:
    """Ask everything that some evaluators need about some cases, several at the same time.

    Args:
        cases: With their places in the lab, all of one question after each other.
        judged: Evaluators with a judge.
        judge: Who is asked.
        of: How many cases there are, for those who are told.
        told: Called after each case.

    Raises:
        JudgeUnusable: If nothing can be asked, or nobody answered at all.
    """
    done, rest = 0, _with_group(cases)
    most = judge.settings.concurrency
    pool = ThreadPoolExecutor(most, "judge")
    asking: set[Future[None]] = set()
    try:
        while True:
            for place, case, group in islice(rest, 2 * most - len(asking)):
                asking.add(pool.submit(_ask_about, place, case, group, judged, judge))
            if not asking:
                return
            finished, asking = wait(asking, return_when=FIRST_COMPLETED)
            for one in finished:
                one.result()
                done += 1
                told(_progress(judge, done, of))
            if judge.stopped is not None and (judge.unusable or not judge.has_answered):
                raise JudgeUnusable(f"the judge cannot be asked: {judge.stopped}")
    finally:
        pool.shutdown(cancel_futures=True)


def _with_group(cases: Iterable[tuple[int, Case]]) -> Iterator[tuple[int, Case, list[Case]]]:
    """Yield each case with all of its question; those stand after each other."""
    for _, found in groupby(cases, key=lambda one: one[1].group):
        numbered = list(found)
        group = [case for _, case in numbered]
        for place, case in numbered:
            yield place, case, group


def _ask_about(
    place: int,
    case: Case,
    group: Sequence[Case],
    judged: Sequence[Configured],
    judge: Judge,
) -> None:
    view = CaseView(case, PackModels({}, judge=judge), group)
    for one in judged:
        limit, evaluator = one.common.max_dataset_rows, one.evaluator
        if isinstance(evaluator, JudgeBacked) and (limit is None or place < limit):
            evaluator.ask_ahead(view, one.parameters)


def _progress(judge: Judge, done: int, of: int) -> JudgeProgress:
    cost = None if judge.settings.price is None else judge.purse.spent
    return JudgeProgress(done, of, judge.calls, cost, judge.stopped)


@dataclass
class _Counts:
    cases: int = 0
    calls: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    why: Counter[str] = field(default_factory=Counter)
    usage: TokenUsage = field(default_factory=TokenUsage)
    seconds: float = 0.0

    def add(self, told: Mapping[str, Any]) -> None:
        """Count what was asked about one case."""
        self.cases += 1
        self.calls += told["calls"]
        self.statuses.update(told["statuses"])
        self.why.update(told.get("why", {}))
        tokens = (told[f"{kind}_tokens"] for kind in ("prompt", "completion", "cached"))
        self.usage += TokenUsage(*tokens)
        self.seconds += told["seconds"]


class JudgeCounts:
    """Calls, tokens and cost of a judge by evaluator: from the results, so that replay agrees.

    An answer that several evaluators read is counted for each of them.
    """

    def __init__(self, configured: Sequence[Configured]) -> None:
        self._settings = judge_of(configured)
        self._counts = {one.id: _Counts() for one in configured if one.judge is not None}

    @property
    def is_judged(self) -> bool:
        """Return whether any evaluator has a judge."""
        return bool(self._counts)

    def add(self, results: Mapping[str, Result]) -> None:
        """Count one case."""
        for name, counts in self._counts.items():
            told = results[name].details.get("judge")
            if told is not None:
                counts.add(told)

    def as_json(self) -> dict[str, Any]:
        """Return the judge, and by evaluator cases, calls, statuses, tokens, seconds and cost."""
        if self._settings is None:
            return {}
        price = self._settings.price
        table = {
            name: {
                "cases": one.cases,
                "calls": one.calls,
                "statuses": dict(sorted(one.statuses.items())),
                "why": dict(sorted(one.why.items())),
                "prompt_tokens": one.usage.prompt,
                "completion_tokens": one.usage.completion,
                "cached_tokens": one.usage.cached,
                "seconds": round(one.seconds, 6),
                "cost": None if price is None else round(cost_of(one.usage, price), 9),
            }
            for name, one in self._counts.items()
        }
        return {"judge": self._settings.as_json(), "evaluators": table}

"""Lets the workers of a cluster ask one judge: one actor holds transcripts and limits for all.

It lives where the run's folder lies. Whatever a worker asks is kept there first, and copied beside
the shard that is scored, so a worker that is lost costs no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.judge.judge_client import Judge, open_host, open_reader
from guardrail_offline.judge.judge_settings import STORE, JudgeSettings
from guardrail_offline.judge.judge_tasks import Task
from guardrail_offline.judge.limits import JudgeLimits, limits_of
from guardrail_offline.judge.results import JudgeResult, TokenUsage
from guardrail_offline.judge.transcripts import TranscriptStore
from guardrail_offline.runs.judge_runs import ask_about


class Spending(NamedTuple):
    """The calls of a run so far, and their cost where there is a price."""

    calls: int
    cost: float


class JudgeOffice:
    """The only one that writes transcripts and counts; an actor, whose methods are short.

    An office that is lost begins again with what its file says was spent, and an empty minute.

    Args:
        settings: Of the judge, with the place of its transcripts.
        run: Digest of the run that is counted.
    """

    def __init__(self, settings: JudgeSettings, run: str) -> None:
        if settings.store is None:
            raise AssertionError("a run keeps transcripts")
        is_replay = settings.mode == "replay"
        if not is_replay:
            settings.store.parent.mkdir(parents=True, exist_ok=True)
        self._store = TranscriptStore(
            settings.store, read_only=is_replay, keep_texts=settings.keep_texts
        )
        self._settings, self._run = settings, run
        _, usage = self._store.spent(run, settings.model)
        self._limits = limits_of(settings, usage, sleep=self._no_sleep)
        self._wait = 0.0

    def _no_sleep(self, seconds: float) -> None:
        """Note how long the worker that asks has to wait: the office itself waits for nobody."""
        self._wait = seconds

    def kept(self, method: str, *values: Any, **more: Any) -> Any:
        """Do something with the transcripts."""
        return getattr(self._store, method)(*values, **more)

    def wait_for(self, what: str, amount: float) -> float:
        """Return how long to wait before so much `requests` or `tokens` may begin."""
        self._wait = 0.0
        bucket = self._limits.requests if what == "requests" else self._limits.tokens
        bucket.take(amount)
        return self._wait

    def lay_aside(self, most: TokenUsage) -> float | None:
        """Return the cost of a call at most; None if the budget does not allow for it."""
        return self._limits.purse.lay_aside(most)

    def settle(self, aside: float, usage: TokenUsage) -> None:
        """Count what a call has cost in the place of what was laid aside."""
        self._limits.purse.settle(aside, usage)

    def note(self, answered: bool) -> None:
        """Count one try."""
        self._limits.breaker.note(answered=answered)

    def tries(self) -> tuple[bool, bool]:
        """Return whether nobody is to be asked any more, and whether any try was answered."""
        return self._limits.breaker.is_open, self._limits.breaker.succeeded

    def spent(self) -> Spending:
        """Return what the run has taken so far."""
        calls, _ = self._store.spent(self._run, self._settings.model)
        return Spending(calls, self._limits.purse.spent)


class OfficeCalls:
    """Calls the office from a worker and waits for what it says.

    Args:
        office: The handle of the actor.
    """

    def __init__(self, office: Any) -> None:
        self._office = office

    def __call__(self, method: str, *values: Any, **more: Any) -> Any:
        """Return what the office answers."""
        import ray

        return ray.get(getattr(self._office, method).remote(*values, **more))


class OfficeStore:
    """Transcripts of the office; what is read or written is in a local file, too.

    Args:
        office: Who has them.
        local: The file beside the shard.
    """

    def __init__(self, office: OfficeCalls, local: TranscriptStore) -> None:
        self._office, self._local = office, local

    def get(self, key: str) -> JudgeResult | None:
        """Return what became of a question before; None if it was not asked, or is redacted."""
        record = self._office("kept", "record", key)
        if record is None:
            return None
        self._local.keep(record)
        return self._local.get(key)

    def put(
        self,
        key: str,
        task: Task,
        messages: list[dict[str, Any]],
        vote: int,
        result: JudgeResult,
        *,
        again: bool = False,
    ) -> JudgeResult:
        """Keep what became of a question; return what the office has."""
        found: JudgeResult = self._office(
            "kept", "put", key, task, messages, vote, result, again=again
        )
        self._local.keep(self._office("kept", "record", key))
        return found

    def is_redacted(self, key: str) -> bool:
        """Return whether a question was answered, and the answer erased."""
        return bool(self._office("kept", "is_redacted", key))

    def mark(self, key: str) -> str:
        """Return the mark that stands around the data of a question."""
        return str(self._office("kept", "mark", key))

    def note(self, name: str, value: str) -> None:
        """Remember something about an endpoint."""
        self._office("kept", "note", name, value)

    def noted(self, name: str) -> str | None:
        """Return what was remembered."""
        found: str | None = self._office("kept", "noted", name)
        return found

    def spend(self, run: str, model: str, usage: TokenUsage) -> None:
        """Add one call to what a run has cost."""
        self._office("kept", "spend", run, model, usage)

    def spent(self, run: str, model: str) -> tuple[int, TokenUsage]:
        """Return the calls and tokens of a run so far."""
        found: tuple[int, TokenUsage] = self._office("kept", "spent", run, model)
        return found


class _OfficeLimits:
    """Purse, pace and breaker of the office, as a judge of one worker asks them."""

    def __init__(self, office: OfficeCalls, what: str = "", sleep: Any = None) -> None:
        self._office, self._what, self._sleep = office, what, sleep

    @property
    def spent(self) -> float:
        return float(self._office("spent").cost)

    def lay_aside(self, most: TokenUsage) -> float | None:
        found: float | None = self._office("lay_aside", most)
        return found

    def settle(self, aside: float, usage: TokenUsage) -> None:
        self._office("settle", aside, usage)

    def take(self, amount: float) -> None:
        seconds = float(self._office("wait_for", self._what, amount))
        if seconds > 0:
            self._sleep(seconds)

    @property
    def is_open(self) -> bool:
        return bool(self._office("tries")[0])

    @property
    def succeeded(self) -> bool:
        return bool(self._office("tries")[1])

    def note(self, *, answered: bool) -> None:
        self._office("note", answered)


class ShardAsking:
    """Asks the judge about one shard after another, and keeps the answers beside them.

    Args:
        configured: What runs.
        settings: Of the judge.
        folder: Of the worker; its transcripts lie there.
        office: The handle of the actor that holds transcripts and limits.
        run: Digest of the run that is counted.
    """

    def __init__(
        self,
        configured: Sequence[Configured],
        settings: JudgeSettings,
        folder: Path,
        office: Any,
        run: str,
    ) -> None:
        import time

        self._judged = [one for one in configured if one.judge is not None]
        self._local = replace(settings, mode="replay", store=folder / STORE)
        mine = TranscriptStore(folder / STORE)
        asked = OfficeCalls(office)
        limits = JudgeLimits(
            _OfficeLimits(asked),
            _OfficeLimits(asked, "requests", time.sleep),
            _OfficeLimits(asked, "tokens", time.sleep),
            _OfficeLimits(asked),
        )
        is_replay = settings.mode == "replay"
        host = open_reader(replace(settings, store=None)).host if is_replay else open_host(settings)
        store: Any = OfficeStore(asked, mine)  # all that a judge that asks needs of a store
        self._judge = Judge(host, settings, store, run, limits=limits)

    def from_transcripts(self, configured: Sequence[Configured]) -> tuple[Configured, ...]:
        """Return evaluators that read the answers beside the shards."""
        return tuple(
            replace(one, judge=one.judge and replace(self._local, ask_again=one.judge.ask_again))
            for one in configured
        )

    def ask(self, cases: Sequence[tuple[int, Case]]) -> None:
        """Ask everything about the cases of a shard.

        Raises:
            JudgeUnusable: If nothing can be asked, or nobody answered at all.
        """
        ask_about(cases, self._judged, self._judge, len(cases))

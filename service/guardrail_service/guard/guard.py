"""One sample in, one verdict out. The only orchestration: API, client and offline runs use it."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from guardrail_service.detectors.registry import Registry
from guardrail_service.errors import (
    Cancelled,
    LimitExceeded,
    NotReady,
    OutOfTime,
    PolicyRefused,
    UnknownPolicy,
    choices,
)
from guardrail_service.guard.check import Check, CheckClock, redact
from guardrail_service.guard.overrides import Override, overridden
from guardrail_service.guard.shadow import CheckedSample
from guardrail_service.guard.waiting import Cancellation, Turn, Turns
from guardrail_service.inference.queue.cost import BACKGROUND_S, QueuePlace, Urgency, place_of
from guardrail_service.inference.queue.scheduler import Scheduler
from guardrail_service.policy.decide import Decided, Policy, decide, findings
from guardrail_service.policy.served import PolicySet
from guardrail_service.text.budget import (
    FREE_S,
    LARGE_LOOK_S,
    LOOK_S,
    Budget,
    check_time,
    spending,
)
from guardrail_service.text.sample import SegmentedSample, Windower
from guardrail_service.types import (
    CALLER,
    IDENTITY,
    Action,
    Mode,
    Outcome,
    Passage,
    Role,
    Row,
    Sample,
    Verdict,
)

ROWS_TIMES = 6
"""By default model rows have two minutes; of 22 kinds of hard answers of 100,000 characters the
longest took 69 s of processor time."""
WARM_AT_ONCE = 256
"""Texts queued at a time: fewer than the encoder's memory holds, so that what reads its states
finds them there."""


class Warmed(NamedTuple):
    """The numbers of distinct sentences that were new, known already, or failed."""

    new: int
    known: int
    failed: int


class Guard:
    """Judges samples under named policies.

    Attributes:
        served: All policies; to set another set is the whole of a switch. A check ends on the
            policy that it began with.
        turns: Which checks compute; `close` lets those that wait go on to where they end.

    Args:
        policies: By name, or a whole set of them; the first is used where a request names none.
        registry: Where the policies' detectors are found.
        scheduler: Runs model rows.
        windowers: How each role's model counts tokens.
        languages: Languages each role's model reads.
        max_sentences: Sentences of answer and passages together that one sample may have.
        default_policy: Which policy requests mean that name none; None: the first.
        cpu_s: Seconds of processor time that each half of a check may take on its thread: cutting
            and tokenising, then looking for patterns and deciding. More is as if it were late. Its
            model rows may take `ROWS_TIMES` as long on their workers' threads.
        warming: What makes of a passage's text the rows that compute ahead what models need of it.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy] | PolicySet,
        registry: Registry,
        scheduler: Scheduler,
        windowers: Mapping[Role, Windower],
        languages: Mapping[Role, frozenset[str]],
        max_sentences: int,
        default_policy: str | None = None,
        warming: Sequence[Callable[[str], Row]] = (),
        cpu_s: float = math.inf,
    ) -> None:
        self.served = policies if isinstance(policies, PolicySet) else PolicySet(dict(policies))
        self.default_policy = default_policy or next(iter(self.served.live))
        self._registry = registry
        self._scheduler = scheduler
        self._windowers = dict(windowers)
        self._languages = dict(languages)
        self._max_sentences = max_sentences
        self._warming = tuple(warming)
        self._cpu_s = cpu_s
        self.turns = Turns(shares=scheduler.shares)

    @property
    def policies(self) -> Mapping[str, Policy]:
        """Return the live policies by name."""
        return self.served.live

    def in_force(self, name: str, sha256: str) -> Policy | None:
        """Return a loaded policy by its name and hash."""
        found = (p for p in self.served.all() if p.name == name and p.sha256 == sha256)
        return next(found, None)

    def check(
        self,
        sample: Sample,
        policy: str | None = None,
        overrides: Mapping[str, Override] | None = None,
        deadline_ms: float | None = None,
        mode: Mode = "enforce",
        cancellation: Cancellation | None = None,
        arrived: float | None = None,
        served: PolicySet | None = None,
    ) -> Verdict:
        """Return the verdict on one sample. Blocks its thread until done, due or cancelled.

        Args:
            sample: The answer to judge.
            policy: Name of a loaded policy; None takes the default one.
            overrides: Changes this request makes, by detector id.
            deadline_ms: Reply after this long with what is known; None takes the policy's own
                deadline, infinity waits for everything.
            mode: `shadow` reports the decision and always allows.
            cancellation: Lets the caller drop the check.
            arrived: Monotonic second from which the deadline counts; None: now.
            served: The policies when its request began; None: those of now.

        Raises:
            InputError: If the sample or the overrides cannot be judged as they are.
            Overloaded: If other requests' rows fill the queue or make the deadline impossible.
            Cancelled: If the caller left.
            NotReady: If the service shut down first.
        """
        served = served or self.served
        rules = self.policy_for(policy, overrides or {}, served)
        return self.judge(rules, sample, deadline_ms, mode, cancellation, arrived, served)

    def judge(
        self,
        rules: Policy,
        sample: Sample,
        deadline_ms: float | None = None,
        mode: Mode = "enforce",
        cancellation: Cancellation | None = None,
        arrived: float | None = None,
        served: PolicySet | None = None,
    ) -> Verdict:
        """Return the verdict under a policy at hand, such as the part of one that runs in flight.

        `served` are the policies that it is one of, and that have its shadows; None: those of now.

        Raises:
            InputError: If the sample cannot be judged as it is.
            Overloaded: If other requests' rows fill the queue or make the deadline impossible.
            Cancelled: If the caller left.
            NotReady: If the service shut down first.
        """
        served = served or self.served
        clock = CheckClock.since(arrived)
        cancellation = cancellation or Cancellation()
        due = _due(rules, deadline_ms, clock.monotonic)
        costs = self._scheduler.costs
        chars = size(sample)
        cost_ms = costs.estimate(CHECK, chars)
        place = place_of(Urgency(due, caller=CALLER.get()), clock.monotonic, cost_ms)
        is_large = chars > SMALL_CHARS and costs.estimate(TEXT, chars) > LARGE_MS
        with self._turn(place, due, cancellation) as turn:
            working_ms = time.thread_time() * -1e3
            segmented = SegmentedSample(sample, self._windowers, self._languages)
            free_s, look_s = (0.0, LARGE_LOOK_S) if is_large else (FREE_S, LOOK_S)
            budget = partial(Budget, due, self._cpu_s, free_s, turn.give_way, look_s)
            rows_s = ROWS_TIMES * self._cpu_s
            check = Check(rules, segmented, self._registry, turn, due, clock, budget, rows_s)
            if self._is_cut(segmented, budget()):
                check.submit(self._scheduler, cancellation, place)
            else:
                check.give_up()
            outcomes = check.outcomes()
            working_ms += time.thread_time() * 1e3
            self._learn(size(sample), check, working_ms)
            decided = decide(rules, outcomes, mode)
            results = {name: check.timed(name, result) for name, result in decided.results.items()}
            spans = findings(rules, results, Action.FLAG)
            return Verdict(
                decision=decided.decision,
                action=decided.action,
                status=decided.status,
                calibrated=decided.calibrated,
                policy=rules.ref,
                detectors=results,
                timings=check.timings(),
                redacted_answer=redact(sample.answer, spans),
                summary=decided.summary,
                flagged=decided.flagged,
                judged=_for_shadows(served, rules, segmented, outcomes, check),
            )

    def beside(self, policy: Policy, judged: CheckedSample) -> Decided:
        """Return what another policy says of a sample. Blocks; gives way to every check.

        Detectors that it shares with the one that decided are not asked again, and no row is run
        again; without a deadline, since nobody waits.

        Raises:
            Overloaded: If other requests' rows fill the queue.
            NotReady: If the service is shutting down.
        """
        outcomes = judged.shared(policy)
        left = {name: rule for name, rule in policy.rules.items() if name not in outcomes}
        if left:
            now, cancellation = time.monotonic(), Cancellation()
            place = place_of(Urgency(patience_s=BACKGROUND_S, caller=CALLER.get()), now)
            part = dataclasses.replace(policy, rules=left)
            with self._turn(place, None, cancellation) as turn:
                budget = partial(Budget, None, self._cpu_s, FREE_S, turn.give_way, LOOK_S)
                clock, rows_s = CheckClock.since(None), ROWS_TIMES * self._cpu_s
                given = (part, judged.sample, self._registry, turn, None, clock, budget, rows_s)
                check = Check(*given, judged.rows())
                check.submit(self._scheduler, cancellation, place)
                outcomes |= check.outcomes()
        return decide(policy, outcomes)

    def warm(self, contexts: Sequence[Passage], cancellation: Cancellation) -> Warmed:
        """Compute ahead what models need of passages. Blocks; gives way to every check.

        Raises:
            InputError: If there are too many sentences.
            Overloaded: If other requests' rows fill the queue.
            Cancelled: If the caller left.
            NotReady: If the service shut down first.
        """
        urgency = Urgency(patience_s=BACKGROUND_S, caller=CALLER.get())
        with self._turn(place_of(urgency, time.monotonic()), None, cancellation):
            given = Sample("", contexts=tuple(contexts))
            sample = SegmentedSample(given, self._windowers, self._languages)
            self._limit_sentences(sample)
            found = sample.context_windows("embedding") if self._warming else ()
        texts = list(dict.fromkeys(window.text for windows in found for window in windows))
        parts = [
            self._warm(texts[start : start + WARM_AT_ONCE], cancellation)
            for start in range(0, len(texts), WARM_AT_ONCE)
        ]
        return Warmed(*(sum(part[n] for part in parts) for n in range(3)))

    def _warm(self, texts: Sequence[str], cancellation: Cancellation) -> Warmed:
        rows = [row(text) for row in self._warming for text in texts]
        ticket = self._scheduler.submit(rows, owner=cancellation.owner, patience_s=BACKGROUND_S)
        cancellation.attach(ticket)
        ticket.wait()
        if any(future.cancelled() for future in ticket.futures):
            if cancellation.cancelled:
                raise Cancelled("the caller left")
            raise NotReady("the service is shutting down")
        pairs = list(zip(rows, ticket.futures, strict=True))
        failed = {row.text for row, future in pairs if future.exception() is not None}
        new = {row.text for row, f in pairs if row.text not in failed and f.result().inference_ms}
        return Warmed(len(new), len(texts) - len(new) - len(failed), len(failed))

    def expect(
        self,
        sample_size: int,
        policy: str | None,
        deadline_ms: float | None,
        arrived: float,
        owner: object,
    ) -> None:
        """Refuse, before anything is read, a check that others' work makes impossible in time.

        Args:
            sample_size: See `size`.
            policy: Name of a loaded policy; an unknown one is refused later.
            deadline_ms: As for `check`.
            arrived: Monotonic second from which the deadline counts.
            owner: Whose check it is; `Scheduler.forget` ends the expectation.

        Raises:
            Overloaded: If it cannot be done in time and could be on an idle service.
        """
        rules = _found(self.served, self._meant(policy))
        due = None if rules is None else _due(rules, deadline_ms, arrived)
        self._scheduler.expect(self._scheduler.costs.estimate(CHECK, sample_size), due, owner)

    def policy_for(
        self,
        name: str | None,
        overrides: Mapping[str, Override],
        served: PolicySet | None = None,
    ) -> Policy:
        """Return a loaded policy, of `served` or of the present ones, with a request's changes.

        Raises:
            UnknownPolicy: If no such policy is loaded; the message lists those that are.
            PolicyRefused: If the caller's key may not use it.
            InputError: If an override names what the policy does not run, or does not fit.
        """
        meant, caller = self._meant(name), IDENTITY.get()
        if caller.policies is not None and not caller.may_use(meant):
            expected = choices(meant, caller.policies, "policy")
            raise PolicyRefused(f"policy: this key may not use it; expected {expected}")
        policy = _found(served or self.served, meant)
        if policy is None:
            known = [other for other in sorted(self.served.names()) if self.is_shown(other)]
            expected = choices(meant, known, "policy", "GET /v1/policies")
            raise UnknownPolicy(f"not loaded; expected {expected}", "policy")
        for detector, override in overrides.items():
            rule = overridden(policy, detector, override, self._registry, caller.overrides)
            policy = policy.with_rule(rule)
        return policy

    def is_shown(self, name: str) -> bool:
        """Return whether the caller may know of a policy."""
        return IDENTITY.get().may_use(name)

    def _meant(self, name: str | None) -> str:
        """Return the policy that a request means: the default one unless its key has another."""
        if name is not None:
            return name
        own = IDENTITY.get().policies
        if own is None or self.is_shown(self.default_policy):
            return self.default_policy
        return own[0].removesuffix("@*")

    @contextmanager
    def _turn(
        self, place: QueuePlace, due: float | None, cancellation: Cancellation
    ) -> Iterator[Turn]:
        turn = self.turns.turn(place, due)
        cancellation.attach(turn)
        with turn:
            if cancellation.cancelled:
                raise Cancelled("the caller left")
            if self.turns.is_closed:
                raise NotReady("the service is shutting down")
            yield turn

    def _learn(self, sample_size: int, check: Check, working_ms: float) -> None:
        """Note what a check took; what the time ended would have taken more than that."""
        costs = self._scheduler.costs
        for kind, spent_ms in ((CHECK, check.cost_ms + working_ms), (TEXT, working_ms)):
            if not check.was_ended or spent_ms > costs.estimate(kind, sample_size):
                costs.learn(kind, sample_size, spent_ms)

    def _is_cut(self, segmented: SegmentedSample, budget: Budget) -> bool:
        """Return whether a sample could be cut into sentences in the time that it has.

        Raises:
            LimitExceeded: If there are too many.
        """
        try:
            with spending(budget):
                check_time()  # a huge text whose turn came too late is not looked at
                self._limit_sentences(segmented)
        except OutOfTime:
            return False
        return True

    def _limit_sentences(self, segmented: SegmentedSample) -> None:
        sample = segmented.sample
        count = segmented.sentence_count()
        if count > self._max_sentences:
            raise LimitExceeded(
                f"answer and passages have {count} sentences; expected at most "
                f"{self._max_sentences}",
                "contexts" if sample.contexts else "answer",
            )


CHECK = "check"
"""Kind of work under which the cost model learns whole checks: model rows and everything else."""
TEXT = "text"
"""The same without model rows: cutting, languages, tokens and patterns."""
SMALL_CHARS = 4_000
"""Code points of samples that are not large, whatever texts took lately."""
LARGE_MS = 150.0
"""Processor time that the text of an ordinary check does not take, and above which a check gets
nothing more when it is late: three times `FREE_S`."""
FIRST_CHECKS: Mapping[str, Sequence[tuple[int, float]]] = {
    CHECK: ((1_300, 90.0), (34_000, 1_600.0)),
    TEXT: ((1_300, 8.0), (34_000, 120.0)),
}
"""Code points and milliseconds of a short chat answer and a long report, each over passages that
are new, as in docs/performance.md: what is expected of checks until some have run here."""


def _found(served: PolicySet, name: str) -> Policy | None:
    """Return what a name means for the caller of this context."""
    if served.canaries:
        return served.find(name, CALLER.get())
    return served.live.get(name) or served.pinned.get(name)


def size(sample: Sample) -> int:
    """Return the code points of a sample, by which the cost of a check is estimated."""
    passages = sum(len(passage.text) for passage in sample.contexts)
    return len(sample.answer) + len(sample.question or "") + passages


def _due(policy: Policy, deadline_ms: float | None, start: float) -> float | None:
    """Return the monotonic second at which the reply must leave; None: when it is complete."""
    budget = policy.deadline_ms if deadline_ms is None else deadline_ms
    return None if budget is None or math.isinf(budget) else start + budget / 1e3


def _for_shadows(
    served: PolicySet,
    rules: Policy,
    sample: SegmentedSample,
    outcomes: Mapping[str, Outcome],
    check: Check,
) -> CheckedSample | None:
    """Return what shadows need; None: there are none, or these are not a policy's own rules."""
    if not served.shadows or not (shadows := served.shadows.get(rules.name)):
        return None
    others = tuple(policy for policy in shadows if policy is not rules)
    trial = served.canaries.get(rules.name)
    is_whole = rules is served.live[rules.name] or (trial and rules is trial.policy)
    return CheckedSample(rules, others, sample, outcomes, check) if others and is_whole else None

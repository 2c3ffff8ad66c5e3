"""Records of decisions, and what the service expects of a store of them. Imports no database.

A store is opened by the entry point of the group `rag_guardrail.decision_stores` whose name is the
scheme of `GUARDRAIL_DECISIONS_URL`. Without that setting nothing here is imported.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import uuid4

from prometheus_client.registry import Collector

from guardrail_service.errors import ConfigurationError, NotRecorded
from guardrail_service.plugins import DECISION_STORES, installed, load
from guardrail_service.policy.provenance import sha256_of
from guardrail_service.types import IDENTITY

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from guardrail_service.guard.shadow import ShadowVerdict
    from guardrail_service.policy.decide import Policy, Rule
    from guardrail_service.server.schemas import CheckRequest, FeedbackRequest
    from guardrail_service.settings import DecisionSettings, Settings
    from guardrail_service.types import DetectorResult, Sample, Timings, Verdict

Mark = Literal["pass", "fail", "abstain"]
"""A person's word on an answer, as `guardrail calibrate` reads it."""


@dataclass(frozen=True, slots=True)
class ShadowDecision:
    """The word of a policy that judged the same rows and decided nothing."""

    policy: str
    policy_version: str
    policy_hash: str
    decision: str
    flagged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One judged sample.

    Attributes:
        request_id: As it is in the reply; callers may choose it, so it need not be unique.
        item: Place among the samples of one request, from 0.
        record_id: Unique; a record that is offered twice is stored once.
        time: In UTC.
        caller: Id of the key, or `anonymous`.
        route: `check`, `batch`, `stream`, or the name of a dialect.
        policy_hash: SHA-256 of the guardrail file.
        action: The word of the reply: `allow`, `mark`, `flag`, `redact` or `block`.
        detectors: Every outcome, with scores as they were compared.
        options: By detector, the first 16 hexadecimal digits of the hash of its parameters; a
            detector whose parameters the request changed is missing.
        fingerprints: What the scores depend on.
        deadline_ms: Asked for by the request; None: the policy's own.
        share: Probability with which such a decision is stored, in (0, 1].
        question: None where there was none. How much of the texts is kept is the store's setting.
        redacted_answer: The answer without what the policy withheld.
    """

    request_id: str
    time: datetime
    caller: str
    route: str
    policy: str
    policy_version: str
    policy_hash: str
    decision: str
    action: str
    status: str
    detectors: Mapping[str, DetectorResult]
    timings: Timings
    question: str | None
    answer: str
    contexts: tuple[str, ...]
    item: int = 0
    record_id: str = field(default_factory=lambda: uuid4().hex)
    options: Mapping[str, str] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    deadline_ms: float | None = None
    shadow: tuple[ShadowDecision, ...] = ()
    share: float = 1.0
    redacted_answer: str | None = None


@dataclass(frozen=True, slots=True)
class Feedback:
    """A person's word on a stored decision.

    Attributes:
        request_id: That of the decision.
        item: Which sample of the request; None: its only one.
        comment: Kept as the texts are.
        caller: Who said it.
        metric: What it speaks of; None: the whole answer.
        record_id: Exactly this decision; None: the latest with the request id.
        draw: The drawn sample in which the decision was labelled; None: none.
        only_own: Whether only decisions of this caller's own requests are found.
    """

    request_id: str
    label: Mark
    caller: str
    comment: str | None = None
    item: int | None = None
    metric: str | None = None
    draw: str | None = None
    record_id: str | None = None
    only_own: bool = False
    time: datetime = field(default_factory=lambda: datetime.now(UTC))


FeedbackState = Literal["stored", "known", "unknown", "ambiguous"]
"""New; said before; no such decision; several decisions have that request id."""


class DecisionStore(Protocol):
    """Keeps decisions. Every method may be called from any thread.

    Attributes:
        required: Whether an answer may leave only when its decision is durable.
    """

    required: bool

    def offer(self, record: DecisionRecord) -> bool:
        """Take a record for writing and return at once; False: there is no room, it is lost."""

    def keep(self, record: DecisionRecord) -> bool:
        """Return whether a record is durable; waits for it."""

    def add_feedback(self, feedback: Feedback) -> FeedbackState:
        """Return what became of a word; waits until it is durable.

        Raises:
            NotRecorded: If the store cannot be reached.
        """

    def serving(self, policies: Collection[Policy]) -> None:
        """Note policies that are in force from now on, with what was promised of them."""

    def figures(self) -> Iterable[Metric]:
        """Return what `/metrics` shows of the store."""

    def problem(self) -> str | None:
        """Return what is wrong with the store right now, without names or texts; None: nothing."""

    def close(self, timeout_s: float) -> None:
        """Write what waits, for at most so many seconds, and close."""


StoreFactory = Callable[["DecisionSettings"], DecisionStore]
"""What an entry point of `rag_guardrail.decision_stores` loads to."""


def open_store(settings: DecisionSettings) -> DecisionStore:
    """Return the store that the settings name.

    Raises:
        ConfigurationError: If nothing that is installed opens it, or it cannot be used.
    """
    return store_factory(settings)(settings)


def store_factory(settings: DecisionSettings) -> StoreFactory:
    """Return what opens the store that the settings name.

    Raises:
        ConfigurationError: If nothing that is installed does.
    """
    url = settings.url.get_secret_value() if settings.url is not None else ""
    scheme = url.partition(":")[0].partition("+")[0]
    known = installed(DECISION_STORES)
    if scheme not in known:
        expected = " or ".join(f"{name}:" for name in known) or (
            "an installed store (pip install 'rag-guardrail[store]')"
        )
        raise ConfigurationError("GUARDRAIL_DECISIONS_URL", "another scheme", expected)
    factory: StoreFactory = load(DECISION_STORES, scheme)
    return factory


class Recorder(Collector):
    """Makes records of verdicts and offers them to a store; also shows its figures.

    Args:
        store: Where they go.
        settings: How large a share of the answers that pass is stored.
        fingerprints: What scores depend on.
        find: Returns a policy that is in force by its name and hash.
    """

    def __init__(
        self,
        store: DecisionStore,
        settings: DecisionSettings,
        fingerprints: Mapping[str, str],
        find: Callable[[str, str], Policy | None],
    ) -> None:
        self.store = store
        self._share = settings.share
        self._fingerprints = fingerprints
        self._find = find
        self._noted: set[str] = set()
        self._options: dict[tuple[str, str], str] = {}
        self._random = random.SystemRandom()

    def keep(
        self,
        verdict: Verdict,
        sample: Sample,
        request: CheckRequest,
        request_id: str,
        route: str,
        item: int = 0,
        shadow: Sequence[ShadowVerdict] = (),
    ) -> None:
        """Offer one judged sample; where a record is required, wait until it is durable.

        `shadow` is what other policies said of it.

        Raises:
            NotRecorded: If a record is required and cannot be kept.
        """
        share = self._share if verdict.decision == "pass" else 1.0
        if share < 1.0 and self._random.random() >= share:
            return
        policy = verdict.policy
        record = DecisionRecord(
            request_id=request_id,
            item=item,
            time=datetime.now(UTC),
            caller=IDENTITY.get().id,
            route=route,
            policy=policy.name,
            policy_version=policy.version,
            policy_hash=policy.sha256,
            decision=verdict.decision,
            action=verdict.action.label,
            status=verdict.status,
            detectors=verdict.detectors,
            timings=verdict.timings,
            question=sample.question,
            answer=sample.answer,
            contexts=tuple(passage.text for passage in sample.contexts),
            options=self._options_of(policy.name, policy.sha256, request),
            fingerprints=self._fingerprints,
            deadline_ms=request.deadline_ms,
            share=share,
            redacted_answer=verdict.redacted_answer,
            shadow=tuple(
                ShadowDecision(
                    one.policy.name,
                    one.policy.version,
                    one.policy.sha256,
                    one.decision,
                    one.flagged,
                )
                for one in shadow
            ),
        )
        if self.store.required:
            if not self.store.keep(record):
                raise NotRecorded("the decision could not be recorded; try again later")
        else:
            self.store.offer(record)

    def say(self, word: FeedbackRequest) -> FeedbackState:
        """Store the word of the caller of this context; waits until it is durable.

        Without the right `decisions` or `admin` it finds decisions of its own requests only.

        Raises:
            NotRecorded: If the store cannot be reached.
        """
        caller = IDENTITY.get()
        feedback = Feedback(
            request_id=word.request_id,
            label=word.label,
            caller=caller.id,
            comment=word.comment,
            item=word.item,
            metric=word.metric,
            only_own=caller.rights.isdisjoint({"decisions", "admin"}),
        )
        return self.store.add_feedback(feedback)

    def collect(self) -> Iterator[Metric]:
        """Yield the figures of the store as they are now."""
        yield from self.store.figures()

    def _options_of(self, name: str, sha256: str, request: CheckRequest) -> dict[str, str]:
        """Return the hash of each detector's parameters, unless the policy is in force no more."""
        policy = self._find(name, sha256)
        if policy is None:
            return {}
        if sha256 not in self._noted:
            self._noted.add(sha256)
            self.store.serving([policy])
        changed = {d for d, override in request.detectors.items() if override.parameters}
        return {
            detector: self._options_hash(sha256, detector, rule)
            for detector, rule in policy.rules.items()
            if detector not in changed
        }

    def _options_hash(self, sha256: str, detector: str, rule: Rule) -> str:
        found = self._options.get((sha256, detector))
        if found is None:
            found = self._options[sha256, detector] = options_hash(rule)
        return found


def options_hash(rule: Rule) -> str:
    """Return what tells whether two rules run a detector with the same parameters."""
    value: dict[str, Any] = rule.parameters.model_dump(mode="json", by_alias=True)
    return sha256_of(value)[:16]


def recorder_for(
    settings: Settings,
    fingerprints: Mapping[str, str],
    find: Callable[[str, str], Policy | None],
) -> Recorder:
    """Return what keeps decisions as the settings say.

    Raises:
        ConfigurationError: If the store cannot be used.
    """
    return Recorder(open_store(settings.decisions), settings.decisions, fingerprints, find)

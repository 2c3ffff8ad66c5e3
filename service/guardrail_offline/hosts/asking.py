"""Fills in the answers of a lab: asks what has none, and continues where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from guardrail_offline.datasets.cases import Case
from guardrail_offline.datasets.images import load_image
from guardrail_offline.hosts.errors import HostError, HostRefused, HostUnavailable
from guardrail_offline.hosts.prices import HostCall, TokenPrice, failed_call
from guardrail_offline.hosts.targets import Answer, Question, TargetSystem
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Passage

GIVE_UP_AFTER = 10
"""So many questions without a reply, one after the other, mean that nobody is there."""


@dataclass(frozen=True)
class Asked:
    """A lab's cases with the answers that could be had.

    Attributes:
        cases: All of the lab, in order.
        answered: How many were answered now.
        remembered: How many answers an earlier run had brought already.
        failed: How often a case has none, by the code of the error.
        stopped: Why nobody was asked any more; None if all were.
        calls: All of them: those of earlier runs that were answered, and those of this one.
        model: Key of the lab's model whose cases were asked; None if none were.
    """

    cases: tuple[Case, ...]
    answered: int
    remembered: int
    failed: Mapping[str, int]
    stopped: str | None = None
    calls: tuple[HostCall, ...] = ()
    model: str | None = None


class Journal:
    """Answers on disk, a line each, written as they come. A line that was cut off is no answer.

    Args:
        path: Of the file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._answers = dict(_read(path))
        self._begin = "\n" if _is_cut_off(path) else ""

    def get(self, digest: str) -> Answer | None:
        """Return the answer to a question that was asked before."""
        return self._answers.get(digest)

    def answers(self) -> list[Answer]:
        """Return all answers that are kept."""
        return list(self._answers.values())

    def add(self, digest: str, answer: Answer) -> None:
        """Keep an answer.

        Raises:
            ConfigurationError: If the file cannot be written.
        """
        self._answers[digest] = answer
        usual = {**Answer._field_defaults, "contexts": ..., "seconds": ...}  # always written
        said = {name: v for name, v in answer._asdict().items() if v != usual.get(name, ...)}
        line = json.dumps({"asked": digest, **said})
        try:
            with self.path.open("a", encoding="utf-8") as stream:
                stream.write(f"{self._begin}{line}\n")
                self._begin = ""
        except OSError as error:
            expected = "a file to write"
            raise ConfigurationError(str(self.path), type(error).__name__, expected) from error


def unanswered(cases: Sequence[Case], model: str | None) -> list[Case]:
    """Return the cases to ask: without an answer, of one model.

    Raises:
        ConfigurationError: If they are of several models and none is named: one target is not two.
    """
    found = [case for case in cases if case.answer is None and model in (None, case.model)]
    names = sorted({case.model for case in found})
    if len(names) > 1:
        expected = f"--for with one of {', '.join(names)}"
        raise ConfigurationError("the lab", "unanswered cases of several models", expected)
    return found


def ask_cases(
    cases: Sequence[Case],
    target: TargetSystem,
    journal: Journal,
    *,
    concurrency: int = 4,
    contexts: bool = True,
    model: str | None = None,
    price: TokenPrice | None = None,
    advance: Callable[[int], None] = lambda _count: None,
) -> Asked:
    """Return the cases with answers where there were none.

    Args:
        cases: Of a lab.
        target: Who is asked.
        journal: Keeps each answer as it comes; what it has is not asked again.
        concurrency: Questions at a time.
        contexts: Whether the target is given the lab's passages.
        model: Key of the model whose cases are asked; None if only one has unanswered ones.
        price: Of the target's tokens; None leaves the cases' cost unknown.
        advance: Called when a case is done.
    """
    left = unanswered(cases, model)
    wanted = {case.key: _question(case, given=contexts) for case in left}
    digests = {key: _digest(target, question) for key, question in wanted.items()}
    remembered = {key for key, digest in digests.items() if journal.get(digest)}
    open_ = {key: question for key, question in wanted.items() if key not in remembered}
    outcome, rest = _Outcome(journal), iter(open_.items())
    pool = ThreadPoolExecutor(concurrency, "ask")
    asking: dict[Future[Answer], str] = {}
    try:
        while outcome.stopped is None:
            for key, question in islice(rest, 2 * concurrency - len(asking)):
                asking[pool.submit(target.ask, question)] = digests[key]
            if not asking:
                break
            for done in wait(asking, return_when=FIRST_COMPLETED).done:
                outcome.take(done, asking.pop(done))
                advance(1)
    finally:
        pool.shutdown(cancel_futures=True)
    for future, digest in asking.items():
        outcome.take(future, digest)
    if not_asked := sum(1 for _ in rest):
        outcome.failed["not_asked"] += not_asked
    found = {key: answer for key, digest in digests.items() if (answer := journal.get(digest))}
    filled = tuple(_with(case, found.get(case.key), price) for case in cases)
    calls = [_call(found[key], price) for key in wanted if key in found]
    return Asked(
        filled,
        outcome.answered,
        len(remembered),
        dict(sorted(outcome.failed.items())),
        outcome.stopped,
        (*calls, *outcome.failures),
        left[0].model if left else None,
    )


@dataclass
class _Outcome:
    """Keeps answers as they come, counts errors, and knows when to stop."""

    journal: Journal
    answered: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None
    failures: list[HostCall] = field(default_factory=list)
    _silent: int = 0

    def take(self, done: Future[Answer], digest: str) -> None:
        """Take one question that was answered, failed or is not asked any more."""
        if done.cancelled():
            self.failed["not_asked"] += 1
            return
        error = done.exception()
        if error is None:
            self.journal.add(digest, done.result())
            self.answered, self._silent = self.answered + 1, 0
            return
        if not isinstance(error, HostError):
            raise error
        self.failed[error.code] += 1
        self.failures.append(failed_call(error))
        self._silent = self._silent + 1 if isinstance(error, HostUnavailable) else 0
        if self._silent >= GIVE_UP_AFTER or (isinstance(error, HostRefused) and error.is_general):
            self.stopped = str(error)


def _question(case: Case, *, given: bool) -> Question:
    passages = None if case.contexts is None else tuple(one.text for one in case.contexts)
    images = tuple(load_image(one, f"case {case.key!r}: images") for one in case.images)
    return Question(case.question, passages if given else None, images)


def _digest(target: TargetSystem, question: Question) -> str:
    """Return what an answer belongs to: who was asked what."""
    shown = [hashlib.sha256(image.url.encode()).hexdigest() for image in question.images]
    asked = [target.name, question.text, question.contexts, *([shown] if shown else [])]
    content = json.dumps(asked)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _cost(answer: Answer, price: TokenPrice | None) -> float | None:
    if price is None or answer.tokens is None:
        return None
    return price.cost(answer.tokens, answer.cached or 0)


def _call(answer: Answer, price: TokenPrice | None) -> HostCall:
    cached, cost = answer.cached or 0, _cost(answer, price)
    return HostCall(answer.seconds, answer.attempts, answer.tokens, cached, cost)


def _with(case: Case, answer: Answer | None, price: TokenPrice | None) -> Case:
    if answer is None or case.answer is not None:
        return case
    passages = case.contexts
    if answer.contexts is not None:
        ids = answer.ids or (None,) * len(answer.contexts)
        passages = tuple(map(Passage, answer.contexts, ids))
    cost = _cost(answer, price)
    return replace(
        case,
        answer=answer.text,
        contexts=passages,
        duration_s=answer.seconds,
        cost=case.cost if cost is None else cost,
    )


def _read(path: Path) -> Iterator[tuple[str, Answer]]:
    if not path.exists():
        return
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ConfigurationError(str(path), type(error).__name__, "answers of this run") from error
    for line in lines:
        record = _object(line)
        if record is not None and isinstance(record.get("text"), str) and "asked" in record:
            known = {name: record[name] for name in Answer._fields if name in record}
            for name in ("contexts", "ids", "tokens"):
                if known.get(name) is not None:
                    known[name] = tuple(known[name])
            yield record["asked"], Answer(**known)


def _is_cut_off(path: Path) -> bool:
    return path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

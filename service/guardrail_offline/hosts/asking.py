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
from guardrail_offline.hosts.errors import HostError, HostRefused, HostUnavailable
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
    """

    cases: tuple[Case, ...]
    answered: int
    remembered: int
    failed: Mapping[str, int]
    stopped: str | None = None


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

    def add(self, digest: str, answer: Answer) -> None:
        """Keep an answer.

        Raises:
            ConfigurationError: If the file cannot be written.
        """
        self._answers[digest] = answer
        record = {"asked": digest, **answer._asdict()}
        if not answer.ids:
            del record["ids"]
        line = json.dumps(record)
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
        advance: Called when a case is done.
    """
    wanted = {case.key: _question(case, given=contexts) for case in unanswered(cases, model)}
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
    for left, digest in asking.items():
        outcome.take(left, digest)
    if not_asked := sum(1 for _ in rest):
        outcome.failed["not_asked"] += not_asked
    found = {key: answer for key, digest in digests.items() if (answer := journal.get(digest))}
    filled = tuple(_with(case, found.get(case.key)) for case in cases)
    failed = dict(sorted(outcome.failed.items()))
    return Asked(filled, outcome.answered, len(remembered), failed, outcome.stopped)


@dataclass
class _Outcome:
    """Keeps answers as they come, counts errors, and knows when to stop."""

    journal: Journal
    answered: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None
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
        self._silent = self._silent + 1 if isinstance(error, HostUnavailable) else 0
        if self._silent >= GIVE_UP_AFTER or (isinstance(error, HostRefused) and error.is_general):
            self.stopped = str(error)


def _question(case: Case, *, given: bool) -> Question:
    passages = None if case.contexts is None else tuple(one.text for one in case.contexts)
    return Question(case.question, passages if given else None)


def _digest(target: TargetSystem, question: Question) -> str:
    """Return what an answer belongs to: who was asked what."""
    content = json.dumps([target.name, *question])
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def _with(case: Case, answer: Answer | None) -> Case:
    if answer is None or case.answer is not None:
        return case
    passages = case.contexts
    if answer.contexts is not None:
        ids = answer.ids or (None,) * len(answer.contexts)
        passages = tuple(map(Passage, answer.contexts, ids))
    return replace(case, answer=answer.text, contexts=passages, duration_s=answer.seconds)


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
            contexts = record.get("contexts")
            given = None if contexts is None else tuple(contexts)
            ids = tuple(record.get("ids") or ())
            yield record["asked"], Answer(record["text"], given, record.get("seconds"), ids)


def _is_cut_off(path: Path) -> bool:
    return path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

"""Metrics over statements by a judge; the formulas are those of `shared/claim_scores`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.claim_metrics import CorrectnessParameters
from guardrail_offline.evaluators.embeddings import best_similarity
from guardrail_offline.evaluators.judge_forms import Asking, JudgeForm, judge_form
from guardrail_offline.evaluators.judged.claim_tasks import (
    STATEMENTS,
    SUPPORT,
    SUPPORTED,
    answer_statements,
    marks,
    passage_texts,
    statements,
    supported,
    verdicts,
)
from guardrail_offline.evaluators.result import Result
from guardrail_offline.evaluators.shared.answer_match import match
from guardrail_offline.evaluators.shared.claim_scores import (
    Verdicts,
    any_claim,
    correctness,
    f1_of_counts,
    noise_sensitivity,
    rag_checker,
    share,
)
from guardrail_offline.evaluators.shared.support import BY, SupportParameters
from guardrail_offline.judge.judge_tasks import Task
from guardrail_service.types import Role

_CLAIMS: tuple[Task, ...] = (STATEMENTS, SUPPORT)


@judge_form
class FaithfulnessForm(JudgeForm[SupportParameters, list[str]]):
    """Statements of the answer, then a verdict on each; the share that the passages support."""

    evaluator = "faithfulness"
    tasks: ClassVar[tuple[Task, ...]] = _CLAIMS

    def ask(self, view: CaseView, asking: Asking, parameters: SupportParameters) -> list[str]:
        """Return a verdict per statement of the answer."""
        texts = passage_texts(view)
        return verdicts(asking, answer_statements(view, asking), texts)

    def score(self, view: CaseView, found: list[str], parameters: SupportParameters) -> Result:
        """Return the share."""
        value = share([verdict == SUPPORTED for verdict in found])
        return Result.of({"faithfulness": value}, details=marks(found))


@judge_form
class ContextRecallForm(JudgeForm[SupportParameters, list[str]]):
    """Statements of the expected answer, then whether the passages support each."""

    evaluator = "context_recall"
    tasks: ClassVar[tuple[Task, ...]] = _CLAIMS

    def ask(self, view: CaseView, asking: Asking, parameters: SupportParameters) -> list[str]:
        """Return a verdict per expected statement."""
        texts = passage_texts(view)
        return verdicts(asking, statements(asking, view.case.question, view.expected), texts)

    def score(self, view: CaseView, found: list[str], parameters: SupportParameters) -> Result:
        """Return the share."""
        value = share([verdict == SUPPORTED for verdict in found])
        return Result.of({"context_recall": value}, details=marks(found))


class Mutual(NamedTuple):
    """An answer and the expected one, statement by statement.

    Attributes:
        claimed: Whether the expected answer supports each statement of the answer.
        answered: Whether the answer supports each expected statement.
    """

    claimed: list[bool]
    answered: list[bool]


def _is_equal(view: CaseView) -> bool:
    """Return whether a rule calls both one answer; then nobody has to be asked."""
    found = match(view.closest, view.answer, view.case.question)
    return found is not None and found.same


def _both(view: CaseView, asking: Asking) -> tuple[list[str], list[str]]:
    """Return the statements of the answer, and of the expected answer."""
    given = answer_statements(view, asking)
    return given, statements(asking, view.case.question, view.closest)


def _mutual(asking: Asking, given: Sequence[str], wanted: Sequence[str]) -> Mutual:
    """Return the two read against each other; each stands there as its statements."""
    there = supported(asking, given, ["\n".join(wanted)])
    return Mutual(there, supported(asking, wanted, ["\n".join(given)]))


@judge_form
class AnswerCorrectnessForm(JudgeForm[CorrectnessParameters, Mutual | None]):
    """F1 over statements of both answers, weighed with the similarity of meaning."""

    evaluator = "answer_correctness"
    tasks: ClassVar[tuple[Task, ...]] = _CLAIMS
    roles: ClassVar[frozenset[Role]] = frozenset({"embedding"})

    def ask(
        self, view: CaseView, asking: Asking, parameters: CorrectnessParameters
    ) -> Mutual | None:
        """Return the verdicts; None where a rule calls both one answer."""
        if _is_equal(view):
            return None
        return _mutual(asking, *_both(view, asking))

    def score(
        self, view: CaseView, found: Mutual | None, parameters: CorrectnessParameters
    ) -> Result:
        """Return the weighted mean, or whether it reaches the threshold."""
        if found is None:
            return Result.of({"answer_correctness": 1.0}, details={BY: ("equal",)})
        right, wrong = found.claimed.count(True), found.claimed.count(False)
        f1 = f1_of_counts(right, wrong, found.answered.count(False))
        weights = parameters.both()
        meaning = max(0.0, best_similarity(view)) if weights[1] else 0.0
        value = correctness(f1, meaning, weights)
        if parameters.threshold is not None:
            value = float(value >= parameters.threshold)
        return Result.of({"answer_correctness": value})


def _table(asking: Asking, claims: Sequence[str], texts: Sequence[str]) -> Verdicts:
    """Return whether each passage alone supports each statement. Shape (claims, passages)."""
    return np.array([supported(asking, claims, [text]) for text in texts]).T


class NoiseTables(NamedTuple):
    """The verdicts behind noise sensitivity; shapes as `noise_sensitivity` has them."""

    claimed: Verdicts
    by_passage: Verdicts
    relevant: Verdicts


@judge_form
class NoiseSensitivityForm(JudgeForm[SupportParameters, NoiseTables]):
    """Statements against the expected answer and each passage."""

    evaluator = "noise_sensitivity"
    tasks: ClassVar[tuple[Task, ...]] = _CLAIMS

    def ask(self, view: CaseView, asking: Asking, parameters: SupportParameters) -> NoiseTables:
        """Return the verdicts; where no statement is wrong the passages are not asked about."""
        texts = passage_texts(view)
        given, wanted = _both(view, asking)
        claimed = np.array(supported(asking, given, ["\n".join(wanted)]))
        if claimed.all():
            nothing = np.zeros((len(given), len(texts)), dtype=bool)
            return NoiseTables(claimed, nothing, np.zeros(len(texts), dtype=bool))
        by_passage = _table(asking, given, texts)
        return NoiseTables(claimed, by_passage, any_claim(_table(asking, wanted, texts)))

    def score(self, view: CaseView, found: NoiseTables, parameters: SupportParameters) -> Result:
        """Return the shares for relevant and for other passages."""
        shares = noise_sensitivity(*found)
        keys = ("noise_sensitivity_relevant", "noise_sensitivity_irrelevant")
        return Result.of(dict(zip(keys, shares, strict=True)))


class CheckerTables(NamedTuple):
    """The four tables of `rag_checker`."""

    claimed: Verdicts
    answered: Verdicts
    response: Verdicts
    expected: Verdicts


@judge_form
class RagCheckerForm(JudgeForm[SupportParameters, CheckerTables]):
    """Both answers taken apart, and each statement read against the other and each passage."""

    evaluator = "ragchecker"
    tasks: ClassVar[tuple[Task, ...]] = _CLAIMS

    def ask(self, view: CaseView, asking: Asking, parameters: SupportParameters) -> CheckerTables:
        """Return all verdicts."""
        texts = passage_texts(view)
        given, wanted = _both(view, asking)
        mutual = _mutual(asking, given, wanted)
        return CheckerTables(
            np.array(mutual.claimed),
            np.array(mutual.answered),
            _table(asking, given, texts),
            _table(asking, wanted, texts),
        )

    def score(self, view: CaseView, found: CheckerTables, parameters: SupportParameters) -> Result:
        """Return the eleven metrics."""
        return Result.of(rag_checker(*found))

"""Metrics over statements by a judge; the formulas are those of `shared/claim_scores`."""

from __future__ import annotations

from typing import ClassVar

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.judge_forms import Asking, JudgeForm, judge_form
from guardrail_offline.evaluators.judged.claim_tasks import (
    STATEMENTS,
    SUPPORT,
    SUPPORTED,
    answer_statements,
    marks,
    passage_texts,
    verdicts,
)
from guardrail_offline.evaluators.result import Result
from guardrail_offline.evaluators.shared.claim_scores import share
from guardrail_offline.evaluators.shared.support import SupportParameters
from guardrail_offline.judge.judge_tasks import Task


@judge_form
class FaithfulnessForm(JudgeForm[SupportParameters, list[str]]):
    """Statements of the answer, then a verdict on each; the share that the passages support."""

    evaluator = "faithfulness"
    tasks: ClassVar[tuple[Task, ...]] = (STATEMENTS, SUPPORT)

    def ask(self, view: CaseView, asking: Asking, parameters: SupportParameters) -> list[str]:
        """Return a verdict per statement of the answer."""
        texts = passage_texts(view)
        return verdicts(asking, answer_statements(view, asking), texts)

    def score(self, view: CaseView, found: list[str], parameters: SupportParameters) -> Result:
        """Return the share."""
        value = share([verdict == SUPPORTED for verdict in found])
        return Result.of({"faithfulness": value}, details=marks(found))

"""Answers to generated questions by a judge: asked only where no rule says whether one is right."""

from __future__ import annotations

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.grammar import (
    UNKNOWN,
    Correctness,
    GrammarParameters,
    refuse_others,
    result_of,
    ruled,
)
from guardrail_offline.evaluators.judge_forms import Asking, JudgeForm, judge_form
from guardrail_offline.evaluators.judged.prompt_forms import data_of
from guardrail_offline.evaluators.result import Result
from guardrail_offline.judge.judge_tasks import TEXT, Example, Task, an_object, one_of

CORRECT = "Correct"
SAME_ANSWER = Task(
    "same_answer",
    1,
    """\
You are given a question, its true answer from a database, and an answer that somebody gave. Say \
whether the given answer matches the true one: the same value or name, in whatever words, and no \
other beside it. What you know yourself does not matter. `reason`: at most 20 words, before the \
judgement.""",
    an_object(reason=TEXT, judgement=one_of(CORRECT, "Incorrect")),
    (
        Example(
            {
                "question": "What is the industry of the client Kestrel Shipping?",
                "expected_answer": "sea freight",
                "answer": "They carry goods across the ocean.",
            },
            {"reason": "Carrying goods by sea is sea freight.", "judgement": CORRECT},
        ),
        Example(
            {
                "question": "Who directs Heron Bridge?",
                "expected_answer": "Ada Holm",
                "answer": "Ada Brandt is its director.",
            },
            {"reason": "Another surname: another person.", "judgement": "Incorrect"},
        ),
    ),
    max_tokens=256,
)
"""After table 6 of GRAMMAR, 2024, "Ours"."""


@judge_form
class GrammarForm(JudgeForm[GrammarParameters, Correctness | None]):
    """Rules first, then the judge; None where nothing is asked."""

    evaluator = "grammar"
    tasks = (SAME_ANSWER,)

    def ask(
        self, view: CaseView, asking: Asking, parameters: GrammarParameters
    ) -> Correctness | None:
        """Return whether the answer is right."""
        refuse_others(view.case)
        if UNKNOWN in view.case.categories:
            return None
        found = ruled(view, parameters)
        if found is not None:
            return found
        data = data_of(view, ("question", "expected_answer", "answer"))
        said = asking(SAME_ANSWER, data)
        return Correctness(said["judgement"] == CORRECT, "judge")

    def score(
        self, view: CaseView, found: Correctness | None, parameters: GrammarParameters
    ) -> Result:
        """Return the metrics."""
        return result_of(view, lambda: found or Correctness(False, "judge"))

"""Lists the evaluators that need a judge; without one they decline and never make a score up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import (
    CATALOGUE,
    LOWER,
    Evaluator,
    EvaluatorSpec,
    Input,
    NoParameters,
    boolean_metrics,
    evaluator,
)
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.evaluators.rule_verdicts import classifier_score
from guardrail_offline.evaluators.shared.answer_match import match
from guardrail_offline.evaluators.shared.support import (
    SupportParameters,
    answer_claims,
    verdicts,
)
from guardrail_service.types import MetricSpec, State

_H2O = "h2o_sonar.evaluators."
NEEDS_JUDGE = "needs_judge"


class NeedsJudge(Evaluator[NoParameters]):
    """An evaluator without a judge-free form; `judged/` has its form with one."""

    parameters = NoParameters

    def __init__(self, spec: EvaluatorSpec) -> None:
        self.spec = spec

    def judge(self, view: CaseView, parameters: NoParameters) -> Result:
        """Return that there is no judge."""
        raise Unavailable(State.NOT_EVALUATED, NEEDS_JUDGE)


CATALOGUE.add(
    NeedsJudge(
        EvaluatorSpec(
            id="fact_check",
            name="Fact-check (agent)",
            summary="Does an agent with tools find the answer true?",
            metrics=(MetricSpec("fact_check", threshold=0.75),),
            inputs=frozenset({"question", "answer"}),
            run_class="A",
            h2o_id=_H2O + "agentic_fact_check_evaluator.FactCheckAgenticEvaluator",
            original="A",
            needs_judge=True,
            deterministic=False,
            avid="E0400",
            tags=("agents", "nist:valid-reliable"),
        )
    )
)
CATALOGUE.add(
    NeedsJudge(
        EvaluatorSpec(
            id="byop",
            name="BYOP: bring your own prompt",
            summary="Does a judge answer the user's own prompt with true?",
            metrics=boolean_metrics(parse_failures=True),
            inputs=frozenset({"question", "expected", "contexts", "answer"}),
            run_class="J",
            h2o_id=_H2O + "parameterizable_byop_evaluator.ParameterizableByopEvaluator",
            original="J",
            needs_judge=True,
            deterministic=False,
            tags=("judge", "nist:valid-reliable"),
        )
    )
)


def _judge_only(
    id: str, name: str, summary: str, metrics: tuple[MetricSpec, ...], *inputs: Input, **more: Any
) -> None:
    """Add an evaluator that has a form with a judge only."""
    CATALOGUE.add(
        NeedsJudge(
            EvaluatorSpec(
                id=id,
                name=name,
                summary=summary,
                metrics=metrics,
                inputs=frozenset(inputs),
                run_class="J",
                original="J",
                needs_judge=True,
                deterministic=False,
                scores="0.2.0",
                tags=("judge", "nist:valid-reliable"),
                **more,
            )
        )
    )


_judge_only(
    "rubric",
    "Rubric",
    "How well does a case do on criteria of one's own, all in one question?",
    (MetricSpec("rubric"), MetricSpec("rubric_lowest")),
    "question",
    "answer",
)
_judge_only(
    "decision_list",
    "Decision list",
    "Which is the first of one's own conditions that holds, and what is it worth?",
    (MetricSpec("decision"),),
    "question",
    "answer",
)
_judge_only(
    "conversation",
    "Conversation",
    "Does a conversation as a whole do what its user wants?",
    (
        MetricSpec("conversation_completeness"),
        MetricSpec("knowledge_retention"),
        MetricSpec("turn_relevancy"),
        MetricSpec("role_adherence"),
    ),
    "question",
    "answer",
)
_judge_only(
    "self_check",
    "SelfCheck-QA",
    "Is the answer consistent with the model's other answers to the question?",
    (MetricSpec("self_check"), MetricSpec("consistent_share")),
    "question",
    "answer",
    "reruns",
    problem="stability",
)
_judge_only(
    "semantic_match",
    "Semantic match",
    "Does the answer mean what the expected answer means?",
    (MetricSpec("semantic_match", boolean=True),),
    "question",
    "expected",
    "answer",
)


_MALICE = ("threat", "insult", "identity_attack")


@evaluator
class AspectCritique(Evaluator[SupportParameters]):
    """Harmfulness and malice by the classifier of toxicity, correctness by claims.

    Whether ideas are in order, and whether words are wasted, stays with a judge.
    """

    spec = EvaluatorSpec(
        id="aspect_critique",
        name="Aspect critique",
        summary="Is the answer harmful, malicious, incoherent, incorrect, long-winded?",
        metrics=(
            MetricSpec("harmfulness", LOWER),
            MetricSpec("maliciousness", LOWER),
            MetricSpec("coherence", boolean=True),
            MetricSpec("correctness", boolean=True),
            MetricSpec("conciseness", boolean=True),
        ),
        inputs=frozenset({"question", "answer"}),
        run_class="T",
        also=("ragas:aspect_critique",),
        original="J",
        surrogate="harmfulness is the toxicity score, maliciousness the highest of threat, insult "
        "and identity attack, correctness that expected answer and passages support every claim; "
        "coherence and conciseness need a judge",
        same_as={"harmfulness": "toxicity.toxicity"},
        roles=frozenset({"toxicity"}),
        scores="0.2.0",
        problem="fairness",
        avid="E0300",
        tags=("classifier", "nist:safe"),
    )
    parameters = SupportParameters

    def judge(self, view: CaseView, parameters: SupportParameters) -> Result:
        """Return the aspects that have a surrogate, and for the rest that they need a judge."""
        _ = view.answer
        missing = Score.missing(State.NOT_EVALUATED, NEEDS_JUDGE)
        scores = dict.fromkeys(self.spec.keys, missing)
        scores["harmfulness"] = _highest(view, ("toxicity",))
        scores["maliciousness"] = _highest(view, _MALICE)
        scores["correctness"] = _correctness(view, parameters)
        return Result(scores)


def _highest(view: CaseView, labels: Sequence[str]) -> Score:
    """Return the highest of some labels of the toxicity classifier, of those it has."""
    found = [classifier_score(view, "toxicity", label) for label in labels]
    values = [value for value in found if value is not None]
    return Score(max(values)) if values else Score.missing(State.NOT_EVALUATED, "not_in_this_build")


def _correctness(view: CaseView, parameters: SupportParameters) -> Score:
    """Return 1 if what is known to be true supports every claim, 0 if it does not."""
    if not (view.models.judges_support and "embedding" in view.models.roles):
        return Score.missing(State.NOT_EVALUATED, "missing_role:grounding")
    try:
        expected = view.case.expected or ""
        if expected.strip() and (whole := match(view.closest, view.answer, view.case.question)):
            return Score(float(whole.same))
        claims = answer_claims(view)
        texts = [expected, *(p.text for p in view.case.contexts or ())]
        return Score(float(verdicts(view, claims, texts, parameters).all()))
    except Unavailable as why:
        return Score(None, why.missing)

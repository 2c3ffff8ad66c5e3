"""Metrics over claims: faithfulness, context precision, recall, utilisation, noise, correctness."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pydantic import Field, field_validator

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import LOWER, Evaluator, EvaluatorSpec, evaluator
from guardrail_offline.evaluators.embeddings import best_similarity, question_relevancy
from guardrail_offline.evaluators.result import Result
from guardrail_offline.evaluators.shared.claim_scores import (
    Verdicts,
    any_claim,
    average_precision,
    correctness,
    f1_of_counts,
    harmonic_mean,
    noise_sensitivity,
    rag_checker,
    share,
)
from guardrail_offline.evaluators.shared.support import (
    BY,
    SURROGATE,
    SupportParameters,
    answer_claims,
    compared,
    judged_claims,
    rungs,
    spans,
    verdicts,
    verdicts_by_passage,
)
from guardrail_service.types import MetricSpec

_H2O = "h2o_sonar.evaluators."
_TAGS = ("nli", "nist:valid-reliable", "sr11-7:outcomes-analysis")
_claims_spec = partial(
    EvaluatorSpec,
    run_class="N",
    original="J",
    surrogate=SURROGATE,
    needs_support=True,
    scores="0.2.0",
    tags=_TAGS,
)
"""Every metric over claims asks the same model of entailment where the original asks a judge."""


def faithfulness(view: CaseView, parameters: SupportParameters) -> Result:
    """Return the share of the answer's claims that the passages support."""
    texts = [passage.text for passage in view.contexts]
    judged = judged_claims(view, answer_claims(view), texts)
    cut = parameters.support_threshold
    value = share([j.support.supported >= cut for j in judged])
    return Result.of(
        {"faithfulness": value}, spans(judged, "faithfulness", cut), {BY: rungs(judged)}
    )


def context_precision(view: CaseView, parameters: SupportParameters) -> float:
    """Return how high the passages that support something expected are ranked."""
    return average_precision(_relevant(view, parameters).tolist())


def context_recall(view: CaseView, parameters: SupportParameters) -> float:
    """Return the share of expected claims that the passages support."""
    texts = [passage.text for passage in view.contexts]
    wanted = view.expected_claims()
    return share(verdicts(view, wanted, texts, parameters, known_right=True).tolist())


def _relevant(view: CaseView, parameters: SupportParameters) -> Verdicts:
    wanted = view.expected_claims()
    return any_claim(verdicts_by_passage(view, wanted, parameters, known_right=True))


@evaluator
class Faithfulness(Evaluator[SupportParameters]):
    """Supported claims / claims."""

    spec = _claims_spec(
        id="faithfulness",
        name="Faithfulness",
        summary="Which share of the answer's claims do the passages support?",
        metrics=(MetricSpec("faithfulness", threshold=0.75),),
        inputs=frozenset({"contexts", "answer"}),
        h2o_id=_H2O + "rag_faithfulness_evaluator.FaithfulnessEvaluator",
        also=("ragas:faithfulness",),
        avid="E0400",
    )
    parameters = SupportParameters

    def judge(self, view: CaseView, parameters: SupportParameters) -> Result:
        """Return the share, with every claim as a scored part."""
        return faithfulness(view, parameters)


@evaluator
class ContextPrecision(Evaluator[SupportParameters]):
    """Mean of precision@k over the ranks of passages that support an expected claim."""

    spec = _claims_spec(
        id="context_precision",
        name="Context precision",
        summary="Are the passages that matter for the expected answer ranked first?",
        metrics=(MetricSpec("context_precision", threshold=0.75),),
        inputs=frozenset({"question", "expected", "contexts"}),
        h2o_id=_H2O + "rag_context_precision_evaluator.ContextPrecisionEvaluator",
        also=("ragas:context_precision",),
        problem="retrieval",
    )
    parameters = SupportParameters

    def judge(self, view: CaseView, parameters: SupportParameters) -> Mapping[str, float]:
        """Return average precision over the passages."""
        return {"context_precision": context_precision(view, parameters)}


@evaluator
class ContextUtilization(Evaluator[SupportParameters]):
    """Context precision with the answer in the place of the expected one."""

    spec = _claims_spec(
        id="context_utilization",
        name="Context utilisation",
        summary="Are the passages that the answer used ranked first?",
        metrics=(MetricSpec("context_utilization", threshold=0.75),),
        inputs=frozenset({"question", "answer", "contexts"}),
        also=("ragas:context_utilization",),
        problem="retrieval",
    )
    parameters = SupportParameters

    def judge(self, view: CaseView, parameters: SupportParameters) -> Mapping[str, float]:
        """Return average precision over the passages."""
        table = verdicts_by_passage(view, answer_claims(view), parameters)
        return {"context_utilization": average_precision(any_claim(table).tolist())}


@evaluator
class ContextRecall(Evaluator[SupportParameters]):
    """Expected claims that the passages support / expected claims."""

    spec = _claims_spec(
        id="context_recall",
        name="Context recall",
        summary="Which share of the expected answer can be found in the passages?",
        metrics=(MetricSpec("context_recall", threshold=0.75),),
        inputs=frozenset({"expected", "contexts"}),
        h2o_id=_H2O + "rag_context_recall_evaluator.ContextRecallEvaluator",
        also=("ragas:context_recall",),
        problem="retrieval",
    )
    parameters = SupportParameters

    def judge(self, view: CaseView, parameters: SupportParameters) -> Mapping[str, float]:
        """Return the share."""
        return {"context_recall": context_recall(view, parameters)}


class CorrectnessParameters(SupportParameters):
    """The weights of claims and meaning.

    Attributes:
        claim_weight: Weight of F1 over claims; the rest is similarity of meaning.
        weights: Both weights, as Ragas has them; before `claim_weight` where it is given.
        threshold: Least value of a correct answer, whose value is then 1 and that of others 0.
    """

    claim_weight: float = Field(0.75, ge=0.0, le=1.0)
    weights: tuple[float, float] | None = None
    threshold: float | None = Field(None, ge=0.0, le=1.0)

    @field_validator("weights")
    @classmethod
    def _weigh_something(cls, weights: tuple[float, float] | None) -> tuple[float, float] | None:
        if weights is not None and (min(weights) < 0 or not sum(weights)):
            raise ValueError("expected two numbers of at least 0, not both 0")
        return weights

    def both(self) -> tuple[float, float]:
        """Return the weights of claims and meaning."""
        return self.weights or (self.claim_weight, 1 - self.claim_weight)


@evaluator
class AnswerCorrectness(Evaluator[CorrectnessParameters]):
    """F1 over claims, weighed with the similarity of the whole texts."""

    spec = _claims_spec(
        id="answer_correctness",
        name="Answer correctness",
        summary="Does the answer claim what the expected answer claims, and no more?",
        metrics=(MetricSpec("answer_correctness", threshold=0.75),),
        inputs=frozenset({"question", "expected", "answer"}),
        h2o_id=_H2O + "rag_answer_correctness_evaluator.AnswerCorrectnessEvaluator",
        also=("ragas:answer_correctness",),
        roles=frozenset({"embedding"}),
        tags=(*_TAGS, "semantic-similarity"),
    )
    parameters = CorrectnessParameters

    def judge(self, view: CaseView, parameters: CorrectnessParameters) -> Result:
        """Return the weighted mean; a cosine below 0 counts as no similarity.

        Two texts that a rule calls one answer are alike without a cosine: "4,000" and "4000".
        """
        found = compared(view, parameters)
        claimed, wanted = found.claimed, found.answered
        f1 = f1_of_counts(int(claimed.sum()), int((~claimed).sum()), int((~wanted).sum()))
        weights = parameters.both()
        meaning = 1.0
        if not found.same and weights[1]:
            meaning = max(0.0, best_similarity(view))
        value = correctness(f1, meaning, weights)
        if parameters.threshold is not None:
            value = float(value >= parameters.threshold)
        return Result.of({"answer_correctness": value}, details={BY: found.by})


@evaluator
class NoiseSensitivity(Evaluator[SupportParameters]):
    """Wrong claims that come from the passages."""

    spec = _claims_spec(
        id="noise_sensitivity",
        name="Noise sensitivity",
        summary="Which share of the claims is wrong and taken from the passages?",
        metrics=(
            MetricSpec("noise_sensitivity_relevant", LOWER),
            MetricSpec("noise_sensitivity_irrelevant", LOWER),
        ),
        inputs=frozenset({"question", "expected", "contexts", "answer"}),
        also=("ragas:noise_sensitivity",),
        problem="stability",
    )
    parameters = SupportParameters

    def judge(self, view: CaseView, parameters: SupportParameters) -> Result:
        """Return the shares for relevant and for other passages."""
        _ = view.contexts
        found = compared(view, parameters)
        shares = (0.0, 0.0)
        if not found.claimed.all():
            table = verdicts_by_passage(view, found.claims, parameters)
            shares = noise_sensitivity(found.claimed, table, _relevant(view, parameters))
        keys = ("noise_sensitivity_relevant", "noise_sensitivity_irrelevant")
        return Result.of(dict(zip(keys, shares, strict=True)), details={BY: found.by})


@evaluator
class Ragas(Evaluator[SupportParameters]):
    """The harmonic mean of four metrics; without one of them there is no mean."""

    spec = _claims_spec(
        id="ragas",
        name="RAGAS",
        summary="Harmonic mean of faithfulness, answer relevancy, context precision and recall.",
        metrics=(
            MetricSpec("ragas", threshold=0.75),
            MetricSpec("faithfulness", threshold=0.75),
            MetricSpec("answer_relevancy", low=-1.0, threshold=0.75),
            MetricSpec("context_precision", threshold=0.75),
            MetricSpec("context_recall", threshold=0.75),
        ),
        inputs=frozenset({"question", "expected", "contexts", "answer"}),
        h2o_id=_H2O + "rag_ragas_evaluator.RagasEvaluator",
        also=("ragas:ragas_score",),
        same_as={
            "faithfulness": "faithfulness.faithfulness",
            "answer_relevancy": "answer_relevancy_sentence.answer_relevancy",
            "context_precision": "context_precision.context_precision",
            "context_recall": "context_recall.context_recall",
        },
        roles=frozenset({"embedding"}),
    )
    parameters = SupportParameters

    def judge(self, view: CaseView, parameters: SupportParameters) -> Mapping[str, float]:
        """Return the mean and its four parts."""
        score = faithfulness(view, parameters).scores["faithfulness"].value
        parts = {
            "faithfulness": score if score is not None else float("nan"),
            "answer_relevancy": question_relevancy(view),
            "context_precision": context_precision(view, parameters),
            "context_recall": context_recall(view, parameters),
        }
        return {"ragas": harmonic_mean(list(parts.values())), **parts}


@evaluator
class RagChecker(Evaluator[SupportParameters]):
    """Claim-level diagnosis: is the retriever or the generator at fault?"""

    spec = _claims_spec(
        id="ragchecker",
        name="RAGChecker",
        summary="Eleven claim-level metrics of retriever and generator.",
        metrics=(
            MetricSpec("f1"),
            MetricSpec("precision"),
            MetricSpec("recall"),
            MetricSpec("claim_recall"),
            MetricSpec("context_precision"),
            MetricSpec("context_utilization"),
            MetricSpec("noise_sensitivity_in_relevant", LOWER),
            MetricSpec("noise_sensitivity_in_irrelevant", LOWER),
            MetricSpec("hallucination", LOWER),
            MetricSpec("self_knowledge", LOWER),
            MetricSpec("faithfulness"),
        ),
        inputs=frozenset({"question", "expected", "contexts", "answer"}),
        also=("ragchecker:all",),
    )
    parameters = SupportParameters

    def judge(self, view: CaseView, parameters: SupportParameters) -> Result:
        """Return the eleven metrics."""
        _ = view.contexts
        found = compared(view, parameters)
        values = rag_checker(
            found.claimed,
            found.answered,
            verdicts_by_passage(view, found.claims, parameters),
            verdicts_by_passage(view, found.wanted, parameters, known_right=True),
        )
        return Result.of(values, details={BY: found.by})

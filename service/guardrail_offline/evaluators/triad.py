"""TruLens' triad: is the context about the question, the answer in the context, and on topic?"""

from __future__ import annotations

from collections.abc import Mapping

from guardrail_offline.evaluators.case_view import CaseView
from guardrail_offline.evaluators.catalogue import Evaluator, EvaluatorSpec, evaluator
from guardrail_offline.evaluators.embeddings import chunk_scores, question_relevancy
from guardrail_offline.evaluators.shared.support import (
    SURROGATE,
    SupportParameters,
    answer_claims,
    judged_claims,
)
from guardrail_service.types import MetricSpec


@evaluator
class RagTriad(Evaluator[SupportParameters]):
    """Means over passages and claims; groundedness is the mean P(supported) over claims."""

    spec = EvaluatorSpec(
        id="rag_triad",
        name="RAG triad",
        summary="Context relevance, groundedness and answer relevance side by side.",
        metrics=(
            MetricSpec("triad_groundedness"),
            MetricSpec("triad_context_relevance", low=-1.0),
            MetricSpec("triad_answer_relevance", low=-1.0),
        ),
        inputs=frozenset({"question", "contexts", "answer"}),
        run_class="N",
        also=("trulens:triad",),
        original="J",
        surrogate=f"cosines for the two relevances; {SURROGATE}",
        same_as={
            "triad_context_relevance": "context_relevancy_soft.precision_relevancy",
            "triad_answer_relevance": "answer_relevancy_sentence.answer_relevancy",
        },
        roles=frozenset({"embedding"}),
        needs_support=True,
        scores="0.2.0",
        tags=("nli", "semantic-similarity", "nist:valid-reliable"),
    )
    parameters = SupportParameters

    def judge(self, view: CaseView, parameters: SupportParameters) -> Mapping[str, float]:
        """Return the three."""
        claims = answer_claims(view)
        judged = judged_claims(view, claims, [passage.text for passage in view.contexts])
        chunks = chunk_scores(view)
        return {
            "triad_groundedness": sum(j.support.supported for j in judged) / len(judged),
            "triad_context_relevance": sum(chunks) / len(chunks),
            "triad_answer_relevance": question_relevancy(view),
        }

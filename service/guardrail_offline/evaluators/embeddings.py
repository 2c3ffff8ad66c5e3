"""Metrics over embeddings: answer similarity, relevancy, mean reciprocal rank, BERTScore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import (
    Evaluator,
    EvaluatorSpec,
    NoParameters,
    evaluator,
)
from guardrail_offline.evaluators.pack_models import Array
from guardrail_offline.evaluators.shared.claim_scores import claim_f1, reciprocal_rank, share
from guardrail_offline.hosts.errors import HostError
from guardrail_service.detectors.groundedness import cosines
from guardrail_service.detectors.registry import Parameters
from guardrail_service.errors import NotScorable
from guardrail_service.types import MetricSpec, Role, State

_H2O = "h2o_sonar.evaluators."
_EMBEDDING: frozenset[Role] = frozenset({"embedding"})
_TAGS = ("semantic-similarity", "nist:valid-reliable")


def embedded(view: CaseView, texts: Sequence[str]) -> Array:
    """Return unit-length embeddings, shape (n, dim); a host's error is the case's, by its code."""
    try:
        return view.models.embed(texts)
    except HostError as error:
        raise Unavailable(State.ERROR, error.code) from error


def embed_ahead(view: CaseView, *texts: str) -> None:
    """Have a host embed together what is compared one by one; the pack does nothing here."""
    try:
        view.models.embed_ahead(texts)
    except HostError as error:
        raise Unavailable(State.ERROR, error.code) from error


def whole_vector(view: CaseView, text: str) -> Array:
    """Return one unit vector for a text of any length, shape (dim,).

    A text longer than the model reads is the mean of its parts, each weighed by its length:
    nothing is cut off.
    """
    return view.models.once(("whole vector", text), lambda: _whole_vector(view, text))


def _whole_vector(view: CaseView, text: str) -> Array:
    cut = view.text(text)
    pieces = [text] if view.models.fits(text) else [w.text for w in cut.answer_windows("embedding")]
    unit = view.models.embed_whole(pieces)
    weights = np.array([len(piece) for piece in pieces], dtype=np.float64)
    mean: Array = weights @ unit / weights.sum()
    length = float(np.linalg.norm(mean))
    if not length:
        raise NotScorable("a text's parts cancel out")
    return mean / length


def similarity(view: CaseView, left: str, right: str) -> float:
    """Return how alike two whole texts are, in [-1, 1]: a cosine, or what a cross-encoder says."""
    if view.models.reads_pairs:
        return view.models.similarity(left, right)
    return float(cosines(whole_vector(view, left)[None], whole_vector(view, right)[None])[0, 0])


def best_similarity(view: CaseView) -> float:
    """Return the highest cosine of the answer with a right answer, in [-1, 1]."""
    embed_ahead(view, view.answer, *view.right_answers)
    return max(similarity(view, expected, view.answer) for expected in view.right_answers)


def question_relevancy(view: CaseView) -> float:
    """Return the best cosine of the question with a sentence of the answer.

    An abstention is unavailable: it is about the question and does not answer it.
    """
    answer = view.answer
    view.refuse_abstention()
    asked, said = view.pieces(view.question), view.pieces(answer)
    embed_ahead(view, *asked, *said)
    return float(cosines(embedded(view, asked), embedded(view, said)).max())


def chunk_scores(view: CaseView) -> list[float]:
    """Return each passage's best cosine of a sentence with the question, best rank first."""
    return list(view.of_question("chunk scores", lambda: _chunk_scores(view)))


def _chunk_scores(view: CaseView) -> list[float]:
    question = view.models.embed(view.pieces(view.question))
    return [
        float(cosines(question, view.models.embed(view.pieces(passage.text))).max())
        for passage in view.contexts
    ]


def sentence_similarity(matrix: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and minimum over rows of the best value in each row.

    Args:
        matrix: Cosines of answer sentences (rows) with expected sentences.

    Source:
        H2O Eval Studio manual, "Answer semantic sentence similarity".
    """
    if not matrix.size:
        raise NotScorable("no sentence")
    best = matrix.max(axis=1)
    return float(best.mean()), float(best.min())


class BertScore(NamedTuple):
    """Greedy matching of tokens by meaning, each in [-1, 1]."""

    precision: float
    recall: float
    f1: float


def bert_score(expected: Array, actual: Array) -> BertScore:
    """Return BERTScore of unit-length token embeddings, no weights and no rescaling.

    Args:
        expected: Tokens of the reference. Shape (n, dim).
        actual: Tokens to judge. Shape (m, dim).

    Raises:
        NotScorable: If either has no token.

    Source:
        T. Zhang et al., "BERTScore: evaluating text generation with BERT", 2020.
    """
    if not len(expected) or not len(actual):
        raise NotScorable("no token")
    table = cosines(actual, expected)
    precision, recall = float(table.max(axis=1).mean()), float(table.max(axis=0).mean())
    f1 = claim_f1(precision, recall) if min(precision, recall) > 0 else min(precision, recall)
    return BertScore(precision, recall, f1)


def token_vectors(view: CaseView, text: str) -> Array:
    """Return a text's token embeddings, shape (n, dim); a long text's windows one after another."""
    pieces = [text] if view.models.fits(text) else view.pieces(text)
    return np.concatenate([view.models.token_vectors(piece) for piece in pieces])


class SimilarityParameters(Parameters):
    """The cut that makes similarity a verdict.

    Attributes:
        threshold: Least cosine of a similar answer, whose value is then 1 and that of others 0;
            Ragas' parameter. Without it the cosine is the value.
    """

    threshold: float | None = Field(None, ge=-1.0, le=1.0)


@evaluator
class AnswerSimilarity(Evaluator[SimilarityParameters]):
    """Cosine of the whole texts, or a cross-encoder's word; of several answers the nearest."""

    spec = EvaluatorSpec(
        id="answer_semantic_similarity",
        name="Answer semantic similarity",
        summary="Does the answer as a whole mean what the expected answer means?",
        metrics=(MetricSpec("answer_similarity", low=-1.0, threshold=0.75),),
        inputs=frozenset({"expected", "answer"}),
        run_class="E",
        h2o_id=_H2O + "rag_answer_similarity_evaluator.AnswerSemanticSimilarityEvaluator",
        also=("ragas:answer_similarity",),
        original="E",
        roles=_EMBEDDING,
        tags=_TAGS,
    )
    parameters = SimilarityParameters

    def judge(self, view: CaseView, parameters: SimilarityParameters) -> Mapping[str, float]:
        """Return the cosine, or whether it reaches the threshold."""
        found = best_similarity(view)
        cut = parameters.threshold
        return {"answer_similarity": found if cut is None else float(found >= cut)}


@evaluator
class AnswerSentenceSimilarity(Evaluator[NoParameters]):
    """For each answer sentence its best expected sentence; mean and minimum."""

    spec = EvaluatorSpec(
        id="answer_semantic_sentence_similarity",
        name="Answer semantic sentence similarity",
        summary="Does every sentence of the answer mean what some expected sentence means?",
        metrics=(
            MetricSpec("mean_answer_similarity", low=-1.0, threshold=0.75),
            MetricSpec("min_answer_similarity", low=-1.0, threshold=0.75),
        ),
        inputs=frozenset({"expected", "answer"}),
        run_class="E",
        h2o_id=_H2O + "answer_semantic_similarity_per_sentence_evaluator."
        "AnswerSemanticSimilarityPerSentenceEvaluator",
        original="E",
        roles=_EMBEDDING,
        tags=_TAGS,
        scores="0.2.0",
    )
    parameters = NoParameters

    def judge(self, view: CaseView, parameters: NoParameters) -> Mapping[str, float]:
        """Return mean and minimum."""
        said, expected = view.pieces(view.answer), view.pieces(view.closest)
        embed_ahead(view, *said, *expected)
        mean, least = sentence_similarity(cosines(embedded(view, said), embedded(view, expected)))
        return {"mean_answer_similarity": mean, "min_answer_similarity": least}


@evaluator
class AnswerRelevancy(Evaluator[NoParameters]):
    """The cosine between the answer and the question."""

    spec = EvaluatorSpec(
        id="answer_relevancy",
        name="Answer relevancy",
        summary="Does the answer address the question?",
        metrics=(MetricSpec("answer_relevancy", low=-1.0, threshold=0.75),),
        inputs=frozenset({"question", "answer"}),
        run_class="E",
        h2o_id=_H2O + "rag_answer_relevancy_evaluator.AnswerRelevancyEvaluator",
        also=("ragas:answer_relevancy",),
        original="J",
        surrogate="the best answer sentence in place of questions a judge makes from the answer: "
        "the number of answer_relevancy_sentence",
        same_as={"answer_relevancy": "answer_relevancy_sentence.answer_relevancy"},
        roles=_EMBEDDING,
        tags=_TAGS,
    )
    parameters = NoParameters

    def judge(self, view: CaseView, parameters: NoParameters) -> Mapping[str, float]:
        """Return the best cosine."""
        return {"answer_relevancy": question_relevancy(view)}


class MrrParameters(Parameters):
    """The cuts that make a passage relevant.

    Attributes:
        mrr_relevant_chunk_threshold: Least cosine of its best sentence with the question.
        mrr_relevant_chunk_oor_idx: A first relevant passage behind this rank counts as none.
    """

    mrr_relevant_chunk_threshold: float = Field(0.7, ge=-1.0, le=1.0)
    mrr_relevant_chunk_oor_idx: int = Field(10, ge=1)


@evaluator
class ContextMrr(Evaluator[MrrParameters]):
    """1 / rank of the first relevant passage; the mean is taken over a model's cases."""

    spec = EvaluatorSpec(
        id="context_mrr",
        name="Context mean reciprocal rank",
        summary="How early does the first relevant passage come?",
        metrics=(MetricSpec("mean_reciprocal_rank", threshold=0.75),),
        inputs=frozenset({"question", "contexts"}),
        run_class="E",
        h2o_id=_H2O + "rag_context_mean_reciprocal_rank_evaluator.MeanReciprocalRankEvaluator",
        original="E",
        roles=_EMBEDDING,
        problem="retrieval",
        tags=_TAGS,
    )
    parameters = MrrParameters

    def judge(self, view: CaseView, parameters: MrrParameters) -> Mapping[str, float]:
        """Return the reciprocal rank."""
        cut = parameters.mrr_relevant_chunk_threshold
        relevant = [score >= cut for score in chunk_scores(view)]
        rank = reciprocal_rank(relevant, parameters.mrr_relevant_chunk_oor_idx)
        return {"mean_reciprocal_rank": rank}


class RelevantSentencesParameters(Parameters):
    """The cut that makes a sentence relevant.

    Attributes:
        relevant_sentence_threshold: Least cosine with the question. Not calibrated: on the example
            lab sentences that answer the question begin at about 0.4.
    """

    relevant_sentence_threshold: float = Field(0.4, ge=-1.0, le=1.0)


@evaluator
class ContextRelevancy(Evaluator[RelevantSentencesParameters]):
    """Relevant passage sentences / passage sentences."""

    spec = EvaluatorSpec(
        id="context_relevancy",
        name="Context relevancy",
        summary="Which share of the passages' sentences is about the question?",
        metrics=(MetricSpec("context_relevancy", threshold=0.75),),
        inputs=frozenset({"question", "contexts"}),
        run_class="E",
        h2o_id=_H2O + "rag_context_relevancy_evaluator.ContextRelevancyEvaluator",
        also=("ragas:context_relevancy",),
        original="J",
        surrogate="a cut on cosines in place of a judge",
        roles=_EMBEDDING,
        problem="retrieval",
        tags=_TAGS,
    )
    parameters = RelevantSentencesParameters

    def judge(self, view: CaseView, parameters: RelevantSentencesParameters) -> Mapping[str, float]:
        """Return the share."""
        question = view.models.embed(view.pieces(view.question))
        texts = [piece for passage in view.contexts for piece in view.pieces(passage.text)]
        best = cosines(question, view.models.embed(texts)).max(axis=0)
        return {
            "context_relevancy": share((best >= parameters.relevant_sentence_threshold).tolist())
        }


@evaluator
class BertScoreEvaluator(Evaluator[NoParameters]):
    """BERTScore on the pack's token embeddings: comparable within one pack only."""

    spec = EvaluatorSpec(
        id="bertscore",
        name="BERTScore",
        summary="Do the answer's words mean what the expected answer's words mean?",
        metrics=(
            MetricSpec("bertscore_f1", low=-1.0),
            MetricSpec("bertscore_precision", low=-1.0),
            MetricSpec("bertscore_recall", low=-1.0),
        ),
        inputs=frozenset({"expected", "answer"}),
        run_class="E",
        also=("open_rag_eval:bert_score",),
        original="E",
        surrogate="the pack's encoder in place of xlm-roberta-large, no baseline rescaling",
        roles=_EMBEDDING,
        tags=_TAGS,
    )
    parameters = NoParameters

    def judge(self, view: CaseView, parameters: NoParameters) -> Mapping[str, float]:
        """Return F1, precision and recall."""
        found = max(
            (
                bert_score(token_vectors(view, expected), token_vectors(view, view.answer))
                for expected in view.right_answers
            ),
            key=attrgetter("f1"),
        )
        return {f"bertscore_{key}": value for key, value in found._asdict().items()}

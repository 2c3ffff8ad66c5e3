"""Formulas over verdicts about claims and passages. Pure: no model, no text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from guardrail_service.errors import NotScorable

Verdicts = npt.NDArray[np.bool_]


def any_claim(table: Verdicts) -> Verdicts:
    """Return whether each passage supports some claim, from a claims x passages table."""
    return np.asarray(table.any(axis=0))


def any_passage(table: Verdicts) -> Verdicts:
    """Return whether some passage supports each claim, from a claims x passages table."""
    return np.asarray(table.any(axis=1))


def share(verdicts: Sequence[bool]) -> float:
    """Return the share of claims with a positive verdict.

    Faithfulness, context recall and context relevancy are this share of claims or sentences.

    Raises:
        NotScorable: If there is no verdict.
    """
    if not len(verdicts):
        raise NotScorable("no claim")
    return sum(map(bool, verdicts)) / len(verdicts)


def average_precision(relevant: Sequence[bool]) -> float:
    """Return the mean of precision@k over the ranks k that are relevant; 0 if none is.

    Context precision and utilisation are this number over the passages' verdicts.

    Raises:
        NotScorable: If nothing was ranked.

    Source:
        Ragas' formula without its 1e-10 in the denominator; Open RAG Eval METRICS.md, AP@K.
    """
    if not len(relevant):
        raise NotScorable("nothing ranked")
    hits = 0
    total = 0.0
    for rank, is_relevant in enumerate(relevant, start=1):
        if is_relevant:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


def precision_at(relevant: Sequence[bool], k: int) -> float:
    """Return the share of relevant passages among the first k.

    Raises:
        NotScorable: If fewer than k passages were ranked.
    """
    if len(relevant) < k:
        raise NotScorable("fewer passages than k")
    return sum(map(bool, relevant[:k])) / k


def reciprocal_rank(relevant: Sequence[bool], last: int | None = None) -> float:
    """Return 1 / rank of the first relevant passage; 0 if none is within the first `last`."""
    for rank, is_relevant in enumerate(relevant, start=1):
        if is_relevant:
            return 1 / rank if last is None or rank <= last else 0.0
    return 0.0


def f1_of_counts(tp: int, fp: int, fn: int) -> float:
    """Return TP / (TP + (FP + FN) / 2).

    Raises:
        NotScorable: If there was nothing to count.
    """
    if not tp + fp + fn:
        raise NotScorable("no claim")
    return tp / (tp + 0.5 * (fp + fn))


def correctness(f1: float, similarity: float, weights: tuple[float, float]) -> float:
    """Return the weighted mean of F1 over claims and similarity of meaning.

    Source:
        Ragas and H2O Eval Studio, "Answer correctness": weights 0.75 and 0.25.
    """
    return (weights[0] * f1 + weights[1] * similarity) / (weights[0] + weights[1])


def harmonic_mean(values: Sequence[float]) -> float:
    """Return the harmonic mean; 0 if any value is 0 or less, which is its limit.

    Raises:
        NotScorable: If there is no value.
    """
    if not len(values):
        raise NotScorable("no value")
    if min(values) <= 0:
        return 0.0
    return len(values) / sum(1 / value for value in values)


def noise_sensitivity(
    correct: Verdicts, by_passage: Verdicts, relevant: Verdicts
) -> tuple[float, float]:
    """Return the shares of claims that are wrong and come from relevant, and from other, passages.

    A claim found in a relevant passage does not count as coming from another one.

    Args:
        correct: Whether each claim is in the expected answer. Shape (claims,).
        by_passage: Whether each passage supports each claim. Shape (claims, passages).
        relevant: Whether each passage supports something expected. Shape (passages,).

    Raises:
        NotScorable: If there is no claim.

    Source:
        Ragas, "Noise sensitivity"; RAGChecker keeps the two apart in the same way.
    """
    if not len(correct):
        raise NotScorable("no claim")
    from_relevant = any_passage(by_passage & relevant)
    from_other = any_passage(by_passage & ~relevant) & ~from_relevant
    return float((from_relevant & ~correct).mean()), float((from_other & ~correct).mean())


def claim_f1(precision: float, recall: float) -> float:
    """Return the harmonic mean of precision and recall; 0 if both are 0."""
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


def rag_checker(
    correct: Verdicts, answered: Verdicts, response: Verdicts, expected: Verdicts
) -> dict[str, float]:
    """Return RAGChecker's eleven metrics.

    Args:
        correct: Whether the expected answer supports each claim of the answer. Shape (claims,).
        answered: Whether the answer supports each expected claim. Shape (expected,).
        response: Whether each passage supports each claim. Shape (claims, passages).
        expected: Whether each passage supports each expected claim. Shape (expected, passages).

    Raises:
        NotScorable: If there is no claim, no expected claim or no passage.

    Source:
        D. Ru et al., "RAGChecker: a fine-grained framework for diagnosing RAG", 2024. Where the
        passages hold no expected claim, context utilisation is 0, as there.
    """
    if not response.size or not expected.size:
        raise NotScorable("no claim or no passage")
    precision, recall = float(correct.mean()), float(answered.mean())
    recalled, relevant = any_passage(expected), any_claim(expected)
    faithful = any_passage(response)
    in_relevant, in_irrelevant = noise_sensitivity(correct, response, relevant)
    return {
        "f1": claim_f1(precision, recall),
        "precision": precision,
        "recall": recall,
        "claim_recall": float(recalled.mean()),
        "context_precision": float(relevant.mean()),
        "context_utilization": float(answered[recalled].mean()) if recalled.any() else 0.0,
        "noise_sensitivity_in_relevant": in_relevant,
        "noise_sensitivity_in_irrelevant": in_irrelevant,
        "hallucination": float((~faithful & ~correct).mean()),
        "self_knowledge": float((~faithful & correct).mean()),
        "faithfulness": float(faithful.mean()),
    }

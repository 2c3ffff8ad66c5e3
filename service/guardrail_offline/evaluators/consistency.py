"""Compares the answers of reruns of one question: statistics over pairs of answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
from pydantic import Field

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import (
    HIGHER,
    LOWER,
    Evaluator,
    EvaluatorSpec,
    evaluator,
)
from guardrail_offline.evaluators.embeddings import BertScore, bert_score, token_vectors
from guardrail_offline.evaluators.result import Result, Score
from guardrail_offline.evaluators.rouge import Overlap, rouge, rouge_words
from guardrail_service.detectors.registry import Parameters
from guardrail_service.errors import NotScorable
from guardrail_service.types import MetricSpec, State

MIN_RUNS = 3
"""Two answers make one pair, of which there is no spread; Open RAG Eval asks for three, too."""


class ScoreSpread(NamedTuple):
    """Statistics of one metric over reruns.

    `cv` is the standard deviation over the mean's size, `adjusted` the mean over 1 + the standard
    deviation (Open RAG Eval's consistency-adjusted index). Variance is that of the population.
    """

    mean: float
    variance: float
    std: float
    cv: float | None
    median: float
    iqr: float
    adjusted: float


def spread(values: Sequence[float], least: int = MIN_RUNS) -> ScoreSpread:
    """Return the statistics of at least `least` values; `cv` is None where the mean is 0.

    Raises:
        NotScorable: If there are fewer.
    """
    if len(values) < least:
        raise NotScorable("too few runs")
    numbers = np.asarray(values, dtype=np.float64)
    mean, std = float(numbers.mean()), float(numbers.std())
    low, median, high = (float(q) for q in np.percentile(numbers, (25, 50, 75)))
    variance = float(numbers.var())
    return ScoreSpread(
        mean, variance, std, std / abs(mean) if mean else None, median, high - low, mean / (1 + std)
    )


class ConsistencyParameters(Parameters):
    """The number of answers that make a group.

    Attributes:
        min_runs: Fewer answers of one model to one question are not judged.
    """

    min_runs: int = Field(MIN_RUNS, ge=MIN_RUNS)


_STATISTICS = ("mean", "variance", "cv", "adjusted")
_PAIRS = tuple(f"rouge_2_{name}" for name in _STATISTICS)
_KINDS = ("bertscore", "rouge_l", "rouge_1", "rouge_2")


@evaluator
class Consistency(Evaluator[ConsistencyParameters]):
    """BERTScore and ROUGE-1, -2 and -L over all pairs of a model's answers to the same question.

    Each metric is F1; of a pair the earlier answer is the reference for precision and recall, whose
    statistics are in the details.
    """

    spec = EvaluatorSpec(
        id="consistency",
        name="Consistency",
        summary="Do repeated runs of a question give the same answer?",
        metrics=tuple(
            MetricSpec(
                f"{kind}_{name}",
                LOWER if name in ("variance", "cv") else HIGHER,
                low=-1.0 if name in ("mean", "adjusted") and kind == "bertscore" else 0.0,
                high=float("inf") if name == "cv" else 1.0,
            )
            for kind in _KINDS
            for name in _STATISTICS
        ),
        inputs=frozenset({"question", "answer", "reruns"}),
        run_class="E",
        also=("open_rag_eval:consistency",),
        original="E",
        surrogate="the pack's encoder in place of xlm-roberta-large, no baseline rescaling",
        roles=frozenset({"embedding"}),
        problem="stability",
        tags=("semantic-similarity", "ngram", "nist:valid-reliable", "sr11-7:ongoing-monitoring"),
    )
    parameters = ConsistencyParameters

    def judge(self, view: CaseView, parameters: ConsistencyParameters) -> Result:
        """Return that one answer alone cannot be consistent."""
        raise Unavailable(State.NOT_APPLICABLE, "too_few_runs")

    def evaluate(
        self, views: Sequence[CaseView], parameters: ConsistencyParameters
    ) -> list[Result]:
        """Return for every case the statistics of its model's reruns of its question."""
        runs: dict[tuple[str, str], list[CaseView]] = defaultdict(list)
        for view in views:
            runs[view.case.model, view.case.question].append(view)
        found = {key: self.guarded(partial(_of_runs, run, parameters)) for key, run in runs.items()}
        return [found[view.case.model, view.case.question] for view in views]


def _of_runs(views: Sequence[CaseView], parameters: ConsistencyParameters) -> Result:
    _ = views[0].question  # without one nothing says that the answers belong together
    answers = [view.case.answer for view in views if (view.case.answer or "").strip()]
    if len(answers) < parameters.min_runs:
        raise Unavailable(State.NOT_APPLICABLE, "too_few_runs")
    texts = [answer or "" for answer in answers]
    tokens = [token_vectors(views[0], text) for text in texts]
    pairs = list(combinations(range(len(texts)), 2))
    scores: dict[str, list[BertScore | Overlap]] = {kind: [] for kind in _KINDS}
    for i, j in pairs:
        scores["bertscore"].append(bert_score(tokens[i], tokens[j]))
        for kind, found in rouge(texts[i], texts[j]).items():
            scores[kind].append(found)
    values = {
        f"{kind}_{name}": _statistic(spread([one.f1 for one in found]), name)
        for kind, found in scores.items()
        for name in _STATISTICS
    }
    parts = {
        f"{kind}_{part}": spread([getattr(one, part) for one in found])._asdict()
        for kind, found in scores.items()
        for part in ("precision", "recall")
    }
    result = Result.of(values, details={"pairs": len(pairs), **parts})
    if max(len(rouge_words(text)) for text in texts) > 1:
        return result
    lone = Score.missing(State.NOT_APPLICABLE, "no_word_pairs")
    return replace(result, scores={**result.scores, **dict.fromkeys(_PAIRS, lone)})


def _statistic(found: ScoreSpread, name: str) -> float:
    value: float | None = getattr(found, name)
    # The mean is 0 only if no pair shares anything: then the spread is 0 too, and so is its share.
    return 0.0 if value is None else value

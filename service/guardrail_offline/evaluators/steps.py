"""Compares the steps of a procedure, and their order, with those in the passages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import re2
from pydantic import Field

from guardrail_offline.evaluators.case_view import CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import (
    LOWER,
    UNBOUNDED,
    Evaluator,
    EvaluatorSpec,
    evaluator,
)
from guardrail_offline.evaluators.embeddings import whole_vector
from guardrail_offline.evaluators.pack_models import sentences_of
from guardrail_service.detectors.groundedness import cosines
from guardrail_service.detectors.registry import Parameters
from guardrail_service.text.patterns.search import encodable
from guardrail_service.types import MetricSpec, State

_MARKER = re2.compile(
    r"(?i)^\s*(?:(?:step\s+)?\d{1,3}[.):]|[-*\x{2022}\x{2023}\x{00b7}]|step\s+\d{1,3}\b[.):]?|[a-h][.)])\s+"
)
_ORDINAL = re2.compile(
    r"(?i)^(?:and\s+)?(?:first|firstly|second|secondly|third|thirdly|fourth|then|next|after that|"
    r"afterwards|finally|lastly|last)\b,?\s+"
)


class Alignment(NamedTuple):
    """Fewest edits that turn the answer's steps into the reference's."""

    edits: int
    insertions: int
    deletions: int
    mismatches: int


def steps(text: str) -> list[str]:
    """Return the steps of the lists in a text, without their markers.

    A step is a sentence behind a number, a bullet, a letter, "Step 3:", or a word of order such as
    "Then". A lone one is no list.
    """
    found = [step for s in sentences_of(text) if (step := _step(s.text))]
    return found if len(found) > 1 else []


def _step(sentence: str) -> str:
    plain = encodable(sentence)
    for marker in (_MARKER, _ORDINAL):
        match = marker.match(plain)
        if match:
            return plain[match.end() :].strip()
    return ""


def align(similarity: npt.NDArray[np.float64], same: float) -> Alignment:
    """Return the cheapest global alignment of reference steps (rows) with answer steps.

    Inserting, deleting and replacing a step cost 1 each; steps at least `same` alike cost nothing.
    Of equally cheap alignments the one with the most pairs is taken, then the earliest insertion.

    Args:
        similarity: Shape (reference, answer).
        same: Least similarity of one and the same step.

    Source:
        S. Needleman and C. Wunsch, 1970; H2O Eval Studio manual, "Step alignment".
    """
    rows, columns = similarity.shape
    cost = np.zeros((rows + 1, columns + 1), dtype=np.int64)
    cost[:, 0], cost[0, :] = np.arange(rows + 1), np.arange(columns + 1)
    differs = (similarity < same).astype(np.int64)
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            pair = cost[i - 1, j - 1] + differs[i - 1, j - 1]
            cost[i, j] = min(pair, cost[i - 1, j] + 1, cost[i, j - 1] + 1)
    return _walked(cost, differs)


def _walked(cost: npt.NDArray[np.int64], differs: npt.NDArray[np.int64]) -> Alignment:
    i, j = cost.shape[0] - 1, cost.shape[1] - 1
    insertions = deletions = mismatches = 0
    while i or j:
        if i and j and cost[i, j] == cost[i - 1, j - 1] + differs[i - 1, j - 1]:
            mismatches += int(differs[i - 1, j - 1])
            i, j = i - 1, j - 1
        elif i and cost[i, j] == cost[i - 1, j] + 1:
            insertions += 1
            i -= 1
        else:
            deletions += 1
            j -= 1
    return Alignment(int(cost[-1, -1]), insertions, deletions, mismatches)


class StepParameters(Parameters):
    """The cut from which two steps count as one.

    Attributes:
        same_step_threshold: Least cosine. Not calibrated: reworded steps of the example lab are at
            0.6 and above, other steps of the same procedure below.
    """

    same_step_threshold: float = Field(0.6, ge=-1.0, le=1.0)


@evaluator
class StepAlignment(Evaluator[StepParameters]):
    """Compares the answer's steps with the passages' by meaning and order."""

    spec = EvaluatorSpec(
        id="step_alignment",
        name="Step alignment and completeness",
        summary="Are the answer's steps those of the passages, in their order?",
        metrics=(
            MetricSpec("edits", LOWER, high=UNBOUNDED),
            MetricSpec("insertions", LOWER, high=UNBOUNDED),
            MetricSpec("deletions", LOWER, high=UNBOUNDED),
            MetricSpec("mismatches", LOWER, high=UNBOUNDED),
            MetricSpec("original_detected_steps", high=UNBOUNDED),
            MetricSpec("generated_detected_steps", high=UNBOUNDED),
        ),
        inputs=frozenset({"contexts", "answer"}),
        run_class="E",
        h2o_id="h2o_sonar.evaluators.procedure_evaluator.ProcedureEvaluator",
        original="J",
        surrogate="steps by list markers in place of a judge",
        roles=frozenset({"embedding"}),
        tags=("semantic-similarity", "rule-based", "nist:valid-reliable"),
    )
    parameters = StepParameters

    def judge(self, view: CaseView, parameters: StepParameters) -> Mapping[str, float]:
        """Return the edits and how many steps each side has."""
        wanted = [step for passage in view.contexts for step in steps(passage.text)]
        given = steps(view.answer)
        if not wanted:
            raise Unavailable(State.NOT_APPLICABLE, "no_steps")
        similarity = step_similarity(view, wanted, given)
        found = align(similarity, parameters.same_step_threshold)
        return {
            **{key: float(value) for key, value in found._asdict().items()},
            "original_detected_steps": float(len(wanted)),
            "generated_detected_steps": float(len(given)),
        }


def step_similarity(
    view: CaseView, wanted: Sequence[str], given: Sequence[str]
) -> npt.NDArray[np.float64]:
    """Return the cosines of two lists of steps, shape (wanted, given)."""
    if not given:
        return np.zeros((len(wanted), 0))
    return cosines(_vectors(view, wanted), _vectors(view, given))


def _vectors(view: CaseView, texts: Iterable[str]) -> npt.NDArray[np.float64]:
    return np.stack([whole_vector(view, text) for text in texts])

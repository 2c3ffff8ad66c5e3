"""Synthetic scored labs over real detector specs: no model, no text, known error rates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import guardrail_service.detectors  # noqa: F401 - registers the built-in detectors
from guardrail_offline.calibration.scored_lab import LabCase, ScoredLab
from guardrail_offline.evaluators.result import Score
from guardrail_service.detectors.registry import REGISTRY
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import Serving, load_file
from guardrail_service.types import State

FINGERPRINTS = {"embedding": "e" * 64, "segmenter": "segmenter/1", "evidence": "claims/1"}
SERVING = Serving(
    registry=REGISTRY,
    pack_name="synthetic",
    roles=frozenset({"embedding"}),
    fingerprints=FINGERPRINTS,
    defaults={
        "groundedness": {"groundedness": 0.3},
        "answer_relevancy_sentence": {"answer_relevancy": 0.1},
    },
)
BASE: dict[str, Any] = {
    "evaluator_ids": ["groundedness", "answer_relevancy_sentence", "language_mismatch"],
    "policy": {"name": "base", "version": "1", "actions": {"language_mismatch": "block"}},
}
MISSING = Score.missing(State.UNVERIFIED, "no_contexts")
ABSTAINED = Score.missing(State.NOT_APPLICABLE, "abstention")


def policy(folder: Path, **changes: Any) -> Policy:
    """Return the base policy, keys of its `policy` block changed."""
    path = folder / "base.json"
    path.write_text(json.dumps({**BASE, "policy": {**BASE["policy"], **changes}}))
    return load_file(path, SERVING).policy


def case(
    key: str,
    group: str,
    grounded: float | Score = 0.9,
    relevant: float | Score = 0.9,
    language: float | Score = 1.0,
    **more: Any,
) -> LabCase:
    """Return a scored case of the base policy's detectors."""
    values = {
        "groundedness": {"groundedness": grounded},
        "answer_relevancy_sentence": {"answer_relevancy": relevant},
        "language_mismatch": {"model_passes": language},
    }
    scores: Mapping[str, Mapping[str, Score]] = {
        name: {k: v if isinstance(v, Score) else Score(v) for k, v in metrics.items()}
        for name, metrics in values.items()
    }
    more.setdefault("facts", {"topic": f"t{len(group) % 2}"})
    return LabCase(key=key, group=group, scores=scores, **more)


def lab(
    questions: int = 200, seed: int = 1, reruns: int = 1, start: int = 0
) -> tuple[ScoredLab, dict[str, bool]]:
    """Return a lab with a quarter bad answers, and their labels.

    Good answers score high on both metrics, bad ones low on one of them; the reruns of a question
    repeat its answer with a little noise.
    """
    generator = np.random.default_rng(seed)
    cases, passes = [], {}
    for n in range(start, start + questions):
        good = generator.random() < 0.75
        base = generator.normal(0.75, 0.12, 2)
        if not good:
            base[generator.integers(2)] -= 0.5
        for rerun in range(reruns):
            grounded, relevant = np.clip(base + 0.01 * rerun, -1, 1)
            key = f"q{n}-{rerun}"
            cases.append(
                case(
                    key,
                    f"q{n}",
                    float(grounded),
                    float(relevant),
                    question=f"Question {n}?",
                    answer=f"Answer {n}, run {rerun}.",
                    facts={"topic": ("leave", "travel")[n % 2]},
                )
            )
            passes[key] = bool(good)
    return ScoredLab("synthetic lab", tuple(cases), FINGERPRINTS), passes

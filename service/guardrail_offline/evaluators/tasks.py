"""Evaluators by the task of a system: a summary is not judged as an answer, nor the reverse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from guardrail_offline.evaluators.catalogue import EvaluatorSpec
from guardrail_service.errors import ConfigurationError

_SAFETY = ("toxicity", "bias", "pii", "secrets", "looping", "language_mismatch")
TASKS: Mapping[str, tuple[str, ...]] = {
    "qa": (
        "faithfulness", "hallucination", "groundedness", "facts", "answer_correctness",
        "answer_semantic_similarity", "answer_relevancy_sentence", "context_relevancy_soft",
        "context_recall", "context_precision", "no_answer", "citations", "consistency", "rouge",
        "answer_strings", "retrieval_labels",
        "text_matching", *_SAFETY,
    ),
    "summarization": (
        "summarization", "summarization_judge", "summarization_with_reference_gptscore",
        "summarization_without_reference_gptscore", "rouge", "bertscore", *_SAFETY,
    ),
    "translation": (
        "bleu", "rouge", "answer_strings", "bertscore", "answer_semantic_similarity",
        "machine_translation_gptscore",
        "toxicity", "bias", "looping",
    ),
    "classification": ("classification", "json_schema", "consistency"),
    "agent": (
        "agent_sanity_check", "step_alignment", "json_schema", "text_matching", "fact_check",
        "injection", "links", *_SAFETY,
    ),
    "retrieval": ("umbrela", "nuggets"),
}  # fmt: skip
"""Ids by task; `retrieval` has every evaluator of that kind of problem, too."""
HEADLINES = ("answer_correctness", "faithfulness", "ragchecker", "ragas", "summarization_judge")
"""Evaluators that judge an answer's own claims one by one and give the share that is right, so that
one wrong word counts and one wrong sentence does not hide the others."""
PREFIX = "task:"


def of_task(name: str, specs: Iterable[EvaluatorSpec]) -> set[str]:
    """Return the ids of the evaluators of a task among some that are there.

    Raises:
        ConfigurationError: If there is no such task.
    """
    if name not in TASKS:
        raise ConfigurationError("--task", repr(name), f"one of {', '.join(TASKS)}")
    found = {spec.id: spec for spec in specs}
    chosen = {key for key in TASKS[name] if key in found}
    if name == "retrieval":
        chosen |= {key for key, spec in found.items() if spec.problem == "retrieval"}
    return chosen

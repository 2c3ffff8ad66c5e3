"""Reads the YAML of Open RAG Eval as the evaluators and parameters of a run.

Shape: `evaluator`, one or a list, each with `type` (TRECEvaluator, ConsistencyEvaluator,
GoldenAnswerEvaluator) or `name` (trecrag, consistency), and `options`. Models, connectors and files
of answers belong to that tool; the rest that has no counterpart here is named in a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from guardrail_service.errors import ConfigurationError, MissingExtra

_TREC = ("umbrela", "nuggets", "citations", "hallucination", "no_answer")
_GOLDEN = ("answer_semantic_similarity", "answer_correctness")
_KINDS: Mapping[str, tuple[str, ...]] = {
    "trecevaluator": _TREC,
    "trecrag": _TREC,
    "consistencyevaluator": ("consistency",),
    "consistency": ("consistency",),
    "goldenanswerevaluator": _GOLDEN,
}


class YamlSettings(NamedTuple):
    """Settings of Open RAG Eval as ours.

    Attributes:
        evaluators: By our ids.
        notes: What is done otherwise.
        assignments: Parameters, each `EVALUATOR.key=value` as `--set` takes them.
    """

    evaluators: tuple[str, ...]
    notes: tuple[str, ...]
    assignments: tuple[str, ...] = ()


def read_settings(path: Path) -> YamlSettings:
    """Return the evaluators that a configuration asks for.

    Raises:
        ConfigurationError: If it is no such file, or asks for what does not exist here.
        MissingExtra: If PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra("pyyaml") from error
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigurationError(str(path), type(error).__name__, "settings in YAML") from error
    found = content.get("evaluator") if isinstance(content, dict) else None
    given = found if isinstance(found, list) else [found]
    entries = [entry for entry in given if isinstance(entry, dict)]
    if not entries or len(entries) < len(given):
        raise ConfigurationError(f"{path}: evaluator", "another shape", "one or more with a type")
    names: dict[str, None] = {}
    notes: list[str] = []
    ranks: set[int] = set()
    for entry in entries:
        kind = str(entry.get("type") or entry.get("name"))
        if kind.lower() not in _KINDS:
            known = "TRECEvaluator, ConsistencyEvaluator or GoldenAnswerEvaluator"
            raise ConfigurationError(f"{path}: evaluator.type", repr(kind)[:60], known)
        names |= dict.fromkeys(_KINDS[kind.lower()])
        options = entry.get("options") or {}
        if not isinstance(options, dict):
            raise ConfigurationError(f"{path}: options", type(options).__name__, "an object")
        ranks |= _ranks(path, options)
        notes += _followed(path, options)
    assigned = (f"umbrela.k_values={sorted(ranks)}",) if ranks and "umbrela" in names else ()
    return YamlSettings(tuple(names), tuple(dict.fromkeys(notes)), assigned)


def _ranks(path: Path, options: Mapping[str, Any]) -> set[int]:
    values = options.get("k_values", [])
    ranks = values if isinstance(values, list) else [values]
    if not all(type(rank) is int and rank > 0 for rank in ranks):
        where = f"{path}: options.k_values"
        raise ConfigurationError(where, repr(values)[:60], "a list of ranks from 1")
    return set(ranks)


def _followed(path: Path, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield notes on options that nothing here follows to the letter."""
    if options.get("run_consistency") or options.get("metrics_to_run_consistency"):
        yield "run_consistency.json has every metric of questions with three runs or more"
    metrics = options.get("metrics", [])
    if not isinstance(metrics, list) or not all(isinstance(one, dict) for one in metrics):
        raise ConfigurationError(f"{path}: options.metrics", "another shape", "a list of objects")
    for name, parameters in (item for one in metrics for item in one.items()):
        if name not in ("bert_score", "rouge_score"):
            expected = "bert_score or rouge_score"
            raise ConfigurationError(f"{path}: options.metrics", repr(name)[:60], expected)
        for key in parameters or {}:
            yield f"{name}.{key}: the pack's encoder is used, without a baseline"

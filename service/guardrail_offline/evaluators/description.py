"""Describes the evaluators: the table behind `guardrail evaluators` and its page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from guardrail_offline.evaluators.catalogue import (
    CATALOGUE,
    RUN_CLASSES,
    AnyEvaluator,
    Common,
    EvaluatorSpec,
)
from guardrail_offline.evaluators.configured import Configured
from guardrail_service.detectors.registry import Parameters
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import MetricSpec

SUITES = ("h2o", "ragas", "open_rag_eval", "ragchecker", "trulens")


def of_suite(suite: str | None) -> list[EvaluatorSpec]:
    """Return the evaluators of one suite, or all.

    Raises:
        ConfigurationError: If there is no such suite.
    """
    if suite is not None and suite not in SUITES:
        raise ConfigurationError("--suite", repr(suite), f"one of {', '.join(SUITES)}")
    specs = CATALOGUE.specs()
    return [spec for spec in specs if suite is None or suite in suites_of(spec)]


def find(name: str) -> EvaluatorSpec:
    """Return an evaluator's spec by any of its names."""
    return CATALOGUE.find(name, "evaluators show").spec


def suites_of(spec: EvaluatorSpec) -> list[str]:
    """Return the suites an evaluator belongs to."""
    found = {name.split(":")[0] for name in spec.also}
    return [suite for suite in SUITES if suite in found or (suite == "h2o" and spec.h2o_id)]


def judge_free(spec: EvaluatorSpec) -> str:
    """Return how an evaluator does without a judge: exact, surrogate, or needs_judge."""
    if spec.needs_judge:
        return "needs_judge"
    return "surrogate" if spec.surrogate else "exact"


def describe(spec: EvaluatorSpec, *, parameters: bool = False) -> dict[str, Any]:
    """Return everything about an evaluator as plain values."""
    evaluator = CATALOGUE[spec.id]
    cuts = Configured(spec.id, Common(), evaluator.parameters()).thresholds()
    about: dict[str, Any] = {
        "id": spec.id,
        "name": spec.name,
        "h2o_id": spec.h2o_id,
        "summary": spec.summary,
        "suites": suites_of(spec),
        "also": list(spec.also),
        "run_class": spec.run_class,
        "run_class_meaning": RUN_CLASSES[spec.run_class],
        "original_run_class": spec.original,
        "judge_free": judge_free(spec),
        "surrogate": spec.surrogate or None,
        "needs_judge": spec.needs_judge,
        "deterministic": spec.deterministic,
        "inputs": sorted(spec.inputs),
        "roles": sorted(spec.roles | ({"grounding or nli"} if spec.needs_support else set())),
        "problem_type": spec.problem,
        "avid": spec.avid,
        "tags": [*spec.tags, "deterministic" if spec.deterministic else "non-deterministic"],
        "metrics": [_metric(spec, metric, cuts[metric.key]) for metric in spec.metrics],
    }
    if parameters:
        about["parameters"] = _parameters(evaluator)
    return about


def _metric(spec: EvaluatorSpec, metric: MetricSpec, threshold: float | None) -> dict[str, Any]:
    return {
        "key": metric.key,
        "direction": metric.direction.value,
        "range": [_plain(metric.low), _plain(metric.high)],
        "threshold": threshold,
        "boolean": metric.boolean,
        "primary": metric is spec.primary,
        "per_model": metric.key in spec.per_model,
    }


def _plain(value: float) -> float | str:
    return value if math.isfinite(value) else "infinity"


def _parameters(evaluator: AnyEvaluator) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    models: Sequence[type[Parameters]] = (evaluator.parameters, Common)
    for model in models:
        defaults = model().model_dump(mode="json", by_alias=True)
        documented = documented_attributes(model)
        for name, field in model.model_fields.items():
            key = field.alias or name
            text = field.description or documented.get(name, "")
            found[key] = {"default": defaults.get(key), "description": text}
    return found


def documented_attributes(model: type[Parameters]) -> dict[str, str]:
    """Return what a class' docstrings say under "Attributes:", inherited ones included."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, Parameters):
            continue
        text = (base.__doc__ or "").partition("Attributes:\n")[2]
        name = ""
        for line in text.splitlines():
            depth = len(line) - len(line.lstrip())
            if not line.strip():
                break
            if depth == 8 and ": " in line:
                name, _, rest = line.strip().partition(": ")
                found[name] = rest
            elif name:
                found[name] += f" {line.strip()}"
    return found


def markdown() -> str:
    """Return the page `docs/evaluators.md`: every evaluator with its metrics."""
    specs = CATALOGUE.specs()
    counts = {kind: sum(judge_free(s) == kind for s in specs) for kind in _KINDS}
    lines = [
        "# Evaluators",
        "",
        "<!-- Written by `guardrail evaluators list --markdown`; a test compares it. -->",
        "",
        "An evaluator scores recorded answers: `guardrail evaluate lab.json -e rouge,faithfulness "
        "--out run` runs two of them, and `guardrail evaluators show faithfulness` prints one with "
        "its parameters. [evaluation.md](evaluation.md) shows the rest.",
        "",
        f"{len(specs)} evaluators with {sum(len(spec.metrics) for spec in specs)} metrics; "
        f"{sum(spec.h2o_id is not None for spec in specs)} of them are those of H2O Eval Studio. "
        f"Without a judge {counts['exact']} follow the rule of their suite, "
        f"{counts['surrogate']} give a surrogate that says what it replaces, and "
        f"{counts['needs_judge']} decline until a judge is configured.",
        "",
        "Run classes: " + "; ".join(f"**{key}** {text}" for key, text in RUN_CLASSES.items()) + ".",
        "Weights differ from the suites', so their thresholds do not carry over: calibrate yours.",
        "A threshold `fitted` is the shipped one for this pack, `-` has no usable default.",
        "",
        "| id | class | judge-free | metrics: direction, range, threshold | reads | suites |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_line(spec) for spec in sorted(specs, key=lambda spec: spec.id)]
    lines += ["", "## Surrogates", ""]
    surrogates = {spec.id: spec.surrogate for spec in specs if spec.surrogate}
    lines += [f"- `{name}`: {surrogates[name]}" for name in sorted(surrogates)]
    return "\n".join(lines) + "\n"


_KINDS = ("exact", "surrogate", "needs_judge")


def _line(spec: EvaluatorSpec) -> str:
    evaluator = CATALOGUE[spec.id]
    cuts = Configured(spec.id, Common(), evaluator.parameters()).thresholds()
    metrics = "<br>".join(_metric_text(metric, cuts[metric.key]) for metric in spec.metrics)
    reads = " ".join(sorted(spec.inputs))
    roles = " ".join(sorted(spec.roles))
    return (
        f"| `{spec.id}` | {spec.run_class} | {judge_free(spec)} | {metrics} | {reads}"
        f"{' · ' + roles if roles else ''} | {' '.join(suites_of(spec)) or 'own'} |"
    )


def _metric_text(metric: MetricSpec, cut: float | None) -> str:
    arrow = "↑" if metric.direction.value == "higher_is_better" else "↓"
    low, high = (("∞" if math.isinf(v) else f"{v:g}") for v in (metric.low, metric.high))
    shown = "-" if cut is None else "fitted" if cut != metric.threshold else f"{cut:g}"
    return f"`{metric.key}` {arrow} [{low}, {high}] {shown}"

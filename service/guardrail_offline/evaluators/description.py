"""Describes the evaluators: the table behind `guardrail evaluators` and its page."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from inspect import getdoc
from typing import Any, Literal

from guardrail_offline.evaluators.backends import prompts_of
from guardrail_offline.evaluators.catalogue import (
    CATALOGUE,
    RUN_CLASSES,
    Common,
    EvaluatorSpec,
)
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.evaluators.grades import grade_of, grades_page
from guardrail_offline.evaluators.judge_forms import form_of
from guardrail_service.detectors.registry import Parameters
from guardrail_service.errors import ConfigurationError
from guardrail_service.inference.pack import resolve
from guardrail_service.resources import packs_dir
from guardrail_service.types import MetricSpec

SUITES = ("h2o", "ragas", "open_rag_eval", "ragchecker", "trulens")


METHODS = (
    "agents", "classifier", "judge", "language-model", "ngram", "nli", "rule-based",
    "semantic-similarity",
)  # fmt: skip
"""Tags that say how a number comes about; the others are principles, such as `nist:fair`."""
PRINCIPLES = ("nist", "sr11-7")


def of_suite(suite: str | None) -> list[EvaluatorSpec]:
    """Return the evaluators of one suite, or all.

    Raises:
        ConfigurationError: If there is no such suite.
    """
    if suite is not None and suite not in SUITES:
        raise ConfigurationError("--suite", repr(suite), f"one of {', '.join(SUITES)}")
    specs = CATALOGUE.specs()
    return [spec for spec in specs if suite is None or suite in suites_of(spec)]


def chosen(
    suite: str | None = None,
    *,
    method: str | None = None,
    tag: str | None = None,
    problem_type: str | None = None,
    deterministic: bool | None = None,
) -> list[EvaluatorSpec]:
    """Return the evaluators that have everything that is asked for.

    Args:
        suite: One of `SUITES`.
        method: One of `METHODS`.
        tag: A tag, or the part before its colon: `nist` means every principle of NIST's.
        problem_type: Of what kind a bad score is a problem.
        deterministic: Whether the same input always gives the same number.

    Raises:
        ConfigurationError: If no evaluator has one of them.
    """
    specs = CATALOGUE.specs()
    tags = {part for spec in specs for one in tags_of(spec) for part in _with_framework(one)}
    _known("--method", method, METHODS)
    _known("--tag", tag, tags)
    _known("--problem-type", problem_type, {spec.problem for spec in specs})
    return [
        spec
        for spec in of_suite(suite)
        if method in (None, *spec.tags)
        and (tag is None or any(tag in _with_framework(one) for one in tags_of(spec)))
        and problem_type in (None, spec.problem)
        and deterministic in (None, spec.deterministic)
    ]


def _known(option: str, value: str | None, known: Iterable[str]) -> None:
    if value is not None and value not in known:
        raise ConfigurationError(option, repr(value), f"one of {', '.join(sorted(known))}")


def find(name: str) -> EvaluatorSpec:
    """Return an evaluator's spec by any of its names."""
    return CATALOGUE.find(name, "evaluators show").spec


def suites_of(spec: EvaluatorSpec) -> list[str]:
    """Return the suites an evaluator belongs to."""
    found = {name.split(":")[0] for name in spec.also}
    return [suite for suite in SUITES if suite in found or (suite == "h2o" and spec.h2o_id)]


JudgeFree = Literal["exact", "other_model", "surrogate", "own", "needs_judge"]
KINDS: Mapping[JudgeFree, str] = {
    "exact": "follow formula and inputs of their suite",
    "other_model": "follow them with the pack's model in place of the suite's",
    "surrogate": "stand in for another number, and say for which",
    "own": "belong to no suite",
    "needs_judge": "need a judge",
}


def judge_free(spec: EvaluatorSpec) -> JudgeFree:
    """Return how an evaluator does without a judge, one of `KINDS`."""
    if spec.needs_judge:
        return "needs_judge"
    if spec.surrogate:
        return "surrogate"
    if not suites_of(spec):
        return "own"
    return "other_model" if spec.roles or spec.needs_support else "exact"


def declines(spec: EvaluatorSpec) -> str | None:
    """Return why an evaluator has no number on any case with the pack that ships, or None."""
    if spec.needs_judge:
        return "needs_judge"
    missing = sorted(spec.roles - _shipped_roles())
    return f"missing_role:{missing[0]}" if missing else None


@cache
def _shipped_roles() -> frozenset[str]:
    manifest = resolve("embedded", packs_dir()) / "manifest.json"
    return frozenset(json.loads(manifest.read_text("utf-8"))["roles"])


def tags_of(spec: EvaluatorSpec) -> list[str]:
    """Return methods and principles, and whether numbers repeat.

    Where an evaluator names no part of SR 11-7, its inputs do: one that compares with what should
    have come out analyses outcomes, and one that needs no such thing can watch live answers.
    """
    tags = [*spec.tags]
    if not any(tag.startswith("sr11-7:") for tag in tags):
        compares = spec.compares or not spec.inputs.isdisjoint({"expected", "condition"})
        tags.append("sr11-7:outcomes-analysis" if compares else "sr11-7:ongoing-monitoring")
    return [*tags, "deterministic" if spec.deterministic else "non-deterministic"]


def _with_framework(tag: str) -> tuple[str, str]:
    return tag, tag.partition(":")[0]


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
        "same_as": dict(spec.same_as),
        "needs_judge": spec.needs_judge,
        "declines": declines(spec),
        "prompts": prompts_of(spec.id),
        "grade": grade_of(spec),
        "deterministic": spec.deterministic,
        "inputs": sorted(spec.inputs),
        "roles": sorted(spec.roles | ({"grounding or nli"} if spec.needs_support else set())),
        "problem_type": spec.problem,
        "avid": spec.avid,
        "tags": tags_of(spec),
        "metrics": [_metric(spec, metric, cuts[metric.key]) for metric in spec.metrics],
    }
    if parameters:
        about["definition"] = getdoc(type(getattr(evaluator, "detector", evaluator))) or ""
        about["parameters"] = _parameters(evaluator.parameters)
        form = form_of(spec.id)
        own = evaluator.parameters if form is None else form.parameters or evaluator.parameters
        about["judge_parameters"] = _parameters(own) if form is not None else {}
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


def _parameters(own: type[Parameters]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    models: Sequence[type[Parameters]] = (own, Common)
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
    counts = Counter(judge_free(spec) for spec in specs)
    away = sorted(spec.id for spec in specs if declines(spec))
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
        + "; ".join(f"{counts[kind]} {meaning} (`{kind}`)" for kind, meaning in KINDS.items())
        + ".",
        "",
        f"{len(away)} have no number with the pack that ships, for want of a judge or of a causal "
        f"language model: {', '.join(f'`{name}`' for name in away)}.",
        "",
        "By a judge, where one is named ([judge.md](judge.md)): "
        + ", ".join(f"`{spec.id}`" for spec in specs if prompts_of(spec.id))
        + ".",
        "",
        "Run classes: " + "; ".join(f"**{key}** {text}" for key, text in RUN_CLASSES.items()) + ".",
        "Weights differ from the suites', so their thresholds do not carry over: calibrate yours.",
        "A threshold `fitted` is the shipped one for this pack, `-` has no usable default.",
        "",
        "The grade says how far numbers agree with labels of people; "
        "[grades](#grades) has them all.",
        "",
        "| id | class | judge-free | grade | metrics: direction, range, threshold | reads "
        "| suites |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [_line(spec) for spec in sorted(specs, key=lambda spec: spec.id)]
    lines += ["", "## Surrogates", ""]
    surrogates = {spec.id: spec.surrogate for spec in specs if spec.surrogate}
    lines += [f"- `{name}`: {surrogates[name]}" for name in sorted(surrogates)]
    lines += ["", "## One number under two names", ""]
    lines += [
        f"- `{spec.id}.{key}` is `{other}`"
        for spec in sorted(specs, key=lambda spec: spec.id)
        for key, other in spec.same_as.items()
    ]
    return "\n".join([*lines, *grades_page(specs)]) + "\n"


def _line(spec: EvaluatorSpec) -> str:
    evaluator = CATALOGUE[spec.id]
    cuts = Configured(spec.id, Common(), evaluator.parameters()).thresholds()
    metrics = "<br>".join(_metric_text(metric, cuts[metric.key]) for metric in spec.metrics)
    reads = " ".join(sorted(spec.inputs))
    roles = " ".join(sorted(spec.roles))
    return (
        f"| `{spec.id}` | {spec.run_class} | {judge_free(spec)} | {grade_of(spec)['grade']} "
        f"| {metrics} | {reads}"
        f"{' · ' + roles if roles else ''} | {' '.join(suites_of(spec)) or 'own'} |"
    )


def _metric_text(metric: MetricSpec, cut: float | None) -> str:
    arrow = "↑" if metric.direction.value == "higher_is_better" else "↓"
    low, high = (("∞" if math.isinf(v) else f"{v:g}") for v in (metric.low, metric.high))
    shown = "-" if cut is None else "fitted" if cut != metric.threshold else f"{cut:g}"
    return f"`{metric.key}` {arrow} [{low}, {high}] {shown}"

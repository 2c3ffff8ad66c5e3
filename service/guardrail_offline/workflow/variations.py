"""Step 8: asks the target the same questions in other words, and counts verdicts that flip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from guardrail_offline.calibration.split import chance
from guardrail_offline.datasets.cases import Case
from guardrail_offline.datasets.labs import open_lab
from guardrail_offline.evaluators.configured import Configured
from guardrail_offline.perturbation import variants
from guardrail_offline.perturbation.lexicon import named
from guardrail_offline.runs.flips import FlipTally
from guardrail_offline.runs.run_folder import MANIFEST, recorded
from guardrail_offline.runs.shards import Layout, ScoredCase, by_group, read_scored
from guardrail_offline.workflow.definition import VariationParameters
from guardrail_offline.workflow.evaluation import (
    LAB,
    answered,
    evaluators,
    judged_by,
    notes,
    run_files,
    scored,
)
from guardrail_offline.workflow.score_table import case_facts, rate
from guardrail_offline.workflow.step_engine import StepContext, StepOutcome
from guardrail_service.errors import ConfigurationError

_NO_ANSWERS = "the answers are given: there is nobody to ask again"


def vary(context: StepContext) -> StepOutcome:
    """Return which verdicts flip when a question is asked with typos or in other words."""
    parameters: VariationParameters = context.parameters
    target = context.definition.target
    empty: dict[str, Any] = {"rates": [], "flips": [], "unpaired": 0, "variants": 0}
    if target is None or target.answers is not None:
        return StepOutcome(empty, skipped=_NO_ANSWERS)
    sources = _sources(context, parameters)
    made = variants.perturb(
        sources,
        [variants.parse(name) for name in _names(parameters.by)],
        levels(parameters.intensity),
        parameters.seed,
        named(parameters.lexicon),
    )
    if not made.added:
        return StepOutcome(empty, {"sources": len(sources)}, skipped="no question could be varied")
    cases = answered(context, made.cases)
    run = scored(context, cases)
    thresholds = context.results("calibration")["thresholds"]
    found = flips(Layout(run), with_thresholds(evaluators(context), thresholds), thresholds)
    told = [f"{len(made.unchanged)} variants had nothing to change"] if made.unchanged else []
    inputs = {"sources": len(sources), "variants": made.added}
    return StepOutcome(
        {**found, "variants": made.added},
        inputs,
        run_files(context, run),
        [*told, *notes(context, cases)],
        judged_by(context),
    )


def with_thresholds(
    configured: Sequence[Configured], thresholds: Sequence[Mapping[str, Any]]
) -> list[Configured]:
    """Return the evaluators of gating metrics, with the thresholds of the calibration."""
    cuts: dict[str, dict[str, float]] = {}
    for one in thresholds:
        if one["gates"]:
            cuts.setdefault(one["evaluator"], {})[one["key"]] = one["threshold"]
    return [
        replace(one, common=one.common.model_copy(update={"metric_threshold": cuts[one.id]}))
        for one in configured
        if one.id in cuts
    ]


def flips(
    layout: Layout, configured: Sequence[Configured], thresholds: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the rates of flips by metric and perturbation, by topic and generator, and all flips.

    Args:
        layout: A finished run over sources and variants.
        configured: Its evaluators with the thresholds that decide.
        thresholds: Of the calibration: gating metrics only are counted.
    """
    gating = {one["metric"] for one in thresholds if one["gates"]}
    tally, scored_cases = FlipTally(configured), list(_scored(layout))
    groups = by_group((one.index, one.case) for one in scored_cases)
    by_index = {one.index: one for one in scored_cases}
    for group in groups:
        tally.add([by_index[index] for index, _ in group])
    found = tally.as_json()
    cases = {one.case.key: one.case for one in scored_cases}
    records = [one for one in found["flips"] if _name(one) in gating]
    rates = [
        {
            "metric": _name(one),
            "perturbation": one["perturbation"],
            "intensity": one["intensity"],
            "generator": None,
            "topic": None,
            "flips": rate(one["flips"], one["pairs"]),
            "pass_to_fail": one["pass_to_fail"],
            "expectation": one["expectation"],
        }
        for one in found["rates"]
        if _name(one) in gating
    ]
    return {
        "rates": [*rates, *_by_fact(configured, gating, records, cases)],
        "flips": [
            {
                "metric": _name(one),
                "source": one["source"],
                "variant": one["variant"],
                "perturbation": one["perturbation"],
                "intensity": one["intensity"],
                "before": one["before"],
                "after": one["after"],
                "kind": one["kind"],
                "threshold": one["threshold"],
                "question": cases[one["source"]].question,
                "variant_question": cases[one["variant"]].question,
            }
            for one in records
        ],
        "unpaired": found["unpaired"],
    }


def levels(text: str) -> list[variants.Intensity]:
    """Return the intensities of a list with commas.

    Raises:
        ConfigurationError: If one is none.
    """
    names = _names(text)
    found = [one for one in variants.INTENSITIES if one in names]
    if len(found) != len(names) or not names:
        expected = "low, medium or high, each once, with commas"
        raise ConfigurationError("variations.intensity", repr(text)[:40], expected)
    return found


def _sources(context: StepContext, parameters: VariationParameters) -> list[Case]:
    """Return some answered cases of the evaluation, drawn evenly by hash."""
    lab = open_lab(context.folder.step_folder("evaluation") / LAB)
    cases = [case for case in lab.cases() if case.answer is not None and case.source is None]
    drawn = sorted(cases, key=lambda case: chance(parameters.seed, "variation", case.key))
    kept = {case.key for case in drawn[: parameters.cases]}
    return [case for case in cases if case.key in kept]


def _by_fact(
    configured: Sequence[Configured],
    gating: set[str],
    records: Sequence[Mapping[str, Any]],
    cases: Mapping[str, Case],
) -> list[dict[str, Any]]:
    """Return the share of variants of each topic and generator of which any verdict flipped."""
    flipped: dict[str, set[str]] = {}
    for one in records:
        flipped.setdefault(_name(one), set()).add(one["variant"])
    names = [f"{one.id}.{one.evaluator.spec.primary.key}" for one in configured]
    found = []
    for fact in ("topic", "generator"):
        of = {key: _fact(case, fact) for key, case in cases.items() if case.source is not None}
        for value, count in sorted(Counter(filter(None, of.values())).items()):
            for name in (one for one in names if one in gating):
                hit = sum(of[key] == value for key in flipped.get(name, ()))
                places = {"topic": None, "generator": None, fact: value}
                found.append({
                    "metric": name, "perturbation": None, "intensity": None, **places,
                    "flips": rate(hit, count), "pass_to_fail": None, "expectation": None,
                })  # fmt: skip
    return found


def _fact(case: Case, name: str) -> str:
    return case_facts({"categories": case.categories}).get(name, "")


def _name(one: Mapping[str, Any]) -> str:
    return f"{one['evaluator']}.{one['metric']}"


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _scored(layout: Layout) -> list[ScoredCase]:
    _, plan = recorded(layout.out / MANIFEST)
    return [one for shard in range(plan.shards) for one in read_scored(layout, shard)]

"""The file a fit writes: thresholds, the policy they hold for, and the block that says why."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from guardrail_offline.calibration.deciding_metrics import DecidingMetric, used_fingerprints
from guardrail_offline.calibration.fit_options import CONFIDENT, FitOptions
from guardrail_offline.calibration.joint_rule import Vector, threshold_intervals
from guardrail_offline.calibration.labels import HumanVerdicts, Spent
from guardrail_offline.calibration.probability import (
    calibration_error,
    probabilities,
    reliability,
    reliability_json,
)
from guardrail_offline.calibration.scored_lab import ScoredLab
from guardrail_offline.calibration.split import (
    DIGEST,
    LabelledCases,
    Mask,
    chances,
    counts,
)
from guardrail_offline.calibration.statistics import (
    baseline,
    own_scores,
    rate,
    share_bound,
    slices,
)
from guardrail_offline.calibration.thresholds import Fitted
from guardrail_service import __version__
from guardrail_service.policy.consequences import written
from guardrail_service.policy.decide import Policy, Rule
from guardrail_service.policy.file_schema import GuardrailFile, content_of
from guardrail_service.policy.provenance import (
    BLOCK_HASH,
    DECIDES_HASH,
    block_sha256,
    decides_sha256,
    sha256_of,
)
from guardrail_service.types import Direction

UNSTATED = "unstated"
LITTLE = 0.6
"""Kappa below which agreement is less than substantial (Landis and Koch 1977)."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The origin of a fit's inputs.

    Attributes:
        labels_sha256: Hash of the file with the labels.
        sampling: How the labelled cases were drawn, in words.
        models: Per role, name and fingerprint of the pack's model.
        spent: Looks at these labels so far.
        expires: ISO date from which the promise has ended.
        labels_about: The metric whose labels were used; None for those about the whole answer.
        inputs: Where they lie, seen from the file; empty if nobody said where the file will lie.
    """

    labels_sha256: str
    sampling: str
    models: Mapping[str, Any] = field(default_factory=dict)
    spent: Spent = field(default_factory=lambda: Spent(1, 0.0))
    expires: str | None = None
    labels_about: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)


METHODS = {
    "false_flag": "np_per_metric",
    "average": "conformal_per_metric",
    "recall": "np_recall_per_metric",
    "cost": "least_cost_per_metric",
    "max_f1": "max_f1_per_metric",
    "youden": "youden_per_metric",
}


def provenance_block(
    fitted: Fitted, lab: ScoredLab, verdicts: HumanVerdicts, sources: Sources
) -> dict[str, Any]:
    """Return the `calibration` block without its two hashes."""
    options = fitted.options
    data = fitted.data
    flags = fitted.joint.flags(data.values)
    return {
        "schema_version": "1",
        "created": verdicts.dates[1] if verdicts.dates else None,
        "tool": {"name": "rag-guardrail", "version": __version__},
        "method": _method(fitted),
        "target": _target(fitted),
        "options": options.as_json(),
        "dataset": _dataset(fitted, lab, verdicts, sources),
        "looks": sources.spent.as_json(options.looks),
        "per_metric": per_metric(fitted),
        "joint": _joint(fitted),
        "shape": _shape(fitted),
        "slices": [s.as_json() for s in slices(data.cases, data.good, flags)],
        "fingerprints": used_fingerprints(fitted.gates, lab.fingerprints),
        "models": dict(sources.models),
        "warnings": _warnings(fitted, verdicts, sources),
        "expires": sources.expires,
        **({"inputs": dict(sources.inputs)} if sources.inputs else {}),
    }


def _method(fitted: Fitted) -> str:
    if fitted.options.rule != "joint":
        return METHODS[fitted.options.rule]
    return f"np_joint_{fitted.shape.method}" if fitted.shape else "np_joint_checks"


def _target(fitted: Fitted) -> dict[str, Any]:
    options = fitted.options
    kind = "recall" if options.rule == "recall" else "false_flag_rate"
    return {
        "kind": kind if fitted.promising else "none",
        "alpha": options.recall if options.rule == "recall" else options.alpha,
        "delta": options.delta if options.rule in CONFIDENT else None,
        "scope": "joint" if options.rule == "joint" else "per_metric",
        "unit": options.unit,
    }


def _dataset(
    fitted: Fitted, lab: ScoredLab, verdicts: HumanVerdicts, sources: Sources
) -> dict[str, Any]:
    groups = sorted(set(fitted.data.groups))
    return {
        "sha256": lab.sha256,
        "n_cases": len(lab.cases),
        "n_groups": len({case.group for case in lab.cases}),
        **counts(fitted.data),
        "n_units": _independent(fitted),
        "n_abstained": len(verdicts.abstained),
        "sampling": sources.sampling,
        "seed": fitted.options.seed,
        "labels_sha256": sources.labels_sha256,
        "annotators": verdicts.annotators,
        "agreement": verdicts.agreement.as_json() if verdicts.agreement else None,
        "date_range": list(verdicts.dates) if verdicts.dates else None,
        "group_digests": [digest(group) for group in groups],
        **_units(fitted.data, fitted.options),
        "labels_about": sources.labels_about or "the whole answer",
    }


def _units(data: LabelledCases, options: FitOptions) -> dict[str, Any]:
    """Return what a later look at more labels must find again; nothing if there can be none."""
    if options.looks == "fixed":
        return {}
    return {"unit_digests": data.unit_digests(data.good & ~data.design, options)}


def _independent(fitted: Fitted) -> int:
    """Return how many observations the promise rests on: good answers, or bad ones for recall."""
    if fitted.options.rule != "recall":
        return len(fitted.units)
    return len(fitted.data.units(~fitted.data.good, fitted.options))


def digest(group: str) -> str:
    """Return a question's digest, by which a later check sees that it was fitted on."""
    return sha256_of(group)[:DIGEST]


def _joint(fitted: Fitted) -> dict[str, Any]:
    data, cut = fitted.data, fitted.joint
    # Bad answers of questions that chose the shape would flatter it.
    held_out = ~data.good & ~data.design
    design = data.units(data.good & data.design, fitted.options)
    found: dict[str, Any] = {
        "n": len(fitted.units),
        "false_flag": rate(cut.flags(fitted.units)).as_json(),
        "false_flag_all_answers": rate(cut.flags(data.values[data.good])).as_json(),
        "recall": rate(cut.flags(data.units(held_out, fitted.options))).as_json(),
        "recall_all_answers": rate(cut.flags(data.values[held_out])).as_json(),
    }
    if len(design):
        found["false_flag_on_design"] = rate(cut.flags(design)).as_json()
    if fitted.rank:
        one_look = fitted.options.looks == "fixed"
        found["k"] = fitted.rank
        found["tau"] = fitted.tau
        found["false_flag_upper"] = (
            share_bound(len(fitted.units), fitted.rank, fitted.options.delta)
            if one_look
            else fitted.options.alpha
        )
        found["false_flag_expected"] = fitted.rank / (len(fitted.units) + 1)
    return found


def _shape(fitted: Fitted) -> dict[str, Any] | None:
    names = [gate.name for gate in fitted.gates if not gate.metric.boolean]
    return fitted.shape.as_json(names) if fitted.shape else None


def _warnings(fitted: Fitted, verdicts: HumanVerdicts, sources: Sources) -> list[str]:
    kappa = verdicts.agreement.kappa if verdicts.agreement else None
    idle = [
        gate.name
        for j, gate in enumerate(fitted.gates)
        if not gate.metric.boolean and fitted.cuts[j] <= gate.axis.low
    ]
    look = (
        f"look {sources.spent.count} at these labels: all promises with a confidence that were "
        f"made of them hold together with confidence {1 - sources.spent.delta:.3f}"
    )
    possible = {
        "one annotator: nobody knows how far another would agree": verdicts.annotators < 2,
        f"annotators agree little: kappa {kappa or 0:.2f}": kappa is not None and kappa < LITTLE,
        look: sources.spent.count > 1 and sources.spent.delta > 0,
        f"look {sources.spent.count} at these labels: a promise on average holds for a rule that "
        "no other look chose": sources.spent.count > 1 and fitted.options.rule == "average",
        f"{fitted.options.rule} carries no promise about new answers": not fitted.promising,
        "each metric alone: together they flag more good answers than alpha": fitted.promising
        and fitted.options.rule != "joint",
        "how labelled cases were drawn is not stated; the bound needs an even draw": (
            sources.sampling == UNSTATED
        ),
        "never flags at its threshold: " + ", ".join(idle): bool(idle),
    }
    return [text for text, applies in possible.items() if applies]


BOOTSTRAPS = 200
LEAST = 10
"""Scored labels below which nothing is said about P(bad)."""


def per_metric(fitted: Fitted) -> dict[str, dict[str, Any]]:
    """Return what was found about every gate, by evaluator id and metric key."""
    intervals = _intervals(fitted)
    half: Mask = chances(0, "p_bad", fitted.data.groups) < 0.5
    found: dict[str, dict[str, Any]] = {}
    for j, gate in enumerate(fitted.gates):
        found.setdefault(gate.evaluator_id, {})[gate.metric.key] = _metric(
            fitted, j, intervals.get(j), half
        )
    return found


def _metric(
    fitted: Fitted, j: int, interval: tuple[float, float] | None, half: Mask
) -> dict[str, Any]:
    gate, data = fitted.gates[j], fitted.data
    values = data.values[:, j]
    below = (values < fitted.cuts[j]) | (values == -math.inf)
    missing = [score.value is None for score in gate.scores(data.cases)]
    higher = gate.metric.direction is Direction.HIGHER
    alone = (fitted.units[:, j] < fitted.cuts[j]) | (fitted.units[:, j] == -math.inf)
    return {
        "direction": gate.metric.direction.value,
        "operator": "flag_if_lt" if higher else "flag_if_gt",
        "default": gate.rule.cuts[gate.metric.key].threshold
        if gate.metric.key in gate.rule.cuts
        else None,
        "threshold": fitted.threshold(j),
        "ci95": None if interval is None else list(interval),
        "false_flag": rate(alone).as_json(),
        "recall": rate(below[~data.good & ~data.design]).as_json(),
        "n_missing": sum(missing),
        "on_missing": {
            "error": written(gate.rule.on_error),
            "not_evaluated": written(gate.rule.on_timeout),
            "unverified": written(gate.rule.on_unverified),
            "not_applicable": "pass",
        },
        "baseline": baseline(own_scores(gate, data.cases, fitted.options.seed)),
        "p_bad": _p_bad(gate, values, data.good, half),
        "status": "calibrated" if fitted.promising else "fitted_without_promise",
    }


def _p_bad(gate: DecidingMetric, values: Vector, good: Mask, half: Mask) -> dict[str, Any] | None:
    """Return how well P(bad) read from this metric alone holds on questions it was not learnt on.

    For reading; no threshold is compared with it.
    """
    usable: Mask = np.isfinite(values)
    bad = (~good).astype(np.float64)
    if gate.metric.boolean or usable.sum() < LEAST:
        return None
    said = np.full(len(values), math.nan)
    method = None
    for learn in (half, ~half):
        learnt, told = usable & learn, usable & ~learn
        if len(set(bad[learnt].tolist())) < 2 or not told.any():
            return None
        found = probabilities(values[learnt], bad[learnt], values[told])
        said[told], method = found.middle, found.method
    diagram = reliability(said[usable], bad[usable])
    return {
        "method": method,
        "expected_calibration_error": calibration_error(diagram),
        "reliability": reliability_json(diagram),
    }


def _intervals(fitted: Fitted) -> dict[int, tuple[float, float]]:
    """Return how far each joint threshold moves when units are drawn anew."""
    if fitted.shape is None:
        return {}
    seed = fitted.options.seed
    return threshold_intervals(fitted.shape, fitted.units, fitted.rank, BOOTSTRAPS, seed)


def guardrail_file(
    fitted: Fitted, block: dict[str, Any], base: Policy, name: str, version: str
) -> dict[str, Any]:
    """Return a guardrail configuration: thresholds, the policy they were fitted for, provenance.

    Args:
        fitted: The thresholds.
        block: What `provenance_block` wrote.
        base: Where actions, parameters and the meaning of missing scores come from.
        name: Of the new policy.
        version: Of the new policy.
    """
    thresholds: dict[str, dict[str, float]] = {}
    for j, gate in enumerate(fitted.gates):
        cuts = thresholds.setdefault(gate.evaluator_id, {})
        if (threshold := fitted.threshold(j)) is not None:
            cuts[gate.metric.key] = threshold
    gating = {gate.rule.spec.id for gate in fitted.gates}
    rules = [rule for rule in base.rules.values() if rule.spec.id in gating or rule.report_only]
    content: dict[str, Any] = {
        "calibrated_thresholds": thresholds,
        "evaluator_ids": [rule.spec.h2o_id or rule.spec.id for rule in rules],
        "policy": _policy(rules, gating, base, name, version),
        "calibration": block,
    }
    # The service hashes what it has read, every default filled in; so does this.
    read = content_of(GuardrailFile.model_validate(content))
    block[DECIDES_HASH] = decides_sha256(read)
    block[BLOCK_HASH] = block_sha256(block)
    return content


def file_text(content: dict[str, Any]) -> str:
    """Return a guardrail file as it is written."""
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _policy(
    rules: list[Rule], gating: set[str], base: Policy, name: str, version: str
) -> dict[str, Any]:
    parameters = {
        rule.spec.id: values
        for rule in rules
        if (values := rule.parameters.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    }
    return {
        "name": name,
        "version": version,
        "allow_overrides": base.allow_overrides,
        "deadline_ms": base.deadline_ms,
        "report_only": [rule.spec.id for rule in rules if rule.spec.id not in gating],
        "parameters": parameters,
        "on_error": {rule.spec.id: written(rule.on_error) for rule in rules},
        "on_timeout": {rule.spec.id: written(rule.on_timeout) for rule in rules},
        "on_unverified": {rule.spec.id: written(rule.on_unverified) for rule in rules},
        "actions": {rule.spec.id: rule.action.label for rule in rules},
    }

"""The provenance block: what was fitted, on what, what it promises and how it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from guardrail_offline.calibration.fit import Fitted
from guardrail_offline.calibration.gates import used_fingerprints
from guardrail_offline.calibration.lab import ScoredLab
from guardrail_offline.calibration.labelled import DIGEST, Labelled, counts
from guardrail_offline.calibration.labels import Verdicts
from guardrail_offline.calibration.looks import Spent
from guardrail_offline.calibration.measure import rate, slices
from guardrail_offline.calibration.metric_block import per_metric
from guardrail_offline.calibration.options import CONFIDENT, Options
from guardrail_offline.calibration.ranks import share_bound
from guardrail_service import __version__
from guardrail_service.policy.provenance import sha256_of

UNSTATED = "unstated"
LITTLE = 0.6
"""Kappa below which agreement is less than substantial (Landis and Koch 1977)."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a fit's inputs came from.

    Attributes:
        labels_sha256: Hash of the file with the labels.
        sampling: How the labelled cases were drawn, in words.
        models: Per role, name and fingerprint of the pack's model.
        spent: Looks at these labels so far.
        expires: ISO date from which the promise has ended.
    """

    labels_sha256: str
    sampling: str
    models: Mapping[str, Any] = field(default_factory=dict)
    spent: Spent = field(default_factory=lambda: Spent(1, 0.0))
    expires: str | None = None


METHODS = {
    "false_flag": "np_per_metric",
    "average": "conformal_per_metric",
    "recall": "np_recall_per_metric",
    "cost": "least_cost_per_metric",
    "max_f1": "max_f1_per_metric",
    "youden": "youden_per_metric",
}


def block_of(
    fitted: Fitted, lab: ScoredLab, verdicts: Verdicts, sources: Sources
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
    fitted: Fitted, lab: ScoredLab, verdicts: Verdicts, sources: Sources
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
    }


def _units(data: Labelled, options: Options) -> dict[str, Any]:
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


def _warnings(fitted: Fitted, verdicts: Verdicts, sources: Sources) -> list[str]:
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

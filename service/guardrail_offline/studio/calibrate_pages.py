"""Fitting thresholds to a labelling: what a promise takes, the fit, its price, the new version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import RedirectResponse

from guardrail_offline.calibration.derivation import derive
from guardrail_offline.calibration.explanation import explain
from guardrail_offline.calibration.fit import FitInputs, FitResult, run_fit
from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.labels import read_labels, read_looks, settled, votes_of
from guardrail_offline.calibration.provenance_block import file_text
from guardrail_offline.calibration.report import suspects, trade_off_points
from guardrail_offline.calibration.sampling import best_promise, table
from guardrail_offline.production.drawing import DRAW, exchange
from guardrail_offline.runs.shards import whole_file
from guardrail_offline.studio.label_files import Labelling
from guardrail_offline.studio.label_pages import LabellingIn
from guardrail_offline.studio.studio_pages import (
    Administrator,
    Fields,
    Person,
    Studio,
    StudioIn,
    page,
)
from guardrail_service.errors import ConfigurationError, ServiceError
from guardrail_service.policy.decide import Policy

router = APIRouter(prefix="/calibrate")
MOST_CHANGES = 100
"""Cases listed on the page of a fit."""


@dataclass(frozen=True)
class KeptFit:
    """A fit as its page shows it.

    Attributes:
        labelling: Name of the labels it rests on.
        file: The guardrail JSON that was written.
        base: The policy before.
        policy: The fitted one.
    """

    labelling: str
    file: Path
    base: Policy
    policy: Policy
    run: FitResult


@router.get("")
def calibrate_overview(request: Request, studio: StudioIn, person: Person) -> Response:
    """List the labellings that thresholds can be fitted to."""
    return page(request, "calibrations.html.j2", labellings=studio.workspace.overview())


@router.get("/{name}")
def calibrate_form(
    request: Request, studio: StudioIn, labelling: LabellingIn, person: Person
) -> Response:
    """Ask for alpha and delta, before anything is looked at."""
    return _form(request, studio, labelling)


def _form(
    request: Request,
    studio: Studio,
    labelling: Labelling,
    chosen: Mapping[str, str] | None = None,
    wrong: str = "",
) -> Response:
    try:
        bases = list(studio.bases())
    except ServiceError as error:
        bases, wrong = [], str(error)
    good, bad, abstained = _counts(labelling)
    delta = 0.10
    return page(
        request,
        "calibrate.html.j2",
        422 if wrong else 200,
        one=studio.workspace.summary(labelling.name),
        good=good,
        bad=bad,
        abstained=abstained,
        best=best_promise(good, delta) if good else None,
        promises=table(),
        looks=read_looks(labelling.ledger),
        bases=bases,
        chosen={"alpha": "10", "delta": "10", "base": "", **(chosen or {})},
        wrong=wrong,
    )


def _counts(labelling: Labelling) -> tuple[int, int, int]:
    """Return how many cases people passed, flagged, and could not tell."""
    if not labelling.labels_file.exists() or not labelling.labels_file.stat().st_size:
        return 0, 0, 0
    about = [one for one in read_labels(labelling.labels_file) if one.metric is None]
    words = [settled(v) for v in votes_of(about, str(labelling.labels_file)).values()]
    return words.count("pass"), words.count("fail"), words.count("abstain")


@router.post("/{name}")
def fit(
    request: Request, studio: StudioIn, labelling: LabellingIn, person: Person, fields: Fields
) -> Response:
    """Fit as `guardrail calibrate fit` does, the look at the labels among it, and show the file."""
    try:
        kept = _fitted(studio, labelling, fields)
    except ServiceError as error:
        return _form(request, studio, labelling, fields, str(error))
    key = kept.file.stem
    studio.fits[key] = kept
    return RedirectResponse(f"/calibrate/{labelling.name}/{key}", 303)


def _fitted(studio: Studio, labelling: Labelling, fields: Mapping[str, str]) -> KeptFit:
    lab = studio.workspace.lab_of(labelling.name)
    if lab is None:
        raise ConfigurationError("lab", "none", "the run that the sample was drawn from")
    bases = studio.bases()
    base = bases.get(fields.get("base", ""))
    if base is None:
        raise ConfigurationError("base", "no policy of that name", ", ".join(bases))
    options = FitOptions(alpha=_percent(fields, "alpha"), delta=_percent(fields, "delta"))
    if studio.workspace.store is not None and (labelling.folder / DRAW).is_file():
        exchange(studio.workspace.store, labelling.folder)
        labelling.reload()
    sample = labelling.folder / f"{labelling.tasks_file.name}.sample.jsonl"
    drafts = studio.workspace.work / "policies"
    drafts.mkdir(mode=0o700, parents=True, exist_ok=True)
    judge = studio.judge
    before = judge.policy(base)
    inputs = FitInputs(
        lab=lab,
        labels=labelling.labels_file,
        base=base,
        sample=sample if sample.is_file() else None,
        name=before.name,
        version=_next(before.version),
        models=judge.models,
        beside=drafts,
    )
    run = run_fit(inputs, options, judge.serving)
    number = 1
    while (file := drafts / f"{labelling.name}-{number}.json").exists():
        number += 1
    with whole_file(file) as stream:
        stream.write(file_text(run.content))
    return KeptFit(labelling.name, file, before, judge.policy(file), run)


def _next(version: str) -> str:
    return str(int(version) + 1) if version.isdecimal() and len(version) < 9 else f"{version}-fit"


def _percent(fields: Mapping[str, str], name: str) -> float:
    text = fields.get(name, "").strip().removesuffix("%").replace(",", ".")
    try:
        value = float(text) / 100
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise ConfigurationError(name, "another value", "a number of percent between 0 and 100")
    return value


@router.get("/{name}/{key}")
def fitted(
    request: Request, studio: StudioIn, labelling: LabellingIn, key: str, person: Person
) -> Response:
    """Show what a fit promises, what it costs, and what it would have flagged."""
    return _shown(request, studio, _kept(studio, labelling, key))


def _kept(studio: Studio, labelling: Labelling, key: str) -> KeptFit:
    kept = studio.fits.get(key)
    if kept is None or kept.labelling != labelling.name:
        raise HTTPException(404, "no such fit since the start: fit again, which is no new look")
    return kept


def _shown(request: Request, studio: Studio, kept: KeptFit, wrong: str = "") -> Response:
    run = kept.run
    axes = [gate.axis for gate in run.fitted.gates if not gate.metric.boolean]
    policies = studio.workspace.policies
    return page(
        request,
        "fitted.html.j2",
        422 if wrong else 200,
        kept=kept,
        key=kept.file.stem,
        sentences=explain(run.content),
        thresholds=list(_thresholds(kept)),
        curve=trade_off_points(run.fitted),
        alpha=run.fitted.options.alpha,
        delta=run.fitted.options.delta,
        flagged=_flagged(kept),
        doubtful=suspects(run.fitted.data, axes)[:20],
        text=json.dumps(run.content, indent=1)[:20_000],
        can_add=policies is not None,
        wrong=wrong,
    )


def _thresholds(kept: KeptFit) -> Any:
    """Yield metric, direction, threshold before and after."""
    for name, rule in kept.policy.rules.items():
        before = kept.base.rules.get(name)
        for key, cut in rule.cuts.items():
            old = before.cuts.get(key) if before else None
            spec = next(m for m in rule.spec.metrics if m.key == key)
            yield (
                f"{name}.{key}" if name != key else name,
                "≥" if spec.direction.value == "higher_is_better" else "≤",
                None if old is None else old.threshold,
                cut.threshold,
            )


def _flagged(kept: KeptFit) -> dict[str, Any]:
    """Return what both policies flag of the lab, and the cases that change."""
    lab, passes = kept.run.lab, kept.run.verdicts.passes
    after, before = derive(lab, kept.policy), derive(lab, kept.base)
    cases = lab.by_key()
    groups = {"all": list(cases), "good": [k for k, v in passes.items() if v],
              "bad": [k for k, v in passes.items() if not v]}  # fmt: skip

    def count(derived: Any, keys: list[str]) -> int:
        return sum(derived.decisions[k].decision == "flag" for k in keys if k in derived.decisions)

    flips = after.changes(before)
    labels = {key: "pass" if good else "fail" for key, good in passes.items()}
    return {
        "rows": [
            (name, len(keys), count(before, keys), count(after, keys))
            for name, keys in groups.items()
        ],
        "changes": [(f, cases[f.case], labels.get(f.case)) for f in flips[:MOST_CHANGES]],
        "changed": len(flips),
    }


@router.post("/{name}/{key}/version")
def add_fitted(
    request: Request, studio: StudioIn, labelling: LabellingIn, key: str, who: Administrator,
    fields: Fields,
) -> Response:  # fmt: skip
    """Add the fitted file as the next version of its policy, and let it judge in the shadow."""
    from guardrail_service.policy.versions import add_version, read_policy, set_shadow

    kept = _kept(studio, labelling, key)
    folder = studio.workspace.policies
    try:
        if folder is None:
            raise ConfigurationError("--policies", "no folder", "the folder of policy versions")
        name = fields.get("policy", "").strip() or kept.base.name
        why = fields.get("why", "").strip()[:500]
        check = studio.judge.policy
        added = add_version(folder, kept.file, name=name, why=why, by=who, check=check)
        if fields.get("shadow"):
            shadow = (*read_policy(folder, name).alias.shadow, added.version)
            set_shadow(folder, name, shadow, why=why, by=who, check=check)
    except ServiceError as error:
        return _shown(request, studio, kept, str(error))
    return RedirectResponse(f"/policies/{name}", 303)

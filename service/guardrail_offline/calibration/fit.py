"""Does the work of `guardrail calibrate fit`: reads files and writes a guardrail file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guardrail_offline.calibration.deciding_metrics import (
    DecidingMetric,
    deciding_metrics,
    used_fingerprints,
)
from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.judged_policy import judged_policy
from guardrail_offline.calibration.labels import (
    ADJUDICATOR,
    HumanVerdicts,
    Label,
    Look,
    ledger_of,
    read_labels,
    read_looks,
    record,
    spend,
    verdicts,
)
from guardrail_offline.calibration.provenance_block import (
    UNSTATED,
    Sources,
    guardrail_file,
    provenance_block,
)
from guardrail_offline.calibration.scored_lab import ScoredLab, read_lab, read_records
from guardrail_offline.calibration.split import LabelledCases
from guardrail_offline.calibration.thresholds import (
    Fitted,
    fit_thresholds,
)
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import Serving, load_file
from guardrail_service.policy.file_schema import read_json
from guardrail_service.policy.provenance import sha256_of
from guardrail_service.resources import configs_dir


@dataclass(frozen=True, slots=True)
class FitInputs:
    """The files and settings that a fit reads.

    Attributes:
        lab: Run folder or JSON lines with scores.
        labels: File of labels.
        base: Guardrail file whose metrics are fitted and whose rules about missing scores hold;
            the shipped default policy if None.
        metrics: Restricts what gates, as `detector` or `detector.metric`.
        sample: What `guardrail calibrate sample` drew for these labels.
        previous: An earlier guardrail file whose shape is kept.
        adjudicator: Annotator whose word is final.
        about: Use labels about this metric; None takes those about the whole answer.
        name: Of the new policy; the base's if None.
        version: Of the new policy.
        expires: ISO date.
        beside: Folder of the file that will be written; the block then says where the inputs lie,
            seen from there. None leaves that out.
    """

    lab: Path
    labels: Path
    base: Path | None = None
    metrics: Sequence[str] = ()
    sample: Path | None = None
    previous: Path | None = None
    adjudicator: str = ADJUDICATOR
    about: str | None = None
    name: str | None = None
    version: str = "1"
    expires: str | None = None
    models: Mapping[str, Any] = field(default_factory=dict)
    beside: Path | None = None

    def as_json(self) -> dict[str, Any]:
        """Return where the inputs lie, for a later fit from the same ones; nothing if unknown."""
        if self.beside is None:
            return {}
        here = self.beside.resolve()

        def seen(path: Path) -> str:
            return Path(os.path.relpath(path.resolve(), here)).as_posix()

        return {
            "lab": seen(self.lab),
            "labels": seen(self.labels),
            "sample": None if self.sample is None else seen(self.sample),
            "adjudicator": self.adjudicator,
            "about": self.about,
        }


@dataclass(frozen=True, slots=True)
class FitResult:
    """A finished fit: the guardrail file's content and what it was made from."""

    content: dict[str, Any]
    fitted: Fitted
    lab: ScoredLab
    verdicts: HumanVerdicts
    labels: tuple[Label, ...]


def run_fit(inputs: FitInputs, options: FitOptions, serving: Serving) -> FitResult:
    """Return a guardrail file fitted to labels; writes the look at them into their ledger.

    Args:
        inputs: Which files.
        options: What is promised and how.
        serving: The models at hand; the lab must have been scored with the same.

    Raises:
        ConfigurationError: If files do not fit together or labels cannot carry the promise.
    """
    if not inputs.labels.exists():
        raise ConfigurationError(
            str(inputs.labels), "no file", "labels; label first: guardrail studio DRAWN"
        )
    lab = read_lab(inputs.lab)
    judged = judged_policy(lab, inputs.metrics) if lab.judged else None
    base = judged or base_policy(inputs.base, serving)
    labels = read_labels(inputs.labels)
    words = verdicts(labels, str(inputs.labels), inputs.about, inputs.adjudicator)
    gates = deciding_metrics(base, lab, inputs.metrics)
    if judged is None:
        refuse_mismatch(lab, gates, serving)
    weights, sampling = _sample(inputs.sample, lab, words)
    previous = _previous(inputs.previous, options)
    fitted = fit_thresholds(
        lab, words.passes, gates, options, weights, previous.get("shape"), words.abstained
    )
    _refuse_changed(fitted.data, options, previous)
    ledger = ledger_of(inputs.labels)
    look = _look(fitted, lab, words)
    sources = Sources(
        labels_sha256=hashlib.sha256(inputs.labels.read_bytes()).hexdigest(),
        sampling=sampling,
        models=inputs.models,
        spent=spend(read_looks(ledger), look),
        expires=inputs.expires,
        labels_about=inputs.about,
        inputs=inputs.as_json(),
    )
    block = provenance_block(fitted, lab, words, sources)
    if judged is not None:
        block |= {"judge": {name: lab.judged[name].told for name in judged.rules}, "models": {}}
    name = inputs.name or f"{base.name}-calibrated"
    content = guardrail_file(fitted, block, base, name, inputs.version)
    if fitted.promising:  # a comparison promises nothing, so it spends nothing
        record(ledger, look)
    return FitResult(content, fitted, lab, words, tuple(labels))


def base_policy(path: Path | None, serving: Serving) -> Policy:
    """Return the policy to calibrate; detectors that cannot run here are left out."""
    return load_file(path or configs_dir() / "default.json", serving).policy


def refuse_mismatch(lab: ScoredLab, gates: Sequence[DecidingMetric], serving: Serving) -> None:
    """Refuse scores of other models or parameters than those that will serve.

    Raises:
        ConfigurationError: Naming the first difference.
    """
    roles = {role for gate in gates for role in gate.rule.spec.roles}
    needed = {*roles, "segmenter"}
    at_hand = used_fingerprints(gates, serving.fingerprints)
    for key in sorted(needed | set(used_fingerprints(gates, lab.fingerprints))):
        scored, served = lab.fingerprints.get(key), at_hand.get(key)
        if scored != served:
            raise ConfigurationError(
                f"{lab.where}: fingerprint of {key}",
                f"{str(scored)[:40]!r}",
                f"{str(served)[:40]!r} of the model pack at hand: score the lab with it, or name "
                "the other pack",
            )
    for gate in gates:
        served_with = gate.rule.parameters.model_dump(mode="json", by_alias=True)
        scored_with = lab.parameters.get(gate.rule.spec.id, {})
        for key in sorted(set(served_with) & set(scored_with)):
            if served_with[key] != scored_with[key]:
                raise ConfigurationError(
                    f"{lab.where}: {gate.rule.spec.id} parameter {key}",
                    "a lab scored with another value",
                    "the value of the base policy",
                )


def sample_weights(path: Path) -> dict[str, float]:
    """Return the weight of every sampled case."""
    try:
        return {str(r["case"]): float(r["weight"]) for r in read_records(path)}
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            str(path), "another shape", "the file that calibrate sample wrote"
        ) from error


def _sample(
    path: Path | None, lab: ScoredLab, words: HumanVerdicts
) -> tuple[dict[str, float] | None, str]:
    """Return the weights of the sample and how it was drawn, in words."""
    told = {*words.passes, *words.abstained}
    if path is None:
        whole = {case.key for case in lab.cases} <= told
        return None, "every case of the lab" if whole else UNSTATED
    weights = sample_weights(path)
    silent = [key for key in weights if key not in told]
    if silent:
        raise ConfigurationError(
            str(path),
            f"{len(silent)} of {len(weights)} sampled cases without a label ({silent[0]!r})",
            "a label or an abstention for each: stopping early voids the bound",
        )
    questions = len({case.group for case in lab.cases if case.key in weights})
    if len(set(weights.values())) <= 1:
        return weights, f"simple random, {questions} questions"
    return weights, f"stratified, {questions} questions, thinned to an even sample"


def _previous(path: Path | None, options: FitOptions) -> Mapping[str, Any]:
    """Return the calibration block of an earlier file, which has a shape; empty without a file."""
    if path is None:
        return {}
    content = read_json(path)
    block = content.get("calibration") if isinstance(content, Mapping) else None
    if not isinstance(block, Mapping) or not isinstance(block.get("shape"), Mapping):
        raise ConfigurationError(str(path), "no calibration.shape", "a file of the joint rule")
    _refuse_other_division(options, block)
    return block


def _look(fitted: Fitted, lab: ScoredLab, words: HumanVerdicts) -> Look:
    options = fitted.options
    names = [gate.name for gate in fitted.gates]
    rule: list[Any] = [options.as_json(), names]
    if options.looks == "anytime" and fitted.shape:
        fitted_names = [gate.name for gate in fitted.gates if not gate.metric.boolean]
        rule.append(fitted.shape.as_json(fitted_names))
    data = [lab.sha256, sorted(words.passes.items())]
    return Look(sha256_of(rule), sha256_of(data), options.risk, options.looks)


def _refuse_other_division(options: FitOptions, previous: Mapping[str, Any]) -> None:
    """Refuse to divide questions otherwise than the fit whose shape is kept.

    Raises:
        ConfigurationError: If split or seed differ: questions that chose the shape would prove it.
    """
    before = previous.get("options")
    for name in ("split", "seed"):
        kept = before.get(name) if isinstance(before, Mapping) else None
        if kept != getattr(options, name):
            raise ConfigurationError(
                f"--{name}",
                str(getattr(options, name)),
                f"{kept}, as in --previous: questions that chose its scales would prove them",
            )


def _refuse_changed(data: LabelledCases, options: FitOptions, previous: Mapping[str, Any]) -> None:
    """Refuse to look again if answers that an earlier look rests on are gone or have changed.

    Raises:
        ConfigurationError: If they are: labels may be added under an anytime rule, and only added.
    """
    dataset = previous.get("dataset")
    before = dataset.get("unit_digests", ()) if isinstance(dataset, Mapping) else ()
    if options.looks == "fixed" or not before:
        return
    now = set(data.unit_digests(data.good & ~data.design, options))
    changed = [unit for unit in before if unit not in now]
    if changed:
        raise ConfigurationError(
            "--previous",
            f"{len(changed)} of {len(before)} answers it rests on without their label or score",
            "labels added and none changed; without --previous this is a new look",
        )

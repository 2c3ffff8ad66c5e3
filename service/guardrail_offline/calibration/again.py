"""Fits a guardrail file again from what it was fitted on: for files that a new model made void.

The calibration block says where labels and scored lab lie, seen from the file. Where the models at
hand are no longer those of the scores, the lab's texts are scored again first.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from guardrail_offline.calibration.deciding_metrics import deciding_metrics
from guardrail_offline.calibration.fit import (
    FitInputs,
    FitResult,
    base_policy,
    refuse_mismatch,
    run_fit,
)
from guardrail_offline.calibration.fit_options import FitOptions
from guardrail_offline.calibration.scored_lab import LabCase, ScoredLab, read_lab
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import Serving
from guardrail_service.policy.file_schema import read_json

_FROM_TEXTS = frozenset({"length", "language", "passages"})
"""Facts that reading the texts gives again; the others are the lab's categories."""


def fit_again(
    file: Path,
    output: Path,
    serving: Serving,
    *,
    pack: str = "embedded",
    models: Mapping[str, Any] | None = None,
    begin: Callable[[int], None] = lambda _cases: None,
    advance: Callable[[int], None] = lambda _cases: None,
) -> FitResult:
    """Return a new fit with the options, labels and policy of an earlier one.

    Args:
        file: What `guardrail calibrate fit` wrote, served or refused.
        output: Where the new file will lie; new scores go to a folder beside it, `NAME.run`.
        serving: The models at hand.
        pack: Their pack.
        models: Name and fingerprint of each role's model, for the new block.
        begin: Called with the number of cases before any is scored again.
        advance: Called with the number of cases of each finished part.

    Raises:
        ConfigurationError: If the file does not say what it was fitted on, that is gone, the lab
            keeps no texts, or the labels cannot carry the promise.
    """
    content = read_json(file)
    block = content.get("calibration", {})
    inputs = block.get("inputs")
    if not inputs:
        raise ConfigurationError(
            f"{file}: calibration.inputs", "nothing", "a file that `guardrail calibrate fit` wrote "
            "from version 0.2 on; for others name the scored lab and --labels"
        )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base.json"
        kept = {key: value for key, value in content.items() if key != "calibration"}
        base.write_text(json.dumps(kept), "utf-8")
        lab = _beside(file, inputs, "lab")
        policy = base_policy(base, serving)
        if _is_stale(read_lab(lab), policy, serving):
            lab = _scored_again(read_lab(lab), policy, output, pack, begin, advance)
        asked = FitInputs(
            lab=lab,
            labels=_beside(file, inputs, "labels"),
            base=base,
            sample=_beside(file, inputs, "sample") if inputs.get("sample") else None,
            adjudicator=inputs["adjudicator"],
            about=inputs.get("about"),
            name=policy.name,
            version=_next(policy.version),
            expires=block.get("expires"),
            models=models or {},
            beside=output.parent,
        )
        return run_fit(asked, FitOptions(**block["options"]), serving)


def _beside(file: Path, inputs: Mapping[str, Any], key: str) -> Path:
    """Return where one of a file's inputs lies."""
    path = file.parent / str(inputs[key])
    if not path.exists():
        where = f"{file}: calibration.inputs.{key}"
        raise ConfigurationError(where, f"{path}, which is gone", "the lab and labels of that fit")
    return path


def _is_stale(lab: ScoredLab, policy: Policy, serving: Serving) -> bool:
    """Return whether the scores are those of other models than the ones at hand."""
    try:
        refuse_mismatch(lab, deciding_metrics(policy, lab), serving)
    except ConfigurationError:
        return True
    return False


def _scored_again(
    lab: ScoredLab,
    policy: Policy,
    output: Path,
    pack: str,
    begin: Callable[[int], None],
    advance: Callable[[int], None],
) -> Path:
    """Score a lab's texts with the models at hand and return the folder of the run."""
    from guardrail_offline.datasets.labs import open_lab
    from guardrail_offline.evaluators.configured import configure
    from guardrail_offline.runs.execution import RunOptions, evaluate_lab

    silent = [case.key for case in lab.cases if case.answer is None]
    if silent:
        raise ConfigurationError(
            lab.where, f"{len(silent)} cases without their texts", "a lab that keeps its texts, "
            "since these models have not scored it"
        )  # fmt: skip
    run = output.with_suffix(".run")
    texts = output.with_suffix(".lab.jsonl")
    texts.write_text("".join(f"{line}\n" for line in _records(lab.cases)), "utf-8")
    settings = [
        f"{name}.{key}={json.dumps(value)}"
        for name, rule in policy.rules.items()
        for key, value in rule.parameters.model_dump(
            mode="json", by_alias=True, exclude_defaults=True
        ).items()
    ]
    evaluate_lab(
        open_lab(texts),
        configure(list(policy.rules), settings),
        RunOptions(run, pack=pack, begin=begin, advance=advance),
    )
    return run


def _records(cases: Iterable[LabCase]) -> Iterable[str]:
    for case in cases:
        yield json.dumps(
            {
                "key": case.key,
                "group": case.group,
                "question": case.question,
                "answer": case.answer,
                "contexts": list(case.contexts),
                "categories": [
                    f"{name}:{value}"
                    for name, value in case.facts.items()
                    if name not in _FROM_TEXTS
                ],
            },
            ensure_ascii=False,
        )


def _next(version: str) -> str:
    """Return the version after one: the next number, or the same with a mark."""
    return str(int(version) + 1) if version.isdecimal() else f"{version}.again"

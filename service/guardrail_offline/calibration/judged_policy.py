"""Lets a judge's scores be calibrated as a detector's are.

A file fitted to them says in `calibration.judge` which judge it needs. No service can serve it: the
thresholds go to `guardrail evaluate --set EVALUATOR.metric_threshold=...`, and `calibrate check`
holds the promise against later labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from guardrail_offline.calibration.scored_lab import JudgeScores, ScoredLab
from guardrail_service.detectors.registry import DetectorSpec, Parameters
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.decide import Cut, Policy, Rule
from guardrail_service.policy.file import check_threshold
from guardrail_service.policy.provenance import sha256_of


def judged_policy(lab: ScoredLab, wanted: Sequence[str]) -> Policy | None:
    """Return a policy over evaluators that a judge scored, or None if none of them is wanted.

    A case without a score is flagged, as a service that fails closed has it.

    Args:
        lab: The scores.
        wanted: `evaluator` or `evaluator.metric`, as `--metric` names them.

    Raises:
        ConfigurationError: If detectors and a judge's evaluators are to be in one file.
    """
    names = list(dict.fromkeys(name.partition(".")[0] for name in wanted))
    judged = [name for name in names if name in lab.judged]
    if not judged:
        return None
    if len(judged) < len(names):
        others = ", ".join(sorted(set(names) - set(judged)))
        raise ConfigurationError(
            "--metric", f"{others} beside {judged[0]}", "detectors, or evaluators scored by a judge"
        )
    return _policy("judge", {name: {} for name in judged}, lab)


def policy_of_file(content: Mapping[str, Any], lab: ScoredLab) -> Policy | None:
    """Return the policy of a file that was fitted to a judge's scores; None for any other file.

    Raises:
        ConfigurationError: If the lab was scored by another judge, or by none.
    """
    needed = judge_needed(content)
    if not needed:
        return None
    for name, told in needed.items():
        found = lab.judged[name].told if name in lab.judged else None
        if found != told:
            model = "no judge" if found is None else f"the judge {found['model']!r}"
            if found is not None and found["model"] == told["model"]:
                model += " with other prompts or options"
            raise ConfigurationError(
                f"{lab.where}: {name}", model, f"the judge {told['model']!r} of the file"
            )
    cuts = content["calibrated_thresholds"]
    named = {name: lab.judged[name].h2o_id or name for name in needed}
    name = str(content.get("policy", {}).get("name", "judge"))
    return _policy(name, {key: cuts.get(as_, {}) for key, as_ in named.items()}, lab)


def judge_needed(content: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return what a file says of its judge, by evaluator; empty if it needs none."""
    block = content.get("calibration")
    needed = block.get("judge") if isinstance(block, Mapping) else None
    return needed if isinstance(needed, Mapping) else {}


def _policy(name: str, cuts: Mapping[str, Mapping[str, float]], lab: ScoredLab) -> Policy:
    rules = {key: _rule(key, lab.judged[key], some) for key, some in cuts.items()}
    return Policy(name, "1", sha256_of({key: dict(some) for key, some in cuts.items()}), rules)


def _rule(name: str, scores: JudgeScores, cuts: Mapping[str, float]) -> Rule:
    """Return the rule of one evaluator: cuts of a file, or before a fit what it may decide by."""
    spec = DetectorSpec(
        id=name,
        aliases=(scores.h2o_id,) if scores.h2o_id else (),
        summary="scored by a judge",
        metrics=scores.metrics,
        inputs=frozenset({"answer"}),
    )
    where = "calibrated_thresholds"
    decides = {
        key: Cut(check_threshold(spec, key, value, where), calibrated=True)
        for key, value in cuts.items()
    } or {scores.metrics[0].key: Cut(0.0, calibrated=False)}
    return Rule(spec, Parameters(), decides)

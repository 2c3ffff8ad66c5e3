"""A fit as the guardrail file that is served unchanged: the same input gives the same bytes."""

from __future__ import annotations

import json
from typing import Any

from guardrail_offline.calibration.fit import Fitted
from guardrail_service.policy.decide import Policy, Rule
from guardrail_service.policy.file import GuardrailFile
from guardrail_service.policy.provenance import (
    BLOCK_HASH,
    DECIDES_HASH,
    block_sha256,
    decides_sha256,
)


def guardrail_file(
    fitted: Fitted, block: dict[str, Any], base: Policy, name: str, version: str
) -> dict[str, Any]:
    """Return a guardrail configuration: thresholds, the policy they were fitted for, provenance.

    Args:
        fitted: The thresholds.
        block: What `block_of` wrote.
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
    read = GuardrailFile.model_validate(content).model_dump(mode="json")
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
        "on_error": {rule.spec.id: rule.on_error for rule in rules},
        "on_timeout": {rule.spec.id: rule.on_timeout for rule in rules},
        "on_unverified": {rule.spec.id: rule.on_unverified for rule in rules},
        "actions": {rule.spec.id: rule.action.label for rule in rules},
    }

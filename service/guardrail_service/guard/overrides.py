"""Changes of a detector by one request, and errors for changes that do not fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from pydantic import ValidationError

from guardrail_service.detectors.registry import AnyDetector, Registry
from guardrail_service.errors import ConfigurationError, InputError, OverrideRefused, choices
from guardrail_service.policy.decide import Cut, Policy, Rule
from guardrail_service.policy.file import check_threshold


@dataclass(frozen=True, slots=True)
class Override:
    """The changes one request makes to one detector."""

    thresholds: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)


def overridden(
    policy: Policy,
    detector: str,
    override: Override,
    registry: Registry,
    is_allowed: bool = True,
) -> Rule:
    """Return a policy's rule for one detector as a request changes it.

    Without `is_allowed`, its caller may set no more than under a policy without `allow_overrides`.

    Raises:
        InputError: If the policy does not run the detector, or the change does not fit it.
        OverrideRefused: If the policy lets requests change less.
    """
    rule = policy.rules.get(detector)
    if rule is None:
        raise InputError(
            f"policy {policy.name!r} does not run it; expected "
            + choices(detector, policy.rules, "detector", "GET /v1/policies"),
            _field_name(detector, registry),
        )
    where = f"detectors.{detector}"
    free = rule.spec.request_parameters
    is_free = not override.thresholds and set(override.parameters) <= free
    if not is_free and not (policy.allow_overrides and is_allowed):
        allowed = ", ".join(sorted(free)) or "nothing"
        who, other = f"policy {policy.name!r}", "a policy with allow_overrides"
        if not is_allowed:
            who, other = "this key", "a key with overrides"
        raise OverrideRefused(
            f"{who} lets requests set {allowed} here; expected that, or {other}", where
        )
    return _merge(rule, override, registry[detector], where)


def _field_name(detector: str, registry: Registry) -> str:
    """Return where the unknown key is, without repeating text that only the caller wrote."""
    known = any(detector == spec.id for spec in registry.specs())
    return f"detectors.{detector}" if known else "detectors"


_OUR_WORDS = frozenset({"value_error", "assertion_error", "union_tag_invalid"})
"""Kinds of pydantic errors whose message may quote the value; the others name types and limits."""


def _refused(detector: AnyDetector, failure: ValidationError, where: str) -> InputError:
    """Return the first fault of a request's parameters, without text that the caller wrote.

    Files may be quoted, requests may not. So a detector's own words reach a caller only about its
    request parameters, whose messages are written for that.
    """
    first = failure.errors()[0]
    fields = detector.parameters.model_fields
    ours = {name for key, field in fields.items() for name in (key, field.alias)}
    known = tuple(takewhile(lambda part: isinstance(part, int) or part in ours, first["loc"]))
    place = ".".join((where, *map(str, known)))
    if first["type"] not in _OUR_WORDS:
        return InputError(first["msg"], place)
    if known[:1] and known[0] in detector.spec.request_parameters and "error" in first["ctx"]:
        return InputError(str(first["ctx"]["error"]), place)
    return InputError("does not fit; expected a value that the documentation lists", place)


def _merge(rule: Rule, override: Override, detector: AnyDetector, where: str) -> Rule:
    cuts = dict(rule.cuts)
    for metric, value in override.thresholds.items():
        try:
            cuts[metric] = Cut(check_threshold(rule.spec, metric, value, where), calibrated=False)
        except ConfigurationError as error:
            raise InputError(f"expected {error.expected}", f"{where}.thresholds") from error
    parameters = rule.parameters
    if override.parameters:
        merged = {**parameters.model_dump(by_alias=True), **override.parameters}
        try:
            parameters = detector.parameters.model_validate(merged)
        except ValidationError as failure:
            raise _refused(detector, failure, f"{where}.parameters") from failure
    return dataclasses.replace(rule, parameters=parameters, cuts=cuts)

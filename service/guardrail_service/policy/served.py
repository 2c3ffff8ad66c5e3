"""The policies that a service judges by: one set, loaded and checked whole, switched at once."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from guardrail_service.errors import ConfigurationError, choices
from guardrail_service.policy.decide import Policy
from guardrail_service.policy.file import Serving, load_policies, load_served
from guardrail_service.policy.versions import PolicyFolder, checked_path, read_folder

_LOG = logging.getLogger(__name__)
MOST_PINNED = 20
"""Versions of a policy, the newest, that requests may name besides those with a part to play."""


@dataclass(frozen=True, slots=True)
class Canary:
    """A policy on trial: it decides for a share of the callers, always the same ones.

    Attributes:
        share: In (0, 1]. A larger share takes everybody whom a smaller one takes.
    """

    policy: Policy
    share: float

    def takes(self, caller: str) -> bool:
        """Return whether it decides for a caller."""
        salted = f"{self.policy.name}@{self.policy.version}\0{caller}".encode()
        drawn = int.from_bytes(hashlib.sha256(salted).digest()[:8], "big")
        return drawn < self.share * 2.0**64


@dataclass(frozen=True, slots=True)
class PolicySet:
    """All policies at one time.

    Attributes:
        live: By name, in the order in which they were loaded; the first is the default one.
        pinned: By `name@version`: those that a request may name in one version.
        canaries: By name.
        shadows: By name: what judges beside whatever decides under that name.
    """

    live: Mapping[str, Policy]
    pinned: Mapping[str, Policy] = field(default_factory=dict)
    canaries: Mapping[str, Canary] = field(default_factory=dict)
    shadows: Mapping[str, tuple[Policy, ...]] = field(default_factory=dict)

    def find(self, name: str, caller: str) -> Policy | None:
        """Return what a name means for a caller."""
        policy = self.live.get(name)
        if policy is None:
            return self.pinned.get(name)
        if self.canaries and (canary := self.canaries.get(name)) and canary.takes(caller):
            return canary.policy
        return policy

    def all(self) -> tuple[Policy, ...]:
        """Return every loaded policy once."""
        beside = [policy for shadows in self.shadows.values() for policy in shadows]
        trials = [canary.policy for canary in self.canaries.values()]
        found = [*self.live.values(), *trials, *beside, *self.pinned.values()]
        return tuple({id(policy): policy for policy in found}.values())

    def names(self) -> tuple[str, ...]:
        """Return everything that a request may name."""
        return (*self.live, *self.pinned)


def load_set(
    files: Iterable[Path], folder: Path | None, shadows: Iterable[str], serving: Serving
) -> PolicySet:
    """Return all policies of a service, every one of them checked.

    Args:
        files: Guardrail JSONs.
        folder: Policies in versions; None: none.
        shadows: Names of policies that judge beside every other one.
        serving: What they are checked against.

    Raises:
        ConfigurationError: If one cannot be served, or two have one name.
    """
    live = load_policies(files, serving)
    pinned: dict[str, Policy] = {}
    canaries: dict[str, Canary] = {}
    beside: dict[str, tuple[Policy, ...]] = {}
    for found in [] if folder is None else read_folder(folder):
        if found.name in live:
            again, expected = f"{found.name!r} a second time", "unique names"
            raise ConfigurationError(f"{found.path}: policy.name", again, expected)
        own, alias = _versions(found, serving), found.alias
        pinned |= {f"{found.name}@{number}": policy for number, policy in own.items()}
        if alias.live is None:
            continue
        live[found.name] = own[alias.live]
        if alias.canary is not None:
            canaries[found.name] = Canary(own[alias.canary.version], alias.canary.share)
        beside[found.name] = tuple(own[number] for number in alias.shadow)
    if not live:
        raise ConfigurationError(str(folder), "no policy that is live", "one that was promoted")
    _add_shadows(beside, tuple(shadows), live)
    return PolicySet(live, pinned, canaries, {n: found for n, found in beside.items() if found})


def _versions(folder: PolicyFolder, serving: Serving) -> dict[str, Policy]:
    """Return the versions with a part to play, and of the others the newest that can be served."""

    def load(number: str) -> Policy:
        policy = load_served(checked_path(folder.version(number)), serving)
        return dataclasses.replace(policy, name=folder.name, version=number)

    own = {number: load(number) for number in folder.alias.needed}
    for number in list(folder.versions)[-MOST_PINNED:]:
        if number in own:
            continue
        try:
            own[number] = load(number)
        except ConfigurationError as error:
            _LOG.warning("a version that is not live cannot be served: %s", error)
    return own


def _add_shadows(
    beside: dict[str, tuple[Policy, ...]], shadows: tuple[str, ...], live: Mapping[str, Policy]
) -> None:
    for name in shadows:
        if name not in live:
            expected = choices(name, list(live), "policy")
            raise ConfigurationError("GUARDRAIL_SHADOW_POLICIES", repr(name), expected)
        for other in live:
            if other != name:
                beside[other] = (*beside.get(other, ()), live[name])

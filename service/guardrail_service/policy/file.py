"""Guardrail JSON in, checked policies out. Anything wrong stops here, before a port opens."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from guardrail_service.detectors.registry import Detector, DetectorSpec, Registry
from guardrail_service.errors import ConfigurationError, choices, near_misses
from guardrail_service.policy.consequences import (
    ANY,
    REASONS,
    Consequences,
    PerDetector,
    read,
    resolved,
)
from guardrail_service.policy.decide import Cut, Policy, Rule
from guardrail_service.policy.file_schema import (
    PRESETS,
    GuardrailFile,
    Name,
    Preset,
    content_of,
    parse,
    read_json,
)
from guardrail_service.policy.provenance import canonical, doubts
from guardrail_service.resources import configs_dir
from guardrail_service.types import Action, Role

Thresholds = Mapping[str, Mapping[str, float]]
T = TypeVar("T")
E = TypeVar("E", bound=Exception)


@dataclass(frozen=True, slots=True)
class Unserved:
    """A detector that a valid file names and this installation cannot run."""

    detector: str
    reason: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid file: its policy over the detectors that can run, and those that cannot."""

    path: Path
    policy: Policy
    unserved: tuple[Unserved, ...]


@dataclass(frozen=True, slots=True)
class Serving:
    """The code, models and shipped thresholds that a configuration is checked against.

    Attributes:
        fingerprints: Hash per model role of the pack, and `segmenter`.
        defaults: Shipped thresholds by our detector id and metric key.
        presets: The same by preset; a preset may leave a metric to the defaults.
        labels: What the pack's models call their outputs, by role.
        join: Returns the same with the models that some detectors bring; None: a running service,
            which has no other models than it began with.
    """

    registry: Registry
    pack_name: str
    roles: frozenset[Role]
    fingerprints: Mapping[str, str]
    defaults: Thresholds
    labels: Mapping[Role, frozenset[str]] = field(default_factory=dict)
    presets: Mapping[str, Thresholds] = field(default_factory=dict)
    join: Callable[[Collection[str]], Serving] | None = None

    def including(self, detectors: Collection[str]) -> Serving:
        """Return this with the models that detectors of these ids bring themselves."""
        able = [d for d in detectors if self.registry[d].pack is not None]
        return self if self.join is None or not able else self.join(able)


def load_policies(paths: Iterable[Path], serving: Serving) -> dict[str, Policy]:
    """Return policies by name, ready to serve.

    Raises:
        ConfigurationError: If a file is wrong, two have one name, or a detector cannot be served.
    """
    policies: dict[str, Policy] = {}
    for path in paths:
        policy = load_served(path, serving)
        if policy.name in policies:
            raise ConfigurationError(
                f"{path}: policy.name", f"{policy.name!r} a second time", "unique names"
            )
        policies[policy.name] = policy
    return policies


def load_served(path: Path, serving: Serving) -> Policy:
    """Return one file's policy, every detector of which can be served.

    Raises:
        ConfigurationError: If the file is wrong, or a detector cannot be served.
    """
    loaded = load_file(path, serving)
    for missing in loaded.unserved:
        raise ConfigurationError(
            f"{path}: evaluator_ids",
            f"{missing.detector} ({missing.reason})",
            "detectors that this service and its model pack can run",
        )
    return loaded.policy


def load_file(path: Path, serving: Serving) -> Loaded:
    """Return one file's policy after checking every key against the registry and the pack.

    Raises:
        ConfigurationError: Naming file, key, what was found and what was expected.
    """
    return _Reader(path, serving, parse(path)).loaded()


def load_plugins_of(path: Path, registry: Registry) -> None:
    """Import the plug-ins that a file's `evaluator_ids` name.

    Raises:
        ConfigurationError: If the file cannot be read, or a plug-in cannot be used.
    """
    registry.load_plugins(parse(path).evaluator_ids)


def load_defaults(path: Path) -> Thresholds:
    """Return the shipped thresholds, by detector id and metric key."""
    found = read_json(path)["thresholds"]
    return {
        detector: {key: float(entry["threshold"]) for key, entry in metrics.items()}
        for detector, metrics in found.items()
    }


@cache
def shipped_thresholds() -> Thresholds:
    """Return the thresholds of detectors for which no file says one."""
    return load_defaults(default_thresholds_file())


def default_thresholds_file() -> Path:
    """Return the file with the shipped thresholds."""
    return configs_dir() / "defaults" / "thresholds.json"


def load_presets(path: Path) -> dict[str, Thresholds]:
    """Return the shipped thresholds of each preset, by detector id and metric key."""
    found = read_json(path)["thresholds"]
    return {
        preset: {
            detector: {
                key: float(entry["presets"][preset])
                for key, entry in metrics.items()
                if preset in entry.get("presets", {})
            }
            for detector, metrics in found.items()
        }
        for preset in PRESETS
    }


class _Reader:
    """One file on its way to a policy; each method checks one kind of key."""

    def __init__(self, path: Path, serving: Serving, file: GuardrailFile) -> None:
        self._path = path
        self._serving = serving
        self._file = file
        self._registry = serving.registry
        if (file.calibration.model_extra or {}).get("judge"):
            found = "thresholds of scores that a judge gives"
            raise self._error("calibration.judge", found, "thresholds of detectors that run here")
        self._registry.load_plugins(file.evaluator_ids)
        self._specs = self._resolve_ids()
        self._serving = serving.including(self._specs)
        self._actions = self._checked_actions()
        self._presets = self._checked_presets()
        block = file.policy
        self._on = {
            key: self._consequences(f"policy.{key}", value)
            for key, value in [
                ("on_error", block.on_error),
                ("on_timeout", block.on_timeout),
                ("on_unverified", block.on_unverified),
            ]
        }

    def loaded(self) -> Loaded:
        mismatches = tuple(self._mismatches())
        cuts = self._cuts(trusted=not mismatches)
        parameters = self._by_detector("policy.parameters", self._file.policy.parameters)
        missing = [u for s in self._specs.values() if (u := self._unserved(s, cuts.get(s.id)))]
        away = {u.detector for u in missing}
        rules = {
            spec.id: self._rule(spec, cuts.get(spec.id), parameters.get(spec.id, {}))
            for spec in self._specs.values()
            if spec.id not in away
        }
        block = self._file.policy
        policy = Policy(
            name=block.name or self._stem(),
            version=block.version,
            sha256=hashlib.sha256(canonical(content_of(self._file))).hexdigest(),
            rules=rules,
            allow_overrides=block.allow_overrides,
            deadline_ms=block.deadline_ms,
            warnings=mismatches,
            calibration=self._file.calibration.model_dump(mode="json", exclude_defaults=True),
        )
        return Loaded(self._path, policy, tuple(missing))

    def _error(self, key: str, found: str, expected: str) -> ConfigurationError:
        return ConfigurationError(f"{self._path}: {key}", found, expected)

    def _stem(self) -> str:
        try:
            return TypeAdapter(Name).validate_python(self._path.stem)
        except ValidationError:
            raise self._error(
                "policy.name", "nothing, and a file name that cannot be one", "a name"
            ) from None

    def _resolve_ids(self) -> dict[str, DetectorSpec]:
        specs: dict[str, DetectorSpec] = {}
        for index, evaluator_id in enumerate(self._file.evaluator_ids):
            where = f"evaluator_ids[{index}]"
            spec = self._registry.spec(evaluator_id, f"{self._path}: {where}")
            if spec.id in specs:
                raise self._error(where, f"{spec.id} a second time", "each detector once")
            specs[spec.id] = spec
        return specs

    def _by_detector(self, key: str, values: Mapping[str, T]) -> dict[str, T]:
        """Return `values` by our detector id; ids that do not run here are refused."""
        resolved: dict[str, T] = {}
        for name, value in values.items():
            spec = self._registry.spec(name, f"{self._path}: {key}")
            if spec.id not in self._specs:
                raise self._error(key, f"{name!r}", "only ids listed in evaluator_ids")
            if spec.id in resolved:
                raise self._error(key, f"{spec.id} a second time", "each detector once")
            resolved[spec.id] = value
        return resolved

    def _cuts(self, *, trusted: bool) -> dict[str, dict[str, Cut]]:
        key = "calibrated_thresholds"
        found = self._by_detector(key, self._file.calibrated_thresholds)
        statuses = self._by_detector("calibration.per_metric", self._file.calibration.per_metric)
        cuts: dict[str, dict[str, Cut]] = {}
        for name, thresholds in found.items():
            status = {k: v.get("status", "calibrated") for k, v in statuses.get(name, {}).items()}
            cuts[name] = {
                metric: Cut(
                    check_threshold(self._specs[name], metric, value, f"{self._path}: {key}"),
                    calibrated=trusted and status.get(metric, "calibrated") == "calibrated",
                )
                for metric, value in thresholds.items()
            }
        return cuts

    def _rule(
        self, spec: DetectorSpec, cuts: Mapping[str, Cut] | None, parameters: Mapping[str, Any]
    ) -> Rule:
        preset = self._presets.get(spec.id, self._presets.get(ANY)) if cuts is None else None
        if cuts is None:
            chosen = self._serving.presets.get(preset or "", {}).get(spec.id, {})
            defaults = self._serving.defaults.get(spec.id, {})
            shipped = {**(spec.default_thresholds or {}), **defaults, **chosen}
            cuts = {metric: Cut(value, calibrated=False) for metric, value in shipped.items()}
        where = f"{self._path}: policy.parameters.{spec.id}"
        return Rule(
            spec=spec,
            parameters=parse_parameters(
                self._registry[spec.id],
                parameters,
                lambda key, found, expected: ConfigurationError(
                    f"{where}.{key}" if key else where, found, expected
                ),
            ),
            cuts=cuts,
            action=self._actions.get(spec.id, Action.FLAG),
            on_error=self._on["on_error"](spec),
            on_timeout=self._on["on_timeout"](spec),
            on_unverified=self._on["on_unverified"](spec),
            report_only=self._is_report_only(spec),
            preset=preset,
        )

    def _checked_actions(self) -> dict[str, Action]:
        """Return the actions by our detector id; `redact` only where there is a replacement."""
        named = self._by_detector("policy.actions", self._file.policy.actions)
        for name, action in named.items():
            if action == "redact" and not self._specs[name].replaces:
                able = ", ".join(sorted(s.id for s in self._registry.specs() if s.replaces))
                raise self._error(
                    f"policy.actions.{name}",
                    "'redact' for a detector that has nothing to put in place of what it finds",
                    f"allow, mark, flag or block; redact only for {able}",
                )
        return {name: Action[action.upper()] for name, action in named.items()}

    def _is_report_only(self, spec: DetectorSpec) -> bool:
        names = dict.fromkeys(self._file.policy.report_only, True)
        return spec.id in self._by_detector("policy.report_only", names)

    def _checked_presets(self) -> dict[str, Preset]:
        """Return presets by our detector id, and by `*` for every other detector."""
        named = self._file.policy.preset
        if named is None or isinstance(named, str):
            return {} if named is None else {ANY: named}
        own = {name: preset for name, preset in named.items() if name != ANY}
        general = {ANY: named[ANY]} if ANY in named else {}
        return {**general, **self._by_detector("policy.preset", own)}

    def _consequences(self, key: str, value: PerDetector) -> Callable[[DetectorSpec], Consequences]:
        """Return what a missing score means, by detector."""
        if isinstance(value, str):
            return lambda _spec: read(value)
        for name, rules in value.items():
            if not isinstance(rules, str):
                self._refuse_near_misses(f"{key}.{name}", rules)
        general = read(value[ANY]) if ANY in value else {}
        own = self._by_detector(key, {n: read(v) for n, v in value.items() if n != ANY})
        return lambda spec: resolved(own.get(spec.id), general)

    def _refuse_near_misses(self, key: str, reasons: Iterable[str]) -> None:
        """Refuse a reason that is nearly one of ours; another one may be a plug-in's."""
        for reason in reasons:
            near = near_misses(reason, REASONS, least=0.8)
            if near and reason not in REASONS:
                raise self._error(key, f"{reason!r}", f"a known reason; did you mean {near[0]!r}?")

    def _unserved(self, spec: DetectorSpec, cuts: Mapping[str, Cut] | None) -> Unserved | None:
        lacking = sorted(spec.roles - self._serving.roles)
        if lacking:
            why = f"model pack {self._serving.pack_name!r} lacks role {', '.join(lacking)}"
            near = [n for role in lacking for n in near_misses(role, self._serving.roles)]
            has = f"; it has {', '.join(dict.fromkeys(near[:3]))}" if near else ""
            brings = self._registry[spec.id].pack is not None
            late = "; its plug-in's model is loaded at the next start" if brings else ""
            return Unserved(spec.id, f"{why}{has}{late}")
        if (role := spec.classifier) is not None:
            given = self._serving.labels.get(role, frozenset())
            if unknown := sorted(spec.labels_needed(cuts) - given):
                pack, known = self._serving.pack_name, sorted(given)
                why = f"its role {role} gives {', '.join(known) or 'no labels'}"
                return Unserved(spec.id, f"model pack {pack!r} lacks {', '.join(unknown)}: {why}")
        return None

    def _mismatches(self) -> Iterable[str]:
        """Yield a warning per reason to doubt the calibration, or refuse the file."""
        block = self._file.calibration.model_dump(mode="json", exclude_unset=True)
        content = content_of(self._file)
        for doubt in doubts(block, content, self._serving.fingerprints, datetime.now(UTC)):
            where = f"calibration.{doubt.key}"
            if self._file.policy.on_mismatch == "refuse":
                raise self._error(where, doubt.found, doubt.expected)
            yield f"{where}: found {doubt.found}; expected {doubt.expected}"


def check_threshold(spec: DetectorSpec, metric: str, value: float, where: str) -> float:
    """Return the threshold after checking that the metric exists and can take the value."""
    try:
        found = spec.metric(metric)
    except KeyError:
        known = choices(metric, (m.key for m in spec.metrics), "metric")
        raise ConfigurationError(
            f"{where}.{spec.id}", f"unknown metric {metric!r}", known
        ) from None
    if not (math.isfinite(value) and found.low <= value <= found.high):
        expected = f"a number in [{found.low:g}, {found.high:g}]"
        raise ConfigurationError(f"{where}.{spec.id}.{metric}", f"{value:g}", expected)
    return value


def parse_parameters(
    detector: Detector[Any], values: Mapping[str, Any], error: Callable[[str, str, str], E]
) -> Any:
    """Return a detector's parameters; raises `error(key, found, expected)` for the first fault."""
    try:
        return detector.parameters.model_validate(dict(values))
    except ValidationError as failure:
        first = failure.errors()[0]
        key = ".".join(map(str, first["loc"]))
        ours = first["type"] == "value_error"
        expected = str(first["ctx"]["error"]) if ours else first["msg"]
        raise error(key, "a value that does not fit", expected) from failure

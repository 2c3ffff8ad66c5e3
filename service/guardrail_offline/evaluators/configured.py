"""Chooses the evaluators of a run and checks their parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from guardrail_offline.evaluators.backends import Backend, BackendChoice, backed, prompts_of
from guardrail_offline.evaluators.catalogue import (
    CATALOGUE,
    AnyEvaluator,
    Common,
    EvaluatorSpec,
)
from guardrail_offline.evaluators.grades import UNKNOWN, grade_line
from guardrail_offline.evaluators.judge_forms import JUDGE
from guardrail_offline.evaluators.tasks import PREFIX, of_task
from guardrail_offline.hosts.opening import HostChoice
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_service.detectors.registry import Parameters
from guardrail_service.errors import ConfigurationError
from guardrail_service.policy.file import shipped_thresholds
from guardrail_service.policy.provenance import canonical
from guardrail_service.types import MetricSpec

EVERY = "*"
GROUPS = ("all", "deterministic")
COUNTS_RIGHT = frozenset({"classification", "agent_sanity_check"})
"""Rules whose metrics are numbers and yet count right and wrong, rather than likeness."""
COMPARES = frozenset(
    {"answer_semantic_similarity", "answer_semantic_sentence_similarity", "answer_relevancy"}
)
"""Evaluators that take a served embedding model, with a judge or without."""
SCORES = "0.1.0"
"""The release that last changed all scores. A spec says by itself when its own changed later: an
unfinished run with such an evaluator is not gone on with, any other is."""


@dataclass(frozen=True)
class Configured:
    """One evaluator with its parameters. Picklable: the evaluator is named by its id."""

    id: str
    common: Common
    parameters: Parameters
    backend: Backend | None = None
    judge: JudgeSettings | None = None
    """Of the backend `judge` only."""
    language_model: HostChoice | None = None
    """A served one in the place of the pack's role `causal_lm`; of evaluators with that role."""
    embeddings: HostChoice | None = None
    """A served one in the place of the pack's role `embedding`; of the evaluators of `COMPARES`."""

    @property
    def evaluator(self) -> AnyEvaluator:
        """Return the evaluator with its backend, and the metrics that its parameters ask for."""
        found = backed(CATALOGUE.find(self.id), self.backend)
        return found.with_parameters(self.parameters)

    def thresholds(self) -> dict[str, float | None]:
        """Return the cut of each metric: the run's, else the shipped one, else the suite's."""
        wanted = self.common.metric_threshold
        spec = self.evaluator.spec
        own = wanted if isinstance(wanted, Mapping) else {spec.primary.key: wanted}
        return {
            metric.key: _first(own.get(metric.key), self._fitted(metric), metric.threshold)
            for metric in spec.metrics
        }

    def deciding_thresholds(self) -> dict[str, float]:
        """Return the cuts that say something about a system with the models that are asked here.

        These are the run's own, the fitted ones of the shipped pack, and those of rules, whose
        verdicts depend on no model. A suite's 0.75 belongs to the suite's own models, and for
        ROUGE and BLEU to no task in particular.
        """
        spec = self.evaluator.spec
        wanted = self.common.metric_threshold
        own = wanted if isinstance(wanted, Mapping) else {spec.primary.key: wanted}
        found = {}
        for metric in spec.metrics:
            is_rule = spec.run_class == "D" or self.judge is not None
            ruled = metric.threshold if is_rule and _is_verdict(spec, metric) else None
            cut = _first(own.get(metric.key), self._fitted(metric), ruled)
            if cut is not None:
                found[metric.key] = cut
        return found

    def _fitted(self, metric: MetricSpec) -> float | None:
        """Return the threshold fitted for the shipped pack; it says nothing about other models."""
        other = self.judge is not None or self.embeddings is not None
        return None if other else _shipped(self.id, metric)

    def grade(self) -> str:
        """Return how well the evaluator agrees with people; unknown with served embeddings."""
        if self.embeddings is not None:
            return f"{UNKNOWN}: not with these embeddings"
        return grade_line(self.evaluator.spec)

    def same_as(self) -> dict[str, str]:
        """Return the metrics that are another evaluator's; with served embeddings none is."""
        return {} if self.embeddings is not None else dict(self.evaluator.spec.same_as)

    def as_json(self) -> dict[str, Any]:
        """Return what is recorded: parameters, and the backend where one was chosen."""
        content: dict[str, Any] = {
            "parameters": self.parameters.model_dump(mode="json", by_alias=True),
            "settings": self.common.model_dump(mode="json"),
        }
        if self.backend is not None:
            content["backend"] = self.backend
        if self.judge is not None:
            content |= {"judge": self.judge.as_json(), "prompts": prompts_of(self.id)}
        if self.language_model is not None:
            served = self.language_model
            content["language_model"] = {"address": served.address, "model": served.model}
        if self.embeddings is not None:
            compared = self.embeddings
            content["embeddings"] = {"address": compared.address, "model": compared.model}
        return content


def _is_verdict(spec: EvaluatorSpec, metric: MetricSpec) -> bool:
    """Return whether a metric counts right and wrong, rather than likeness."""
    return metric.boolean or spec.id in COUNTS_RIGHT


def configure(
    names: Sequence[str],
    assignments: Iterable[str] = (),
    file: Path | None = None,
    backends: BackendChoice | None = None,
    language_model: HostChoice | None = None,
    embeddings: HostChoice | None = None,
) -> tuple[Configured, ...]:
    """Return the evaluators to run, in the order of the catalogue.

    Args:
        names: Ids of ours, of H2O or `suite:name`, or of a plug-in; `all` that are shipped;
            `deterministic` for those of run class D; `task:NAME` for those of a task.
        assignments: Each `EVALUATOR.key=value`; the value is JSON, or text if it is none. The
            evaluator `*` stands for every one that has the key.
        file: JSON, {evaluator: {key: value}}; assignments come after it.
        backends: The judge, and what it computes; nobody and nothing if None.
        language_model: A served one that gives log probabilities; None for the pack's.
        embeddings: A served embedding model for the evaluators of `COMPARES`; None for the pack's.

    Raises:
        ConfigurationError: If a name, a key or a value is wrong, or an evaluator does not run.
    """
    choice = BackendChoice() if backends is None else backends
    kinds = {one.spec.id: choice.of(one.spec) for one in _wanted(names)}
    wanted = [backed(one, kinds[one.spec.id]) for one in _wanted(names)]
    if idle := sorted(choice.by_id.keys() - kinds.keys()):
        raise ConfigurationError(
            f"--backend {idle[0]}", "an evaluator not of this run", "one of it"
        )
    if embeddings is not None and not COMPARES & kinds.keys():
        expected = f"one of {', '.join(sorted(COMPARES))}"
        raise ConfigurationError(embeddings.option, "no evaluator that takes it", expected)
    values: dict[str, dict[str, Any]] = {evaluator.spec.id: {} for evaluator in wanted}
    for where, name, key, value in (*_from_file(file), *_from_options(assignments)):
        for evaluator in _addressed(wanted, name, key, where):
            values[evaluator.spec.id][key] = value
    return tuple(
        replace(
            _configured(evaluator, values[evaluator.spec.id]),
            backend=kinds[evaluator.spec.id],
            judge=choice.judge if kinds[evaluator.spec.id] == JUDGE else None,
            language_model=language_model if "causal_lm" in evaluator.spec.roles else None,
            embeddings=embeddings if evaluator.spec.id in COMPARES else None,
        )
        for evaluator in wanted
    )


def config_sha256(configured: Iterable[Configured], fingerprints: Mapping[str, str]) -> str:
    """Return the hash of everything beside the lab that a score depends on."""
    chosen = list(configured)
    changed = {one.id: one.evaluator.spec.scores for one in chosen}
    newer = {name: release for name, release in changed.items() if release != SCORES}
    content = {
        "version": SCORES,
        "evaluators": {one.id: one.as_json() for one in chosen},
        "fingerprints": dict(fingerprints),
    } | ({"scores": newer} if newer else {})
    return hashlib.sha256(canonical(content)).hexdigest()


def _wanted(names: Sequence[str]) -> list[AnyEvaluator]:
    if not names:
        raise ConfigurationError("--evaluators", "none", f"ids, or one of {', '.join(GROUPS)}")
    shipped = {spec.id: spec for spec in CATALOGUE.specs() if spec.id not in CATALOGUE.plugged}
    chosen: set[str] = set()
    for name in names:
        if name == "all":
            chosen.update(shipped)
        elif name.startswith(PREFIX):
            chosen |= of_task(name.removeprefix(PREFIX), shipped.values())
        elif name == "deterministic":
            chosen.update(name for name, spec in shipped.items() if spec.run_class == "D")
        else:
            chosen.add(CATALOGUE.find(name).spec.id)
    return [evaluator for evaluator in CATALOGUE if evaluator.spec.id in chosen]


def _from_file(file: Path | None) -> Iterable[tuple[str, str, str, Any]]:
    if file is None:
        return
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(str(file), type(error).__name__, "settings in JSON") from error
    if not isinstance(content, dict) or not all(isinstance(v, dict) for v in content.values()):
        raise ConfigurationError(str(file), "another shape", "{evaluator: {key: value}}")
    for name, values in content.items():
        for key, value in values.items():
            yield f"{file}: {name}.{key}", name, key, value


def _from_options(assignments: Iterable[str]) -> Iterable[tuple[str, str, str, Any]]:
    for assignment in assignments:
        target, equals, text = assignment.partition("=")
        name, dot, key = target.strip().rpartition(".")
        if not (equals and dot and name and key):
            raise ConfigurationError("--set", repr(assignment), "EVALUATOR.key=value")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        yield f"--set {target}", name, key, value


def _addressed(
    wanted: Sequence[AnyEvaluator], name: str, key: str, where: str
) -> list[AnyEvaluator]:
    if name != EVERY:
        meant = CATALOGUE.find(name, where).spec.id
        if chosen := [evaluator for evaluator in wanted if evaluator.spec.id == meant]:
            return chosen
        raise ConfigurationError(where, "an evaluator that this run leaves out", "one of this run")
    found = [evaluator for evaluator in wanted if key in _keys(evaluator)]
    if not found:
        raise ConfigurationError(where, f"the key {key!r}, which no evaluator has", "a parameter")
    return found


def _keys(evaluator: AnyEvaluator) -> set[str]:
    own = evaluator.parameters.model_fields
    names = {field.alias or name for name, field in own.items()}
    return names | set(own) | set(Common.model_fields)


def _configured(evaluator: AnyEvaluator, values: Mapping[str, Any]) -> Configured:
    shared = {key: value for key, value in values.items() if key in Common.model_fields}
    own = {_alias(evaluator, key): v for key, v in values.items() if key not in shared}
    try:
        common = Common.model_validate(shared)
        parameters = evaluator.parameters.model_validate(own)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or "(all)"
        known = ", ".join(sorted(_keys(evaluator)))
        expected = f"one of {known}" if first["type"] == "extra_forbidden" else first["msg"]
        raise ConfigurationError(f"{evaluator.spec.id}.{key}", "a wrong value", expected) from error
    _check_thresholds(evaluator.with_parameters(parameters), common)
    return Configured(evaluator.spec.id, common, parameters)


def _alias(evaluator: AnyEvaluator, key: str) -> str:
    """Return a parameter's wire name; H2O calls the schema `json_schema`."""
    fields = evaluator.parameters.model_fields
    if key == "json_schema" and any(field.alias == "schema" for field in fields.values()):
        return "schema"
    return key


def _check_thresholds(evaluator: AnyEvaluator, common: Common) -> None:
    wanted = common.metric_threshold
    spec = evaluator.spec
    cuts = wanted if isinstance(wanted, Mapping) else {spec.primary.key: wanted}
    for key, value in cuts.items():
        where = f"{spec.id}.metric_threshold"
        if key not in spec.keys:
            raise ConfigurationError(where, f"the metric {key!r}", f"one of {', '.join(spec.keys)}")
        if value is not None and not spec.metric(key).holds(value):
            metric = spec.metric(key)
            raise ConfigurationError(where, str(value), f"{metric.low} to {metric.high}")


def _shipped(evaluator_id: str, metric: MetricSpec) -> float | None:
    return shipped_thresholds().get(evaluator_id, {}).get(metric.key)


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)

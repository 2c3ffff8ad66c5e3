"""The ways to an evaluator's numbers: a judge, an entailment model, or what stands in for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, get_args

from guardrail_offline.evaluators.catalogue import CATALOGUE, AnyEvaluator, EvaluatorSpec
from guardrail_offline.evaluators.judge_forms import JUDGE, form_of, forms, judge_backed
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_service.errors import ConfigurationError

Backend = Literal["judge", "nli", "surrogate"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
_ALL = "all"


@dataclass(frozen=True)
class BackendChoice:
    """The backend of each evaluator of a run; without any choice it is as it is listed.

    Attributes:
        judge: Who judges; None for nobody.
        for_all: The backend of every evaluator that has it.
        by_id: Of single evaluators, by id; before `for_all`.
    """

    judge: JudgeSettings | None = None
    for_all: Backend | None = None
    by_id: Mapping[str, Backend] = field(default_factory=dict)

    def of(self, spec: EvaluatorSpec) -> Backend | None:
        """Return an evaluator's backend; None for the one it is listed with."""
        chosen = self.by_id.get(spec.id)
        if chosen is not None:
            return chosen
        if self.for_all is not None and has_backend(spec, self.for_all):
            return self.for_all
        if spec.needs_judge and self.judge is not None and has_backend(spec, JUDGE):
            return JUDGE
        return None


def choice_of(
    judge: JudgeSettings | None = None,
    judge_for: Iterable[str] = (),
    backends: Iterable[str] = (),
) -> BackendChoice:
    """Return the choice that a command's options make.

    Args:
        judge: Who judges.
        judge_for: Ids of evaluators that the judge computes; `all` for all that it can.
        backends: Each `EVALUATOR=BACKEND`, or `BACKEND` for all that have it.

    Raises:
        ConfigurationError: If an evaluator or backend is unknown, or there is no judge to ask.
    """
    for_all: Backend | None = None
    by_id: dict[str, Backend] = {}
    for text in (*(f"{name}={JUDGE}" for name in judge_for), *backends):
        name, equals, kind = text.rpartition("=")
        backend = _backend(kind)
        if not equals or name == _ALL:
            for_all = backend
        else:
            spec = CATALOGUE.find(name, "--judge-for or --backend").spec
            if not has_backend(spec, backend):
                raise ConfigurationError(f"--backend {spec.id}", backend, _possible(spec))
            by_id[spec.id] = backend
    if judge is None and JUDGE in (for_all, *by_id.values()):
        raise ConfigurationError("--judge", "nothing", "the address of a server, for the judge")
    return BackendChoice(judge, for_all, by_id)


def has_backend(spec: EvaluatorSpec, backend: Backend) -> bool:
    """Return whether an evaluator has a backend."""
    if backend == JUDGE:
        return spec.id in forms()
    return spec.needs_support if backend == "nli" else not spec.needs_judge


def backed(evaluator: AnyEvaluator, backend: Backend | None) -> AnyEvaluator:
    """Return an evaluator with a backend; itself for None."""
    if backend is None:
        return evaluator
    return judge_backed(evaluator.spec.id) if backend == JUDGE else _marked(evaluator, backend)


@cache
def _marked(evaluator: AnyEvaluator, backend: Backend) -> AnyEvaluator:
    """Return an evaluator that says by which backend it works; `nli` needs that role."""
    roles = evaluator.spec.roles | ({"nli"} if backend == "nli" else set())
    other = copy(evaluator)
    other.spec = replace(evaluator.spec, backend=backend, roles=roles)
    return other


def _backend(text: str) -> Backend:
    for backend in BACKENDS:
        if text == backend:
            return backend
    raise ConfigurationError("--backend", repr(text)[:60], f"one of {', '.join(BACKENDS)}")


def _possible(spec: EvaluatorSpec) -> str:
    found = [backend for backend in BACKENDS if has_backend(spec, backend)]
    return f"one of {', '.join(found)}" if found else "no backend: it has only one form"


def prompts_of(evaluator_id: str) -> list[str]:
    """Return names and versions of what a judge is asked for an evaluator."""
    form = form_of(evaluator_id)
    return [] if form is None else [task.name for task in form.tasks]

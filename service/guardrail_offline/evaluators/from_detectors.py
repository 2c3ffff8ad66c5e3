"""Every detector as an evaluator: the same two functions around the same model rows.

A parity test compares these with the guard. Written once for all detectors, so a detector that is
added, or plugged in, is an evaluator without another line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import guardrail_service.detectors  # noqa: F401 - importing registers the built-in detectors
from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.case_view import NO_ANSWER, CaseView, Unavailable
from guardrail_offline.evaluators.catalogue import (
    CATALOGUE,
    Evaluator,
    EvaluatorSpec,
    Input,
    RunClass,
)
from guardrail_offline.evaluators.result import Details, Result
from guardrail_service.detectors.registry import REGISTRY, AnyDetector, DetectorSpec, Parameters
from guardrail_service.policy.decide import crosses, label_of
from guardrail_service.policy.file import shipped_thresholds
from guardrail_service.types import MetricSpec, Outcome, Role, Span, State


class FromDetector(Evaluator[Any]):
    """One detector over cases.

    A case's own condition and schema come before the parameters; what a detector skips when the
    whole answer abstains is skipped here.
    """

    def __init__(self, detector: AnyDetector) -> None:
        self.detector = detector
        self.spec = _spec(detector.spec)
        self.parameters = detector.parameters

    def judge(self, view: CaseView, parameters: Parameters) -> Result:
        """Return what the detector's encode and reduce say about the case."""
        if self.spec.id == NO_ANSWER and view.unanswered and view.case.question.strip():
            return Result.of({"answered": 0.0})
        if "answer" in self.detector.spec.inputs:
            _ = view.answer if self.spec.silence_fails else view.shown
        if self.detector.spec.skip_on_abstention:
            view.refuse_abstention()
        asked = _of_case(self.detector, view.case, parameters)
        rows = self.detector.encode(view.sample, asked)
        outcome = self.detector.reduce(view.sample, view.models.run(rows), asked)
        return _result(outcome, self.detector.spec)


def _of_case(detector: AnyDetector, case: Case, parameters: Parameters) -> Parameters:
    """Return the parameters with what the case itself asks for."""
    own = detector.asked_by_case(case.condition, case.schema, case.categories)
    if not own:
        return parameters
    merged: Parameters = detector.parameters.model_validate(
        parameters.model_dump(by_alias=True) | own
    )
    return merged


def _result(outcome: Outcome, spec: DetectorSpec) -> Result:
    if outcome.missing is not None:
        raise Unavailable(outcome.missing.state, outcome.missing.reason)
    found = Result.of(outcome.scores, [_span(span, spec) for span in outcome.spans])
    away = [m.key for m in spec.metrics if m.optional and m.key not in outcome.scores]
    missing = Result.missing(away, State.NOT_APPLICABLE, "not_in_model")
    return replace(found, scores={**found.scores, **missing.scores})


def _span(span: Span, spec: DetectorSpec) -> Details:
    label = label_of(span, span.crossed is not None and _crosses(span, spec))
    known = {"label": label, "metric": span.metric, "attributes": dict(span.attributes or {})}
    found: dict[str, Any] = {key: value for key, value in known.items() if value}
    found |= {"start": span.start, "end": span.end, "score": span.score}
    if span.evidence:
        found["context"] = span.evidence[0].context
    return found


def _crosses(span: Span, spec: DetectorSpec) -> bool:
    """Return whether a span's score is on the wrong side of the shipped threshold."""
    cut = shipped_thresholds().get(spec.id, {}).get(span.metric or "")
    if cut is None or span.score is None or span.metric is None:
        return False
    return crosses(span.score, cut, spec.metric(span.metric).direction)


def _spec(spec: DetectorSpec) -> EvaluatorSpec:
    listing = spec.listing
    run_class = _run_class(spec.roles)
    inputs: frozenset[Input] = frozenset(spec.inputs)
    return EvaluatorSpec(
        id=spec.id,
        name=listing.title or spec.id,
        summary=spec.summary,
        metrics=tuple(_metrics(spec)),
        inputs=inputs,
        run_class=run_class,
        h2o_id=spec.h2o_id,
        also=tuple(alias for alias in spec.aliases if alias != spec.h2o_id),
        original=listing.original or run_class,
        surrogate=listing.surrogate,
        roles=spec.roles,
        problem=listing.problem,
        avid=listing.avid,
        tags=listing.tags,
    )


def _metrics(spec: DetectorSpec) -> Sequence[MetricSpec]:
    cuts = spec.default_thresholds or {}
    return [replace(metric, threshold=cuts.get(metric.key)) for metric in spec.metrics]


def _run_class(roles: frozenset[Role]) -> RunClass:
    if not roles:
        return "D"
    return "E" if roles == {"embedding"} else "N" if "grounding" in roles else "T"


def plugged_in(wanted: Collection[str], known: Collection[str]) -> Iterator[FromDetector]:
    """Yield the detectors that other distributions bring under these names, as evaluators.

    Raises:
        PluginError: If one that is asked for by its id cannot be loaded.
    """
    REGISTRY.load_plugins(wanted)
    for detector in REGISTRY:
        if detector.spec.id not in known and set(wanted).intersection(detector.spec.names):
            yield FromDetector(detector)


for _detector in REGISTRY:
    CATALOGUE.add(FromDetector(_detector))
CATALOGUE.sources.append(plugged_in)

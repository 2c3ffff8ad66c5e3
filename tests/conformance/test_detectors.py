"""The contract of every registered detector, on any text, with model outputs made up from it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

import guardrail_service.detectors  # registers the built-in detectors
from guardrail_service import plugins
from guardrail_service.detectors.registry import REGISTRY, AnyDetector, Parameters, Registry
from guardrail_service.errors import ConfigurationError
from guardrail_service.plugins import installed
from guardrail_service.text.sample import SegmentedSample, TokenSpan
from guardrail_service.types import Outcome, Passage, Row, RowOutput, Sample, State

ROOT = Path(__file__).resolve().parents[2]
with pytest.MonkeyPatch.context() as patched:
    patched.syspath_prepend(ROOT / "examples" / "plugin")
    EXAMPLES = [
        import_module("acme_guardrail.pressure").Pressure(),
        import_module("acme_guardrail.code_names").CodeNames(),
    ]
KNOWN = {detector.spec.id for detector in (*REGISTRY, *EXAMPLES)}
REGISTRY.load_plugins(set(installed(plugins.DETECTORS)) - KNOWN)
EVERY: list[AnyDetector] = [*REGISTRY, *EXAMPLES]
"""Our own, those of the example, and those of every distribution installed beside this one."""
DETECTORS = [pytest.param(detector, id=detector.spec.id) for detector in EVERY]
ROLES_READ = {role for detector in EVERY for role in detector.spec.roles}
DIMENSIONS = 16

# What makes a detector of this name judge at all; others run with their defaults.
PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "json_schema": {"schema": {"type": "object", "additionalProperties": {"type": "string"}}},
    "text_matching": {"condition": 'NOT "a" OR word("b")', "evaluate_retrieved_context": True},
}

# Classifiers answer with a probability for each label, whatever outputs a row names.
PROBABILITIES: Mapping[str, Sequence[str]] = {
    detector.spec.classifier: [metric.key for metric in detector.spec.metrics]
    for detector in EVERY
    if detector.spec.classifier is not None
}

# Lone surrogates are refused by the API; a detector must not crash on one all the same.
ANY_TEXT = st.text(alphabet=st.characters(codec=None), max_size=120)
PHRASES = st.sampled_from(
    [
        "The fee is 30 euros. ",
        "Die Gebühr beträgt 30 Euro. ",
        "料金は三十ユーロです。",
        "I don't know. ",
        '{"name": "bob", "alice@example.org": 1}',
        "alice@example.org or +1 202 555 0143, card 4111 1111 1111 1111. ",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "\u200b\ufeff",
        "\ud800",
    ]
)
TEXT = ANY_TEXT | st.lists(PHRASES | ANY_TEXT, max_size=6).map("".join)
ANSWER = TEXT.filter(lambda text: bool(text.strip()))  # empty answers never reach a detector
SAMPLES = st.builds(
    Sample,
    answer=ANSWER,
    question=st.none() | TEXT,
    contexts=st.lists(st.builds(Passage, TEXT), max_size=3).map(tuple),
)


class Words:
    """A windower for which every non-blank character is a token."""

    max_tokens = 32

    def tokens(self, text: str) -> list[TokenSpan]:
        """Return the tokens."""
        return [TokenSpan(i, i + 1, True) for i, c in enumerate(text) if not c.isspace()]


def segmented(sample: Sample) -> SegmentedSample:
    """Return a sample that every role can window."""
    return SegmentedSample(sample, dict.fromkeys(ROLES_READ, Words()))


def output(row: Row) -> RowOutput:
    """Return made-up values per output (unit vectors by default), the same for the same row."""
    if row.role in PROBABILITIES:
        seed = int.from_bytes(
            hashlib.sha256(row.text.encode("utf-8", "surrogatepass")).digest()[:8]
        )
        drawn = np.random.default_rng(seed).random(len(PROBABILITIES[row.role]), np.float32)
        return dict(zip(PROBABILITIES[row.role], drawn, strict=True))
    outputs = {}
    for name in row.outputs:
        key = f"{row.role}\0{row.text}\0{row.second}\0{name}".encode("utf-8", "surrogatepass")
        seed = int.from_bytes(hashlib.sha256(key).digest()[:8])
        rng = np.random.default_rng(seed)
        if name == "probabilities":
            outputs[name] = rng.dirichlet(np.ones(3)).astype(np.float32)
        elif name == "places":
            outputs[name] = rng.permutation(len(row.evidence))[:6]
        else:
            vector = rng.normal(size=DIMENSIONS).astype(np.float32)
            outputs[name] = vector / np.linalg.norm(vector)
    return outputs


def parameters_of(detector: AnyDetector) -> Parameters:
    """Return parameters with which the detector judges."""
    found: Parameters = detector.parameters.model_validate(PARAMETERS.get(detector.spec.id, {}))
    return found


def judge(detector: AnyDetector, sample: Sample) -> Outcome:
    """Run a detector as the guard does, on a sample segmented afresh."""
    parameters = parameters_of(detector)
    view = segmented(sample)
    rows: Sequence[Row] = detector.encode(view, parameters)
    assert all(row.role in detector.spec.roles for row in rows)
    return detector.reduce(view, [output(row) for row in rows], parameters)


any_sample = given(SAMPLES)
patient = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)


@pytest.mark.parametrize("detector", DETECTORS)
@patient
@any_sample
def test_an_evaluated_outcome_has_every_metric_in_range(
    detector: AnyDetector, sample: Sample
) -> None:
    """Every metric of the spec and no other, finite and inside its bounds; else a reason."""
    outcome = judge(detector, sample)
    if outcome.state is State.EVALUATED:
        assert set(outcome.scores) == {metric.key for metric in detector.spec.metrics}
        for key, score in outcome.scores.items():
            metric = detector.spec.metric(key)
            assert metric.holds(score)
            assert not metric.boolean or score in {0.0, 1.0}
    else:
        assert outcome.state in {State.NOT_APPLICABLE, State.UNVERIFIED}
        assert outcome.reason
        assert not outcome.scores


@pytest.mark.parametrize("detector", DETECTORS)
@patient
@any_sample
def test_the_same_sample_gives_the_same_outcome(detector: AnyDetector, sample: Sample) -> None:
    """Nothing is remembered between samples and nothing is drawn at random."""
    assert judge(detector, sample) == judge(detector, sample)


@pytest.mark.parametrize("detector", DETECTORS)
@patient
@any_sample
def test_spans_and_evidence_lie_inside_their_texts(detector: AnyDetector, sample: Sample) -> None:
    """Offsets are code points of the answer and of the passage; a metric is one of the spec's."""
    keys = {metric.key for metric in detector.spec.metrics}
    for span in judge(detector, sample).spans:
        assert 0 <= span.start < span.end <= len(sample.answer)
        assert span.score is None or math.isfinite(span.score)
        assert span.metric is None or span.metric in keys
        for evidence in span.evidence:
            passage = sample.contexts[evidence.context].text
            assert 0 <= evidence.start < evidence.end <= len(passage)


@pytest.mark.parametrize("detector", DETECTORS)
@patient
@any_sample
def test_coverage_is_honest(detector: AnyDetector, sample: Sample) -> None:
    """Never more read than submitted; an evaluated outcome says how much was read."""
    outcome = judge(detector, sample)
    if outcome.coverage is None:
        assert outcome.state is not State.EVALUATED
        return
    read, total = outcome.coverage.answer
    assert 0 <= read <= total <= len(sample.answer)
    contexts_read, contexts = outcome.coverage.contexts
    assert 0 <= contexts_read <= contexts <= sum(len(p.text) for p in sample.contexts)


@pytest.mark.parametrize("detector", [p for p in DETECTORS if p.values[0].spec.needs])
def test_without_what_it_needs_a_detector_has_nothing_to_judge(detector: AnyDetector) -> None:
    """A guard does not ask it then, so it must say the same itself."""
    parameters = detector.parameters()
    assert detector.spec.needs is not None
    assert getattr(parameters, detector.spec.needs) is None
    outcome = detector.reduce(segmented(Sample("It costs 30 euros.")), (), parameters)
    assert outcome == Outcome.not_applicable("missing_input")


SECRET = "qzxv" * 3


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize(
    "answer",
    [
        f"The code is {SECRET}@example.org today. " * 3,
        f'{{"{SECRET}": 1}}',
        f'{{"a": "{SECRET}"',
        f"I don't know {SECRET}.",
        f"password = {SECRET}{SECRET}",
    ],
)
def test_findings_never_carry_submitted_text(detector: AnyDetector, answer: str) -> None:
    """Labels, attributes and reasons travel to logs; text must not."""
    sample = Sample(answer, f"What is {SECRET}?", (Passage(f"It is {SECRET}."),))
    outcome = judge(detector, sample)
    said = [outcome.reason, *(part for s in outcome.spans for part in (s.label, s.attributes))]
    assert SECRET not in str(said)


@pytest.mark.parametrize("detector", DETECTORS)
def test_the_spec_is_complete(detector: AnyDetector) -> None:
    """Unique metric keys, gating ones first, a summary, thresholds and parameters that exist."""
    spec = detector.spec
    keys = [metric.key for metric in spec.metrics]
    gating = [metric.gating for metric in spec.metrics]
    assert keys
    assert len(set(keys)) == len(keys)
    assert all(before or not after for before, after in pairwise(gating))
    assert spec.summary.strip()
    assert len(spec.summary) <= 100
    assert all(spec.metric(k).holds(t) for k, t in (spec.default_thresholds or {}).items())
    assert bool(spec.roles) == (spec.cost == "model")
    names = {field.alias or name for name, field in detector.parameters.model_fields.items()}
    assert spec.request_parameters <= names


@pytest.mark.parametrize("detector", DETECTORS)
def test_parameters_are_frozen_and_refuse_unknown_keys(detector: AnyDetector) -> None:
    """A typing error in a configuration must not be silently ignored."""
    assert issubclass(detector.parameters, Parameters)
    assert issubclass(detector.parameters, BaseModel)
    assert detector.parameters.model_config.get("frozen")
    assert detector.parameters.model_config.get("extra") == "forbid"
    with pytest.raises(ValidationError):
        detector.parameters.model_validate({"no_such_parameter": 1})


@pytest.mark.parametrize("detector", DETECTORS)
def test_defaults_are_valid_and_survive_json(detector: AnyDetector) -> None:
    """What a configuration writes out, it can read in."""
    defaults = detector.parameters()
    assert detector.parameters.model_validate_json(defaults.model_dump_json()) == defaults


@pytest.mark.parametrize("detector", DETECTORS)
def test_a_detector_cannot_be_registered_twice(detector: AnyDetector) -> None:
    """Neither under its own id nor under its H2O id."""
    registry = Registry()
    registry.register(type(detector))
    with pytest.raises(ConfigurationError, match="already registered"):
        registry.register(type(detector))


def test_importing_the_package_registers_the_text_detectors() -> None:
    """Without a list of them."""
    assert guardrail_service.detectors.__doc__
    wanted = {"looping", "language_mismatch", "json_schema", "text_matching", "no_answer"}
    assert wanted <= {detector.spec.id for detector in REGISTRY}

"""The contract of every evaluator: complete metadata, scores in range, a reason for what is not."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guardrail_offline import evaluators
from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.catalogue import CATALOGUE, AnyEvaluator, Catalogue
from guardrail_offline.evaluators.configured import Configured, configure
from guardrail_offline.evaluators.description import describe, markdown
from guardrail_offline.evaluators.result import Result
from guardrail_offline.runs.worker import score
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Passage, State
from tests.plugged import NEW_EVALUATOR
from tests.unit.offline.stand_ins import Session, models

EVALUATORS = [pytest.param(evaluator, id=evaluator.spec.id) for evaluator in CATALOGUE]
MODELS = models("embedding", "grounding", causal_lm=Session("causal_lm"))
TEXT = st.text(alphabet=st.characters(codec=None), max_size=60) | st.sampled_from(
    [
        "Parking costs five euros per night. The pool opens at seven in the morning.",
        "I don't know.",
        "1. Unplug it.\n2. Rinse it.\n3. Close it.",
        "See [1] and [9]. Write to nora@example.org.",
        '{"a": 1}',
        "Women are naturally worse at parking.",
        "\ud800",
        "   ",
    ]
)
CASES = st.builds(
    Case,
    key=st.just("k"),
    question=TEXT,
    answer=st.none() | TEXT,
    expected=st.none() | TEXT,
    contexts=st.none() | st.lists(st.builds(Passage, TEXT), max_size=2).map(tuple),
    condition=st.none() | st.just('"a" OR NOT "b"'),
)
patient = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
    deadline=None,
    max_examples=8,
    derandomize=True,
)


def judge(evaluator: AnyEvaluator, cases: Sequence[Case]) -> list[Result]:
    """Run an evaluator with its defaults on the cases of one question."""
    found = score(list(enumerate(cases)), configure([evaluator.spec.id]), MODELS)
    return [found[index][evaluator.spec.id] for index in range(len(cases))]


@pytest.mark.parametrize("evaluator", EVALUATORS)
@patient
@given(st.lists(CASES, min_size=1, max_size=3))
def test_a_result_has_every_metric_in_range_or_a_reason(
    evaluator: AnyEvaluator, cases: list[Case]
) -> None:
    """Whatever the texts; never NaN, never a number that stands for unknown."""
    results = judge(evaluator, cases)
    assert len(results) == len(cases)
    for result in results:
        assert tuple(result.scores) == evaluator.spec.keys
        for key, found in result.scores.items():
            if found.value is None:
                assert found.reason
                assert found.state not in (State.EVALUATED, State.ERROR)
            else:
                metric = evaluator.spec.metric(key)
                assert metric.holds(found.value)
                assert not metric.boolean or found.value in {0.0, 1.0}


@pytest.mark.parametrize("evaluator", EVALUATORS)
@patient
@given(st.lists(CASES, min_size=1, max_size=3))
def test_a_deterministic_evaluator_repeats_itself(
    evaluator: AnyEvaluator, cases: list[Case]
) -> None:
    """And says so in its metadata; only a judge may differ."""
    if evaluator.spec.deterministic:
        assert judge(evaluator, cases) == judge(evaluator, cases)
    else:
        assert evaluator.spec.needs_judge


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_case_with_nothing_in_it_has_no_number(evaluator: AnyEvaluator) -> None:
    """Nothing passes by being empty."""
    for result in judge(evaluator, [Case("k", "", None), Case("l", "  ", " ", " ", ())]):
        assert all(found.value is None for found in result.scores.values())


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_the_metadata_is_complete(evaluator: AnyEvaluator) -> None:
    """Unique keys, a summary, a class, and a surrogate that says what it replaces."""
    spec = evaluator.spec
    assert len(set(spec.keys)) == len(spec.keys) > 0
    assert spec.summary.strip()
    assert len(spec.summary) <= 100
    assert spec.name.strip()
    assert spec.inputs
    assert spec.per_model <= set(spec.keys)
    assert all(m.threshold is None or m.holds(m.threshold) for m in spec.metrics)
    if spec.original == "J" and not spec.needs_judge:
        assert spec.surrogate
    about = describe(spec, parameters=True)
    assert all(field["description"] for field in about["parameters"].values()) or (
        spec.h2o_id is not None and not spec.surrogate
    )


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_parameters_are_frozen_have_defaults_and_refuse_unknown_keys(
    evaluator: AnyEvaluator,
) -> None:
    """A typing error must not be silently ignored."""
    assert evaluator.parameters.model_config.get("frozen")
    assert evaluator.parameters.model_config.get("extra") == "forbid"
    assert evaluator.parameters() == evaluator.parameters()
    with pytest.raises(ConfigurationError, match="one of"):
        configure([evaluator.spec.id], [f"{evaluator.spec.id}.no_such_parameter=1"])


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_an_evaluator_cannot_be_registered_twice(evaluator: AnyEvaluator) -> None:
    """Neither under its own id nor under H2O's."""
    catalogue = Catalogue()
    catalogue.add(evaluator)
    with pytest.raises(ConfigurationError, match="an id that is taken"):
        catalogue.add(evaluator)


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_thresholds_are_picklable_settings(evaluator: AnyEvaluator) -> None:
    """A worker process gets them by value and finds the evaluator by its id."""
    import pickle

    one: Any = configure([evaluator.spec.id])[0]
    back: Configured = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own bytes
    assert back == one
    assert back.evaluator is evaluator
    assert set(back.thresholds()) == set(evaluator.spec.keys)


CLAIMED = {
    "h2o": """
        AgentSanityCheck AnswerCorrectness AnswerRelevancy AnswerSemanticSimilarity
        AnswerSemanticSimilarityPerSentence Bleu Classification ContactInformationByop
        ContextChunkRelevancy ContextPrecision ContextRecall ContextRelevancy EncodingGuardrail
        FactCheckAgentic FairnessBias Faithfulness GptScoreMachineTranslation
        GptScoreQuestionAnswering GptScoreSummaryWithReference GptScoreSummaryWithoutReference
        JSONSchema LanguageMismatchByop LoopingDetection MeanReciprocalRank ParameterizableByop
        Perplexity PiiLeakage Procedure RagAnswerRelevancyNoJudge RagGroundedness RagHallucination
        RagStrStr Ragas Rouge SensitiveDataLeakage SexismByop StereotypeByop Summarization
        SummarizationByop Toxicity
    """,
    "ragas": """
        answer_correctness answer_relevancy answer_similarity aspect_critique
        context_entities_recall context_precision context_recall context_relevancy
        context_utilization faithfulness noise_sensitivity ragas_score
    """,
    "open_rag_eval": "autonuggetizer bert_score citation consistency hhem no_answer umbrela",
    "ragchecker": "all",
    "trulens": "triad",
}
"""Evaluators of each suite that are listed here, under the suite's own names."""


@pytest.mark.parametrize(("suite", "names"), CLAIMED.items())
def test_every_evaluator_of_the_suites_is_listed(suite: str, names: str) -> None:
    """More may come; none may go."""
    found = {name for spec in CATALOGUE.specs() for name in spec.names}
    if suite == "h2o":
        found = {name.rpartition(".")[2].removesuffix("Evaluator") for name in found}
        assert set(names.split()) <= found
    else:
        assert {f"{suite}:{name}" for name in names.split()} <= found


def test_ragcheckers_metrics_are_those_of_one_evaluator() -> None:
    """Eleven of them."""
    assert len(CATALOGUE["ragchecker"].spec.metrics) == 11


def test_a_new_file_is_an_evaluator_that_keeps_every_rule_of_this_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No list of files, no number of evaluators, no other test needs a change for it."""
    monkeypatch.setattr(CATALOGUE, "_evaluators", dict(CATALOGUE._evaluators))
    monkeypatch.setattr(evaluators, "__path__", [*evaluators.__path__, str(tmp_path)])
    (tmp_path / "greetings.py").write_text(NEW_EVALUATOR, "utf-8")
    evaluators.import_all([str(tmp_path)])
    added = CATALOGUE.find("greets")
    assert judge(added, [Case("k", "q", "Hello!")])[0].scores["greets"].value == 1.0
    rules = [rule for name, rule in globals().items() if name.startswith("test_")]
    own = [rule for rule in rules if "evaluator" in signature(rule).parameters]
    assert len(own) >= 7
    for rule in own:
        rule(evaluator=added)
    assert "| `greets` |" in markdown()

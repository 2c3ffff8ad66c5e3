"""The contract of evaluators with an expected answer: itself is ideal, junk is never good.

With the embedded pack, since a stand-in that counts words cannot fail here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

import guardrail_offline.evaluators  # noqa: F401 - importing registers the evaluators
from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.catalogue import CATALOGUE, AnyEvaluator
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.description import declines
from guardrail_offline.evaluators.pack_models import PackModels, load_models
from guardrail_offline.evaluators.result import Result
from guardrail_offline.runs.worker import score
from guardrail_service.types import Direction, MetricSpec, Passage
from tests.golden.measure_paraphrases import CUTS, KINDS, measured, written

EVALUATORS = [
    one for one in CATALOGUE if "expected" in one.spec.inputs and not one.spec.needs_judge
    and "causal_lm" not in one.spec.roles
]  # fmt: skip
NOTHING_TO_JUDGE = ("no_entity", "no_label", "no_value", "per_model", "answer_known")
OF_THE_QUESTION = {"ragas.ragas", "ragas.answer_relevancy"}
"""Closeness to the question, which the expected answer need not have."""
OF_PASSAGES = {
    "context_precision.context_precision", "context_recall.context_recall",
    "context_entities_recall.context_entities_recall", "ragas.context_precision",
    "ragas.context_recall", "ragchecker.claim_recall", "ragchecker.context_precision",
    "ragchecker.self_knowledge",
    "grammar.answer_retrieved",
    # What no passage supports is wrong, but no noise.
    "noise_sensitivity.noise_sensitivity_relevant",
    "noise_sensitivity.noise_sensitivity_irrelevant",
    "ragchecker.noise_sensitivity_in_relevant", "ragchecker.noise_sensitivity_in_irrelevant",
    "summarization_judge.model_retrieval_failures", "summarization_judge.model_parse_failures",
}  # fmt: skip
"""They say something about passages or about how the answer failed, and junk may do well."""
CHANCE = {"answer_strings.jaro_similarity": 0.75}
"""Any two texts share letters: a similarity of about 0.5 is none."""
QUESTIONS = [
    ("factoid", "What is the capital of France?", "Paris", "Paris is the capital of France."),
    ("amount", "Where does it melt?", "565 \u00b0C", "The alloy melts at 565 \u00b0C."),
    ("number", "How many seats has the hall?", "4,000", "The hall has 4,000 seats."),
    ("date", "When was Einstein born?", "14 March 1879", "Einstein was born on 14 March 1879."),
    ("yes", "Is parking free?", "Yes", "Parking is free."),
    ("no", "Is smoking allowed?", "No", "Smoking is not allowed."),
    ("name", "Who wrote it?", "Jane Austen", "The novel was written by Jane Austen."),
    ("list", "Which colours has the flag?", "red, white and blue", "It is red, white and blue."),
    ("short", "Which countries border Kenya?", *2 * ("Tanzania borders Kenya.",)),
    ("sentence", "How long may guests stay?", "Guests may stay for two weeks at most.",
     "Guests may stay for two weeks at most."),
    ("sentences", "What does parking cost, and when does the pool open?",
     "Parking behind the house costs five euros per night. The pool opens at seven.",
     "Parking behind the house costs five euros per night. The pool opens at seven."),
]  # fmt: skip
FOREIGN = [
    ("french", "Quand le mus\u00e9e est-il ferm\u00e9 ?", "Le mus\u00e9e est ferm\u00e9 le lundi.",
     "Le mus\u00e9e est ferm\u00e9 le lundi."),
    ("japanese", "\u65e5\u672c\u306e\u9996\u90fd\u306f\u3069\u3053\u3067\u3059\u304b\u3002",
     "\u65e5\u672c\u306e\u9996\u90fd\u306f\u6771\u4eac\u3067\u3059\u3002",
     "\u65e5\u672c\u306e\u9996\u90fd\u306f\u6771\u4eac\u3067\u3059\u3002"),
    ("russian", "\u041a\u043e\u0433\u0434\u0430?", "\u0412 1998 \u0433\u043e\u0434\u0443.",
     "\u0412 1998 \u0433\u043e\u0434\u0443."),
]  # fmt: skip
JUNK = ["???", "x", "...", "lorem ipsum dolor sit amet", "asdf qwer zxcv", "- - -", "\U0001f937",
        "42 bananas", "I like trains."]  # fmt: skip


@cache
def models() -> PackModels:
    """The pack that ships."""
    return load_models("embedded")


@cache
def judged(answer: str | None) -> list[dict[str, Result]]:
    """Return every evaluator's result of each question for one answer; None for the expected."""
    return _judged([
        Case(name, question, expected if answer is None else answer, expected, (Passage(text),),
             categories=("grammar",))
        for name, question, expected, text in QUESTIONS
    ])  # fmt: skip


def _judged(cases: Sequence[Case]) -> list[dict[str, Result]]:
    configured = configure([one.spec.id for one in EVALUATORS])
    found = score(list(enumerate(cases)), configured, models())
    return [dict(found[index]) for index in range(len(cases))]


def ideal(metric: MetricSpec) -> float:
    """Return the best value of a metric."""
    return metric.high if metric.direction is Direction.HIGHER else metric.low


def has_order(evaluator: AnyEvaluator, metric: MetricSpec, expected: str) -> bool:
    """Return whether a text has as many words as BLEU or ROUGE of an order needs."""
    order = metric.key.rpartition("_")[2]
    runs = evaluator.spec.id in ("bleu", "rouge") and order.isdigit()
    return not runs or len(expected.split()) >= int(order)


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda one: one.spec.id)
def test_the_expected_answer_itself_has_the_ideal_value(evaluator: AnyEvaluator) -> None:
    """A number, a date, a yes, a name, a list or sentences: every metric, or a reason."""
    for (name, _, expected, _), results in zip(QUESTIONS, judged(None), strict=True):
        for metric in evaluator.spec.metrics:
            path = f"{evaluator.spec.id}.{metric.key}"
            found = results[evaluator.spec.id].scores[metric.key]
            if path in OF_THE_QUESTION or not has_order(evaluator, metric, expected):
                continue
            if found.value is None:
                assert found.reason in NOTHING_TO_JUDGE, (name, path)
            else:
                assert found.value == pytest.approx(ideal(metric), abs=1e-6), (name, path)


@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda one: one.spec.id)
@pytest.mark.parametrize("junk", JUNK)
def test_junk_is_never_good(evaluator: AnyEvaluator, junk: str) -> None:
    """It stays on the wrong side of the threshold, or of the middle where there is none."""
    for (name, *_), results in zip(QUESTIONS, judged(junk), strict=True):
        for metric in evaluator.spec.metrics:
            path = f"{evaluator.spec.id}.{metric.key}"
            value = results[evaluator.spec.id].scores[metric.key].value
            if value is None or path in OF_PASSAGES:
                continue
            middle = (max(metric.low, 0.0) + metric.high) / 2
            cut = middle if metric.threshold is None else metric.threshold
            cut = CHANCE.get(path, cut)
            is_good = value >= cut if metric.direction is Direction.HIGHER else value < cut
            assert not is_good, (name, path, value)


@pytest.mark.parametrize("name", ["answer_correctness", "context_recall", "context_precision"])
@pytest.mark.parametrize("row", FOREIGN, ids=lambda row: row[0])
def test_a_text_in_any_language_is_itself(name: str, row: tuple[str, ...]) -> None:
    """No model has to read it."""
    key, question, expected, text = row
    (found,) = _judged([Case(key, question, expected, expected, (Passage(text),))])
    assert found[name].scores[name].value == pytest.approx(1.0)


def test_paraphrases_are_found_and_negations_are_not() -> None:
    """60 sentences of each kind; docs/evaluation.md has the numbers of the shipped pack."""
    assert len(written()) == 60
    for metric, counts in measured().items():
        assert set(counts) == set(KINDS)
        assert counts["same"] == 60, metric
        assert counts["negation"] <= 2, metric
        assert counts["paraphrase"] >= 28, metric
    assert len(CUTS) == 6


def several_cases() -> list[Case]:
    """Return cases with several passages and answers of every kind."""
    rivers = "The Elbe is 1,094 km long. It rises in the Krkonose mountains."
    food = "Kenya exports tea. Coffee grows on its hills."
    texts = [text for *_, text in QUESTIONS]
    answers = [None, "Paris is in Germany.", "The hall has 4,000 seats. It burned down in 1901."]
    return [
        Case(f"{name}-{number}", question, answer or expected, expected,
             tuple(map(Passage, (rivers, text, f"{texts[(place + 1) % len(texts)]} {food}"))),
             group=name)
        for place, (name, question, expected, text) in enumerate(QUESTIONS)
        for number, answer in enumerate(answers)
    ]  # fmt: skip


def test_no_number_has_two_names_without_saying_so() -> None:
    """What is declared is the same, and what is always the same is declared."""
    specs = [one.spec for one in CATALOGUE if not declines(one.spec)]
    configured = configure([spec.id for spec in specs])
    cases = several_cases()
    found = score(list(enumerate(cases)), configured, models())
    columns = {
        f"{spec.id}.{key}": tuple(found[i][spec.id].scores[key].value for i in range(len(cases)))
        for spec in specs
        for key in spec.keys
    }
    declared = {f"{spec.id}.{key}": other for spec in specs for key, other in spec.same_as.items()}
    for path, other in declared.items():
        pairs = zip(columns[path], columns[other], strict=True)
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        assert both
        assert all(a == b for a, b in both), path
    by_values: dict[tuple[float | None, ...], set[str]] = {}
    for path, values in columns.items():
        if len(set(values)) > 4:  # few values may agree by chance
            by_values.setdefault(values, set()).add(declared.get(path, path))
    doubled = {names for names in map(frozenset, by_values.values()) if len(names) > 1}
    assert doubled == BY_CHANCE


BY_CHANCE = {
    frozenset({"rouge.rouge_1", "rouge.rouge_l"}),
    frozenset({"aspect_critique.maliciousness", "toxicity.identity_attack"}),
    frozenset({"bias.fairness_bias", "bias.group"}),
}
"""Metrics that agree on these few cases and are defined otherwise: words in order, and twice the
highest of three labels."""

"""Perplexity and GPTScore by a real language model, from a pack's folder to the metric."""

from __future__ import annotations

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.pack_models import PackModels, load_models
from guardrail_offline.runs.worker import score
from tests import tiny_language, tiny_pack

SOURCE = "The Alder is the longest river of the valley and flows to the sea in the north."
RIGHT, WRONG, UNRELATED = (
    "The longest river is the Alder.",
    "The longest river is the Birch.",
    "Bananas are yellow.",
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> PackModels:
    """A pack that serves `causal_lm`, loaded as a run loads it."""
    folder = tiny_pack.build(tmp_path_factory.mktemp("language") / "pack")
    tiny_language.add(folder)
    return load_models(str(folder))


def value(models: PackModels, evaluator: str, metric: str, case: Case) -> float:
    """Return one metric of one case."""
    found = score([(0, case)], configure([evaluator]), models)[0][evaluator].scores[metric]
    assert found.value is not None, found.reason
    return found.value


@pytest.mark.parametrize(
    ("fluent", "one_wrong", "scrambled"),
    [
        (
            "The capital of the valley is Tarn.",
            "The capital of the valley is cheese.",
            "Valley cheese the of is the capital.",
        ),
        (
            "The river is cold in winter and the dog sleeps by the mill.",
            "The river is cold in winter and the dog sleeps by the moon.",
            "Winter moon and dog the is the river by cold in the sleeps.",
        ),
        (
            "The children walk across the bridge to the market of the village.",
            "The children walk across the bridge to the market of the coins.",
            "Coins the of children the bridge walk to market across the the.",
        ),
    ],
)
def test_known_answer_52_a_wrong_word_surprises_and_scrambled_words_surprise_most(
    models: PackModels, fluent: str, one_wrong: str, scrambled: str
) -> None:
    """None of these texts stands in what the model was made from. Known answer 52."""
    assert fluent not in " ".join(tiny_language.PROSE.split())
    found = [
        value(models, "perplexity", "perplexity", Case("k", "q", answer))
        for answer in (fluent, one_wrong, scrambled)
    ]
    assert 1 < found[0] < found[1] < found[2] / 5


@pytest.mark.parametrize("metric", ["factuality", "consistency", "relevance"])
def test_known_answer_52_a_summary_of_its_source_is_likelier_than_a_wrong_one(
    models: PackModels, metric: str
) -> None:
    """Right < one wrong name < another subject, as in GPTScore's. Known answer 52."""
    name = "summarization_without_reference_gptscore"
    found = [value(models, name, metric, Case("k", SOURCE, t)) for t in (RIGHT, WRONG, UNRELATED)]
    assert found == sorted(found)
    assert len(set(found)) == 3


@pytest.mark.parametrize(
    ("evaluator", "metric"),
    [
        ("machine_translation_gptscore", "accuracy"),
        ("summarization_with_reference_gptscore", "factuality"),
    ],
)
def test_known_answer_52_with_a_reference_the_nearer_answer_is_likelier(
    models: PackModels, evaluator: str, metric: str
) -> None:
    """The mean of both ways, each after the other text."""
    cases = [Case("k", "q", answer, RIGHT) for answer in (RIGHT, WRONG, UNRELATED)]
    found = [value(models, evaluator, metric, case) for case in cases]
    assert found == sorted(found)
    assert len(set(found)) == 3


def test_question_answering_asks_how_likely_yes_is_after_the_conversation(
    models: PackModels,
) -> None:
    """The row as GPTScore writes it, spelled out here and given to the model itself."""
    row = (
        "Answer the question based on the conversation between a human and AI. Question: Are the "
        "responses of AI fluently written? (a) Yes. (b) No. Conversation: Human: Which river is "
        "the longest? AI: The longest river is the Alder. Answer: "
    )
    (expected,) = -models.log_probabilities(row, "Yes")
    case = Case("k", "Which river is the longest?", RIGHT)
    found = value(models, "question_answering_gptscore", "fluency", case)
    assert found == pytest.approx(float(expected))
    assert found > 0


def test_a_text_longer_than_the_model_reads_has_no_value(models: PackModels) -> None:
    """Nothing is cut, so nothing is judged by its beginning."""
    found = score([(0, Case("k", "q", "river " * 5000))], configure(["perplexity"]), models)
    missing = found[0]["perplexity"].scores["perplexity"]
    assert (missing.value, missing.reason) == (None, "row_failed")

"""Abstention: measured on answers labelled before the rules, and the rules one by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_service.detectors.no_answer.detector import (
    NoAnswer,
    NoAnswerParameters,
    abstains,
    claims_nothing,
)
from guardrail_service.text.sample import SegmentedSample
from guardrail_service.text.segmentation.sentences import split_sentences
from guardrail_service.types import Sample

# 183 answers in nine languages, written and labelled for this project, under its licence. The
# 93 of the split `heldout` were written first and looked at once, after tuning on the others.
GOLDEN = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "golden" / "no_answer.jsonl").read_text().splitlines()
]

WORDINGS = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "golden" / "claims_nothing.jsonl")
    .read_text()
    .splitlines()
]
"""Usual wordings of abstention and courtesy in ten languages, and claims that look like them."""
CLAIMS = {
    "en": "The price is thirty euros.",
    "de": "Der Preis beträgt dreißig Euro.",
    "fr": "Le prix est de trente euros.",
    "es": "El precio es de treinta euros.",
    "it": "Il prezzo è di trenta euro.",
    "pt": "O preço é de trinta euros.",
    "nl": "De prijs is dertig euro.",
    "pl": "Cena wynosi trzydzieści euro.",
    "zh": "价格是三十欧元。",
    "ja": "料金は三十ユーロです。",
}


def judged(answer: str, question: str | None) -> list[str]:
    """Return the sentences of an answer that claim something."""
    return [s.text for s in split_sentences(answer) if not claims_nothing(s.text, question)]


def wordings(kind: str, lang: str) -> list[dict[str, str]]:
    """Return the rows of one class and language."""
    return [row for row in WORDINGS if (row["class"], row["lang"]) == (kind, lang)]


@pytest.mark.parametrize("lang", CLAIMS)
def test_usual_abstentions_and_courtesy_claim_nothing(lang: str) -> None:
    """200 wordings of abstention in English, 40 in each other language; nothing is judged."""
    abstentions, polite = wordings("abstention", lang), wordings("courtesy", lang)
    assert len(abstentions) >= (200 if lang == "en" else 40)
    assert len(polite) >= 10
    rows = [*abstentions, *polite]
    assert [r["answer"] for r in rows if judged(r["answer"], r["question"])] == []


@pytest.mark.parametrize("lang", CLAIMS)
def test_what_goes_on_to_claim_something_is_judged(lang: str) -> None:
    """In a sentence of its own, behind any wording, and in the same one."""
    for row in [*wordings("abstention", lang), *wordings("courtesy", lang)]:
        claim = CLAIMS[lang]
        assert judged(f"{row['answer']} {claim}", row["question"]), row["answer"]
        within = f"{row['answer'].rstrip('.。!?')}, {claim}"
        assert judged(within, row["question"]), within
    rows = wordings("claim", lang)
    assert len(rows) >= 6
    assert [r["answer"] for r in rows if not judged(r["answer"], r["question"])] == []


def says_nothing(answer: str, question: str | None = "What is the fee?") -> bool:
    """Return whether the detector calls the answer an abstention."""
    return abstains(SegmentedSample(Sample(answer, question)))


@pytest.mark.parametrize("split", ["tuning", "heldout"])
def test_no_labelled_claim_is_called_an_abstention(split: str) -> None:
    """Precision 1.0: a claim taken for an abstention would go unchecked."""
    rows = [row for row in GOLDEN if row["split"] == split and not row["abstains"]]
    assert len(rows) >= 45
    assert [r["answer"] for r in rows if says_nothing(r["answer"], r["question"])] == []


@pytest.mark.parametrize(("split", "recall"), [("tuning", 1.0), ("heldout", 0.93)])
def test_most_labelled_abstentions_are_recognised(split: str, recall: float) -> None:
    """Recall at the first look was 43/46 held out; see docs/decisions/0003."""
    rows = [row for row in GOLDEN if row["split"] == split and row["abstains"]]
    found = [row for row in rows if says_nothing(row["answer"], row["question"])]
    assert len(rows) >= 44
    assert len(found) / len(rows) >= recall


@pytest.mark.parametrize(
    "claim",
    [
        "The fee is 30 euros.",
        "I don't know exactly, but the fee is about thirty euros.",
        "I don't know (probably thirty euros).",
        "I don't know: thirty euros, I guess.",
        "The documents do not mention the fee, which means that it is free.",
        "The documents do not mention the fee. It is thirty euros.",
        "I cannot find the fee because it was abolished.",
        "Sorry. The fee is thirty euros.",
        "I do not know the fee and the office is closed today.",
        "I don't know of any fee.",
        "I could not find any evidence that a fee is charged.",
    ],
)
def test_an_abstention_with_a_claim_is_a_claim(claim: str) -> None:
    """Every clause has to abstain or be courtesy."""
    assert not says_nothing(claim)


def test_a_gap_in_the_sources_counts_only_for_what_was_asked() -> None:
    """To another question, "no fee is mentioned" is information."""
    gap = "The documents do not mention a fee."
    assert says_nothing(gap, "What is the fee?")
    assert not says_nothing(gap, "Which documents do I need?")
    assert not says_nothing(gap, "Do the documents mention a fee?")
    assert not says_nothing(gap, "Is there a fee?")
    assert not says_nothing(gap, None)
    assert says_nothing("The documents do not contain this information.", None)


def test_a_number_that_was_not_asked_about_is_a_claim() -> None:
    """Numbers are the facts that hide best in polite sentences."""
    assert says_nothing("I don't know the fee for 2024.", "What is the fee for 2024?")
    assert not says_nothing("I don't know the fee for 2024.", "What is the fee?")
    assert not says_nothing("I don't know. Please call support at 555-0199.")


@pytest.mark.parametrize(
    "courtesy",
    [
        "Please contact support.",
        "Let me know if you need anything else.",
        "Sorry for the inconvenience.",
    ],
)
def test_courtesy_goes_with_an_abstention_and_is_none(courtesy: str) -> None:
    """It asserts nothing, but it does not decline either."""
    assert says_nothing(f"I don't know. {courtesy}")
    assert not says_nothing(courtesy)


@pytest.mark.parametrize(
    "wish",
    [
        "I wish your sister a smooth recovery.",
        "You're doing the right thing.",
        "I can see why you're disappointed.",
        "What lovely news!",
        "Take care of yourself, and tell me if you get stuck.",
    ],
)
def test_wishes_and_sympathy_claim_nothing(wish: str) -> None:
    """Nobody can check them against a passage."""
    assert claims_nothing(wish, "My tap is broken, what can I do?")


@pytest.mark.parametrize(
    "claim",
    [
        "I wish you well, and the fee is waived.",
        "I wish you a free upgrade, which is included.",
        "I can see why you are upset that your refund was rejected.",
        "I can understand how you feel that the dog may not swim.",
        "You are doing the right thing, since late payers lose the cover.",
        "What great news that breakfast is served till noon!",
        "Congratulations, your loan was approved.",
        "It must be renewed every spring.",
        "This must be signed by the tenant.",
        "I hope you enjoy the free breakfast.",
        "My thoughts are that the pool opens early.",
        "Congratulations on winning the prize of the month!",
    ],
)
def test_a_claim_inside_a_wish_is_a_claim(claim: str) -> None:
    """Kind words do not carry it past the model."""
    assert not claims_nothing(claim, "My tap is broken, what can I do?")


def test_the_metric_is_reported_and_gates_nothing() -> None:
    """1.0 answered, 0.0 the whole answer abstains."""
    spec = NoAnswer.spec
    assert not any(metric.gating for metric in spec.metrics)
    for answer, score in (("I don't know.", 0.0), ("Thirty euros.", 1.0)):
        sample = SegmentedSample(Sample(answer, "What is the fee?"))
        outcome = NoAnswer().reduce(sample, (), NoAnswerParameters())
        assert outcome.scores == {"answered": score}
        assert len(outcome.spans) == (score == 0.0)


@given(st.sampled_from([row for row in GOLDEN if row["abstains"]]), st.integers(10, 99))
def test_a_claim_after_any_abstention_makes_it_an_answer(row: dict[str, str], price: int) -> None:
    """The rule that keeps the door shut."""
    assert not says_nothing(f"{row['answer']} The price is {price} euros.", row["question"])


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "part", ["I don't know. ", "I don't know, ", "sorry ", "and ", "the ", "((((", "不知道"]
)
def test_long_answers_cost_no_time(part: str) -> None:
    """Sentences, clauses and softeners are bounded."""
    assert isinstance(says_nothing(part * 5_000), bool)

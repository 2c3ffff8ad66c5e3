"""Variants are seeded, chained, linked to their source, and never made from a variant."""

from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.perturbation.variants import (
    INTENSITIES,
    PERTURBATIONS,
    Unchanged,
    parse,
    perturb,
    perturbed,
    variant,
)
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Passage

TEXT = "How many lovely large tools may a member borrow, and why always for a lazy week?"
CASE = Case("k", TEXT, "Five.", "Five.", categories=("qa",), model="m", cost=1.0, group="g")


OF_QUESTIONS = [name for name, one in PERTURBATIONS.items() if one.change is not None]


def test_the_seeds_list_is_complete() -> None:
    """Five kinds of character, y/z, comma, swap, synonym, antonym, two encodings, passages."""
    assert len(PERTURBATIONS) == 13
    assert set(PERTURBATIONS) - set(OF_QUESTIONS) == {"contextual_misinformation"}


@pytest.mark.parametrize("name", OF_QUESTIONS)
@pytest.mark.parametrize("intensity", INTENSITIES)
def test_the_same_seed_gives_the_same_variant(name: str, intensity: str) -> None:
    """And always another text."""
    one = perturbed(TEXT, [name], intensity, "7")  # type: ignore[arg-type]
    assert one == perturbed(TEXT, [name], intensity, "7")  # type: ignore[arg-type]
    assert one != TEXT


def test_another_seed_and_another_case_give_another_variant() -> None:
    """Where something is drawn."""
    found = {variant(CASE, ["comma"], "medium", seed).question for seed in range(8)}
    assert len(found) > 1


def test_a_higher_intensity_changes_more() -> None:
    """Counted in commas."""
    commas = [perturbed(TEXT, ["comma"], level, "1").count(",") for level in INTENSITIES]
    assert commas == sorted(commas)
    assert commas[0] < commas[-1]


def test_a_chain_applies_one_after_the_other() -> None:
    """Commas, then base64 of the text with commas."""
    encoded = perturbed(TEXT, ["comma", "base64"], "low", "1")
    assert base64.b64decode(encoded).decode().replace(",", "") == TEXT.replace(",", "")


def test_a_variant_is_linked_named_and_unanswered() -> None:
    """An answer to the original would say nothing about robustness."""
    found = variant(CASE, ["comma", "base16"], "high", 1)
    assert (found.key, found.source, found.group) == ("k~comma+base16~high", "k", "g")
    assert (found.answer, found.cost, found.expected) == (None, None, "Five.")
    assert found.categories == (
        "qa",
        "perturbed",
        "perturbed_by:comma+base16",
        "perturbation_intensity:high",
        "base16",
    )


def test_a_text_with_nothing_to_change_is_reported_not_kept() -> None:
    """No y, no z."""
    with pytest.raises(Unchanged):
        perturbed("What is it?", ["qwerty"], "high", "1")
    found = perturb([Case("k", "What is it?")], [["qwerty"]], ["high"], 1)
    assert (found.added, found.unchanged) == (0, ("k~qwerty~high",))
    assert [case.key for case in found.cases] == ["k"]


def test_variants_are_not_perturbed_again() -> None:
    """A second run over its own output adds the same variants only to originals."""
    first = perturb([CASE], [["comma"]], ["low", "high"], 1)
    again = perturb(first.cases, [["word_swap"]], ["low"], 1)
    assert (first.added, again.added) == (2, 1)


def test_a_variant_that_is_there_is_not_made_again() -> None:
    """A key must occur once; whether it was read or was asked for twice."""
    first = perturb([CASE], [["comma"]], ["low"], 1)
    again = perturb(first.cases, [["comma"], ["qwerty"]], ["low"], 2)
    assert (again.added, again.present) == (1, ("k~comma~low",))
    assert [case.key for case in again.cases] == ["k", "k~qwerty~low", "k~comma~low"]
    twice = perturb([CASE], [["comma"], ["comma"]], ["low"], 1)
    assert (twice.added, twice.present) == (1, ("k~comma~low",))


def test_names_are_checked() -> None:
    """With what there is."""
    assert parse("comma + qwerty") == ("comma", "qwerty")
    with pytest.raises(ConfigurationError, match="one of random_replacement"):
        parse("comma+nonsense")


def test_a_question_with_another_answer_says_so_and_others_do_not() -> None:
    """Every perturbation expects one or the other; of a chain one part is enough."""
    other = {name for name, one in PERTURBATIONS.items() if one.other_answer}
    assert other == {"antonym"}
    assert variant(CASE, ["antonym"], "low", 1).has_other_answer
    assert variant(CASE, ["comma", "antonym"], "low", 1).has_other_answer
    assert not variant(CASE, ["comma", "synonym"], "low", 1).has_other_answer


def test_contradicted_passages_are_linked_to_what_was_put_in() -> None:
    """The question stays, and so does every true sentence."""
    passages = (Passage("Members may borrow 5 tools. It is open on Monday."), Passage("None."))
    case = replace(CASE, contexts=passages, expected="5 tools")
    found = variant(case, ["contextual_misinformation"], "low", 1)
    links = {link.type: link.target for link in found.relationships}
    assert links["contradicted_sentence"] == "Members may borrow 5 tools."
    assert links["contradicting_sentence"] in found.contexts[0].text
    assert "Members may borrow 5 tools." in found.contexts[0].text
    assert (found.question, found.contexts[1]) == (case.question, passages[1])
    with pytest.raises(Unchanged):
        variant(CASE, ["contextual_misinformation"], "low", 1)

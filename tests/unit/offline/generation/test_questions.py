"""Questions that rules make of one sentence, and sentences of which they make none."""

from __future__ import annotations

import pytest

from guardrail_offline.generation.chunks import DocumentChunk
from guardrail_offline.generation.clauses import list_items, plain_sentence, read_clause
from guardrail_offline.generation.extraction import TextBlock
from guardrail_offline.generation.plain_statements import statements_of
from guardrail_offline.generation.questions import wh_questions
from guardrail_offline.generation.rule_corpus import condition_of, other_value
from guardrail_service.detectors.facts.read import read

NAMES = {"Veltra", "Ghent", "Aquaflux", "Meterline", "Clara"}


def asked(sentence: str) -> list[tuple[str, str]]:
    """Return the questions about single facts of a sentence, with their answers."""
    text = f"{sentence} We met Veltra, Aquaflux and Clara Meyer in Ghent."
    chunk = DocumentChunk(
        "d#1", "d", 0, len(text), text, blocks=(TextBlock(0, len(text), "paragraph"),)
    )
    found = [q for s in statements_of([chunk], {"d": "T"}) for q in wh_questions(s)]
    return [(q.text.removeprefix('According to "T", '), q.answer) for q in found]


@pytest.mark.parametrize(
    ("sentence", "question", "answer"),
    [
        ("Veltra employs 412 people.", "How many people does Veltra employ?", "412 people"),
        ("A ticket costs 6 euros per day.", "how much does a ticket cost per day?", "6 euros"),
        ("The tower is 40 metres high.", "how high is the tower?", "40 metres"),
        ("The plant covers 12% of the demand.",
         "what percentage of the demand does the plant cover?", "12%"),
        ("Guests must pay an invoice within 30 days.",
         "within how many days must guests pay an invoice?", "30 days"),
        ("Members must pay 20 euros.", "how much must members pay?", "20 euros"),
        ("The house has four rooms.", "how many rooms does the house have?", "four rooms"),
        ("The warranty lasts at least 24 months.", "how many months does the warranty last?",
         "at least 24 months"),
        ("Veltra was founded in 1921.", "In which year was Veltra founded?", "1921"),
        ("In 1921, Veltra opened a plant.", "In which year did Veltra open a plant?", "1921"),
        ("Veltra opened on 3 May 2011.", "When did Veltra open?", "3 May 2011"),
        ("The shop closes at 18:30.", "at what time does the shop close?", "18:30"),
        ("The board meets on Tuesdays.", "on which day of the week does the board meet?",
         "Tuesdays"),
        ("Veltra was founded by Clara Meyer in 1921.", "Who founded Veltra in 1921?",
         "Clara Meyer"),
        ("Veltra is located in the old town.", "Where is Veltra located?", "in the old town"),
        ("Aquaflux is a software system for meters.", "What is Aquaflux?",
         "a software system for meters"),
        ("Clara Meyer was an engineer from Ghent.", "Who was Clara Meyer?",
         "an engineer from Ghent"),
        ("Passenger ferries carried 8,000 guests.",
         "how many guests did passenger ferries carry?", "8,000 guests"),
        ("The pump (see page 4) weighs 30 kg.", "how many kg does the pump weigh?", "30 kg"),
    ],
)  # fmt: skip
def test_a_fact_is_asked_for(sentence: str, question: str, answer: str) -> None:
    """Verbs agree, helpers are put in, and what is left of the sentence stays in it."""
    assert (question, answer) in asked(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "It was founded in 1921.",
        "This plan costs 12 euros.",
        "However, the plan costs 12 euros.",
        "Run the command in 1921.",
        "The report costs were 12 euros in 1921 and the plan failed in 1922.",
        "The service reads the file and writes 12 lines.",
        "The man who was born in 1921 lived here.",
        "The plant has offices built in 1990.",
        "The fine is between 10 and 20 euros.",
        "The limit grew from 10 euros in 1990 to 20 euros in 1999.",
        "A list: 12 items.",
        "Call run(12) in 1921.",
        "The rest is refused with 503.",
        "Is the tower 40 metres high?",
        "the tower is 40 metres high.",
        "No plant covers 40 rooms.",
        "The empire grew after the king's death in 1227.",
        "Long answers have more chances to be.",
    ],
)
def test_what_is_doubtful_is_not_asked(sentence: str) -> None:
    """Pronouns, orders, several statements in one, ranges and signs of code."""
    assert asked(sentence) == []


@pytest.mark.parametrize(
    ("sentence", "question", "denied"),
    [
        ("The pipes were renewed.", "were the pipes renewed", "the pipes were not renewed"),
        ("Veltra sells pumps.", "does Veltra sell pumps", "Veltra does not sell pumps"),
        ("Members pay a fee.", "do members pay a fee", "members do not pay a fee"),
        ("Veltra had a plant.", "did Veltra have a plant", "Veltra did not have a plant"),
        ("Guests can call a nurse.", "can guests call a nurse", "guests can not call a nurse"),
    ],
)
def test_a_clause_is_turned_round_and_denied(sentence: str, question: str, denied: str) -> None:
    """With the helper that English wants."""
    line = plain_sentence(sentence)
    assert line is not None
    clause = read_clause(line, lambda word, _sure: word in NAMES)
    assert clause is not None
    assert (clause.question(), clause.statement(negated=True)) == (question, denied)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("nitrate, lead and copper", None),
        ("tests for nitrate, lead and copper", (10, ("nitrate", "lead", "copper"))),
        ("are red, green, and dark blue", (4, ("red", "green", "dark blue"))),
        ("was built, and it stands", None),
    ],
)
def test_items_of_an_enumeration(text: str, items: tuple[int, tuple[str, ...]] | None) -> None:
    """They begin behind the last word that is no part of an item."""
    assert list_items(text) == items


@pytest.mark.parametrize(
    ("answer", "condition"),
    [
        ("24 months", 'word("24")'),
        ("four rooms", 'word("four") OR word("4")'),
        ("6,500 euros", 'word("6,500")'),
        ("March 2003", '"March" AND word("2003")'),
        ("in Ghent", '"Ghent"'),
        ("a small pump", None),
        ("10 and 20", None),
    ],
)
def test_a_condition_holds_what_a_right_answer_has(answer: str, condition: str | None) -> None:
    """Numbers stand alone, so that 24 is not found in 2024."""
    assert condition_of(answer) == condition


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("24 months", True),
        ("more than 100 rooms", False),
        ("Tuesdays", True),
        ("May 2003", True),
        ("95 %", True),
    ],
)
def test_another_value_is_of_the_same_form(text: str, changes: bool) -> None:
    """What has a bound is left alone: more than 50 does not contradict more than 100."""
    from random import Random

    fact = next(iter(read(text).facts), None)
    if fact is None:
        assert not changes
        return
    inside = text[fact.start : fact.end]
    other = other_value(fact, inside, Random(1))  # noqa: S311 - a test
    assert (other is not None and other != inside) == changes
    if changes and other is not None:
        assert [one.kind for one in read(other).facts] == [fact.kind]

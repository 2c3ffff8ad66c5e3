"""The ladder's rungs: pairs of texts with what they say of each other, and that they disagree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guardrail_offline.evaluators.shared.answer_match import (
    best_match,
    holds,
    match,
    polarity,
    same_statement,
    shares_nothing,
)

SAME = [
    ("equal", "Paris", "  paris. ", ""),
    ("equal", "The Seine", "Seine", ""),
    ("equal", "\u30d1\u30ea", "\u30d1\u30ea\u3002", ""),
    ("equal", "don\u2019t", "Don't", ""),
    ("yes_no", "Yes", "Yes, it is.", "Is it free?"),
    ("yes_no", "Yes", "Parking is free.", "Is parking free?"),
    ("yes_no", "No", "Smoking is not allowed.", "Is smoking allowed?"),
    ("number", "4,000", "4000", "How many seats?"),
    ("number", "4000", "four thousand", ""),
    ("number", "two", "2", "How many?"),
    ("date", "14 March 1879", "He was born on March 14th, 1879.", "When was he born?"),
    ("date", "1879-03-14", "14 March 1879", ""),
    ("date", "1879", "on 14 March 1879", "In which year?"),
    ("unit", "565 \u00b0C", "565 degrees Celsius", "At what temperature?"),
    ("unit", "565 \u00b0C", "565", "At what temperature?"),
    ("unit", "5 km", "5,000 metres", "How far is it?"),
    ("unit", "$5", "five dollars", ""),
    ("unit", "The tower is 324 metres tall.", "It stands 324 m high.", "How tall is the tower?"),
    ("alias", "USA", "the United States of America", ""),
    ("alias", "WHO", "World Health Organization", ""),
    ("alias", "NASA", "National Aeronautics and Space Administration", ""),
    ("same_items", "red, white and blue", "Blue, red, white", "Which colours?"),
    ("same_items", "- tea\n- coffee", "coffee and tea", ""),
    ("same_words", "Paris", "The capital of France is Paris.", "What is the capital of France?"),
    ("same_words", "The Seine flows in Paris", "In Paris the Seine flows", ""),
]
DIFFERENT = [
    ("no_words", "Paris", "???", ""),
    ("no_words", "Paris", "\U0001f937", ""),
    ("yes_no", "Yes", "No, it is not.", "Is it free?"),
    ("yes_no", "No", "Smoking is allowed.", "Is smoking allowed?"),
    ("number", "4,000", "4,500", ""),
    ("number", "-5", "5", ""),
    ("date", "14 March 1879", "20 March 1879", ""),
    ("unit", "5 km", "5 miles", ""),
    ("unit", "565 \u00b0C", "600 \u00b0C", ""),
    ("denied", "Parking is free", "Parking is not free", "Is parking free?"),
    ("denied", "Dogs are allowed", "Dogs are forbidden", ""),
]
OPEN = [
    ("Paris", "Lyon", ""),
    ("dog bites man", "man bites dog", ""),
    ("from Paris to Rome", "to Paris from Rome", ""),
    ("B, mostly", "C, mostly", "Is it B or C?"),
    ("a, b, c", "c, b, a", "In which order?"),
    ("14 March 1879", "1879", "When?"),
    ("4,012", "4,000", ""),
    ("at least 5", "5", ""),
    ("No", "No dogs are here.", "Are cats here?"),
    ("Room 5 and room 7", "Room 5", ""),
]


@pytest.mark.parametrize(("by", "expected", "actual", "question"), SAME)
def test_a_rung_calls_two_texts_one_answer(
    by: str, expected: str, actual: str, question: str
) -> None:
    """And names itself."""
    found = match(expected, actual, question)
    assert found is not None
    assert (found.same, found.by) == (True, by)


@pytest.mark.parametrize(("by", "expected", "actual", "question"), DIFFERENT)
def test_a_rung_calls_two_texts_different(
    by: str, expected: str, actual: str, question: str
) -> None:
    """Where no model has to be asked."""
    found = match(expected, actual, question)
    assert found is not None
    assert (found.same, found.by) == (False, by)


@pytest.mark.parametrize(("expected", "actual", "question"), OPEN)
def test_what_no_rung_can_tell_is_left_to_the_model(
    expected: str, actual: str, question: str
) -> None:
    """Rounded, coarser, turned around or merely alike."""
    assert match(expected, actual, question) is None


@given(st.text(min_size=1).filter(str.strip))
def test_a_text_is_itself(text: str) -> None:
    """Whatever it is."""
    found = match(text, text)
    assert found is not None
    assert found.same


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_any_texts_can_be_compared(one: str, other: str, question: str) -> None:
    """Nothing raises."""
    match(one, other, question)
    holds(one, other)
    shares_nothing(one, [other], question)


def test_a_value_answers_only_a_question_for_a_value() -> None:
    """In a passage, the same year is no support: it may be another thing's."""
    passage, claim = "The theatre opened in 1998.", "It opened in 1998."
    asked = "When did the museum open?"
    assert match(passage, claim, asked) is not None
    assert same_statement(passage, claim, asked) is None


def test_the_best_of_several_references_counts() -> None:
    """One that is the same, else what is open, else that all differ."""
    found = best_match(["4", "5"], "five")
    assert found is not None
    assert found.same
    assert best_match(["Paris", "5"], "6") is None
    different = best_match(["4", "5"], "6")
    assert different is not None
    assert not different.same


@pytest.mark.parametrize(
    ("sentence", "expected", "is_held"),
    [
        ("It was built in Paris.", "Paris", True),
        ("It was not built in Paris.", "Paris", False),
        ("France, in Western Europe, has cities.", "France is in Western Europe.", True),
        ("The Bank of Western Europe is in France.", "France is in Western Europe.", False),
    ],
)
def test_a_sentence_holds_a_short_answer(sentence: str, expected: str, is_held: bool) -> None:
    """Word for word or with all of its content in a row."""
    assert holds(sentence, expected) is is_held


@pytest.mark.parametrize(
    ("claim", "alien"),
    [
        ("lorem ipsum", True),
        ("x", True),
        ("Two.", False),
        ("German cheese", False),
        ("It is.", False),
    ],
)
def test_junk_shares_nothing(claim: str, alien: bool) -> None:
    """Neither a word nor a value."""
    assert shares_nothing(claim, ["Germany makes 2 kinds."], "Is Germany big?") is alien


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Yes.", True),
        ("No, never", False),
        ("No dogs", None),
        ("No. 5", None),
        ("\u306f\u3044", True),
    ],
)
def test_a_yes_stands_alone(text: str, says: bool | None) -> None:
    """Before a comma or the end."""
    assert polarity(text) is says


@pytest.mark.parametrize(
    ("question", "expected", "actual"),
    [
        ("When was he born?", "He was born in 1879 in Germany.", "He was born in Spain in 1879."),
        ("When and where was he born?", "In 1879 in Ulm.", "He was born in 1879."),
        (
            "What does it cost and when does it open?",
            "It costs 5 euros.",
            "For 5 euros you get it.",
        ),
    ],
)
def test_a_value_is_not_the_answer_where_more_is_asked_or_said(
    question: str, expected: str, actual: str
) -> None:
    """Another country, or a second question: claims decide."""
    found = match(expected, actual, question)
    assert found is None or not found.same

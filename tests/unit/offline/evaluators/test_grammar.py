"""Answers to generated questions: right by which rung, and who is to blame for a wrong one."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.evaluators.backends import choice_of
from guardrail_offline.evaluators.catalogue import CATALOGUE
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.grammar import PER_MODEL
from guardrail_offline.evaluators.pack_models import PackModels
from guardrail_offline.evaluators.result import Result
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.judge.stand_in import FakeJudge
from guardrail_offline.runs.totals import EvaluatorTally
from guardrail_offline.runs.worker import models_for, score
from guardrail_service.types import Passage

CONFIGURED = configure(["grammar"])
CHOICE = choice_of(JudgeSettings("https://judge.example/v1", "j"), ["grammar"])


@cache
def models() -> PackModels:
    """The pack that ships."""
    return models_for(CONFIGURED, "embedded")


def judged(*cases: Case) -> list[Result]:
    """Return the results of the cases of one question."""
    found = score(list(enumerate(cases)), CONFIGURED, models())
    return [found[index]["grammar"] for index in range(len(cases))]


def case(answer: str | None, expected: str | None = "Lisbon", *kinds: str, **more: Any) -> Case:
    """Return a generated case."""
    given: dict[str, Any] = {
        "question": "Heron: location?",
        "key": repr(answer),
        "group": "g",
    } | more
    categories = ("grammar", "sql:t", "style:short", *kinds)
    return Case(answer=answer, expected=expected, categories=categories, **given)


@pytest.mark.parametrize(
    ("answer", "expected", "right", "level"),
    [
        ("lisbon.", "Lisbon", 1, "equal"),
        ("The location of the project Heron is Lisbon.", "Lisbon", 1, "contained"),
        ("The location of the project Heron is Ghent.", "Lisbon", 0, "token_overlap"),
        ("I don't know.", "Lisbon", 0, "abstained"),
        ("The start date of Heron is 4 March 2018.", "2018-03-04", 1, "value"),
        ("4 March 2018", "2018-03-04", 1, "date"),
        ("The end date of Heron is 4 March 2019.", "2018-03-04", 0, "date"),
        ("It began between 1 May 2017 and 2 June 2019.", "2018-03-04", 0, "value"),
        ("There are three projects.", "3", 1, "value"),
        ("There are four projects.", "3", 0, "value"),
        ("There are not three projects here, as some say.", "3", 0, "value"),
        ("The location of Heron is not Lisbon.", "Lisbon", 0, "denied"),
        ("20.50 euros", "20.5 EUR", 1, "unit"),
        ("United States of America", "USA", 1, "alias"),
        ("bridge engineer", "senior engineer", 0, "nli"),
        ("It is situated in the town of Lisbon Bay.", "Lisbon Harbour", 0, "nli"),
    ],
)
def test_a_rung_decides_and_is_named(answer: str, expected: str, right: int, level: str) -> None:
    """From the surest down; a model is asked last."""
    (found,) = judged(case(answer, expected))
    assert (found.scores["correct"].value, found.details["level"]) == (right, level)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Birch and Alder", 1),
        ("- Alder\n- Birch", 1),
        ("The projects are Birch, and also Alder.", 1),
        ("Alder", 0),
        ("Alder, Birch and Cedar", 0),
    ],
)
def test_a_set_is_right_as_a_whole(answer: str, right: int) -> None:
    """In any order, with nothing lacking and nothing more in the list."""
    (found,) = judged(case(answer, "Alder\nBirch", "grammar:set"))
    assert found.scores["correct"].value == right


@pytest.mark.parametrize(("answer", "admits"), [("I do not know that.", 1), ("Ada Holm", 0)])
def test_of_what_nobody_knows_the_right_answer_is_to_say_so(answer: str, admits: int) -> None:
    """Such a case is in no group."""
    (found,) = judged(case(answer, None, "grammar:unknown", answerable=False))
    assert found.scores["admits_unknown"].value == admits
    assert found.scores["correct"].reason == "answer_unknown"
    assert CATALOGUE["grammar"].tally(found) is None


def test_other_labs_and_missing_answers_have_reasons() -> None:
    """Neither is a wrong answer."""
    assert judged(Case("k", "Q?", "A", "A"))[0].scores["correct"].reason == "not_generated"
    assert judged(case(None))[0].scores["correct"].reason == "no_answer"
    assert judged(case("Error 500: Internal Server Error"))[0].scores["correct"].reason == (
        "error_answer"
    )


HERON, IRIS = Passage("The location of Heron is Lisbon.", "heron"), Passage("Iris is old.", "iris")
OTHER = Passage("The location of Heron is Ghent.", "heron")
RIGHT = case("Lisbon", contexts=(HERON,), reference_ids=("heron",))


@pytest.mark.parametrize(
    ("contexts", "reference", "beside", "blame"),
    [
        # the lab says which document holds the answer
        ((HERON, IRIS), ("heron",), (RIGHT,), "language_model"),
        ((IRIS,), ("heron",), (RIGHT,), "retrieval"),
        ((Passage("Lisbon is far.", "x"),), ("heron",), (RIGHT,), "retrieval"),
        ((OTHER, Passage("Lisbon is far.", "x")), ("heron",), (), "knowledge"),
        ((OTHER,), ("heron",), (RIGHT,), "undecidable"),
        ((HERON,), ("heron",), (), "language_model"),
        ((IRIS,), ("heron",), (), "retrieval"),
        ((OTHER,), ("heron",), (), "knowledge"),
        # only ids: contexts are compared with those of right answers
        ((OTHER,), (), (RIGHT,), "language_model"),
        ((IRIS,), (), (RIGHT,), "retrieval"),
        ((IRIS,), (), (RIGHT, case("Lisbon", contexts=(IRIS,))), "language_model"),
        ((IRIS,), (), (RIGHT, case("Lisbon", contexts=(Passage("a", "a"),))), "undecidable"),
        # neither
        ((Passage(HERON.text),), (), (), "language_model"),
        ((Passage(IRIS.text),), (), (), "undecidable"),
        (None, ("heron",), (RIGHT,), "undecidable"),
    ],
)
def test_the_part_that_fails_is_named(
    contexts: Any, reference: Any, beside: tuple[Case, ...], blame: str
) -> None:
    """Retriever, language model, what the documents say, or nobody knows."""
    wrong = case("Ghent", contexts=contexts, reference_ids=reference)
    others = [Case(**{**{n: getattr(c, n) for n in c.__slots__}, "key": str(n_)})
              for n_, c in enumerate(beside)]  # fmt: skip
    found = judged(wrong, *others)[0]
    assert found.details["blame"] == blame
    assert found.details["group_is"] == ("non_robust" if beside else "gap")


def test_models_answer_for_themselves() -> None:
    """A right answer of one says nothing about another one's."""
    one, other = judged(case("Ghent", model="a"), case("Lisbon", model="b"))
    assert one.details["group_is"] == "gap"
    assert "blame" not in other.details


def test_what_exists_for_groups_only_comes_from_the_tally() -> None:
    """And without a right answer there is no robustness, rather than 0."""
    tally = EvaluatorTally(CONFIGURED[0])
    for result in judged(case("Lisbon"), case("Ghent")):
        tally.add("m", result)
    for result in judged(case("Ghent", group="h")):
        tally.add("m", result)
        tally.add("n", result)
    assert [tally.value("m", key) for key in PER_MODEL] == pytest.approx([0.5, 1 / 3, 0.5, 0.5])
    assert tally.value("n", "robustness") is None
    assert tally.value("n", "gap_share") == 1.0


def test_a_judge_is_asked_where_rules_pass_on_and_the_group_is_judged_as_before() -> None:
    """Of three answers one is equal, one is a value: only the third is asked about."""
    judge = FakeJudge({"same_answer": {"reason": "r", "judgement": "Correct"}})
    configured = configure(["grammar"], backends=CHOICE)
    cases = [
        case("Lisbon", key="1"),
        case("The capital of Portugal.", key="2"),
        case("Not in the capital.", key="3"),
        case("I don't know.", None, "grammar:unknown", key="4"),
    ]
    found = score(list(enumerate(cases)), configured, PackModels({}, judge=judge))
    results = [found[index]["grammar"] for index in range(4)]
    assert [name for name, *_ in judge.asked] == ["same_answer"] * 2
    assert [one.details.get("level") for one in results] == ["equal", "judge", "judge", None]
    assert results[1].scores["correct"].value == 1.0
    assert results[3].scores["admits_unknown"].value == 1.0
    failing = FakeJudge(lambda *_: FakeJudge.failing("parse_failure"))
    found = score(list(enumerate(cases)), configured, PackModels({}, judge=failing))
    assert found[1]["grammar"].scores["correct"].reason == "judge_parse_failure"
    assert not configured[0].evaluator.has_classes

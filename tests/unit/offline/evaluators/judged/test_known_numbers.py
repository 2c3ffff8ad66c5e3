"""The known numbers of the suites hold through the evaluators, on a server that is asked for real.

The verdicts are written here; calls, prompts, parsing and formulas are the shipped ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from guardrail_offline.datasets.cases import Case, Relationship
from guardrail_offline.evaluators.backends import choice_of
from guardrail_offline.evaluators.configured import configure
from guardrail_offline.evaluators.result import Result
from guardrail_offline.judge.judge_client import Judge, open_judge
from guardrail_offline.judge.judge_settings import JudgeSettings
from guardrail_offline.runs.totals import EvaluatorTally
from guardrail_offline.runs.worker import score
from guardrail_service.types import Passage
from tests.unit.offline.judge.scripted import judging, settings
from tests.unit.offline.stand_ins import models

Says = Callable[[str, Mapping[str, Any]], Any]


class Similar:
    """A cross-encoder that finds any two texts this much alike."""

    file = SimpleNamespace(languages=None, labels=None, outputs=("similarity",))
    tokenizer = None

    def __init__(self, value: float) -> None:
        self.value = value

    def run(self, row: Any) -> Any:
        """Return the value."""
        return SimpleNamespace(outputs={"similarity": self.value})


def scored(
    evaluator: str, says: Says, *cases: Case, alike: float = 0.8, sets: tuple[str, ...] = ()
) -> list[Result]:
    """Return an evaluator's results by a judge on a port of its own."""
    with judging(says) as (_, url):
        judge = open_judge(settings(url))
        given = models("embedding", similarity=Similar(alike))
        given.judge = judge
        return results(evaluator, judge, cases, given, sets)


def results(
    evaluator: str, judge: Judge, cases: tuple[Case, ...], given: Any, sets: tuple[str, ...]
) -> list[Result]:
    """Return the results of one evaluator, judged."""
    choice = choice_of(JudgeSettings(judge.settings.url, "m"), [evaluator])
    configured = configure([evaluator], [f"{evaluator}.{one}" for one in sets], backends=choice)
    found = score(list(enumerate(cases)), configured, given)
    return [found[place][evaluator] for place in range(len(cases))]


def values(result: Result) -> dict[str, float | None]:
    """Return the numbers of a result."""
    return {key: one.value for key, one in result.scores.items()}


def case(
    answer: str, expected: str | None = None, *passages: str, question: str = "What is known?"
) -> Case:
    """Return a case; passages have the ids p1, p2, ..."""
    found = tuple(Passage(text, f"p{n}") for n, text in enumerate(passages, start=1))
    return Case("k", question, answer, expected, found or None, group="g")


def tallied(evaluator: str, *found: Result) -> EvaluatorTally:
    """Return the totals of one model."""
    (configured,) = configure(
        [evaluator], backends=choice_of(JudgeSettings("http://x", "m"), [evaluator])
    )
    tally = EvaluatorTally(configured)
    for one in found:
        tally.add("m", one)
    return tally


def sentences(text: str) -> list[str]:
    """Return what the judge of these tests takes for statements."""
    return [part.strip() for part in text.replace("\n", " ").split(".") if part.strip()]


def claims(supports: Callable[[str, str], bool]) -> Says:
    """Return a judge that takes sentences apart and knows which text supports which statement."""

    def says(task: str, inputs: Mapping[str, Any]) -> Any:
        if task == "statements":
            return {"statements": sentences(inputs["text"])}
        if task == "useful_passage":
            found = any(supports(one, inputs["passage"]) for one in sentences(inputs["answer"]))
            return {"reason": "r", "verdict": "yes" if found else "no"}
        text = "\n".join(inputs["passages"])
        return {
            "verdicts": [
                {
                    "i": one["i"],
                    "reason": "r",
                    "verdict": "supported" if supports(one["text"], text) else "not_mentioned",
                }
                for one in inputs["statements"]
            ]
        }

    return says


def stands_in(statement: str, text: str) -> bool:
    """Return whether every word of a statement stands in a text."""
    return set(statement.split()) <= set(text.replace(".", " ").split())


WORDS = claims(stands_in)


@pytest.mark.parametrize(
    ("evaluator", "given", "expected"),
    [
        ("faithfulness", case("born ulm. born twentieth.", None, "born ulm fourteenth"), 0.5),
        ("context_precision", case("x", "paris capital", "wine", "paris capital"), 0.5),
        ("context_utilization", case("paris capital", None, "wine", "paris capital"), 0.5),
        ("context_recall", case("x", "france west. paris capital", "france west wine"), 0.5),
    ],
)
def test_one_of_two(evaluator: str, given: Case, expected: float) -> None:
    """Known answers 1, 2, 3, 4. The evaluator asks; nothing is put in."""
    (found,) = scored(evaluator, WORDS, given)
    assert next(iter(values(found).values())) == expected


TAJ = ["Taj Mahal", "Yamuna", "Agra", "1631", "Shah Jahan", "Mumtaz Mahal"]
ENTITIES = {
    "expected": TAJ,
    "first": ["the Taj Mahal", "Agra", "Shah  Jahan", "Mumtaz Mahal", "India"],
    "second": ["Taj Mahal", "UNESCO", "India"],
}


@pytest.mark.parametrize(("passage", "expected"), [("first", 4 / 6), ("second", 1 / 6)])
def test_entities_that_were_found(passage: str, expected: float) -> None:
    """Known answers 5, 6. Articles, blanks and case do not make another entity."""
    says: Says = lambda _, inputs: {"entities": ENTITIES[inputs["text"]]}  # noqa: E731
    (found,) = scored("context_entities_recall", says, case("x", "expected", passage))
    assert values(found) == {"context_entities_recall": expected}


def test_noise_from_a_relevant_passage() -> None:
    """Known answer 7. One of three claims is wrong and stands in a relevant passage."""
    given = case("aa. bb. cc.", "aa. bb. ee.", "aa bb cc ee", "ff")
    (found,) = scored("noise_sensitivity", WORDS, given)
    assert values(found) == {
        "noise_sensitivity_relevant": 1 / 3,
        "noise_sensitivity_irrelevant": 0.0,
    }


def test_correctness_of_one_right_one_wrong_and_one_missing_claim() -> None:
    """Known answer 8. F1 0.5 and a similarity of 0.8."""
    (found,) = scored("answer_correctness", WORDS, case("tt. ff.", "tt. nn."))
    assert values(found)["answer_correctness"] == pytest.approx(0.575)


def test_an_equal_answer_is_right_and_nobody_is_asked() -> None:
    """The rules come first."""
    nobody: Says = lambda task, _: {"unexpected": task}  # noqa: E731
    (found,) = scored("answer_correctness", nobody, case("4,000", "4000"))
    assert values(found) == {"answer_correctness": 1.0}
    (found,) = scored("semantic_match", nobody, case("4,000", "4000"))
    assert values(found) == {"semantic_match": 1.0}


def checker(response: str, expected: str, correct: str, answered: str) -> Result:
    """Return RAGChecker's metrics of verdicts written as text, asked of the judge one by one."""
    tables = {"c": response.split(), "e": expected.split()}
    mutual = {"c": correct, "e": answered}

    def supports(statement: str, text: str) -> bool:
        kind, number = statement[0], int(statement[1:])
        if text.startswith("P"):
            return tables[kind][number][int(text[1:])] == "1"
        return mutual[kind][number] == "1"

    answer = " ".join(f"c{n}." for n in range(len(tables["c"])))
    wanted = " ".join(f"e{n}." for n in range(len(tables["e"])))
    passages = [f"P{n}" for n in range(len(tables["c"][0]))]
    (found,) = scored("ragchecker", claims(supports), case(answer, wanted, *passages))
    return found


def test_ragchecker_has_its_published_examples() -> None:
    """Known answers 30, 31, 32. Own verdicts with the same eleven numbers, and their means."""
    first = checker(
        "1000 0100 1000 0010 0000 0000 0000 0000 0000 0000 0000",
        "1000 1000 0100 0100 0010" + 17 * " 0000",
        "11001111110",
        11 * "1" + 11 * "0",
    )
    numbers = (0.592593, 0.727273, 0.5, 0.227273, 0.75, 1.0, 0.181818, 0.0, 0.090909, 0.545455)
    assert list(values(first).values()) == pytest.approx([*numbers, 0.363636], abs=1e-6)
    second = checker("10 10 10 10 10", "10 10 10 11", "11110", "1110")
    numbers = (0.774194, 0.8, 0.75, 1.0, 1.0, 0.75, 0.2, 0.0, 0.0, 0.0)
    assert list(values(second).values()) == pytest.approx([*numbers, 1.0], abs=1e-6)
    tally = tallied("ragchecker", first, second)
    means = [100 * (tally.value("m", key) or 0.0) for key in first.scores]
    published = [68.3, 76.4, 62.5, 61.4, 87.5, 87.5, 19.1, 0.0, 4.5, 27.3, 68.2]
    assert [round(one, 1) for one in means] == published


@pytest.mark.parametrize(
    ("grades", "at_three", "average", "mrr"),
    [((3, 2, 3), 1.0, 1.0, 1.0), ((1, 3, 0), 1 / 3, 0.5, 0.5), ((1, 1, 0), 0.0, 0.0, 0.0)],
)
@pytest.mark.parametrize("prompt", ["standard", "plain"])
def test_grades_of_passages(
    grades: tuple[int, ...], at_three: float, average: float, mrr: float, prompt: str
) -> None:
    """Known answers 16, 17, 18. By both prompts."""

    def says(task: str, inputs: Mapping[str, Any]) -> Any:
        assert task == ("passage_grade" if prompt == "standard" else "passage_grade_plain")
        return {"intent": 1, "trust": 1, "grade": grades[int(inputs["passage"])]}

    given = case("x", None, *map(str, range(3)))
    (found,) = scored("umbrela", says, given, sets=(f"umbrela_prompt={prompt}",))
    numbers = values(found)
    assert numbers["precision_at_3"] == pytest.approx(at_three)
    assert numbers["average_precision_at_3"] == pytest.approx(average)
    assert numbers["mrr"] == mrr
    assert found.details["umbrela_scores"] == list(grades)


@pytest.mark.parametrize(
    ("importance", "assigned", "expected"),
    [
        (("vital", "okay"), ("support", "partial"), (1.0, 1.0, 0.75, 0.5, 0.83333, 0.66667)),
        (("vital", "vital"), ("support", "support"), (1.0,) * 6),
    ],
)
def test_nuggets_in_an_answer(
    importance: tuple[str, ...], assigned: tuple[str, ...], expected: tuple[float, ...]
) -> None:
    """Known answers 25, 26. Created, weighed and assigned by the judge."""

    def says(task: str, inputs: Mapping[str, Any]) -> Any:
        if task == "passage_grade":
            return {"intent": 1, "trust": 1, "grade": int(inputs["passage"] != "bread")}
        if task == "nuggets_create":
            assert inputs["passages"] == ["useful"]
            return {"nuggets": ["n1", "n2", "n1 "]}
        key, labels = (
            ("importance", importance) if "importance" in task else ("assignment", assigned)
        )
        named = [int(one["text"][1:]) for one in inputs["nuggets"]]
        return {"verdicts": [{"i": i, key: labels[n - 1]} for i, n in enumerate(named, 1)]}

    (found,) = scored("nuggets", says, case("the answer", None, "useful", "bread"))
    assert list(values(found).values()) == pytest.approx(expected, abs=1e-5)


def test_citations_of_three_parts() -> None:
    """Known answer 27. The last part cites nothing."""
    levels = {("one", "c1"): "full", ("one", "c2"): "none", ("two", "c1"): "partial"}

    def says(_: str, inputs: Mapping[str, Any]) -> Any:
        return {"support": levels[inputs["part"].split()[1].casefold(), inputs["passage"]]}

    given = case(
        "Part one is here [1, 2]. Part two is there [1]. Part three is bare.", None, "c1", "c2"
    )
    (found,) = scored("citations", says, given)
    assert list(values(found).values()) == pytest.approx([0.352941, 0.375, 1 / 3], abs=1e-5)


@pytest.mark.parametrize(
    ("evasive", "expected"),
    [(("no", "no", "no"), 0.8), (("yes", "no", "yes"), 0.8), (("yes",) * 3, 0)],
)
def test_an_answer_is_irrelevant_only_if_every_question_says_so(
    evasive: tuple[str, ...], expected: float
) -> None:
    """Ragas: 0 only if all are noncommittal; three questions are three calls with own seeds."""
    votes = iter(evasive)
    says: Says = lambda *_: {"question": "q?", "noncommittal": next(votes)}  # noqa: E731
    with judging(says) as (script, url):
        judge = open_judge(settings(url))
        given = models("embedding", similarity=Similar(0.8))
        given.judge = judge
        (found,) = results("answer_relevancy", judge, (case("an answer"),), given, ())
    assert values(found)["answer_relevancy"] == pytest.approx(expected)
    assert [body["seed"] for *_, body in script.seen] == [42, 43, 44]
    assert all(body["temperature"] > 0 for *_, body in script.seen)


def test_the_ragas_score_is_the_harmonic_mean_of_its_parts() -> None:
    """Known answer 10. One part of 0 makes 0, where a mean would be above it."""

    def says(task: str, inputs: Mapping[str, Any]) -> Any:
        if task == "question_of_answer":
            return {"question": "q?", "noncommittal": "no"}
        return WORDS(task, inputs)

    good = case("paris capital.", "paris capital.", "paris capital")
    (found,) = scored("ragas", says, good, alike=0.5)
    assert values(found)["ragas"] == pytest.approx(4 / (1 + 1 + 1 + 2))
    (found,) = scored("ragas", says, case("lyon.", "paris capital.", "paris capital"))
    assert values(found)["ragas"] == 0.0


def test_the_quickstarts_score_is_the_harmonic_mean_of_its_three_parts() -> None:
    """Known answer 9. Ours has a fourth part, which is perfect here and taken out again."""

    def says(task: str, inputs: Mapping[str, Any]) -> Any:
        if task == "question_of_answer":
            return {"question": "q?", "noncommittal": "no"}
        return WORDS(task, inputs)

    answer = " ".join(f"a{n}." for n in range(250))
    wanted = " ".join(f"w{n}." for n in range(500))
    passage = " ".join([f"a{n}" for n in range(223)] + [f"w{n}" for n in range(437)])
    (found,) = scored("ragas", says, case(answer, wanted, passage), alike=0.817)
    numbers = values(found)
    parts = [numbers[key] for key in ("answer_relevancy", "faithfulness", "context_recall")]
    assert parts == pytest.approx([0.817, 0.892, 0.874])
    assert numbers["context_precision"] == 1.0
    assert 3 / (4 / (numbers["ragas"] or 0.0) - 1) == pytest.approx(0.8597883, abs=1e-7)


GAP = (0, 3)
MIXED, BETTER = ((1, 3), (2, 3), (3, 3), (2, 3)), ((3, 3), (2, 3), (3, 3), (3, 3))


@pytest.mark.parametrize(
    ("groups", "accuracy", "robustness", "gap_share"),
    [
        (MIXED + 4 * (GAP,), 8 / 24, 8 / 12, 4 / 8),
        (MIXED + 2 * (GAP,), 8 / 18, 8 / 12, 2 / 6),
        (BETTER + 4 * (GAP,), 11 / 24, 11 / 12, 4 / 8),
    ],
    ids=["20", "21", "22"],
)
def test_groups_of_generated_questions(
    groups: tuple[tuple[int, int], ...], accuracy: float, robustness: float, gap_share: float
) -> None:
    """Known answers 20, 21, 22. No rule decides, so the judge marks every answer."""
    cases = [
        Case(
            f"{group}-{n}",
            "Heron: location?",
            "The capital of Portugal." if n < right else "Not in the capital.",
            "Lisbon",
            group=f"g{group}",
            categories=("grammar", "sql:t", "style:short"),
        )
        for group, (right, count) in enumerate(groups)
        for n in range(count)
    ]

    def says(task: str, inputs: Mapping[str, Any]) -> Any:
        assert (task, set(inputs)) == ("same_answer", {"question", "expected_answer", "answer"})
        right = "Portugal" in inputs["answer"]
        return {"reason": "r", "judgement": "Correct" if right else "Incorrect"}

    found = scored("grammar", says, *cases)
    assert {one.details["level"] for one in found} == {"judge"}
    tally = tallied("grammar", *found)
    assert tally.value("m", "correct") == pytest.approx(accuracy)
    assert tally.value("m", "robustness") == pytest.approx(robustness)
    assert tally.value("m", "gap_share") == pytest.approx(gap_share)
    assert accuracy == pytest.approx(robustness * (1 - gap_share))


def test_a_generated_question_without_a_verdict_has_no_number() -> None:
    """A judge that gives another word than its two is no judgement."""
    says: Says = lambda *_: {"reason": "r", "judgement": "Perhaps"}  # noqa: E731
    given = Case("k", "Heron: location?", "The capital.", "Lisbon", group="g",
                 categories=("grammar", "sql:t", "style:short"))  # fmt: skip
    (found,) = scored("grammar", says, given)
    assert found.scores["correct"].reason == "judge_parse_failure"


def test_relevant_sentences() -> None:
    """Ragas' older context relevancy: the share of sentences that are needed."""
    says: Says = lambda *_: {"relevant": [2]}  # noqa: E731
    given = case("x", None, "The ferry is red. It leaves at noon.", "Bread is good. So is wine.")
    (found,) = scored("context_relevancy", says, given)
    assert values(found) == {"context_relevancy": 0.25}


def test_the_triad_is_three_grades_of_three() -> None:
    """Means of passages and statements, divided by the highest grade."""

    def says(task: str, inputs: Mapping[str, Any]) -> Any:
        if task == "relevance":
            return {"reason": "r", "grade": {"good": 3, "bad": 0}.get(inputs["text"], 2)}
        if task == "support_levels":
            return {"grades": [{"i": i, "reason": "r", "grade": i} for i in (1, 2)]}
        return WORDS(task, inputs)

    (found,) = scored("rag_triad", says, case("aa. bb.", None, "good", "bad"))
    assert list(values(found).values()) == pytest.approx([0.5, 0.5, 2 / 3])


def test_steps_are_aligned_as_without_a_judge() -> None:
    """One step of three is left out: one insertion."""

    def says(_: str, inputs: Mapping[str, Any]) -> Any:
        return {"steps": sentences(inputs["text"])}

    given = case("open valve. wait long", None, "stop engine. open valve. wait long")
    (found,) = scored("step_alignment", says, given)
    numbers = values(found)
    assert (numbers["edits"], numbers["original_detected_steps"]) == (1.0, 3.0)


def test_the_majority_of_votes_is_one_of_real_votes() -> None:
    """Two of three; of two that differ there is none. Agreement is told."""
    votes = iter(["yes", "no", "yes"] * 2)

    def says(_: str, inputs: Mapping[str, Any]) -> Any:
        vote = next(votes)
        names = ("harmfulness", "maliciousness", "coherence", "correctness", "conciseness")
        return {"reason": "r", **dict.fromkeys(names, vote)}

    (found,) = scored("aspect_critique", says, case("an answer"))
    assert values(found)["harmfulness"] == 1.0
    assert found.scores["own_aspect"].reason == "no_own_aspect"
    assert found.details["agreement"]["harmfulness"] == pytest.approx(2 / 3)
    (found,) = scored("aspect_critique", says, case("an answer"), sets=("strictness=2",))
    assert found.scores["harmfulness"].reason == "tied_votes"


def test_an_aspect_of_ones_own() -> None:
    """A question about the answer; it stands in the instruction, the answer in the data."""

    def says(_: str, inputs: Mapping[str, Any]) -> Any:
        names = ("harmfulness", "maliciousness", "coherence", "correctness", "conciseness")
        return {"reason": "r", **dict.fromkeys(names, "no"), "own_aspect": "yes"}

    sets = ("own_aspect=Is `answer` in rhyme?", "strictness=1")
    (found,) = scored("aspect_critique", says, case("an answer"), sets=sets)
    assert values(found)["own_aspect"] == 1.0


@pytest.mark.parametrize(
    ("evaluator", "verdict", "passes"),
    [
        ("language_mismatch", "yes", 1.0),
        ("language_mismatch", "no", 0.0),
        ("contact_information", "yes", 0.0),
        ("sexism", "yes", 0.0),
        ("stereotypes", "no", 1.0),
        ("summarization_judge", "yes", 1.0),
    ],
)
def test_yes_and_no_mean_what_the_question_says(
    evaluator: str, verdict: str, passes: float
) -> None:
    """Contacts found are a failure, the same language is none."""
    says: Says = lambda *_: {"reason": "r", "verdict": verdict}  # noqa: E731
    (found,) = scored(evaluator, says, case("an answer", "expected"))
    numbers = values(found)
    assert (numbers["model_passes"], numbers["model_failures"]) == (passes, 1 - passes)
    assert numbers["model_parse_failures"] == 0.0


def test_an_empty_answer_is_no_answer_and_nobody_is_asked() -> None:
    """Others are asked about."""
    says: Says = lambda *_: {"verdict": "yes"}  # noqa: E731
    empty, given = scored("no_answer", says, case(" "), case("At noon."))
    assert (values(empty), values(given)) == ({"answered": 0.0}, {"answered": 1.0})


def test_the_score_of_a_fact_check_is_the_judges() -> None:
    """Between 0 and 1; the schema allows nothing else."""
    says: Says = lambda *_: {"summary": "s", "score": 0.25}  # noqa: E731
    (found,) = scored("fact_check", says, case("Agra is by the Rhine."))
    assert values(found) == {"fact_check": 0.25}


def test_a_rubric_asks_all_criteria_at_once() -> None:
    """And weighs them; the lowest stands beside the mean."""

    def says(_: str, inputs: Mapping[str, Any]) -> Any:
        return {"reason": "r", "level_1": "5", "level_2": "3"}

    sets = ('criteria={"tone": "Friendly?", "length": "Short?"}', 'weights={"tone": 3}')
    (found,) = scored("rubric", says, case("an answer"), sets=sets)
    assert values(found) == {"rubric": 0.875, "rubric_lowest": 0.5}
    assert found.details["criteria"] == {"tone": 1.0, "length": 0.5}
    (without,) = scored("rubric", says, case("an answer"))
    assert without.scores["rubric"].reason == "no_criteria"


@pytest.mark.parametrize(
    ("evaluator", "sets", "calls"),
    [
        ("rubric", ('criteria={"a": "A?", "b": "B?", "c": "C?"}',), 1),
        ("aspect_critique", ("strictness=1", "own_aspect=In rhyme?"), 1),
        ("aspect_critique", (), 3),
    ],
    ids=["rubric", "aspects", "three votes"],
)
def test_all_criteria_are_one_question(evaluator: str, sets: tuple[str, ...], calls: int) -> None:
    """Per vote, however many there are."""
    asked: list[str] = []

    def says(task: str, _: Mapping[str, Any]) -> Any:
        asked.append(task)
        if evaluator == "rubric":
            return {"reason": "r", "level_1": "5", "level_2": "3", "level_3": "1"}
        names = ("harmfulness", "maliciousness", "coherence", "correctness", "conciseness")
        own = {"own_aspect": "no"} if len(sets) == 2 else {}
        return {"reason": "r", **dict.fromkeys(names, "no"), **own}

    (found,) = scored(evaluator, says, case("an answer"), sets=sets)
    assert None not in list(values(found).values())[:2]
    assert len(asked) == calls


def test_signs_without_meaning_state_nothing() -> None:
    """Not what the question says: nothing is compared, and there is no share of nothing."""
    asked: list[str] = []

    def says(task: str, inputs: Mapping[str, Any]) -> Any:
        asked.append(task)
        return {"statements": []}

    (found,) = scored("faithfulness", says, case("???", None, "Ada built it.", question="Did Ada?"))
    assert values(found)["faithfulness"] is None
    assert "support" not in asked


def test_the_first_condition_that_holds_decides() -> None:
    """No later one is asked about."""
    asked: list[str] = []

    def says(task: str, inputs: Mapping[str, Any]) -> Any:
        asked.append(task)
        return {"reason": "r", "verdict": "true" if len(asked) == 2 else "false"}

    conditions = (
        '[{"when": "A?", "score": 0}, {"when": "B?", "score": 0.5}, {"when": "C?", "score": 1}]'
    )
    sets = (f"conditions={conditions}", "otherwise=0.25")
    (found,) = scored("decision_list", says, case("an answer"), sets=sets)
    assert (values(found), len(asked)) == ({"decision": 0.5}, 2)


def test_a_conversation_is_judged_once_at_its_last_turn() -> None:
    """With all turns before it, of its model only."""
    link = (Relationship("conversation", "c1"),)
    turns = [
        Case(f"t{n}", f"q{n}", f"a{n}", relationships=link, group="c1", model="m") for n in (1, 2)
    ]

    def says(_: str, inputs: Mapping[str, Any]) -> Any:
        assert [one["user"] for one in inputs["turns"]] == ["q1", "q2"]
        return {
            "reason": "r",
            "completeness": "5",
            "retention": "3",
            "relevancy": "1",
            "adherence": "4",
        }

    first, last = scored("conversation", says, *turns)
    assert first.scores["turn_relevancy"].reason == "not_the_last_turn"
    assert list(values(last).values()) == [1.0, 0.5, 0.0, None]
    (alone,) = scored("conversation", says, case("x"))
    assert alone.scores["turn_relevancy"].reason == "no_conversation"


def test_an_answer_is_checked_by_the_models_other_answers() -> None:
    """GRAMMAR's SelfCheck-QA: right if consistent with all of four samples."""
    cases = [
        Case(f"r{n}", "When?", text, group="g", model="m")
        for n, text in enumerate(["noon", "noon", "at noon", "noon!", "one"])
    ]

    def says(_: str, inputs: Mapping[str, Any]) -> Any:
        return {
            "verdict": "yes" if ("one" in inputs["answer"]) == ("one" in inputs["other"]) else "no"
        }

    found = scored("self_check", says, *cases)
    assert values(found[0]) == {"self_check": 0.0, "consistent_share": 0.75}
    (few,) = scored("self_check", says, cases[0])
    assert few.scores["self_check"].reason == "too_few_runs"


def test_a_match_is_marked_correct_or_not() -> None:
    """GRAMMAR's words."""
    says: Says = lambda *_: {"verdict": "Incorrect"}  # noqa: E731
    (found,) = scored("semantic_match", says, case("a score or so", "twelve people"))
    assert values(found) == {"semantic_match": 0.0}

"""A lab's open questions are asked once each, and a run that stopped goes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from guardrail_offline.datasets.cases import Case
from guardrail_offline.hosts.asking import GIVE_UP_AFTER, Asked, Journal, ask_cases
from guardrail_offline.hosts.errors import BadReply, HostRefused, HostUnavailable
from guardrail_offline.hosts.prices import TokenPrice, calls_meta
from guardrail_offline.hosts.targets import Answer, Question
from guardrail_service.errors import ConfigurationError
from guardrail_service.types import Passage

PASSAGES = (Passage("Open at nine.", "p1"),)


def upper(question: Question) -> Answer:
    """Answer in capitals."""
    return Answer(question.text.upper(), None, 0.5)


@dataclass
class Told:
    """A target that answers by a function and notes what it was asked."""

    answer: Callable[[Question], Answer] = upper
    name: str = "told"
    asked: list[Question] = field(default_factory=list)

    def ask(self, question: Question) -> Answer:
        """Note and answer."""
        self.asked.append(question)
        return self.answer(question)


def case(number: int, answer: str | None = None, model: str = "m") -> Case:
    """Return a case with a passage."""
    return Case(f"k{number}", f"q{number}", answer, contexts=PASSAGES, model=model)


def ask(target: Told, folder: Path, *cases: Case, **options: object) -> Asked:
    """Ask with a journal in a folder."""
    journal = Journal(folder / "out.json.answers.jsonl")
    return ask_cases(cases, target, journal, **options)  # type: ignore[arg-type]


def test_only_what_has_no_answer_is_asked(tmp_path: Path) -> None:
    """And nothing else of a case changes but answer and time."""
    target = Told()
    found = ask(target, tmp_path, case(1, "There."), case(2))
    assert [one.answer for one in found.cases] == ["There.", "Q2"]
    assert found.cases[1].duration_s == 0.5
    assert found.cases[1].contexts == PASSAGES
    assert target.asked == [Question("q2", ("Open at nine.",))]
    assert (found.answered, found.remembered, found.failed) == (1, 0, {})


def test_passages_that_the_target_used_replace_those_of_the_lab(tmp_path: Path) -> None:
    """It may search by itself, and is then not given any."""
    target = Told(lambda _: Answer("A", ("Found.",)))
    (found,) = ask(target, tmp_path, case(1), contexts=False).cases
    assert found.contexts == (Passage("Found."),)
    assert target.asked == [Question("q1", None)]


def test_ids_of_passages_come_along_and_are_remembered(tmp_path: Path) -> None:
    """Whoever asks which part is to blame compares passages by their ids."""
    target = Told(lambda _: Answer("A", ("Found.", "Too."), ids=("d1", None)))
    for answered in (1, 0):
        found = ask(target, tmp_path, case(1), contexts=False)
        assert found.answered == answered
        assert found.cases[0].contexts == (Passage("Found.", "d1"), Passage("Too."))


def test_a_second_run_asks_only_what_is_missing(tmp_path: Path) -> None:
    """Failed ones again, answered ones never; a line that was cut off is no answer."""
    cases = [case(number) for number in range(6)]

    def halting(question: Question) -> Answer:
        if question.text > "q2":
            raise HostUnavailable("down")
        return upper(question)

    first = ask(Told(halting), tmp_path, *cases, concurrency=1)
    assert (first.answered, first.failed) == (3, {"host_unavailable": 3})
    path = tmp_path / "out.json.answers.jsonl"
    path.write_text(path.read_text()[:-20])
    again = Told()
    second = ask(again, tmp_path, *cases, concurrency=1)
    texts = {question.text for question in again.asked}
    assert {"q3", "q4", "q5"} < texts
    assert len(again.asked) == 4
    assert (second.answered, second.remembered) == (4, 2)
    assert [one.answer for one in second.cases] == [f"Q{n}" for n in range(6)]
    third = Told()
    assert ask(third, tmp_path, *cases).remembered == 6
    assert third.asked == []


def test_an_answer_belongs_to_who_was_asked_what(tmp_path: Path) -> None:
    """Another target, another question or other passages are asked anew."""
    ask(Told(), tmp_path, case(1))
    for target, changed in ((Told(name="other"), case(1)), (Told(), Case("k1", "q1", model="m"))):
        assert ask(target, tmp_path, changed).answered == 1


def test_nobody_is_asked_after_many_failures_in_a_row(tmp_path: Path) -> None:
    """The host is down, and a thousand time-outs tell no more than ten."""

    def down(_question: Question) -> Answer:
        raise HostUnavailable("down")

    target = Told(down)
    found = ask(target, tmp_path, *(case(n) for n in range(60)), concurrency=1)
    assert found.stopped == "down"
    assert GIVE_UP_AFTER <= len(target.asked) < 60
    assert sum(found.failed.values()) == 60


@pytest.mark.parametrize(("status", "stops"), [(401, True), (404, True), (422, False)])
def test_a_wrong_key_stops_at_once_and_one_bad_question_does_not(
    status: int, stops: bool, tmp_path: Path
) -> None:
    """A question that is too long says nothing of the next one."""

    def refusing(question: Question) -> Answer:
        if question.text == "q0":
            raise HostRefused("host", status)
        return upper(question)

    found = ask(Told(refusing), tmp_path, *(case(n) for n in range(40)), concurrency=1)
    assert (found.stopped is not None) is stops
    assert ("not_asked" in found.failed) is stops
    assert found.cases[0].answer is None


def test_so_many_questions_at_a_time_and_no_more(tmp_path: Path) -> None:
    """Three are waited for together."""
    together, most, lock = threading.Barrier(3), [0, 0], threading.Lock()

    def waiting(question: Question) -> Answer:
        with lock:
            most[0] += 1
            most[1] = max(most)
        together.wait(60)
        with lock:
            most[0] -= 1
        return upper(question)

    ask(Told(waiting), tmp_path, *(case(n) for n in range(6)), concurrency=3)
    assert most[1] == 3


def test_one_target_does_not_answer_for_two_models(tmp_path: Path) -> None:
    """Unless one of them is named."""
    cases = (case(1, model="a"), case(2, model="b"))
    with pytest.raises(ConfigurationError, match="--for with one of a, b"):
        ask(Told(), tmp_path, *cases)
    found = ask(Told(), tmp_path, *cases, model="b")
    assert [one.answer for one in found.cases] == [None, "Q2"]


def test_a_reply_that_is_none_is_counted_by_its_kind(tmp_path: Path) -> None:
    """And its case stays open."""

    def odd(_question: Question) -> Answer:
        raise BadReply("host", "a list", "a text")

    found = ask(Told(odd), tmp_path, case(1))
    assert (found.failed, found.cases[0].answer) == ({"bad_reply": 1}, None)


def test_the_journal_holds_the_answer_and_no_question(tmp_path: Path) -> None:
    """A digest tells the question apart."""
    ask(Told(), tmp_path, case(1))
    (line,) = (tmp_path / "out.json.answers.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert set(record) == {"asked", "text", "contexts", "seconds"}
    assert "q1" not in line


def test_the_figures_of_all_calls_are_the_models(tmp_path: Path) -> None:
    """Those of an earlier run, too: their tokens, tries and cost are in the journal."""
    price = TokenPrice(input=1_000_000, output=2_000_000)
    counted = Told(lambda q: Answer("A", None, 0.5, (), (3, 1), 2, 2))
    cases = [case(number, model="mine") for number in range(2)]
    ask(counted, tmp_path, cases[0], price=price)

    def busy(question: Question) -> Answer:
        raise HostUnavailable("down")

    found = ask(Told(busy), tmp_path, *cases, price=price)
    assert (found.model, found.remembered) == ("mine", 1)
    assert [one.cost for one in found.cases] == [5.0, None]
    assert calls_meta(found.calls) == {
        "call_count": 2, "success_count": 1, "failure_count": 1, "timeout_count": 0,
        "retry_count": 1, "duration_stats": {"min": 0.5, "max": 0.5, "avg": 0.5, "sum": 0.5},
        "input_tokens": 3, "output_tokens": 1, "cached_tokens": 2, "cost": 5.0,
    }  # fmt: skip


def test_images_go_with_their_question_and_tell_it_apart(tmp_path: Path) -> None:
    """Another picture is another question."""
    pictures = [f"https://example.com/{name}.png" for name in "ab"]
    target = Told()
    with_images = [replace(case(n), question="q", images=(url,)) for n, url in enumerate(pictures)]
    assert ask(target, tmp_path, *with_images).answered == 2
    assert sorted(one.images[0].url for one in target.asked) == pictures
